/* Cases of agents: opened, run with and without waiting, their replies and events. */
#include "cases.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static const char models[] =
    "local ah = require 'agenthost'\n"
    "local add = ah.tool { name = 'add', description = 'Adds.', params = { a = 'integer', b = "
    "'integer' }, handler = function(args) return args.a + args.b end }\n"
    "local call = { name = 'add', arguments = { a = 2, b = 3 } }\n"
    "return { add,\n"
    "  sum = ah.scripted { { calls = { call } }, { text = 'It is 5.', usage = { input = 9, "
    "output = 4, cost = 0.25 } }, 'Again.' },\n"
    "  loops = ah.scripted(function() return { calls = { call } } end),\n"
    "  pieces = ah.scripted(function() return { text = { 'one', ' two', ' three' } } end),\n"
    "  slow = ah.scripted(function() return { text = 'x', delay = 60 } end),\n"
    "}\n";

static void opened_wrongly(void)
{
    ah_host *host = open_plain();
    ah_agent *agent = NULL;

    load(host, models);
    STATUS(host, ah_agent_open(host, NULL, &agent), AH_USAGE);
    STATUS(host, ah_agent_open(host, "{", &agent), AH_USAGE);
    HAS(ah_errmsg(host), "is not JSON");
    STATUS(host, ah_agent_open(host, "[]", &agent), AH_USAGE);
    STATUS(host, ah_agent_open(host, "{\"modle\":\"demo/echo\"}", &agent), AH_USAGE);
    HAS(ah_errmsg(host), "did you mean 'model'");
    STATUS(host, ah_agent_open(host, "{\"model\":\"nothing\"}", &agent), AH_USAGE);
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"policies\":[true]}", &agent),
           AH_USAGE);
    HAS(ah_errmsg(host), "field 'policies' takes functions or objects");
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"on\":true}", &agent), AH_USAGE);
    HAS(ah_errmsg(host), "ah_next_event");
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"tools\":[\"ad\"]}", &agent),
           AH_TOOL_NOT_FOUND);
    HAS(ah_errmsg(host), "did you mean 'add'");
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"tools\":[7]}", &agent), AH_USAGE);
    STATUS(host,
           ah_agent_open(host, "{\"model\":\"demo/echo\",\"tools\":{\"add\":\"add\"}}", &agent),
           AH_USAGE);
    HAS(ah_errmsg(host), "unexpected name 'add'");
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"tools\":{}}", &agent), AH_USAGE);
    HAS(ah_errmsg(host), "found an object");
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\",\"messages\":{}}", &agent),
           AH_USAGE);
    STATUS(host,
           ah_agent_open(host, "{\"model\":\"demo/echo\",\"options\":{\"stop\":{\"a\":\"b\"}}}",
                         &agent),
           AH_USAGE);
    HAS(ah_errmsg(host), "options: stop: unexpected name 'a'");
    STATUS(host, ah_agent_open(host, "{\"model\":\"openai/gpt-4o\"}", &agent), AH_PROVIDER);
    HAS(ah_errmsg(host), "OPENAI_API_KEY");
    HAS(ah_last_error(host)->json, "\"code\":\"provider\"");
    CHECK(agent == NULL);
    ah_agent_close(NULL);
    shut(host);
}

