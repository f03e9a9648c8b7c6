/* Cases of tools: of scripts, called by name, and of the program, answered now or later. */
#include "cases.h"

#include <pthread.h>

static const char scripts_tools[] =
    "local ah = require 'agenthost'\n"
    "local function tool(name, handler, more)\n"
    "  local t = { name = name, description = 'A tool.', handler = handler }\n"
    "  for k, v in pairs(more or {}) do t[k] = v end\n"
    "  return ah.tool(t)\n"
    "end\n"
    "return {\n"
    "  tool('echo', function(args) return args end,\n"
    "    { params = { n = 'integer', word = 'string?' } }),\n"
    "  tool('nothing', function() end),\n"
    "  tool('text', function() return 'a \"text\"' end),\n"
    "  tool('large', function() return ('x'):rep(300000) end),\n"
    "  tool('no', function() return nil, 'not today' end),\n"
    "  tool('raises', function() error('broken') end),\n"
    "  tool('waits', function() ah.sleep(0.01) return 'waited' end),\n"
    "  tool('slow', function() ah.sleep(60) end, { timeout = 0.02 }),\n"
    "  tool('odd', function() return 'x' end, { result = { type = 'integer' } }),\n"
    "  tool('knows', function(_, ctx) ctx:note('n') return ctx.tool_name .. ctx.run end),\n"
    "  tool('outer', function() return ah.run { model = 'demo/echo', 'inner' }.text end),\n"
    "  tool('stops', function() error(ah.error { code = 'cancelled', message = 'enough' }) end),\n"
    "  tool('listed', nil),\n"
    "}\n";

static void called_by_name(void)
{
    ah_host *host = open_plain();
    const char *got = NULL;

    load(host, scripts_tools);
    STATUS(host, ah_call_tool(host, "echo", "{\"n\": 9007199254740993}", &got), AH_OK);
    CHECK(strcmp(got, "{\"n\":9007199254740993}") == 0);
    STATUS(host, ah_call_tool(host, "nothing", NULL, &got), AH_OK);
    CHECK(strcmp(got, "null") == 0);
    STATUS(host, ah_call_tool(host, "text", "{}", &got), AH_OK);
    CHECK(strcmp(got, "\"a \\\"text\\\"\"") == 0);
    STATUS(host, ah_call_tool(host, "large", "{}", &got), AH_OK);
    CHECK(strlen(got) == 300002);
    STATUS(host, ah_call_tool(host, "waits", "{}", &got), AH_OK);
    CHECK(strcmp(got, "\"waited\"") == 0);
    STATUS(host, ah_call_tool(host, "knows", "{}", &got), AH_OK);
    HAS(got, "\"knows");
    STATUS(host, ah_call_tool(host, "outer", "{}", &got), AH_OK);
    CHECK(strcmp(got, "\"inner\"") == 0);
    shut(host);
}

static void called_in_vain(void)
{
    ah_host *host = open_plain();
    const char *got = "untouched";

    load(host, scripts_tools);
    STATUS(host, ah_call_tool(host, "ecko", "{}", &got), AH_TOOL_NOT_FOUND);
    HAS(ah_errmsg(host), "did you mean 'echo'");
    STATUS(host, ah_call_tool(host, NULL, "{}", &got), AH_USAGE);
    STATUS(host, ah_call_tool(host, "listed", "{}", &got), AH_TOOL_NOT_FOUND);
    STATUS(host, ah_call_tool(host, "echo", "{", &got), AH_TOOL_VALIDATION);
    HAS(ah_errmsg(host), "not JSON");
    STATUS(host, ah_call_tool(host, "echo", "{}", &got), AH_TOOL_VALIDATION);
    HAS(ah_errmsg(host), "n");
    STATUS(host, ah_call_tool(host, "echo", "[1]", &got), AH_TOOL_VALIDATION);
    STATUS(host, ah_call_tool(host, "no", "{}", &got), AH_INTERNAL);
    CHECK(strcmp(ah_errmsg(host), "not today") == 0);
    STATUS(host, ah_call_tool(host, "raises", "{}", &got), AH_INTERNAL);
    HAS(ah_errmsg(host), "broken");
    STATUS(host, ah_call_tool(host, "odd", "{}", &got), AH_INTERNAL);
    HAS(ah_errmsg(host), "result does not match");
    STATUS(host, ah_call_tool(host, "slow", "{}", &got), AH_DEADLINE);
    STATUS(host, ah_call_tool(host, "stops", "{}", &got), AH_CANCELLED);
    CHECK(strcmp(got, "untouched") == 0);
    shut(host);
}

