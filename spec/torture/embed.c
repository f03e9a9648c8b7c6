/* Programs whose memory fails, as embed.h has them: each calls the interface in the order in
 * which a program would and goes on as far as the statuses let it. What a status may be then
 * is said by `clean`; that nothing is lost and nothing crashes is torture.c's to find. */
#include "embed.h"

#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agenthost_lua.h"

static const char tools[] =
    "local ah = require 'agenthost'\n"
    "return { ah.tool { name = 'double', description = 'Doubles.', params = { n = 'integer' },\n"
    "    handler = function(args, ctx) ah.sleep(0.01) return args.n * 2 end },\n"
    "  pieces = ah.scripted(function() return { text = { 'one', ' two' } } end),\n"
    "  slow = ah.scripted(function() return { text = 'x', delay = 60 } end) }\n";

/* AH_OK or out of memory, in one of its guises: a handler for which there was none has failed,
 * which is an answer. */
static bool clean(ah_host *host, ah_status st)
{
    const char *words = st == AH_OK ? "" : ah_errmsg(host);

    return st == AH_OK || st == AH_NOMEM || strstr(words, "out of memory") ||
           strstr(words, "not enough memory");
}

/* A call that has to be clean; st_ is what it gave. */
#define CLEAN(host, call)                                                                          \
    do {                                                                                           \
        ah_status st_ = (call);                                                                    \
        if (!clean(host, st_) || (exact && st_ != AH_OK))                                          \
            return #call;                                                                          \
        if (st_ != AH_OK)                                                                          \
            return NULL;                                                                           \
    } while (0)

static void on_call(void *ud, ah_host *host, const ah_tool_call *call)
{
    (void)ud;
    ah_tool_done(host, call->id, "{\"b\":[1,2],\"a\":\"x\"}");
}

static ah_status add(ah_host *host)
{
    ah_tool_config cfg = {.size = sizeof cfg,
                          .name = "native",
                          .description = "A tool.",
                          .params = "{\"type\":\"object\",\"properties\":{\"n\":{\"default\":1}}}",
                          .result = "{\"type\":\"object\"}",
                          .call = on_call};

    return ah_add_tool(host, &cfg);
}

static const char *flow_tools(ah_host *host, bool exact)
{
    const char *got = "";

    CLEAN(host, ah_load(host, "tools.lua", tools, strlen(tools), 0, NULL));
    CLEAN(host, add(host));
    CLEAN(host, ah_call_tool(host, "native", "{}", &got));
    if (strcmp(got, "{\"a\":\"x\",\"b\":[1,2]}") != 0)
        return "an odd answer of a tool in C";
    CLEAN(host, ah_call_tool(host, "double", "{\"n\":4}", &got));
    if (strcmp(got, "8") != 0)
        return "an odd answer of a tool in Lua";
    got = ah_tools(host);
    if (exact && !got)
        return "no list";
    ah_last_error(host);
    CLEAN(host, ah_remove_tool(host, "native"));
    return NULL;
}

static const char *flow_agent(ah_host *host, bool exact)
{
    ah_agent *agent = NULL;

    CLEAN(host, add(host));
    CLEAN(host,
          ah_agent_open(host, "{\"model\":\"demo/tools\",\"tools\":[\"native\"],\"system\":\"S\"}",
                        &agent));
    CLEAN(host, ah_agent_send(agent, "first"));
    CLEAN(host, ah_agent_run(agent, "second"));
    if (exact && !strstr(ah_agent_reply(agent)->text, "native: {"))
        return "an odd reply";
    if ((!ah_agent_reply_json(agent) || !ah_agent_messages(agent) || !ah_agent_transcript(agent)) &&
        exact)
        return "nothing to read";
    ah_agent_close(agent);
    return NULL;
}

/* Memory may fail at any step: the end of a run is reported all the same. */
static const char *await(ah_host *host, int agents)
{
    int done = 0;

    for (int i = 0; ah_step(host, 1000) > 0; i++)
        if (i > 10000)
            return "the steps do not end";
    for (const ah_event *e; (e = ah_next_event(host));)
        if (strcmp(e->type, "done") == 0) {
            if (!ah_agent_reply(e->agent) || !strstr(e->json, "\"done\"") || e->run == 0)
                return "an end without a reply";
            done++;
        }
    return done == agents ? NULL : "an end that nobody told";
}

