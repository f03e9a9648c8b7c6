/* Cases of asks: a program that responds to what needs a person. */
#include "cases.h"

static const char asking[] =
    "local ah = require 'agenthost'\n"
    "local wonder = ah.tool { name = 'wonder', description = 'Asks.', params = { n = 'integer?' "
    "},\n"
    "  parallel = true, handler = function(args, ctx)\n"
    "    local cups, err = ctx:ask { question = 'How many?', schema = { type = 'integer' },\n"
    "      default = args.n, timeout = args.n and 60 }\n"
    "    return cups, err\n"
    "  end }\n"
    "local delete = ah.tool { name = 'delete', description = 'Deletes.', params = { id = 'integer' "
    "},\n"
    "  handler = function(args) return 'gone: ' .. args.id end }\n"
    "local function guarded(...)\n"
    "  local list = { ... }\n"
    "  return ah.agent { model = ah.scripted { { calls = list }, 'Done.' },\n"
    "    tools = { wonder, delete }, log = function() end,\n"
    "    policies = { function(call)\n"
    "      if call.arguments.id then return 'ask', 'it is gone then' end\n"
    "    end } }\n"
    "end\n"
    "local files = ah.filesystem { files = {} }\n"
    "local write = ah.tool { name = 'write', description = 'Writes.',\n"
    "  handler = function(_, ctx) ctx.filesystem:write('a', 'text') return 'written' end }\n"
    "local writer = ah.agent { model = ah.scripted { { calls = { { name = 'write', id = 'w1' } } "
    "},\n"
    "  function() return files:read 'a' or 'none' end }, tools = { write },\n"
    "  resources = { filesystem = files }, log = function() end,\n"
    "  policies = { { after = function() return 'ask', 'it writes' end } } }\n"
    "local one = { name = 'delete', id = 'd1', arguments = { id = 1 } }\n"
    "return { wonder, writes = writer,\n"
    "  deletes = guarded(one), wonders = guarded { name = 'wonder', id = 'w1' },\n"
    "  both = guarded({ name = 'wonder', id = 'w1', arguments = { n = 3 } },\n"
    "    { name = 'wonder', id = 'w2' }),\n"
    "  asks = ah.scripted { { calls = { { name = 'wonder', id = 'w1' } } }, 'Done.' },\n"
    "}\n";

static ah_host *open_asking(bool asks)
{
    ah_host *host = open_host((ah_config){.asks = asks});

    load(host, asking);
    return host;
}

static ah_agent *find(ah_host *host, const char *name)
{
    ah_agent *agent = NULL;

    STATUS(host, ah_agent_find(host, name, &agent), AH_OK);
    return agent;
}

/* Steps until there is an ask. */
static const ah_ask *wait_for_ask(ah_host *host)
{
    const ah_ask *ask = NULL;

    for (int i = 0; !(ask = ah_ask_next(host)) && i < 10000; i++)
        CHECK(ah_step(host, 1) > 0);
    CHECK(ask);
    return ask;
}

static void without_the_flag(void)
{
    ah_host *host = open_asking(false);
    ah_agent *agent = find(host, "deletes");

    CHECK(ah_ask_next(host) == NULL);
    CHECK(ah_last_error(host)->status == AH_USAGE);
    HAS(ah_errmsg(host), "`asks` of its ah_config");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    HAS(ah_agent_messages(agent), "this run has neither `approve` nor");
    agent = find(host, "wonders");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    HAS(ah_agent_messages(agent), "no front end can respond");
    shut(host);
}

static void of_an_approval(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = find(host, "deletes");
    char id[32];
    const ah_ask *ask;

    CHECK(ah_ask_next(host) == NULL);
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    ask = wait_for_ask(host);
    CHECK(strncmp(ask->id, "ask_", 4) == 0 && strcmp(ask->kind, "approval") == 0);
    CHECK(ask->agent == agent && ask->run > 0 && ask->seconds_left < 0 && !ask->secret);
    CHECK(strcmp(ask->question, "it is gone then") == 0 && ask->question_len == 15);
    CHECK(strcmp(ask->call, "d1") == 0 && strcmp(ask->tool, "delete") == 0);
    CHECK(strcmp(ask->args, "{\"id\":1}") == 0 && ask->args_len == 8);
    CHECK(!ask->parent_call && !ask->default_value && !ask->result && !ask->changes);
    HAS(ask->schema, "\"approved\"");
    snprintf(id, sizeof id, "%s", ask->id);
    CHECK(ah_ask_next(host) == NULL); /* it was seen, and is open still */
    STATUS(host, ah_ask_close(host, id, "{\"approved\":\"maybe\"}", NULL), AH_TOOL_VALIDATION);
    HAS(ah_errmsg(host), "/approved");
    STATUS(host, ah_ask_close(host, id, "yes", NULL), AH_TOOL_VALIDATION);
    HAS(ah_errmsg(host), "is not JSON");
    STATUS(host, ah_ask_close(host, id, NULL, NULL), AH_USAGE);
    STATUS(host, ah_ask_close(host, NULL, "true", NULL), AH_USAGE);
    STATUS(host, ah_ask_close(host, id, "true", ""), AH_USAGE);
    STATUS(host, ah_ask_close(host, id, "true", "\xff"), AH_USAGE);
    STATUS(host, ah_ask_close(host, "ask_77", "true", NULL), AH_USAGE);
    HAS(ah_errmsg(host), "there is no ask 'ask_77'");
    STATUS(host, ah_ask_close(host, "", "true", NULL), AH_USAGE);
    STATUS(host, ah_ask_close(host, id, "{\"approved\":true,\"arguments\":{\"id\":7}}", "ann"),
           AH_OK);
    STATUS(host, ah_ask_close(host, id, "false", "bob"), AH_USAGE);
    HAS(ah_errmsg(host), "already answered");
    step_until_done(host);
    HAS(ah_agent_messages(agent), "gone: 7");
    shut(host);
}