static void handed_over(void)
{
    ah_host *host = open_plain();
    const char twice[] = "local ah = require 'agenthost'\n"
                         "return { ah.tool { name = 'new', description = 'A.' },\n"
                         "  ah.tool { name = 'echo', description = 'B.' } }";
    ah_agent *agent = NULL;

    load(host, scripts_tools);
    STATUS(host, ah_load(host, "twice.lua", twice, strlen(twice), 0, NULL), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "there is another tool 'echo'");
    CHECK(!strstr(ah_tools(host), "\"new\""));
    HAS(ah_tools(host), "\"echo\":{\"description\":\"A tool.\"");
    STATUS(host, ah_remove_tool(host, "echo"), AH_OK);
    STATUS(host, ah_remove_tool(host, "echo"), AH_TOOL_NOT_FOUND);
    STATUS(host, ah_remove_tool(host, NULL), AH_USAGE);
    STATUS(host, ah_load(host, "twice.lua", twice, strlen(twice), 0, NULL), AH_OK);
    load(host, "local ah = require 'agenthost' local t = ah.tool { name = 'same', "
               "description = 'A.' } return { t, other = t, x = 1, f = print, [true] = 2 }");
    load(host, "return 5");
    load(host, "return { guide = require('agenthost').agent { model = 'demo/echo' } }");
    STATUS(host, ah_agent_find(host, "guide", &agent), AH_OK);
    STATUS(host, ah_agent_run(agent, "hello"), AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "hello") == 0);
    STATUS(host, ah_agent_find(host, "nobody", &agent), AH_USAGE);
    STATUS(host, ah_agent_find(host, NULL, &agent), AH_USAGE);
    shut(host);
}

/* -- tools of the program ---------------------------------------------------------------------- */

typedef struct native {
    ah_host *host;
    uint64_t call, cancelled;
    int calls, released;
    const char *answer; /* given at once; NULL: later */
    const char *refusal;
    char args[200];
    double left;
    bool looked; /* on_idle has tried to answer */
} native;

static void on_call(void *ud, ah_host *host, const ah_tool_call *call)
{
    native *n = ud;

    CHECK(call->id && strlen(call->args) == call->args_len && call->run > 0);
    n->calls++;
    n->call = call->id;
    n->left = call->seconds_left;
    snprintf(n->args, sizeof n->args, "%s %s", call->tool, call->args);
    if (n->answer)
        ah_tool_done(host, call->id, n->answer);
    if (n->refusal)
        ah_tool_refuse(host, call->id, n->refusal);
}

static void on_cancel(void *ud, ah_host *host, uint64_t call)
{
    native *n = ud;

    CHECK(call == n->call);
    n->cancelled = call;
    STATUS(host, ah_tool_done(host, call, "1"), AH_USAGE); /* it is over */
}

static void on_release(void *ud)
{
    ((native *)ud)->released++;
}

static ah_tool_config config_of(native *n)
{
    return (ah_tool_config){.size = sizeof(ah_tool_config),
                            .name = "native",
                            .description = "A tool of the program.",
                            .params = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                                      "\"integer\",\"default\":7}}}",
                            .call = on_call,
                            .cancel = on_cancel,
                            .release = on_release,
                            .ud = n};
}