static const char *flow_events(ah_host *host, bool exact)
{
    ah_agent *agent[2] = {NULL};
    const char *odd;

    CLEAN(host, ah_load(host, "tools.lua", tools, strlen(tools), 0, NULL));
    for (int i = 0; i < 2; i++) {
        CLEAN(host, ah_agent_open(host, "{\"model\":\"pieces\",\"stream\":true}", &agent[i]));
        if (ah_agent_start(agent[i], "go") != AH_OK)
            return exact ? "no start" : await(host, i);
    }
    if ((odd = await(host, 2)))
        return odd;
    for (int i = 0; i < 2; i++)
        if (!clean(host, ah_agent_reply(agent[i])->status) &&
            !strstr(ah_agent_reply(agent[i])->error.message, "memory"))
            return "an odd end";
    return NULL;
}

static const char *flow_cancel(ah_host *host, bool exact)
{
    ah_agent *agent = NULL;

    CLEAN(host, ah_load(host, "tools.lua", tools, strlen(tools), 0, NULL));
    CLEAN(host, ah_agent_open(host, "{\"model\":\"slow\"}", &agent));
    CLEAN(host, ah_agent_start(agent, "go"));
    ah_step(host, 0);
    ah_agent_cancel(agent);
    if (await(host, 1))
        return "an odd end of a cancelled run";
    if (exact && ah_agent_reply(agent)->status != AH_CANCELLED)
        return "not cancelled";
    CLEAN(host, ah_agent_start(agent, "again"));
    ah_step(host, 0);
    return NULL; /* closed with the host, at work */
}

/* -- a transport, in a host of its own --------------------------------------------------------- */

static ah_status start(void *ud, ah_host *host, const ah_transport_request *r)
{
    static const char *const headers[] = {"Content-Type: application/json"};
    static const char body[] = "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                               "\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}";

    (void)ud;
    ah_transport_head(host, r->id, 200, headers, 1);
    ah_transport_body(host, r->id, body, sizeof body - 1);
    ah_transport_end(host, r->id, NULL);
    return AH_OK;
}

static void cancel(void *ud, ah_host *host, uint64_t id)
{
    (void)ud;
    (void)host;
    (void)id;
}

static const char *carry(ah_host *host, bool exact)
{
    ah_agent *agent = NULL;

    CLEAN(host, ah_agent_open(host,
                              "{\"model\":\"openai/x\",\"base_url\":\"http://example.test\","
                              "\"stream\":false,\"retries\":0}",
                              &agent));
    CLEAN(host, ah_agent_run(agent, "hi"));
    return strcmp(ah_agent_reply(agent)->text, "Hello.") == 0 ? NULL : "an odd answer";
}

static const char *carry_in(ah_config cfg, bool exact)
{
    ah_host *other = NULL;
    const char *odd;
    ah_status st;

    cfg.size = sizeof cfg;
    cfg.alloc = embed_memory;
    st = ah_open(&cfg, &other);
    if (st != AH_OK)
        return st == AH_NOMEM && !exact ? NULL : "ah_open";
    embed_watch_host(other);
    odd = carry(other, exact);
    embed_disarm();
    ah_close(other);
    return odd;
}

static const char *flow_transport(ah_host *host, bool exact)
{
    (void)host;
    return carry_in((ah_config){.transport = {start, cancel, NULL}}, exact);
}

static const char *flow_recording(ah_host *host, bool exact)
{
    char path[] = "/tmp/torture.XXXXXX";
    int fd = mkstemp(path);
    const char *odd;

    (void)host;
    if (fd < 0)
        return "no file";
    close(fd);
    odd = carry_in((ah_config){.transport = {start, cancel, NULL}, .record = path}, exact);
    unlink(path);
    return odd;
}

/* In other bytes than the request's, so that all of the comparison is tried. */
static const char *flow_replay(ah_host *host, bool exact)
{
    static const char line[] =
        "{\"request\":{\"method\":\"POST\",\"url\":\"http://example.test/chat/completions\","
        "\"json\":{\"messages\":[{\"content\":\"hi\",\"role\":\"user\"}],\"model\":\"x\" }},"
        "\"response\":{\"status\":200,\"headers\":[\"Content-Type: application/json\"],\"body\":"
        "\"{\\\"choices\\\":[{\\\"index\\\":0,\\\"message\\\":{\\\"role\\\":\\\"assistant\\\","
        "\\\"content\\\":\\\"Hello.\\\"},\\\"finish_reason\\\":\\\"stop\\\"}]}\"}}\n";
    char path[] = "/tmp/torture.XXXXXX";
    int fd = mkstemp(path);
    const char *odd;

    (void)host;
    if (fd < 0 || write(fd, line, sizeof line - 1) != (ssize_t)sizeof line - 1)
        return "no file";
    close(fd);
    odd = carry_in((ah_config){.replay = path}, exact);
    unlink(path);
    return odd;
}

