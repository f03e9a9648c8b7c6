/* Cases of hosts: configuration, scripts, errors, memory, two at once. */
#include "cases.h"

#include <stddef.h>

static void takes_no_config_of_another_size(void)
{
    ah_host *host = NULL;
    ah_config cfg = {0};

    STATUS(NULL, ah_open(&cfg, &host), AH_USAGE);
    cfg.size = sizeof cfg + 8;
    STATUS(NULL, ah_open(&cfg, &host), AH_USAGE);
    CHECK(host == NULL);
    cfg.size = offsetof(ah_config, max_in_flight); /* of an earlier version */
    STATUS(NULL, ah_open(&cfg, &host), AH_OK);
    ah_close(host);
    cfg.size = offsetof(ah_config, user); /* of the first version */
    STATUS(NULL, ah_open(&cfg, &host), AH_OK);
    ah_close(host);
    STATUS(NULL, ah_open(NULL, &host), AH_OK);
    ah_close(host);
    ah_close(NULL);
}

static void on_log(void *ud, ah_log_level level, const char *line)
{
    char *kept = ud;

    CHECK(level >= AH_LOG_INFO);
    snprintf(kept, 200, "%s", line);
}

static void gives_its_user_what_it_was_given(void)
{
    char line[200] = "";
    ah_host *host = open_host(
        (ah_config){.user = line, .log = on_log, .log_ud = line, .log_level = AH_LOG_INFO});

    CHECK(ah_user(host) == line);
    load(host, "require('agenthost').log('info', 'told')");
    HAS(line, "told");
    HAS(ah_about(host), "agenthost " AH_VERSION);
    HAS(ah_about(host), "events ");
    CHECK(ah_control_char("\033[2J", 4) == 1 && ah_control_char("a\033", 2) == 0 &&
          ah_control_char("", 0) == 0);
    CHECK(ah_control_char("\xc2\x9b", 2) == 2 && ah_control_char("\xe2\x80\xae", 3) == 3);
    CHECK(ah_counter(host, "agenthost.runs") == 0);
    CHECK(ah_counter(host, "agenthost.cats") == -1 && ah_counter(host, NULL) == -1);
    CHECK(strcmp(ah_version(), AH_VERSION) == 0);
    shut(host);
}

static ah_status try(ah_host *host, const char *text)
{
    return ah_load(host, "case.lua", text, strlen(text), 0, NULL);
}

static void tells_why_a_script_failed(void)
{
    ah_host *host = open_plain();

    STATUS(host, try(host, "local x ="), AH_INTERNAL);
    HAS(ah_errmsg(host), "case.lua:1:");
    STATUS(host, try(host, "\nlocal function f() error('no way') end f()"), AH_INTERNAL);
    HAS(ah_errmsg(host), "case.lua:2: no way");
    HAS(ah_errmsg(host), "stack traceback");
    CHECK(!strchr(ah_last_error(host)->message, '\n'));
    HAS(ah_last_error(host)->json, "\"code\":\"internal\"");
    STATUS(host, try(host, "\033Lua"), AH_INTERNAL);
    STATUS(host,
           try(host, "error(require('agenthost').error { code = 'http', message = 'gone', "
                     "phase = 'request', retryable = true, status = 503 })"),
           AH_HTTP);
    CHECK(ah_last_error(host)->http_status == 503 && ah_last_error(host)->retryable);
    CHECK(strcmp(ah_last_error(host)->phase, "request") == 0);
    HAS(ah_last_error(host)->json, "\"status\":503");
    STATUS(host, ah_script(host, "/no/such/file.lua", 0, NULL), AH_USAGE);
    HAS(ah_errmsg(host), "/no/such/file.lua");
    STATUS(host, try(host, "return 1"), AH_OK);
    STATUS(host, ah_load(host, NULL, "\nerror 'here'", 13, 0, NULL), AH_INTERNAL);
    HAS(ah_errmsg(host), "script:2: here");
    STATUS(host, ah_load(host, NULL, "return arg[0]", 13, 0, NULL), AH_OK);
    CHECK(strcmp(ah_returned(host), "script") == 0);
    shut(host);
}