static void of_the_program(void)
{
    native n = {.answer = "{\"b\": 1, \"a\": [1.0, 9007199254740993]}"};
    ah_tool_config cfg = config_of(&n);
    ah_host *host = open_plain();
    const char *got = NULL;

    cfg.result = "{\"type\":[\"object\",\"string\"]}";
    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    STATUS(host, ah_call_tool(host, "native", "{}", &got), AH_OK);
    CHECK(strcmp(got, "{\"a\":[1.0,9007199254740993],\"b\":1}") == 0);
    CHECK(strcmp(n.args, "native {\"n\":7}") == 0 && n.left < 0);
    n.answer = "12";
    STATUS(host, ah_call_tool(host, "native", "{}", &got), AH_INTERNAL);
    HAS(ah_errmsg(host), "result does not match");
    n.answer = "{\"x\":";
    STATUS(host, ah_call_tool(host, "native", "{}", &got), AH_INTERNAL);
    HAS(ah_errmsg(host), "is not JSON");
    n.answer = NULL;
    n.refusal = "sold out";
    STATUS(host, ah_call_tool(host, "native", "{}", &got), AH_INTERNAL);
    CHECK(strcmp(ah_errmsg(host), "sold out") == 0);
    STATUS(host, ah_tool_done(host, n.call, "1"), AH_USAGE);
    STATUS(host, ah_tool_refuse(host, 12345, "x"), AH_USAGE);
    STATUS(host, ah_call_tool(host, "native", "{\"n\":\"x\"}", &got), AH_TOOL_VALIDATION);
    CHECK(n.calls == 4);
    shut(host);
    CHECK(n.released == 1);
}

static void described_and_coerced(void)
{
    native n = {.answer = "1"};
    ah_tool_config cfg = config_of(&n);
    ah_host *host = open_plain();

    cfg.full_description = "Counts, and says so at length.";
    cfg.coerce = true;
    cfg.annotations = "{\"read_only\":true,\"destructive\":false}";
    cfg.version = "1.5";
    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    HAS(ah_tools(host), "at length");
    HAS(ah_tools(host), "\"annotations\":{\"destructive\":false,\"read_only\":true}");
    HAS(ah_tools(host), "\"version\":\"1.5\"");
    STATUS(host, ah_call_tool(host, "native", "{\"n\":\"12\"}", NULL), AH_OK);
    CHECK(strcmp(n.args, "native {\"n\":12}") == 0);
    shut(host);
}

static void declared_wrongly(void)
{
    native n = {0};
    ah_tool_config good = config_of(&n), cfg = good;
    ah_host *host = open_plain();

    STATUS(host, ah_add_tool(host, NULL), AH_USAGE);
    cfg.size--;
    STATUS(host, ah_add_tool(host, &cfg), AH_USAGE);
    cfg = good, cfg.name = NULL;
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.name = "No Name";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.description = "";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.call = NULL;
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.params = "{";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "params is not JSON");
    cfg = good, cfg.params = "{\"type\":\"no\"}";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.timeout = -1;
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.max_result = 1;
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.name = "planning_mine";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "is reserved (");
    cfg = good, cfg.annotations = "{\"read_onyl\":true}";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "did you mean 'read_only'?");
    cfg = good, cfg.annotations = "{\"read_only\":1}";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "'read_only' must be true or false");
    cfg = good, cfg.annotations = "[]";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "must be a JSON object");
    cfg = good, cfg.annotations = "{";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    cfg = good, cfg.version = "";
    STATUS(host, ah_add_tool(host, &cfg), AH_PROMPT_VALIDATION);
    STATUS(host, ah_add_tool(host, &good), AH_OK);
    STATUS(host, ah_add_tool(host, &good), AH_PROMPT_VALIDATION);
    HAS(ah_errmsg(host), "there is another tool");
    CHECK(n.released == 0);
    STATUS(host, ah_remove_tool(host, "native"), AH_OK);
    shut(host);
    CHECK(n.released == 1);
}