/* -- asks, in a host of its own ---------------------------------------------------------------- */

static const char asking[] =
    "local ah = require 'agenthost'\n"
    "local wonder = ah.tool { name = 'wonder', description = 'Asks.', params = { n = 'integer' },\n"
    "  parallel = true, handler = function(args, ctx)\n"
    "    return ctx:ask { question = 'How many?', schema = { type = 'integer' }, default = 1 }\n"
    "  end }\n"
    "local function call(n) return { name = 'wonder', arguments = { n = n } } end\n"
    "return { clerk = ah.agent { tools = { wonder }, log = function() end,\n"
    "  model = ah.scripted(function(r)\n"
    "    local last = r.entries[#r.entries]\n"
    "    return last.type == 'user' and { calls = { call(1), call(2) } } or 'Done.'\n"
    "  end),\n"
    "  policies = { function(c) if c.arguments.n == 2 then return 'ask', 'two' end end } } }\n";

/* The program says what it can: where memory was out it says it again. */
static const char *respond(ah_host *host)
{
    for (int i = 0; ah_step(host, 1000) > 0; i++) {
        if (i > 10000)
            return "the steps do not end";
        for (const ah_ask *ask; (ask = ah_ask_next(host));) {
            const char *response = strcmp(ask->kind, "approval") == 0 ? "true" : "\"7\"";
            ah_status st = ah_ask_close(host, ask->id, "[]", NULL);

            if (st == AH_OK)
                return "a response that does not fit counts";
            for (int n = 0; (st = ah_ask_close(host, ask->id, response, "ann")) != AH_OK; n++)
                if (st != AH_NOMEM || n > 3)
                    return n > 3 ? NULL : "an odd response";
        }
    }
    return NULL;
}

static const char *ask_and_respond(ah_host *host, bool exact)
{
    ah_agent *agent = NULL;
    const char *odd;

    CLEAN(host, ah_load(host, "asking.lua", asking, strlen(asking), 0, NULL));
    CLEAN(host, ah_agent_find(host, "clerk", &agent));
    CLEAN(host, ah_agent_start(agent, "go"));
    odd = respond(host);
    if (exact && !odd && !strstr(ah_agent_messages(agent), "\"content\":\"7\""))
        return "an odd result";
    return odd;
}

static const char *flow_asks(ah_host *host, bool exact)
{
    ah_config cfg = {.size = sizeof cfg, .alloc = embed_memory, .asks = true};
    ah_host *own = NULL;
    const char *odd;

    (void)host;
    if (ah_open(&cfg, &own) != AH_OK)
        return exact ? "ah_open" : NULL;
    embed_watch_host(own);
    odd = ask_and_respond(own, exact);
    embed_disarm();
    ah_close(own);
    return odd;
}

/* -- a terminal, which is a pair of sockets ---------------------------------------------------- */

typedef struct tty {
    int pair[2], news[2];
    int entered, left;
    bool kept;
} tty;

static int tty_enter(void *ud, unsigned mode, int *fd, int *news)
{
    tty *t = ud;

    (void)mode;
    t->entered++;
    *fd = t->pair[1];
    *news = t->news[0];
    return 0;
}

static void tty_leave(void *ud)
{
    ((tty *)ud)->left++;
}

static void tty_nothing(void *ud)
{
    (void)ud;
}

static void tty_shown(void *ud, const char *away, size_t n)
{
    (void)away;
    (void)n;
    ((tty *)ud)->kept = true;
}

static bool tty_kept(void *ud)
{
    return ((tty *)ud)->kept;
}