static void keeps_the_last_error(void)
{
    ah_host *host = open_plain();
    const char *result = "untouched", *json;

    CHECK(ah_last_error(host)->status == AH_OK && strcmp(ah_last_error(host)->code, "ok") == 0);
    CHECK(strcmp(ah_last_error(host)->json, "") == 0 && strcmp(ah_errmsg(host), "") == 0);
    STATUS(host, ah_call_tool(host, "none", NULL, &result), AH_TOOL_NOT_FOUND);
    CHECK(strcmp(result, "untouched") == 0);
    load(host, "return 1"); /* a success does not clear it */
    CHECK(ah_last_error(host)->status == AH_TOOL_NOT_FOUND);
    json = ah_last_error(host)->json;
    HAS(json, "\"code\":\"tool_not_found\"");
    CHECK(ah_last_error(host)->json == json); /* valid until the next failure */
    HAS(ah_errmsg(host), "there is no tool 'none'");
    STATUS(host, ah_call_tool(host, NULL, NULL, &result), AH_USAGE);
    CHECK(ah_last_error(host)->status == AH_USAGE);
    CHECK(strcmp(ah_status_name((ah_status)99), "internal") == 0);
    shut(host);
}

static void takes_names_of_models(void)
{
    ah_host *host = open_plain();
    ah_agent *agent;

    STATUS(host, ah_alias(host, NULL), AH_USAGE);
    STATUS(host, ah_alias(host, "{\n\"a\":"), AH_USAGE);
    HAS(ah_errmsg(host), "is not JSON");
    HAS(ah_errmsg(host), "line 2, column 5");
    STATUS(host, ah_alias(host, "[]"), AH_USAGE);
    STATUS(host, ah_alias(host, "{\"a\":7}"), AH_USAGE);
    HAS(ah_errmsg(host), "'a'");
    STATUS(host, ah_alias(host, "{\"a/b\":{\"window\":\"x\"}}"), AH_USAGE);
    HAS(ah_errmsg(host), "a/b");
    HAS(ah_last_error(host)->json, "\"code\":\"usage\"");
    STATUS(host, ah_alias(host, "{\"parrot\":\"demo/echo\"}"), AH_OK);
    agent = agent_of(host, "{\"model\":\"parrot\"}");
    STATUS(host, ah_agent_run(agent, "x"), AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "x") == 0);
    shut(host);
}

/* After ah_terminate no run begins and no script goes on; the host can be closed. */
static void is_terminated(void)
{
    ah_host *host = open_plain();
    ah_agent *slow, *echo;

    load(host, "local ah = require 'agenthost' return { slow = ah.scripted(function() return { "
               "text = 'x', delay = 60 } end) }");
    slow = agent_of(host, "{\"model\":\"slow\"}");
    echo = agent_of(host, "{\"model\":\"demo/echo\"}");
    STATUS(host, ah_agent_start(slow, "go"), AH_OK);
    CHECK(ah_step(host, 0) == 1 && ah_waiting(host) == 0);
    ah_terminate(host);
    step_until_done(host);
    CHECK(ah_agent_reply(slow)->status == AH_CANCELLED);
    STATUS(host, ah_agent_run(echo, "x"), AH_CANCELLED);
    STATUS(host, ah_agent_start(echo, "x"), AH_CANCELLED);
    CHECK(ah_agent_reply(echo) == NULL);
    CHECK(try(host, "while true do end") != AH_OK);
    shut(host);
}

static void gives_a_script_its_arguments(void)
{
    char *argv[] = {(char *)(uintptr_t) "one", (char *)(uintptr_t) "two"};
    ah_host *host = open_plain();
    const char path[] = "spec/embed/arguments.lua";

    STATUS(host, ah_script(host, path, 2, argv), AH_OK);
    STATUS(host, ah_script(host, path, 0, NULL), AH_INTERNAL);
    shut(host);
}

static void has_what_a_text_returned(void)
{
    static const char first[] = "local a, b = ... return arg[0] .. a .. b", other[] = "return 1";
    char *argv[] = {(char *)(uintptr_t) "one", (char *)(uintptr_t) "two"};
    ah_host *host = open_plain();

    CHECK(ah_returned(host) == NULL);
    STATUS(host, ah_load(host, "text", first, sizeof first - 1, 2, argv), AH_OK);
    CHECK(strcmp(ah_returned(host), "textonetwo") == 0);
    STATUS(host, try(host, other), AH_OK);
    CHECK(ah_returned(host) == NULL);
    shut(host);
}