static void of_changes(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = find(host, "writes");
    const ah_ask *ask;

    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    ask = wait_for_ask(host);
    CHECK(strcmp(ask->kind, "approval") == 0 && strcmp(ask->question, "it writes") == 0);
    CHECK(strcmp(ask->result, "written") == 0);
    HAS(ask->changes, "\"path\":\"a\"");
    HAS(ask->changes, "+text");
    STATUS(host, ah_ask_close(host, ask->id, "{\"approved\":true,\"arguments\":{}}", NULL),
           AH_TOOL_VALIDATION);
    STATUS(host, ah_ask_close(host, ask->id, "true", "ann"), AH_OK);
    step_until_done(host);
    HAS(ah_agent_reply_json(agent), "\"text\":\"text\"");
    shut(host);
}

/* Returns the JSON of the next event of that type, or NULL. */
static const char *event_of(ah_host *host, const char *type)
{
    const ah_event *e;

    while ((e = ah_next_event(host)))
        if (strcmp(e->type, type) == 0)
            return e->json;
    return NULL;
}

static void is_told_and_names_who_responds(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = find(host, "deletes");
    char id[32];

    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    snprintf(id, sizeof id, "%s", wait_for_ask(host)->id);
    HAS(event_of(host, "ask"), "\"kind\":\"approval\"");
    STATUS(host, ah_ask_close(host, id, "false", "ann"), AH_OK);
    HAS(event_of(host, "ask_closed"),
        "\"how\":\"answered\",\"by\":\"ann\",\"value\":{\"approved\":false}");
    step_until_done(host);
    HAS(ah_agent_messages(agent), "Tool 'delete' was not run: not approved");
    shut(host);
}

static void of_parallel_handlers_with_a_default(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = find(host, "both");
    const ah_ask *ask;
    char first[32];

    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    ask = wait_for_ask(host);
    CHECK(strcmp(ask->kind, "question") == 0 && strcmp(ask->default_value, "3") == 0);
    CHECK(ask->seconds_left > 0 && ask->seconds_left <= 60 && strcmp(ask->call, "w1") == 0);
    snprintf(first, sizeof first, "%s", ask->id);
    ask = wait_for_ask(host);
    CHECK(strcmp(ask->call, "w2") == 0 && !ask->default_value && ask->seconds_left < 0);
    STATUS(host, ah_ask_close(host, ask->id, "\"22\"", NULL), AH_OK);
    STATUS(host, ah_ask_close(host, first, "11", NULL), AH_OK);
    step_until_done(host);
    HAS(ah_agent_messages(agent), "\"11\"");
    HAS(ah_agent_messages(agent), "\"22\"");
    shut(host);
}

static int64_t now;

static int64_t clock_of(void *ud)
{
    (void)ud;
    return now;
}

static void ends_by_the_clock_of_the_program(void)
{
    ah_host *host = open_host((ah_config){.asks = true, .clock = clock_of});
    ah_agent *agent;

    load(host, asking);
    agent = find(host, "both");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    CHECK(wait_for_ask(host)->default_value);
    CHECK(strcmp(wait_for_ask(host)->call, "w2") == 0);
    STATUS(host, ah_ask_close(host, "ask_2", "22", NULL), AH_OK);
    now += 59999;
    for (int i = 0; i < 20; i++)
        CHECK(ah_step(host, 0) == 1);
    now += 1;
    step_until_done(host);
    HAS(ah_agent_messages(agent), "\"content\":\"3\"");
    STATUS(host, ah_ask_close(host, "ask_1", "11", NULL), AH_USAGE);
    HAS(ah_errmsg(host), "its default was taken");
    shut(host);
}

static void is_over_with_its_run(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = find(host, "both"), *other = find(host, "deletes");

    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    wait_for_ask(host);
    ah_agent_cancel(agent);
    step_until_done(host);
    CHECK(ah_agent_reply(agent)->status == AH_CANCELLED);
    CHECK(ah_ask_next(host) == NULL);
    STATUS(host, ah_ask_close(host, "ask_1", "1", NULL), AH_USAGE);
    HAS(ah_errmsg(host), "the call that asked is over");
    HAS(event_of(host, "ask_closed"), "\"how\":\"cancelled\"");
    STATUS(host, ah_agent_start(other, "go"), AH_OK);
    wait_for_ask(host);
    ah_cancel(host);
    step_until_done(host);
    CHECK(ah_agent_reply(other)->status == AH_CANCELLED);
    shut(host);
}

