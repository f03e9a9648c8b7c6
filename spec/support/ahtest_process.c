/* ahtest.process: a child process (io/process.h) in a loop of its own, for the specs.
 *
 *   p = process({ word, ... }, { env = { "NAME=value", ... }, cwd, input, merge, timeout_ms,
 *                                grace_ms, max_pending })         | nil, message
 *   p:wait(seconds) -> result | nil if it has not ended in time; takes and counts the output
 *   p:line(seconds[, "stderr"]) -> line | nothing
 *   p:read([ "stderr" ]) -> output that was not taken yet
 *   p:write(text) -> true | nil, message       p:unwritten()      p:close_input()
 *   p:stop()   p:close()
 * result: { how, code, signal, left, wall_ms, cpu_ms, peak, error, stdout, stderr, bytes }; the
 * streams hold the first 1 MiB that wait has taken. At most 64 words and variables.
 *
 *   filters_calls    true if system calls of commands are filtered (io/refuse.h) */
#include "io/process.h"
#include "io/refuse.h"
#include "support/ahtest.h"

#define PROCESS "ahtest.process"

enum { MAX_WORDS = 64, KEPT = 1 << 20 };

typedef struct process {
    ah_loop *loop;
    ah_process *p;
    ah_buf kept[2];
    int64_t bytes; /* of both streams */
} process;

static void on_news(void *ud, ah_process *p)
{
    (void)ud;
    (void)p; /* this ends the loop's wait */
}

static void read_list(lua_State *L, int idx, const char *out[MAX_WORDS + 1])
{
    lua_Integer n = luaL_len(L, idx);

    luaL_argcheck(L, n <= MAX_WORDS, idx, "too many words");
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, idx, i);
        out[i - 1] = luaL_checkstring(L, -1); /* the list keeps it alive */
        lua_pop(L, 1);
    }
    out[n] = NULL;
}

static lua_Integer number_of(lua_State *L, const char *name)
{
    lua_Integer n;

    lua_getfield(L, 2, name);
    n = luaL_optinteger(L, -1, 0);
    lua_pop(L, 1);
    return n;
}

static bool flag_of(lua_State *L, const char *name)
{
    bool on;

    lua_getfield(L, 2, name);
    on = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return on;
}

static int process_close(lua_State *L)
{
    process *p = luaL_checkudata(L, 1, PROCESS);

    ah_process_free(p->p);
    ah_loop_free(p->loop);
    for (int i = 0; i < 2; i++)
        ah_buf_clear(&p->kept[i]);
    p->p = NULL;
    p->loop = NULL;
    return 0;
}

static int start(lua_State *L)
{
    const char *argv[MAX_WORDS + 1], *env[MAX_WORDS + 1];
    ah_process_config cfg = {.argv = argv, .env = env, .news = on_news};
    process *p;
    ah_err err;

    lua_settop(L, 2);
    read_list(L, 1, argv);
    lua_getfield(L, 2, "env");
    read_list(L, 3, env);
    lua_getfield(L, 2, "cwd"); /* -- words options env cwd */
    cfg.cwd = lua_tostring(L, 4);
    cfg.input = flag_of(L, "input");
    cfg.merge = flag_of(L, "merge");
    cfg.timeout_ms = number_of(L, "timeout_ms");
    cfg.grace_ms = number_of(L, "grace_ms");
    cfg.max_pending = (size_t)number_of(L, "max_pending");
    p = lua_newuserdatauv(L, sizeof *p, 0);
    *p = (process){0};
    ah_buf_init(&p->kept[0], &ah_mem_libc, KEPT);
    ah_buf_init(&p->kept[1], &ah_mem_libc, KEPT);
    luaL_setmetatable(L, PROCESS);
    if (ah_loop_new(&ah_mem_libc, NULL, NULL, &p->loop, &err) != AH_OK ||
        ah_process_start(&ah_mem_libc, p->loop, &cfg, &p->p, &err) != AH_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.message);
        return 2;
    }
    return 1;
}

static process *check(lua_State *L)
{
    process *p = luaL_checkudata(L, 1, PROCESS);

    luaL_argcheck(L, p->p, 1, "closed");
    return p;
}

static int64_t until(lua_State *L, process *p)
{
    return ah_loop_now(p->loop) + ah_ms_of(luaL_checknumber(L, 2));
}

static void take_all(process *p)
{
    for (int i = 0; i < 2; i++) {
        ah_slice s = ah_process_output(p->p, (ah_process_stream)i);

        p->bytes += (int64_t)s.n;
        ah_buf_add(&p->kept[i], s.p, s.n < KEPT - p->kept[i].len ? s.n : KEPT - p->kept[i].len);
        ah_process_take(p->p, (ah_process_stream)i, s.n);
    }
}