static bool open_tty(tty *t)
{
    static const char typed[] = "a\033[A\303\251\033[200~pasted\r\033[1mtext\033[201~q";

    *t = (tty){.kept = false};
    return socketpair(AF_UNIX, SOCK_STREAM, 0, t->pair) == 0 && pipe(t->news) == 0 &&
           fcntl(t->pair[1], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(t->news[0], F_SETFL, O_NONBLOCK) == 0 &&
           write(t->pair[0], typed, sizeof typed - 1) == (ssize_t)sizeof typed - 1;
}

static const char *use_terminal(ah_host *host, bool exact)
{
    static const char script[] =
        "local ah = require 'agenthost'\n"
        "local t <close> = assert(ah.terminal { max_paste = 100 })\n"
        "t:live({ { '> ', { 'x', bold = true } }, 'status' }, { line = 1 })\n"
        "t:write 'half ' t:print_above { 'a line', color = 'red' }\n"
        "local seen = {}\n"
        "repeat local e = assert(t:key(5)) seen[#seen + 1] = e.key or e.paste until e.key == 'q'\n"
        "assert(select(2, t:key(0.001)).code == 'deadline_exceeded')\n"
        "t:live {}\n"
        "assert(table.concat(seen, ' ') == 'a up \303\251 pasted\\ntext q', table.concat(seen, ' "
        "'))\n";

    CLEAN(host, ah_load(host, "terminal.lua", script, strlen(script), 0, NULL));
    return NULL;
}

static const char *flow_terminal(ah_host *host, bool exact)
{
    tty t;
    ah_config cfg = {.size = sizeof cfg,
                     .alloc = embed_memory,
                     .tty = {tty_enter, tty_leave, tty_nothing, tty_nothing, tty_shown, tty_kept,
                             true, true, true, &t}};
    ah_host *own = NULL;
    const char *odd = NULL;

    (void)host;
    if (!open_tty(&t))
        return "no sockets";
    if (ah_open(&cfg, &own) == AH_OK) {
        embed_watch_host(own);
        odd = use_terminal(own, exact);
        embed_disarm();
        ah_close(own);
    } else if (exact) {
        odd = "ah_open";
    }
    for (int i = 0; i < 2; i++) {
        close(t.pair[i]);
        close(t.news[i]);
    }
    return odd ? odd : t.entered != t.left ? "the terminal is not left" : NULL;
}

/* -- a Lua state of the program's own ---------------------------------------------------------- */

static void *lua_memory(void *ud, void *p, size_t old, size_t size)
{
    (void)old;
    return embed_memory(ud, p, size);
}

static int open_libs(lua_State *L)
{
    luaL_openlibs(L);
    return 0;
}

static const char *attached(lua_State *L, bool exact)
{
    ah_config cfg = {.size = sizeof cfg, .alloc = embed_memory};
    ah_host *host = NULL;
    const char *why = NULL;
    ah_status st;

    lua_pushcfunction(L, open_libs);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK)
        return exact ? "luaL_openlibs" : NULL;
    if ((st = ah_attach(L, &cfg, &host, &why)) != AH_OK)
        return st == AH_NOMEM && why && !exact ? NULL : "ah_attach";
    return flow_agent(host, exact);
}

static const char *flow_attach(ah_host *host, bool exact)
{
    lua_State *L = lua_newstate(lua_memory, NULL);
    const char *odd;

    (void)host;
    if (!L)
        return exact ? "no state" : NULL;
    embed_watch(L);
    odd = attached(L, exact);
    embed_disarm();
    lua_close(L);
    return odd;
}

embed_flow embed_flow_of(const char *name)
{
    static const struct {
        const char *name;
        embed_flow flow;
    } all[] = {
        {"embed: tools", flow_tools},         {"embed: an agent", flow_agent},
        {"embed: events", flow_events},       {"embed: cancel and close", flow_cancel},
        {"embed: transport", flow_transport}, {"embed: attach", flow_attach},
        {"embed: recording", flow_recording}, {"embed: replay", flow_replay},
        {"embed: asks", flow_asks},           {"embed: a terminal", flow_terminal},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].flow;
    return NULL;
}

const char *embed_works_on(ah_host *host)
{
    ah_agent *agent = NULL;

    if (ah_agent_open(host, "{\"model\":\"demo/echo\"}", &agent) != AH_OK ||
        ah_agent_run(agent, "again") != AH_OK)
        return "the host does not work on";
    return strcmp(ah_agent_reply(agent)->text, "again") == 0 ? NULL : "the host answers oddly";
}