static void is_open_when_the_agent_or_the_host_is_closed(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = find(host, "wonders");

    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    CHECK(strcmp(wait_for_ask(host)->tool, "wonder") == 0);
    ah_agent_close(agent);
    STATUS(host, ah_ask_close(host, "ask_1", "1", NULL), AH_USAGE);
    agent = find(host, "deletes");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    wait_for_ask(host);
    agent = find(host, "both");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    wait_for_ask(host);
    shut(host);
}

/* -- a program that waits in a call ---------------------------------------------------------- */

typedef struct waiting {
    ah_host *host;
    int seen;
    ah_status looked; /* what ah_ask_close gave in a function that only looks on */
} waiting;

static void on_event(void *ud, const ah_event *e)
{
    waiting *w = ud;

    if (strcmp(e->type, "ask") != 0)
        return;
    w->looked = ah_ask_close(w->host, "ask_1", "5", NULL);
    ah_wake(w->host);
}

static void woken(void *ud)
{
    waiting *w = ud;
    const ah_ask *ask;

    while ((ask = ah_ask_next(w->host))) {
        w->seen++;
        STATUS(w->host, ah_ask_close(w->host, ask->id, "5", "the terminal"), AH_OK);
    }
}

static void is_answered_in_woken_while_a_call_waits(void)
{
    waiting w = {0};
    ah_host *host = open_host((ah_config){
        .asks = true, .woken = woken, .woken_ud = &w, .watcher = {.event = on_event, .ud = &w}});
    ah_agent *agent;
    const char *value;

    w.host = host;
    load(host, asking);
    agent = agent_of(host, "{\"model\":\"asks\",\"tools\":[\"wonder\"]}");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    HAS(ah_agent_messages(agent), "\"content\":\"5\"");
    CHECK(w.seen == 1 && w.looked == AH_USAGE);
    STATUS(host, ah_call_tool(host, "wonder", NULL, &value), AH_OK);
    CHECK(strcmp(value, "5") == 0 && w.seen == 2);
    shut(host);
}

static void goes_to_front_ends_of_scripts_first(void)
{
    ah_host *host = open_host((ah_config){.asks = true});
    ah_agent *agent;

    load(
        host,
        "local ah = require 'agenthost'\n"
        "local n = 0\n"
        "local wonder = ah.tool { name = 'wonder', description = 'Asks.',\n"
        "  handler = function(_, ctx) return ctx:ask { question = '?' } end }\n"
        "local call = { calls = { { name = 'wonder' } } }\n"
        "return { a = ah.agent { tools = { wonder }, model = ah.scripted { call, call, 'Done.' },\n"
        "  asks = function() n = n + 1 if n == 1 then return 'script' end end } }\n");
    agent = find(host, "a");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    STATUS(host, ah_ask_close(host, wait_for_ask(host)->id, "\"program\"", NULL), AH_OK);
    step_until_done(host);
    HAS(ah_agent_messages(agent), "\"script\"");
    HAS(ah_agent_messages(agent), "\"program\"");
    shut(host);
}

static void is_no_field_of_an_agent_from_json(void)
{
    ah_host *host = open_asking(true);
    ah_agent *agent = NULL;

    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"asks\":true}", &agent), AH_USAGE);
    HAS(ah_errmsg(host), "ah_ask_next");
    shut(host);
}

/* A program that was built before there were asks. */
static void is_denied_to_older_programs(void)
{
    ah_config cfg = {.size = offsetof(ah_config, asks), .asks = true};
    ah_host *host = NULL;

    STATUS(NULL, ah_open(&cfg, &host), AH_OK);
    CHECK(ah_ask_next(host) == NULL && ah_last_error(host)->status == AH_USAGE);
    ah_close(host);
}

const a_case ask_cases[] = {
    {"an ask fails at once without a program that takes it", without_the_flag},
    {"an ask of an approval", of_an_approval},
    {"an ask of an approval of changes", of_changes},
    {"an ask is told, and names who responds", is_told_and_names_who_responds},
    {"asks of parallel handlers, with a default", of_parallel_handlers_with_a_default},
    {"an ask ends by the clock of the program", ends_by_the_clock_of_the_program},
    {"an ask is over with its run", is_over_with_its_run},
    {"an ask is open when the agent or the host is closed",
     is_open_when_the_agent_or_the_host_is_closed},
    {"an ask is answered in woken while a call waits", is_answered_in_woken_while_a_call_waits},
    {"an ask goes to front ends of scripts first", goes_to_front_ends_of_scripts_first},
    {"asks are no field of an agent from JSON", is_no_field_of_an_agent_from_json},
    {"asks are denied to older programs", is_denied_to_older_programs},
    {NULL, NULL},
};