static void set_integer(lua_State *L, const char *name, int64_t n)
{
    lua_pushinteger(L, n);
    lua_setfield(L, -2, name);
}

static void push_result(lua_State *L, const process *p, const ah_process_result *r)
{
    static const char *const how[] = {"exited", "stopped", "timed out", "failed"};

    lua_newtable(L);
    lua_pushstring(L, how[r->how]);
    lua_setfield(L, -2, "how");
    set_integer(L, "code", r->code);
    set_integer(L, "signal", r->signal);
    set_integer(L, "left", r->left);
    set_integer(L, "wall_ms", r->wall_ms);
    set_integer(L, "cpu_ms", r->cpu_ms);
    set_integer(L, "peak", r->peak_bytes);
    set_integer(L, "bytes", p->bytes);
    lua_pushstring(L, r->err.status != AH_OK ? r->err.message : NULL);
    lua_setfield(L, -2, "error");
    for (int i = 0; i < 2; i++) {
        lua_pushlstring(L, ah_buf_slice(&p->kept[i]).p, p->kept[i].len);
        lua_setfield(L, -2, i ? "stderr" : "stdout");
    }
}

static int process_wait(lua_State *L)
{
    process *p = check(L);
    int64_t end = until(L, p), left = 0;
    ah_process_result r;

    take_all(p);
    while (!ah_process_ended(p->p, &r) && (left = end - ah_loop_now(p->loop)) > 0) {
        ah_loop_wait(p->loop, (int)left);
        take_all(p);
    }
    if (!ah_process_ended(p->p, &r))
        return 0;
    push_result(L, p, &r);
    return 1;
}

static ah_process_stream stream_of(lua_State *L, int arg)
{
    return lua_isnoneornil(L, arg) ? AH_STDOUT : AH_STDERR;
}

/* Pushes the next line and takes it; returns false if there is none yet. */
static bool push_line(lua_State *L, process *p, ah_process_stream s)
{
    ah_slice all = ah_process_output(p->p, s);
    const char *end = memchr(all.p, '\n', all.n);
    size_t n = end ? (size_t)(end - all.p) : all.n;

    if (!end && (!all.n || !ah_process_ended(p->p, NULL)))
        return false;
    lua_pushlstring(L, all.p, n && end && all.p[n - 1] == '\r' ? n - 1 : n);
    ah_process_take(p->p, s, end ? n + 1 : n);
    return true;
}

static int process_line(lua_State *L)
{
    process *p = check(L);
    int64_t end = until(L, p), left;
    ah_process_stream s = stream_of(L, 3);

    for (;;) {
        if (push_line(L, p, s))
            return 1;
        if (ah_process_at_end(p->p, s) || (left = end - ah_loop_now(p->loop)) <= 0)
            return 0;
        ah_loop_wait(p->loop, (int)left);
    }
}

static int process_read(lua_State *L)
{
    process *p = check(L);
    ah_process_stream s = stream_of(L, 2);
    ah_slice out;

    ah_loop_wait(p->loop, 0);
    out = ah_process_output(p->p, s);
    lua_pushlstring(L, out.p, out.n);
    ah_process_take(p->p, s, out.n);
    return 1;
}

static int process_write(lua_State *L)
{
    process *p = check(L);
    ah_slice text;
    ah_err err;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (ah_process_write(p->p, text, &err) != AH_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.message);
        return 2;
    }
    lua_pushboolean(L, true);
    return 1;
}

static int process_unwritten(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ah_process_unwritten(check(L)->p));
    return 1;
}

static int process_close_input(lua_State *L)
{
    ah_process_close_input(check(L)->p);
    return 0;
}

static int process_stop(lua_State *L)
{
    ah_process_stop(check(L)->p);
    return 0;
}

void ahtest_open_process(lua_State *L)
{
    static const luaL_Reg methods[] = {{"wait", process_wait},
                                       {"line", process_line},
                                       {"read", process_read},
                                       {"write", process_write},
                                       {"unwritten", process_unwritten},
                                       {"close_input", process_close_input},
                                       {"stop", process_stop},
                                       {"close", process_close},
                                       {NULL, NULL}};

    luaL_newmetatable(L, PROCESS);
    lua_pushcfunction(L, process_close);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, start);
    lua_setfield(L, -2, "process");
    lua_pushboolean(L, AH_HAS_REFUSE);
    lua_setfield(L, -2, "filters_calls");
}
