/* Calls every function of the header from every kind of function that the host calls. A call that
 * is not allowed there is refused and has no effect. */
#include "engine.h"

typedef enum kind {
    WATCHER,
    IDLE,
    LOG,
    CLOCK,
    RANDOM,
    ENGINE,
    TOOL,
    TRANSPORT,
    WOKEN,
    RELEASE,
    KINDS
} kind;

typedef struct place {
    kind tried; /* there everything is called, once */
    int times;
    bool within;
    ah_host *host;
    ah_agent *agent, *other;
    ah_store *store;
    uint64_t call, request; /* open ones */
} place;

static bool looks_on(kind k)
{
    return k < TOOL || k == RELEASE;
}

/* Calls that wait, step, open, close or declare: all are refused, everywhere. */
static void never(place *p)
{
    static const ah_tool_config none = {.size = sizeof none};
    ah_host *host = p->host;
    ah_agent *agent = NULL;
    ah_store_engine engine = {.size = sizeof engine};
    ah_store *store = NULL;
    const char *result = NULL;

    CHECK(ah_step(host, 0) == AH_USAGE);
    STATUS(host, ah_script(host, "/nowhere.lua", 0, NULL), AH_USAGE);
    HAS(ah_errmsg(host), "it cannot be called from a");
    STATUS(host, ah_load(host, "x", "error 'ran'", 11, 0, NULL), AH_USAGE);
    STATUS(host, ah_add_tool(host, &none), AH_USAGE);
    HAS(ah_errmsg(host), "ah_add_tool: it cannot be called");
    STATUS(host, ah_remove_tool(host, "slow"), AH_USAGE);
    STATUS(host, ah_call_tool(host, "slow", NULL, &result), AH_USAGE);
    STATUS(host, ah_agent_open(host, "{\"model\":\"demo/echo\"}", &agent), AH_USAGE);
    STATUS(host, ah_agent_find(host, "x", &agent), AH_USAGE);
    STATUS(host, ah_agent_run(p->other, "x"), AH_USAGE);
    ah_agent_close(p->other);
    HAS(ah_errmsg(host), "ah_agent_close: it cannot be called");
    ah_close(host);
    HAS(ah_errmsg(host), "ah_close: it cannot be called");
    STATUS(host, ah_store_open(host, "{\"engine\":\"memory\"}", &store), AH_USAGE);
    STATUS(host, ah_store_open_with(host, &engine, &store), AH_USAGE);
    HAS(ah_errmsg(host), "ah_store_open_with: it cannot be called");
    ah_store_close(p->store);
    HAS(ah_errmsg(host), "ah_store_close: it cannot be called");
    CHECK(!agent && !result && !store);
}

static void acts(place *p)
{
    ah_host *host = p->host;
    ah_status wanted = looks_on(p->tried) ? AH_USAGE : AH_OK;
    const char *asks = NULL;

    STATUS(host, ah_agent_send(p->other, "more"), wanted);
    STATUS(host, ah_agent_start(p->other, "go"), wanted);
    CHECK(ah_agent_at_work(p->other) == (wanted == AH_OK));
    ah_agent_cancel(p->other);
    STATUS(host, ah_store_asks(p->store, NULL, &asks), wanted);
    STATUS(host, ah_store_respond(p->store, "x", "1", "true", NULL), AH_USAGE);
    HAS(ah_errmsg(host), wanted == AH_OK ? "'x'" : "ah_store_respond: it cannot be called");
    if (p->call)
        STATUS(host, ah_tool_refuse(host, p->call, "no"), wanted);
    if (p->call) /* over, or not to be answered here */
        STATUS(host, ah_tool_done(host, p->call, "1"), AH_USAGE);
    if (p->request) {
        ah_transport_head(host, p->request, 200, NULL, 0);
        ah_transport_body(host, p->request, "junk", 4);
        ah_transport_end(host, p->request, "broken");
    }
}

static void reads(place *p)
{
    ah_host *host = p->host;

    CHECK(ah_user(host) == p && ah_last_error(host) && ah_errmsg(host) && ah_about(host));
    CHECK(ah_tools(host) && ah_agent_transcript(p->other) && ah_agent_messages(p->other));
    ah_agent_set_user(p->other, p);
    CHECK(ah_agent_user(p->other) == p);
    ah_agent_reply(p->other);
    ah_agent_reply_json(p->other);
    ah_returned(host);
    ah_pollfd(host);
    ah_timeout(host);
    CHECK(ah_store_appended(host, 0, AH_OK, NULL) == AH_USAGE);
    ah_cancel(NULL);
    ah_wake(NULL);
}

static void came_to(place *p, kind k)
{
    if (k != p->tried || p->times || p->within || !p->other)
        return;
    p->within = true;
    p->times++;
    never(p);
    acts(p);
    if (k != CLOCK && k != LOG) /* these ask the clock and the log themselves */
        reads(p);
    p->within = false;
}

static void on_event(void *ud, const ah_event *e)
{
    char type[40];

    snprintf(type, sizeof type, "%s", e->type);
    came_to(ud, WATCHER);
    CHECK(strcmp(type, e->type) == 0 && e->json[e->json_len] == '\0' && strstr(e->json, type));
}

static int on_idle(void *ud, int timeout_ms)
{
    came_to(ud, IDLE);
    return timeout_ms;
}

static void on_log(void *ud, ah_log_level level, const char *line)
{
    (void)level;
    CHECK(strlen(line) > 0);
    came_to(ud, LOG);
}