static void answered_later(void)
{
    native n = {0};
    ah_tool_config cfg = config_of(&n);
    ah_host *host = open_plain();
    ah_agent *agent;

    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    agent = agent_of(host, "{\"model\":\"demo/tools\",\"tools\":[\"native\"]}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    while (!n.call)
        CHECK(ah_step(host, 100) == 1);
    CHECK(ah_step(host, 0) == 1);
    STATUS(host, ah_tool_done(host, n.call, "\"late\""), AH_OK);
    CHECK(ah_timeout(host) == 0);
    STATUS(host, ah_tool_done(host, n.call, "2"), AH_USAGE);
    step_until_done(host);
    HAS(ah_agent_reply(agent)->text, "native: late");
    CHECK(n.cancelled == 0);
    shut(host);
}

/* An observer that answers an open call: it is refused, and the call stays open. */
static int on_idle(void *ud, int timeout_ms)
{
    native *n = ud;

    if (n->call && !n->looked) {
        n->looked = true;
        STATUS(n->host, ah_tool_done(n->host, n->call, "1"), AH_USAGE);
    }
    return timeout_ms;
}

static void not_answered_by_an_observer(void)
{
    native n = {0};
    ah_tool_config cfg = config_of(&n);
    ah_agent *agent;

    n.host = open_host((ah_config){.watcher = {.idle = on_idle, .ud = &n}});
    STATUS(n.host, ah_add_tool(n.host, &cfg), AH_OK);
    agent = agent_of(n.host, "{\"model\":\"demo/tools\",\"tools\":[\"native\"]}");
    STATUS(n.host, ah_agent_start(agent, "go"), AH_OK);
    while (!n.looked)
        CHECK(ah_step(n.host, 1) == 1);
    STATUS(n.host, ah_tool_done(n.host, n.call, "{"), AH_TOOL_VALIDATION); /* ends it, as failed */
    STATUS(n.host, ah_tool_done(n.host, n.call, "1"), AH_USAGE);
    step_until_done(n.host);
    HAS(ah_agent_reply(agent)->text, "is not JSON");
    shut(n.host);
}

static void out_of_time(void)
{
    native n = {0};
    ah_tool_config cfg = config_of(&n);
    ah_host *host = open_plain();

    cfg.timeout = 0.02;
    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    STATUS(host, ah_call_tool(host, "native", "{}", NULL), AH_DEADLINE);
    CHECK(n.left > 0 && n.left <= cfg.timeout && n.cancelled == n.call);
    STATUS(host, ah_tool_done(host, n.call, "1"), AH_USAGE);
    shut(host);
}

static void cancelled_with_the_run(void)
{
    native n = {0};
    ah_tool_config cfg = config_of(&n);
    ah_host *host = open_plain();
    ah_agent *agent;

    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    agent = agent_of(host, "{\"model\":\"demo/tools\",\"tools\":[\"native\"]}");
    STATUS(host, ah_agent_start(agent, "go"), AH_OK);
    while (!n.call)
        CHECK(ah_step(host, 100) > 0);
    ah_agent_cancel(agent);
    step_until_done(host);
    CHECK(n.cancelled == n.call && ah_agent_reply(agent)->status == AH_CANCELLED);
    HAS(ah_agent_transcript(agent), "\"tool_result\"");
    n.call = 0;
    STATUS(host, ah_agent_start(agent, "again"), AH_OK);
    while (!n.call)
        CHECK(ah_step(host, 100) > 0);
    shut(host); /* with the call open */
    CHECK(n.cancelled == n.call && n.released == 1);
}

static void wanted_by_a_script(void)
{
    native n = {.answer = "3"};
    ah_tool_config cfg = config_of(&n);
    ah_host *host = open_plain();
    const char no[] = "return require('agenthost').host_tool 'nativ'";

    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    load(host, "local ah = require 'agenthost'\n"
               "local reply = assert(ah.run { model = 'demo/tools', tools = { "
               "ah.host_tool 'native' }, 'go' })\n"
               "assert(reply.text:find('native: 3', 1, true), reply.text)");
    STATUS(host, ah_load(host, "no.lua", no, strlen(no), 0, NULL), AH_TOOL_NOT_FOUND);
    HAS(ah_errmsg(host), "did you mean 'native'");
    shut(host);
}

/* -- inside a call of the host ----------------------------------------------------------------- */

typedef struct within {
    ah_agent *other;
    int calls;
} within;

static void on_within(void *ud, ah_host *host, const ah_tool_call *call)
{
    within *w = ud;
    ah_agent *none = NULL;

    w->calls++;
    CHECK(ah_step(host, 0) == AH_USAGE);
    STATUS(host, ah_call_tool(host, "within", NULL, NULL), AH_USAGE);
    STATUS(host, ah_load(host, "x", "", 0, 0, NULL), AH_USAGE);
    STATUS(host, ah_agent_run(w->other, "x"), AH_USAGE);
    STATUS(host, ah_agent_open(host, "{}", &none), AH_USAGE);
    ah_agent_close(w->other);
    ah_close(host);
    HAS(ah_errmsg(host), "ah_close: it cannot be called from a callback of the host");
    STATUS(host, ah_agent_start(w->other, "from within"), AH_OK);
    STATUS(host, ah_tool_done(host, call->id, "1"), AH_OK);
}

static void called_from_the_host(void)
{
    within w = {0};
    ah_tool_config cfg = {.size = sizeof cfg,
                          .name = "within",
                          .description = "Calls what it must not.",
                          .call = on_within,
                          .ud = &w};
    ah_host *host = open_plain();
    ah_agent *agent;

    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    w.other = agent_of(host, "{\"model\":\"demo/echo\"}");
    agent = agent_of(host, "{\"model\":\"demo/tools\",\"tools\":[\"within\"]}");
    STATUS(host, ah_agent_run(agent, "go"), AH_OK);
    step_until_done(host);
    CHECK(w.calls == 1);
    CHECK(strcmp(ah_agent_reply(w.other)->text, "from within") == 0);
    shut(host);
}

/* -- threads ----------------------------------------------------------------------------------- */

typedef struct bridge {
    ah_host *host;
    uint64_t call;
    pthread_t thread;
    int woken;
} bridge;

static void *wake(void *ud)
{
    ah_wake(((bridge *)ud)->host);
    return NULL;
}

static void on_bridge(void *ud, ah_host *host, const ah_tool_call *call)
{
    bridge *b = ud;

    b->host = host;
    b->call = call->id;
    CHECK(pthread_create(&b->thread, NULL, wake, b) == 0);
}

static void on_woken(void *ud)
{
    bridge *b = ud;

    if (b->woken++)
        return;
    pthread_join(b->thread, NULL);
    STATUS(b->host, ah_tool_done(b->host, b->call, "\"from a thread\""), AH_OK);
}

static void answered_by_a_thread(void)
{
    bridge b = {0};
    ah_tool_config cfg = {
        .size = sizeof cfg, .name = "bridge", .description = "A.", .call = on_bridge, .ud = &b};
    ah_host *host = open_host((ah_config){.woken = on_woken, .woken_ud = &b});
    const char *got = NULL;

    STATUS(host, ah_add_tool(host, &cfg), AH_OK);
    STATUS(host, ah_call_tool(host, "bridge", NULL, &got), AH_OK);
    CHECK(strcmp(got, "\"from a thread\"") == 0 && b.woken == 1);
    ah_wake(host);
    ah_wake(host); /* one call of `woken` */
    ah_step(host, 0);
    CHECK(b.woken == 2);
    shut(host);
}

const a_case tool_cases[] = {
    {"a tool is called by name", called_by_name},
    {"a tool that is called in vain says why", called_in_vain},
    {"a script hands over what it returns", handed_over},
    {"a tool of the program answers at once", of_the_program},
    {"a tool of the program is described, and takes what was meant", described_and_coerced},
    {"a tool of the program that is declared wrongly is refused", declared_wrongly},
    {"a tool of the program answers later", answered_later},
    {"a call is not answered by an observer", not_answered_by_an_observer},
    {"a tool of the program is stopped when its time is over", out_of_time},
    {"a tool of the program is told that its run is over", cancelled_with_the_run},
    {"a script may use the tools of the program", wanted_by_a_script},
    {"a function of the program cannot call what waits or closes", called_from_the_host},
    {"another thread wakes the host, which answers", answered_by_a_thread},
    {NULL, NULL},
};