static void keeps_lua_within_its_memory(void)
{
    ah_host *host = open_host((ah_config){.max_memory = 8 << 20});

    STATUS(host, try(host, "local t = {} for i = 1, 1e8 do t[i] = ('x'):rep(1000) .. i end"),
           AH_NOMEM);
    HAS(ah_errmsg(host), "memory");
    load(host, "return require('agenthost').tool { name = 't', description = 'A tool.', "
               "handler = function() return 1 end }");
    STATUS(host, ah_call_tool(host, "t", NULL, NULL), AH_OK);
    load(host,
         "local function eat() local t = {} for i = 1, 1e7 do t[i] = { i } end end "
         "local ah = require('agenthost') return { "
         "ah.tool { name = 'small', description = 'A tool.', memory = 1 << 20, handler = eat }, "
         "ah.tool { name = 'large', description = 'A tool.', handler = eat } }");
    STATUS(host, ah_call_tool(host, "small", NULL, NULL), AH_INTERNAL);
    HAS(ah_errmsg(host), "the limit is 1048576");
    STATUS(host, ah_call_tool(host, "large", NULL, NULL), AH_INTERNAL);
    HAS(ah_errmsg(host), "all of Lua may have 8388608 bytes here; that is max_memory");
    STATUS(host, ah_call_tool(host, "t", NULL, NULL), AH_OK);
    shut(host);
}

static void does_not_notice_another_host(void)
{
    ah_host *a = open_plain(), *b = NULL;
    const char *got;

    STATUS(NULL, ah_open(NULL, &b), AH_OK);
    load(a, "x = 1; return require('agenthost').tool { name = 't', description = 'A tool.', "
            "handler = function() return x end }");
    load(b, "assert(x == nil) x = 2; return require('agenthost').tool { name = 't', "
            "description = 'A tool.', handler = function() return x end }");
    STATUS(a, ah_call_tool(a, "t", "{}", &got), AH_OK);
    CHECK(strcmp(got, "1") == 0);
    ah_close(b);
    CHECK(strcmp(got, "1") == 0);
    STATUS(a, ah_call_tool(a, "no", "{}", &got), AH_TOOL_NOT_FOUND);
    shut(a);
}

static int64_t a_clock(void *ud)
{
    return *(int64_t *)ud += 1;
}

static int64_t a_wall(void *ud)
{
    (void)ud;
    return 1700000000250;
}

static uint64_t a_random(void *ud)
{
    ++*(int *)ud;
    return UINT64_C(0x8000000000000000);
}

static void has_the_clocks_it_was_given(void)
{
    int64_t ms = 5000;
    int asked = 0;
    ah_host *host = open_host((ah_config){.clock = a_clock,
                                          .wall = a_wall,
                                          .clock_ud = &ms,
                                          .random = a_random,
                                          .random_ud = &asked});
    ah_agent *agent;
    const ah_event *e;

    load(host, "local ah = require 'agenthost' assert(ah.now() >= 5)\n"
               "return { m = ah.scripted { { fail = { message = 'busy', status = 503, "
               "retryable = true } }, 'ok' } }");
    agent = agent_of(host, "{\"model\":\"m\"}");
    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (ah_step(host, 0) > 0)
        ;
    e = ah_next_event(host);
    CHECK(e && e->time > 1700000000.2 && e->time < 1700000000.3);
    CHECK(asked == 1); /* for the wait before the retry */
    CHECK(strcmp(ah_agent_reply(agent)->text, "ok") == 0);
    HAS(ah_agent_transcript(agent), "1700000000250");
    shut(host);
}

static void takes_null_where_there_is_nothing(void)
{
    ah_host *host = open_host((ah_config){0});

    CHECK(ah_open(NULL, NULL) == AH_USAGE);
    HAS(ah_errmsg(NULL), "there is no host");
    ah_cancel(NULL);
    ah_wake(NULL);
    ah_terminate(NULL);
    CHECK(ah_waiting(NULL) == 0 && !ah_interactive(NULL) && ah_counter(NULL, "x") == -1);
    STATUS(host, ah_script(host, NULL, 0, NULL), AH_USAGE);
    HAS(ah_errmsg(host), "ah_script: path must not be NULL");
    STATUS(host, ah_script(host, "x.lua", 2, NULL), AH_USAGE);
    HAS(ah_errmsg(host), "ah_script: argv must not be NULL");
    STATUS(host, ah_load(host, "x", NULL, 3, 0, NULL), AH_USAGE);
    STATUS(host, ah_load(host, NULL, NULL, 0, 0, NULL), AH_OK);
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\"}", NULL), AH_USAGE);
    STATUS(host, ah_agent_find(host, "x", NULL), AH_USAGE);
    shut(host);
}

/* Runs an agent with these fields whose model calls a tool twice before it answers. Returns the
 * text, or the error's code and message. */
static const char *ending(ah_host *host, const char *fields)
{
    char text[1024];
    int n = snprintf(
        text, sizeof text,
        "local ah = require 'agenthost' "
        "local t = ah.tool { name = 't', description = 'T.', handler = function() return 1 end } "
        "local call = { calls = { { name = 't', arguments = ah.object {} } } } "
        "local r, e = ah.run { model = ah.scripted { call, call, 'end' }, tools = { t }, %s 'x' } "
        "return r and r.text or e.code .. ' ' .. e.message",
        fields);

    STATUS(host, ah_load(host, "run.lua", text, (size_t)n, 0, NULL), AH_OK);
    return ah_returned(host);
}