static void replies(void)
{
    ah_host *host = open_plain();
    ah_agent *agent, *other;
    const ah_reply *r;
    char config[2000];

    load(host, models);
    agent = agent_of(host, "{\"model\":\"sum\",\"tools\":[\"add\"],\"system\":\"Be brief.\"}");
    CHECK(ah_agent_reply(agent) == NULL && ah_agent_reply_json(agent) == NULL);
    HAS(ah_agent_messages(agent), "\"content\":\"Be brief.\"");
    other = agent_of(host, "{\"model\":\"sum\"}");
    CHECK(strcmp(ah_agent_messages(other), "[]") == 0);
    STATUS(host, ah_agent_run(agent, NULL), AH_USAGE);
    STATUS(host, ah_agent_run(agent, "\xff"), AH_USAGE);
    STATUS(host, ah_agent_run(agent, "What is 2 + 3?"), AH_OK);
    r = ah_agent_reply(agent);
    CHECK(strcmp(r->text, "It is 5.") == 0 && r->text_len == 8 && r->status == AH_OK);
    CHECK(r->iterations == 2 && r->rounds == 1 && r->tool_calls == 1 && r->run > 0);
    CHECK(strcmp(r->stop, "end") == 0 && r->usage.known && r->usage.input == 9 &&
          r->usage.output == 4);
    CHECK(r->usage.priced && r->usage.cost == 0.25 && r->usage.unpriced == 0);
    CHECK(!r->usage.prices_of);
    HAS(ah_agent_reply_json(agent), "\"known\":true,\"cost\":0.25}");
    HAS(ah_agent_reply_json(agent), "\"text\":\"It is 5.\"");
    HAS(ah_agent_reply_json(agent), "\"injected_tools\":[],\"removed_tools\":[]");
    CHECK(!strstr(ah_agent_reply_json(agent), "error"));
    HAS(ah_agent_transcript(agent), "\"tool_result\"");
    CHECK(!ah_agent_at_work(agent));
    CHECK(ah_next_event(host) == NULL); /* only of what was started */
    snprintf(config, sizeof config, "{\"model\":\"demo/echo\",\"messages\":%s}",
             ah_agent_messages(agent));
    other = agent_of(host, config);
    STATUS(host, ah_agent_run(other, "and now?"), AH_OK);
    HAS(ah_agent_messages(other), "It is 5.");
    ah_agent_close(other);
    STATUS(host, ah_agent_run(agent, "more"), AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Again.") == 0);
    CHECK(ah_agent_reply(agent)->value == NULL);
    shut(host);
}

static void replies_with_a_value(void)
{
    ah_host *host = open_plain();
    ah_agent *agent = agent_of(host, "{\"model\":\"demo/echo\",\"output\":{\"type\":\"object\"}}");

    STATUS(host, ah_agent_run(agent, "{ \"b\": 1, \"a\": 2 }"), AH_OK);
    HAS(ah_agent_reply(agent)->value, "\"b\": 1");
    HAS(ah_agent_reply_json(agent), "\"value\":{ \"b\": 1");
    STATUS(host, ah_agent_run(agent, "no JSON"), AH_PROMPT_EVALUATION);
    CHECK(ah_agent_reply(agent)->value == NULL);
    shut(host);
}

static void fails(void)
{
    ah_host *host = open_plain();
    ah_agent *agent;

    load(host, models);
    agent = agent_of(host, "{\"model\":\"loops\",\"tools\":[\"add\"],\"max_iterations\":2}");
    STATUS(host, ah_agent_run(agent, "go"), AH_MAX_ITERATIONS);
    CHECK(ah_agent_reply(agent)->status == AH_MAX_ITERATIONS);
    CHECK(strcmp(ah_agent_reply(agent)->error.code, "max_iterations_exceeded") == 0);
    HAS(ah_agent_reply(agent)->error.json, "\"max_iterations\":2");
    HAS(ah_agent_reply_json(agent), "\"error\":{\"code\":\"max_iterations_exceeded\"");
    HAS(ah_last_error(host)->json, "\"max_iterations\":2");
    HAS(ah_errmsg(host), "(2)");
    STATUS(host, ah_agent_run(agent, "\xff"), AH_USAGE); /* no run began: the reply stays */
    CHECK(ah_agent_reply(agent)->status == AH_MAX_ITERATIONS);
    HAS(ah_agent_reply_json(agent), "\"error\":{\"code\":\"max_iterations_exceeded\"");
    STATUS(host, ah_agent_start(agent, "\xff"), AH_USAGE);
    CHECK(ah_agent_reply(agent)->status == AH_MAX_ITERATIONS && !ah_agent_at_work(agent));
    STATUS(host, ah_agent_run(agent, NULL), AH_MAX_ITERATIONS); /* the conversation goes on */
    agent = agent_of(host, "{\"model\":\"slow\",\"timeout\":0.02}");
    STATUS(host, ah_agent_run(agent, "go"), AH_DEADLINE);
    HAS(ah_agent_messages(agent), "\"content\":\"go\"");
    shut(host);
}

static void tells_events(void)
{
    ah_host *host = open_plain();
    ah_agent *agent;
    const ah_event *e;
    char order[500] = "", said[50] = "";
    int user = 0;

    load(host, models);
    agent = agent_of(host, "{\"model\":\"pieces\",\"stream\":true}");
    ah_agent_set_user(agent, &user);
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    STATUS(host, ah_agent_start(agent, "twice"), AH_USAGE);
    STATUS(host, ah_agent_run(agent, "thrice"), AH_USAGE);
    CHECK(ah_timeout(host) == 0 && ah_agent_at_work(agent) && ah_agent_reply(agent) == NULL);
    step_until_done(host);
    while ((e = ah_next_event(host))) {
        CHECK(ah_agent_user(e->agent) == &user && e->lost == 0 && strlen(e->json) == e->json_len);
        strcat(strcat(order, e->type), " ");
        strncat(said, e->text, e->text_len);
        if (strcmp(e->type, "done") == 0)
            CHECK(e->run == ah_agent_reply(agent)->run);
    }
    CHECK(strcmp(said, "one two three") == 0);
    CHECK(strcmp(order, "start tool_loop_iteration request content content content usage done ") ==
          0);
    shut(host);
}

typedef struct seen {
    ah_host *host;
    ah_agent *agent; /* of the last event */
    char order[500], said[50];
    int waits;
} seen;

static void on_seen(void *ud, const ah_event *e)
{
    seen *s = ud;

    CHECK(e->json[e->json_len] == '\0' && strlen(e->text) == e->text_len && e->lost == 0);
    s->agent = e->agent;
    strcat(strcat(s->order, e->type), " ");
    strncat(s->said, e->text, e->text_len);
    CHECK(!s->host || ah_step(s->host, 0) == AH_USAGE);
}

static int on_idle(void *ud, int timeout_ms)
{
    ((seen *)ud)->waits += timeout_ms != 0;
    return timeout_ms;
}

static void shows_a_watcher_all_runs(void)
{
    static const char order[] =
        "start tool_loop_iteration request content content content usage done ";
    seen s = {.waits = 0};
    ah_host *host = open_host(
        (ah_config){.watcher = {.ud = &s, .event = on_seen, .idle = on_idle, .content = true}});
    ah_agent *agent;

    s.host = host;
    load(host, models);
    agent = agent_of(host, "{\"model\":\"pieces\"}");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    CHECK(strcmp(s.order, order) == 0 && strcmp(s.said, "one two three") == 0 && s.agent == agent);
    CHECK(ah_next_event(host) == NULL);
    load(host, "local ah = require 'agenthost' ah.sleep(0.001) "
               "assert(ah.run { model = 'demo/echo', 'by a script' })");
    HAS(s.said, "by a script");
    CHECK(s.agent == NULL && s.waits > 0);
    s.order[0] = '\0';
    STATUS(host, ah_call_tool(host, "add", "{\"a\":1,\"b\":2}", NULL), AH_OK);
    CHECK(strcmp(s.order, "tool_started tool_invoked ") == 0 && s.agent == NULL);
    s.order[0] = '\0';
    load(host, "local ah = require 'agenthost' local function handler() return 'x' end\n"
               "local t = ah.tool { name = 't', description = 'T.', handler = handler }\n"
               "assert(ah.registry { t }:execute 't')");
    CHECK(strcmp(s.order, "tool_started tool_invoked ") == 0 && s.agent == NULL);
    shut(host);
}

static void tells_which_tools_came_and_went(void)
{
    ah_host *host = open_plain();
    ah_agent *agent;

    load(host,
         "local ah = require 'agenthost'\n"
         "local late = ah.tool { name = 'late', description = 'Comes later.' }\n"
         "return { m = ah.scripted { { calls = { { name = 'swap' } } }, 'Done.', 'Again.' },\n"
         "  ah.tool { name = 'swap', description = 'Swaps.', handler = function(_, ctx)\n"
         "    ctx:add_tools(late) ctx:remove_tools 'swap' end } }");
    agent = agent_of(host, "{\"model\":\"m\",\"tools\":[\"swap\"]}");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    HAS(ah_agent_reply_json(agent), "\"injected_tools\":[\"late\"],\"removed_tools\":[\"swap\"]");
    STATUS(host, ah_agent_run(agent, "on"), AH_OK);
    HAS(ah_agent_reply_json(agent), "\"injected_tools\":[],\"removed_tools\":[]");
    shut(host);
}

/* A script's run in a handler is at work when the host is closed. */
static void closes_resources_of_runs_at_work(void)
{
    ah_host *host = open_plain();
    char path[] = "/tmp/embed-cases-XXXXXX", text[1500], line[100] = "";
    int fd = mkstemp(path);
    ah_agent *agent;
    FILE *f;

    CHECK(fd >= 0 && close(fd) == 0);
    snprintf(
        text, sizeof text,
        "local ah = require 'agenthost'\n"
        "local function note(w) local f = io.open('%s', 'a') f:write(w, ' ') f:close() end\n"
        "local res = ah.resource { provide = function() note 'open' return {} end,\n"
        "  close = function() note 'close' ah.sleep(1) note 'slept' end }\n"
        "local wait = ah.tool { name = 'wait', description = 'Waits.',\n"
        "  handler = function(_, ctx) ctx.resources:get 'res' ah.sleep(1000) end }\n"
        "local call = { calls = { { name = 'wait' } } }\n"
        "return { m = ah.scripted { { calls = { { name = 'nest' } } }, 'Done.' },\n"
        "  ah.tool { name = 'nest', description = 'Runs.', handler = function()\n"
        "    ah.run { model = ah.scripted { call }, tools = { wait }, resources = { res = res }, "
        "'go' } end } }",
        path);
    load(host, text);
    agent = agent_of(host, "{\"model\":\"m\",\"tools\":[\"nest\"]}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    for (int i = 0; i < 50; i++)
        ah_step(host, 1);
    ah_close(host);
    CHECK((f = fopen(path, "r")) && fgets(line, sizeof line, f) && fclose(f) == 0);
    CHECK(strcmp(line, "open close ") == 0);
    unlink(path);
}

static void loses_events_in_bounds(void)
{
    ah_host *host = open_host((ah_config){.max_events = 2});
    ah_agent *agent;
    const ah_event *e, *last = NULL;
    int n = 0;

    agent = agent_of(host, "{\"model\":\"demo/echo\"}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    step_until_done(host);
    CHECK((e = ah_next_event(host)) && strcmp(e->type, "start") == 0);
    CHECK((e = ah_next_event(host)) != NULL);
    last = ah_next_event(host);
    CHECK(last && strcmp(last->type, "done") == 0 && last->lost > 0);
    CHECK(ah_next_event(host) == NULL);
    while (n < 10 && ah_agent_start(agent, "go") == AH_OK) {
        step_until_done(host);
        n++;
    }
    CHECK(n == 2 && ah_last_error(host)->status == AH_BUDGET);
    HAS(ah_errmsg(host), "the events `done` of 2 runs are unread: call ah_next_event");
    for (n = 0; (e = ah_next_event(host));)
        n += strcmp(e->type, "done") == 0;
    CHECK(n == 2);
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    shut(host);
}

static void *cancel_it(void *host)
{
    ah_cancel(host);
    return NULL;
}

static void is_cancelled_from_a_thread(void)
{
    ah_host *host = open_plain();
    ah_agent *agent, *echo;
    pthread_t thread;

    load(host, models);
    ah_cancel(host); /* nothing is at work: it is forgotten */
    echo = agent_of(host, "{\"model\":\"demo/echo\"}");
    STATUS(host, ah_agent_run(echo, "go"), AH_OK);
    agent = agent_of(host, "{\"model\":\"slow\"}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    ah_step(host, 0);
    CHECK(pthread_create(&thread, NULL, cancel_it, host) == 0);
    step_until_done(host);
    pthread_join(thread, NULL);
    CHECK(ah_agent_reply(agent)->status == AH_CANCELLED);
    STATUS(host, ah_agent_run(echo, "again"), AH_OK);
    shut(host);
}

static int count_events(ah_host *host, const char *type)
{
    const ah_event *e;
    int n = 0;

    while ((e = ah_next_event(host)))
        n += strcmp(e->type, type) == 0;
    return n;
}

static void waits_for_background_calls(void)
{
    ah_host *host = open_plain();
    ah_agent *agent;

    load(
        host,
        "local ah = require 'agenthost'\n"
        "local call = { calls = { { name = 'job' } } }\n"
        "return { job = ah.tool { name = 'job', description = 'A job.', background = true,\n"
        "    handler = function() ah.sleep(0.01) return 'x' end },\n"
        "  model = ah.scripted { call, 'Begun.', 'Done.', call, 'Begun.', 'Again.', call, 'Begun.' "
        "} }");
    agent = agent_of(host, "{\"model\":\"model\",\"tools\":[\"job\"]}");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Done.") == 0);
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    step_until_done(host);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Again.") == 0);
    CHECK(count_events(host, "background_done") == 1);
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    for (int i = 0; i < 6; i++)
        ah_step(host, 0);
    ah_agent_close(agent); /* with a background call at work */
    shut(host);
}

static void on_slow(void *ud, const ah_event *e)
{
    if (strcmp(e->type, "tool_started") == 0 && strstr(e->json, "slow"))
        ah_cancel(*(ah_host **)ud);
}

static void keeps_background_calls_when_cancelled(void)
{
    ah_host *host = NULL;

    host = open_host((ah_config){.watcher = {.ud = &host, .event = on_slow}});
    load(host,
         "local ah = require 'agenthost'\n"
         "local job = ah.tool { name = 'job', description = 'A job.', background = true,\n"
         "  handler = function() ah.sleep(0.05) return ah.run { model = 'demo/echo', 'in it' } "
         "end }\n"
         "local slow = ah.tool { name = 'slow', description = 'Waits.',\n"
         "  handler = function() ah.sleep(60) end }\n"
         "local agent = ah.agent { tools = { job, slow }, model = ah.scripted {\n"
         "  { calls = { { name = 'job' } } }, { calls = { { name = 'slow' } } },\n"
         "  function(r) return r.entries[#r.entries].content[1].text end } }\n"
         "assert(select(2, agent:run 'go').code == 'cancelled')\n"
         "local text = agent:wait(60).text\n"
         "assert(text:find 'in it$', text)");
    shut(host);
}

static void is_closed_at_work(void)
{
    ah_host *host = open_plain();
    ah_agent *agent, *other;
    const ah_event *e;

    load(host, models);
    agent = agent_of(host, "{\"model\":\"slow\"}");
    other = agent_of(host, "{\"model\":\"demo/echo\"}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    STATUS(host, ah_agent_start(other, "go"), AH_OK);
    ah_step(host, 0);
    e = ah_next_event(host);
    CHECK(e != NULL);
    ah_agent_close(agent);
    step_until_done(host);
    while ((e = ah_next_event(host)))
        CHECK(e->agent == other);
    agent = agent_of(host, "{\"model\":\"slow\"}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    ah_step(host, 0);
    shut(host); /* with a run at work and events unread */
}

static void is_sent_more(void)
{
    ah_host *host = open_plain();
    ah_agent *agent = agent_of(host, "{\"model\":\"demo/echo\"}");

    STATUS(host, ah_agent_start(agent, "first"), AH_OK);
    STATUS(host, ah_agent_send(agent, "second"), AH_OK);
    STATUS(host, ah_agent_send(agent, "\xff"), AH_USAGE);
    STATUS(host, ah_agent_send(agent, NULL), AH_USAGE);
    HAS(ah_errmsg(host), "ah_agent_send: there is nothing to say");
    STATUS(host, ah_agent_send(agent, ""), AH_USAGE);
    step_until_done(host);
    CHECK(strcmp(ah_agent_reply(agent)->text, "second") == 0);
    STATUS(host, ah_agent_send(agent, "third"), AH_OK);
    STATUS(host, ah_agent_run(agent, NULL), AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "third") == 0);
    ah_agent_cancel(agent); /* nothing is at work */
    shut(host);
}

/* Waits as a program with a loop of its own does, by ah_pollfd and ah_timeout. */
static void is_waited_for_elsewhere(void)
{
    ah_host *host = open_plain();
    ah_agent *agent;
    int waits = 0;

    load(host, "local ah = require 'agenthost'\n"
               "return { m = ah.scripted { { text = 'slept', delay = 0.02 } } }");
    agent = agent_of(host, "{\"model\":\"m\"}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    while (ah_step(host, 0) > 0) {
        struct pollfd fd = {ah_pollfd(host), POLLIN, 0};
        int ms = ah_timeout(host);

        CHECK(ms >= 0 && ms <= 1000);
        poll(&fd, fd.fd >= 0,
             fd.fd >= 0 ? -1 : ms); /* the descriptor alone is enough where there is one */
        CHECK(++waits < 100);
    }
    CHECK(waits > 0 && strcmp(ah_agent_reply(agent)->text, "slept") == 0);
    CHECK(ah_step(host, -1) == 0); /* nothing is at work: no wait */
    shut(host);
}

static void are_many(void)
{
    enum { MANY = 300 };
    ah_host *host = open_plain();
    ah_agent *agent[MANY];
    int done = 0;

    for (int i = 0; i < MANY; i++) {
        agent[i] = agent_of(host, "{\"model\":\"demo/echo\"}");
        STATUS(host, ah_agent_start(agent[i], "go"), AH_OK);
    }
    while (ah_step(host, 1000) > 0)
        ;
    for (const ah_event *e; (e = ah_next_event(host));)
        done += strcmp(e->type, "done") == 0;
    CHECK(done == MANY);
    for (int i = 0; i < MANY; i += 2)
        ah_agent_close(agent[i]);
    shut(host);
}

/* -- conversations of an agent that a script returned -- */

static const char script[] =
    "local ah = require 'agenthost'\n"
    "local n = 0\n"
    "return ah.agent { model = 'demo/tools', system = 'S', setup = function(c)\n"
    "  n = n + 1\n"
    "  local mine = n .. ' ' .. c.id .. ' ' .. tostring(c.params.user)\n"
    "  ah.sleep(c.params.wait or 0)\n"
    "  assert(c.params.user ~= 'nobody', 'nobody is refused')\n"
    "  c:add_tools(ah.tool { name = 'own', description = 'Own.',\n"
    "    handler = function() return mine end })\n"
    "end }\n";

static void opens_conversations(void)
{
    ah_host *host = open_plain();
    ah_agent *a, *b, *own;

    load(host, script);
    a = agent_of(host, "{\"agent\":\"agent\",\"id\":\"one\",\"params\":{\"user\":\"Ann\"}}");
    b = agent_of(host, "{\"agent\":\"agent\",\"id\":\"two\"}");
    STATUS(host, ah_agent_find(host, "agent", &own), AH_OK);
    STATUS(host, ah_agent_run(b, "x"), AH_OK);
    HAS(ah_agent_reply(b)->text, "own: 1 two nil");
    STATUS(host, ah_agent_run(a, "x"), AH_OK);
    HAS(ah_agent_reply(a)->text, "own: 2 one Ann");
    STATUS(host, ah_agent_run(a, "y"), AH_OK);
    HAS(ah_agent_reply(a)->text, "own: 2 one Ann");
    CHECK(!strstr(ah_agent_messages(own), "user"));
    ah_agent_close(own); /* the handle: the script's agent goes on */
    STATUS(host, ah_agent_find(host, "agent", &own), AH_OK);
    STATUS(host, ah_agent_run(own, "x"), AH_OK);
    ah_agent_close(a);
    load(host, "return require('agenthost').agent { model = 'demo/echo' }"); /* takes its name */
    STATUS(host, ah_agent_run(b, "z"), AH_OK);
    HAS(ah_agent_reply(b)->text, "own: 1 two nil");
    a = agent_of(host, "{\"agent\":\"agent\"}");
    STATUS(host, ah_agent_run(a, "echoed"), AH_OK);
    CHECK(strcmp(ah_agent_reply(a)->text, "echoed") == 0);
    shut(host);
}

static void opens_no_conversation(void)
{
    static const struct {
        const char *config, *words;
    } wrong[] = {
        {"{\"agent\":\"other\"}", "no script has returned an agent 'other'"},
        {"{\"agent\":7}", "'agent' must be a string"},
        {"{\"agent\":\"agent\",\"model\":\"demo/echo\"}", "unknown field 'model'"},
        {"{\"agent\":\"agent\",\"session\":{}}", "must be made by ah.session"},
        {"{\"agent\":\"agent\",\"store\":7}", "store: expected a path"},
        {"{\"agent\":\"agent\",\"id\":\"\"}", "id must be a text"},
        {"{\"agent\":\"closed\"}", "closed"},
    };
    ah_host *host = open_plain();
    ah_agent *agent = NULL;

    STATUS(host, ah_agent_open(host, "{\"agent\":\"agent\"}", &agent), AH_USAGE);
    load(host, script);
    load(host, "local ah = require 'agenthost'\n"
               "local closed = ah.agent { model = 'demo/echo' }\n"
               "closed:close()\n"
               "return { closed = closed }");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        STATUS(host, ah_agent_open(host, wrong[i].config, &agent), AH_USAGE);
        HAS(ah_errmsg(host), wrong[i].words);
    }
    CHECK(agent == NULL);
    shut(host);
}

static void sets_up_in_a_loop(void)
{
    ah_host *host = open_plain();
    ah_agent *a, *b, *c, *d;

    load(host, script);
    a = agent_of(host, "{\"agent\":\"agent\",\"id\":\"a\",\"params\":{\"wait\":0.02}}");
    b = agent_of(host, "{\"agent\":\"agent\",\"params\":{\"user\":\"nobody\"}}");
    c = agent_of(host, "{\"agent\":\"agent\",\"params\":{\"wait\":60}}");
    d = agent_of(host, "{\"agent\":\"agent\",\"params\":{\"wait\":60}}");
    STATUS(host, ah_agent_start(a, "x"), AH_OK);
    STATUS(host, ah_agent_start(b, "x"), AH_OK);
    STATUS(host, ah_agent_start(c, "x"), AH_OK);
    STATUS(host, ah_agent_start(d, "x"), AH_OK);
    STATUS(host, ah_agent_start(a, "x"), AH_USAGE); /* it is at work */
    while (ah_step(host, 1000) > 2)
        ;
    HAS(ah_agent_reply(a)->text, "own: 1 a nil");
    CHECK(ah_agent_reply(b)->status == AH_INTERNAL);
    HAS(ah_agent_reply(b)->error.message, "case.lua:7: nobody is refused");
    CHECK(ah_agent_at_work(c) && ah_agent_reply(c) == NULL);
    ah_agent_cancel(c);
    while (ah_step(host, 1000) > 1)
        ;
    CHECK(ah_agent_reply(c)->status == AH_CANCELLED);
    shut(host); /* while d is being set up */
}

const a_case agent_cases[] = {
    {"an agent that is opened wrongly is refused", opened_wrongly},
    {"an agent replies, and goes on", replies},
    {"an agent replies with a value", replies_with_a_value},
    {"an agent tells how it failed", fails},
    {"an agent tells its events in order", tells_events},
    {"an agent and a script are seen by a watcher", shows_a_watcher_all_runs},
    {"an agent tells which tools came and went", tells_which_tools_came_and_went},
    {"an agent at work is closed with what it opened", closes_resources_of_runs_at_work},
    {"events that are not read are lost in bounds, the end of a run is not",
     loses_events_in_bounds},
    {"a run is cancelled from a thread", is_cancelled_from_a_thread},
    {"an agent waits for its background calls", waits_for_background_calls},
    {"background calls go on when a run is cancelled", keeps_background_calls_when_cancelled},
    {"an agent and a host are closed while at work", is_closed_at_work},
    {"an agent is sent more", is_sent_more},
    {"a host is waited for in another loop", is_waited_for_elsewhere},
    {"agents are many", are_many},
    {"a returned agent has other conversations", opens_conversations},
    {"a conversation that cannot be opened is refused", opens_no_conversation},
    {"conversations are set up beside each other, and closed meanwhile", sets_up_in_a_loop},
    {NULL, NULL},
};