static int64_t on_clock(void *ud)
{
    static int64_t now;

    came_to(ud, CLOCK);
    return ++now;
}

static int64_t on_wall(void *ud)
{
    (void)ud;
    return 1700000000000;
}

static uint64_t on_random(void *ud)
{
    came_to(ud, RANDOM);
    return 7;
}

static void on_woken(void *ud)
{
    came_to(ud, WOKEN);
}

static void on_append(void *ud)
{
    came_to(ud, ENGINE);
}

static void on_call(void *ud, ah_host *host, const ah_tool_call *call)
{
    place *p = ud;

    if (strcmp(call->tool, "slow") == 0) {
        p->call = call->id;
        ah_wake(host);
        return;
    }
    came_to(p, TOOL);
    STATUS(host, ah_tool_done(host, call->id, "1"), AH_OK);
}

static void on_release(void *ud)
{
    place *p = ud;

    if (p->host)
        came_to(p, RELEASE);
}

static ah_status on_start(void *ud, ah_host *host, const ah_transport_request *r)
{
    place *p = ud;

    (void)host;
    p->request = r->id;
    came_to(p, TRANSPORT);
    return AH_OK;
}

static void on_cancel(void *ud, ah_host *host, uint64_t id)
{
    (void)host;
    CHECK(((place *)ud)->request == id);
    ((place *)ud)->request = 0;
}

static const char script[] =
    "local ah = require 'agenthost'\n"
    "return { m = ah.scripted { { calls = { { name = 'slow' }, { name = 'quick' } } }, 'Done.' } }";

static void add(place *p, const char *name, bool parallel)
{
    ah_tool_config cfg = {.size = sizeof cfg,
                          .name = name,
                          .description = "A tool.",
                          .parallel = parallel,
                          .call = on_call,
                          .release = on_release,
                          .ud = p};

    STATUS(p->host, ah_add_tool(p->host, &cfg), AH_OK);
}

/* A run with two calls, one of which is open; and a request that fails and is sent again. */
static void try_in(kind k)
{
    place p = {.tried = k};
    engine *e = calloc(1, sizeof *e);
    bool carries = k == TRANSPORT || k == RANDOM;
    ah_config cfg = {.user = &p,
                     .watcher = {.event = on_event, .idle = on_idle, .ud = &p},
                     .log = on_log,
                     .log_ud = &p,
                     .log_level = AH_LOG_INFO,
                     .clock = on_clock,
                     .wall = on_wall,
                     .clock_ud = &p,
                     .random = on_random,
                     .random_ud = &p,
                     .woken = on_woken,
                     .woken_ud = &p,
                     .transport = {.start = on_start, .cancel = on_cancel, .ud = &p}};
    ah_host *host = open_host(cfg);
    bool at_work;

    p.host = host;
    CHECK(e);
    *e = (engine){.at_append = on_append, .ud = &p};
    p.store = open_engine(host, e, "e");
    add(&p, "slow", true);
    add(&p, "quick", true);
    load(host, script);
    p.agent = agent_of(host, carries ? "{\"model\":\"openai/x\",\"api_key\":\"k\",\"timeout\":30}"
                                     : "{\"model\":\"m\",\"tools\":[\"slow\",\"quick\"],"
                                       "\"store\":{\"name\":\"e\"},\"id\":\"x\"}");
    p.other = agent_of(host, "{\"model\":\"demo/echo\"}");
    STATUS(host, ah_agent_start(p.agent, "go"), AH_OK);
    for (int i = 0; i < 400 && !p.times; i++) {
        if (p.request && k != TRANSPORT)
            ah_transport_end(host, p.request, "it broke");
        if (k == LOG && i == 20)
            ah_agent_cancel(p.agent);
        if (k == RELEASE && i == 20)
            STATUS(host, ah_remove_tool(host, "quick"), AH_OK);
        if (k == RELEASE && i > 20)
            load(host, "collectgarbage()");
        if (k == RELEASE && i == 20) {
            ah_agent_close(p.agent);
            p.agent = NULL;
        }
        ah_step(host, 0);
    }
    CHECK(p.times == 1);
    at_work = ah_agent_at_work(p.other);
    STATUS(host, ah_agent_start(p.other, "after"), at_work ? AH_USAGE : AH_OK);
    if (p.agent)
        ah_agent_cancel(p.agent);
    for (int i = 0; i < 1000 && ah_step(host, 0) > 0; i++)
        ;
    CHECK(!ah_agent_at_work(p.other) && ah_agent_reply(p.other));
    p.host = NULL;
    shut(host);
    free_engine(e);
}

static void in_the_watcher(void)
{
    try_in(WATCHER);
    try_in(IDLE);
}

static void in_the_log(void)
{
    try_in(LOG);
}

static void in_clocks(void)
{
    try_in(CLOCK);
    try_in(RANDOM);
}

static void in_engines(void)
{
    try_in(ENGINE);
}

static void in_tools(void)
{
    try_in(TOOL);
    try_in(RELEASE);
}

static void in_the_transport(void)
{
    try_in(TRANSPORT);
}

static void when_woken(void)
{
    try_in(WOKEN);
}

const a_case callback_cases[] = {
    {"a watcher may read and no more", in_the_watcher},
    {"a log function may read and no more", in_the_log},
    {"clocks and random may call nothing that works", in_clocks},
    {"an engine of a store may read and no more", in_engines},
    {"a tool may begin, answer and cancel, and its release nothing", in_tools},
    {"a transport may begin, answer and cancel", in_the_transport},
    {"what is woken may begin, answer and cancel", when_woken},
    {NULL, NULL},
};