static void gives_runs_their_defaults(void)
{
    ah_host *host = open_plain();

    STATUS(host, ah_defaults(host, "{\"max_iterations\":1,\"http\":{\"idle_timeout\":5}}"), AH_OK);
    HAS(ending(host, ""), "max_iterations_exceeded");
    HAS(ending(host, "max_iterations = 3, http = { connect_timeout = 1 },"), "end");
    STATUS(host, ah_defaults(host, "{\"budget\":{\"tool_calls\":1},\"max_iterations\":1}"), AH_OK);
    HAS(ending(host, ""), "max_iterations_exceeded");
    HAS(ending(host, "max_iterations = 9,"), "budget_exceeded");
    HAS(ending(host, "max_iterations = 9, budget = { requests = 50 },"), "budget_exceeded");
    HAS(ending(host, "max_iterations = 9, budget = { tool_calls = 2 },"), "end");
    HAS(ending(host, "max_iterations = 9, budget = require('agenthost').budget {},"), "end");
    STATUS(host, ah_defaults(host, "{}"), AH_OK);
    HAS(ending(host, ""), "end");
    shut(host);
}

static void refuses_defaults_that_are_none(void)
{
    static const struct {
        const char *json, *why;
    } wrong[] = {
        {"[1]", "expected a JSON object"},
        {"{\"max_iterations\":1", "defaults of runs"},
        {"{\"max_iteration\":1}", "'max_iteration' (did you mean 'max_iterations'?)"},
        {"{\"max_iterations\":0}", "must be an integer of at least 1, found 0"},
        {"{\"timeout\":\"1\"}", "field 'timeout' must be a number"},
        {"{\"api_key\":\"k\"}", "field 'api_key' can be given by a script only"},
        {"{\"http\":{\"max_body\":1}}", "http: field 'max_body' can be given by a script only"},
        {"{\"http\":1}", "field 'http' must be a table"},
        {"{\"budget\":true}", "defaults of runs: budget"},
        {"{\"max_in_flight\":0}", "must be an integer of at least 1, found 0"},
        {"{\"providers\":[{}]}", "by the provider's name, found a table"},
        {"{\"providers\":4}", "providers: expected an object, found a number"},
        {"{\"providers\":{\"openai\":4}}", "by the provider's name, found a number"},
        {"{\"providers\":{\"openai\":{\"max_in_flight\":0}}}", "'max_in_flight' must be"},
        {"{\"providers\":{\"openai\":{\"in_flight\":1}}}", "unknown field 'in_flight'"},
        {"{\"options\":{\"reasoning\":null}}", "options: field 'reasoning' must be a string"},
    };
    ah_host *host = open_plain();

    STATUS(host, ah_defaults(host, "{\"max_iterations\":1}"), AH_OK);
    STATUS(host, ah_defaults(host, NULL), AH_USAGE);
    HAS(ah_errmsg(host), "ah_defaults: json must not be NULL");
    STATUS(host, ah_defaults(host, "{"), AH_USAGE);
    HAS(ah_errmsg(host), "line 1, column 2");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        STATUS(host, ah_defaults(host, wrong[i].json), AH_USAGE);
        HAS(ah_errmsg(host), wrong[i].why);
    }
    HAS(ending(host, ""), "max_iterations_exceeded");
    shut(host);
}

const a_case host_cases[] = {
    {"a host takes NULL where there is nothing", takes_null_where_there_is_nothing},
    {"a host takes no config of another size", takes_no_config_of_another_size},
    {"a host gives its user what it was given", gives_its_user_what_it_was_given},
    {"a host tells why a script failed", tells_why_a_script_failed},
    {"a host keeps its last error until another call fails", keeps_the_last_error},
    {"a host takes names of models", takes_names_of_models},
    {"a host that is terminated begins nothing more", is_terminated},
    {"a host gives a script its arguments", gives_a_script_its_arguments},
    {"a host has what a text returned", has_what_a_text_returned},
    {"a host keeps Lua within its memory", keeps_lua_within_its_memory},
    {"a host does not notice another", does_not_notice_another_host},
    {"a host has the clocks that it was given", has_the_clocks_it_was_given},
    {"a host gives its runs their defaults", gives_runs_their_defaults},
    {"a host refuses defaults that are none", refuses_defaults_that_are_none},
    {NULL, NULL},
};
