/* ah._input, for programs of the command: lines of the standard input as they come, from a pipe, a
 * file or a terminal in its usual mode, while other work goes on. The object owns the bytes that
 * were read and not taken yet; the descriptor stays in the blocking mode, which other programs
 * share, and is read only when it is ready. */
#include <errno.h>
#include <unistd.h>

#include "lua/lua_error.h"
#include "lua/lua_open.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"

static const char INPUT[] = "agenthost.input", WAIT[] = "agenthost.input_wait";

enum { CHUNK = 4096, MAX_LINE = 1 << 20, MOST_LINE = 64 << 20 };

typedef struct input input;

/* One wait for a line. */
typedef struct wait {
    ah_task_waiter waiter;
    input *of; /* kept by the user value; NULL: the wait has ended */
} wait;

struct input {
    ah_lua *lua;
    wait *wait;    /* NULL: no wait */
    size_t most;   /* bytes of a line */
    ah_buf held;   /* what was read and not returned */
    size_t looked; /* bytes at its beginning without a line end */
    bool skipping; /* the rest of a line that was cut is dropped */
    bool ended;
    int failed; /* errno of reading */
};

static input *to_input(lua_State *L)
{
    return luaL_checkudata(L, 1, INPUT);
}

/* -- the wait ---------------------------------------------------------------------------------- */

static void stop_waiting(ah_task_waiter *waiter)
{
    wait *x = (wait *)(void *)((char *)waiter - offsetof(wait, waiter));

    if (!x->of)
        return;
    ah_loop_watch(x->of->lua->host->loop, STDIN_FILENO, 0, NULL, NULL, NULL);
    x->of->wait = NULL;
    x->of = NULL;
}

static void end_wait(wait *x)
{
    stop_waiting(&x->waiter);
    ah_task_waiter_done(&x->waiter);
}

static int wait_gc(lua_State *L)
{
    stop_waiting(&((wait *)luaL_checkudata(L, 1, WAIT))->waiter);
    return 0;
}

static int input_gc(lua_State *L)
{
    input *in = to_input(L);

    if (in->wait)
        stop_waiting(&in->wait->waiter);
    (void)ah_buf_ok(&in->held);
    ah_buf_clear(&in->held);
    return ah_lua_retire(L);
}

/* -- lines ------------------------------------------------------------------------------------- */

/* Sets *n to the length of the first line and returns true if it is complete, or as long as a line
 * may be. */
static bool has_line(input *in, size_t *n)
{
    ah_slice held = ah_buf_slice(&in->held);
    const char *end = memchr(held.p + in->looked, '\n', held.n - in->looked);

    in->looked = end ? in->looked : held.n;
    *n = end ? (size_t)(end - held.p) : held.n;
    return end || held.n > in->most || ((in->ended || in->failed) && held.n);
}

/* Drops the rest of a line that was cut. */
static void skip(input *in)
{
    ah_slice held = ah_buf_slice(&in->held);
    const char *end = memchr(held.p, '\n', held.n);

    ah_buf_drop(&in->held, end ? (size_t)(end - held.p) + 1 : held.n);
    in->skipping = !end;
}

/* Reads one chunk. */
static void read_chunk(input *in)
{
    char chunk[CHUNK];
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);

    if (n > 0)
        ah_buf_add(&in->held, chunk, (size_t)n);
    else if (n == 0)
        in->ended = true;
    else if (errno != EAGAIN && errno != EINTR)
        in->failed = errno;
    if (in->skipping && ah_buf_ok(&in->held))
        skip(in);
}

/* True if the wait is over: a line, the end or a failure is there. */
static bool is_over(input *in)
{
    size_t n;

    return !ah_buf_ok(&in->held) || has_line(in, &n) || in->ended || in->failed;
}

static void on_readable(void *ud, int fd, int events)
{
    input *in = ud;

    (void)fd;
    (void)events;
    read_chunk(in);
    if (is_over(in))
        end_wait(in->wait);
}

/* -- text cut, or nil at the end, or nil err */
static int push_line(lua_State *L, input *in)
{
    bool cut;
    size_t n;
    ah_err err;

    if (!ah_buf_ok(&in->held))
        return ah_lua_raise_nomem(L);
    if (has_line(in, &n)) {
        cut = n > in->most;
        n = cut ? in->most : n;
        lua_pushlstring(L, ah_buf_slice(&in->held).p, n);
        ah_buf_drop(&in->held, n);
        in->looked = 0;
        skip(in);
        lua_pushboolean(L, cut);
        return 2;
    }
    lua_pushnil(L);
    if (!in->failed)
        return 1;
    ah_err_set(&err, AH_INTERNAL, "the standard input cannot be read: %s", strerror(in->failed));
    ah_lua_push_error(L, &err);
    return 2;
}

static int waited(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    return push_line(L, to_input(L));
}

/* (input) -- input wait */
static wait *push_wait(lua_State *L)
{
    wait *x = lua_newuserdatauv(L, sizeof *x, 1);

    *x = (wait){.waiter.leave = stop_waiting};
    luaL_setmetatable(L, WAIT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return x;
}

/* input:line() -> the next line without its end, and true if it was too long, with the rest
 * dropped; nil at the end; nil, err if the input cannot be read. Waits. A file, which cannot
 * be watched, is read at once. */
static int line(lua_State *L)
{
    input *in = to_input(L);
    ah_loop *loop = in->lua->host->loop;
    wait *x;

    lua_settop(L, 1);
    if (in->wait)
        return ah_lua_raise(L, AH_USAGE, "another task waits for a line already");
    ah_lua_can_await(L);
    x = push_wait(L);
    ah_task_waiter_keep(L, &x->waiter);
    x->of = in;
    in->wait = x;
    while (!is_over(in) && ah_loop_watch(loop, STDIN_FILENO, AH_IN, on_readable, in, NULL) != AH_OK)
        read_chunk(in);
    if (!is_over(in))
        return ah_lua_await(L, &x->waiter, 0, waited);
    end_wait(x);
    return push_line(L, in);
}

/* ah._input(most) -> the lines of the standard input, each of `most` bytes at most (1 MiB) */
static int new_input(lua_State *L)
{
    lua_Integer most = luaL_optinteger(L, 1, MAX_LINE);
    input *in = lua_newuserdatauv(L, sizeof *in, 0);

    luaL_argcheck(L, most >= 1 && most <= MOST_LINE, 1, "must be from 1 to 64 MiB");
    memset(in, 0, sizeof *in);
    in->lua = ah_lua_of(L);
    in->most = (size_t)most;
    ah_buf_init(&in->held, &in->lua->mem, in->most + CHUNK);
    luaL_setmetatable(L, INPUT);
    return 1;
}

void ah_lua_open_input(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", input_gc}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"line", line}, {NULL, NULL}};
    static const luaL_Reg wait_meta[] = {{"__gc", wait_gc}, {NULL, NULL}};

    luaL_newmetatable(L, WAIT);
    luaL_setfuncs(L, wait_meta, 0);
    lua_pop(L, 1);
    luaL_newmetatable(L, INPUT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_input);
    lua_setfield(L, -2, "_input");
}
