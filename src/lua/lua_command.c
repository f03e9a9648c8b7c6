/* ah._command, for built-in tools: runs a command while a handler waits for it. The command is
 * below supervisors (io/process.h) and, on request, in a sandbox. A call that is stopped and a host
 * that is closed kill it. Also ah._sandbox, ah._warn, ah._repair, ah._harmless, ah._line. */
#include <stdio.h>

#include "base/ends.h"
#include "base/harmless.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_launch.h"
#include "lua/lua_now.h"
#include "lua/lua_open.h"
#include "lua/lua_options.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"

static const char COMMAND[] = "agenthost.command";
static const char WHAT[] = "ah._command";

enum { STREAMS = 2, MAX_PIECES = 16, MAX_LINE = 1 << 20 };

/* Bytes of a stream that have arrived and were not taken yet. */
typedef struct piece {
    ah_process_stream of;
    size_t n;
} piece;

typedef struct command {
    ah_task_waiter waiter;
    ah_lua *lua;
    ah_process *p;
    ah_job job;
    ah_sandbox sandbox;
    bool merged;          /* by the system: there is one stream */
    ah_ends all;          /* both streams, in order of arrival */
    ah_ends own[STREAMS]; /* each stream; empty if they are merged */
    piece piece[MAX_PIECES];
    size_t n_pieces, seen[STREAMS]; /* seen: bytes of each stream in the pieces */
} command;

/* -- its life -------------------------------------------------------------------------------- */

static void stop_command(ah_task_waiter *w)
{
    command *c = (command *)(void *)((char *)w - offsetof(command, waiter));

    ah_job_cancel(&c->job);
    ah_process_free(c->p);
    c->p = NULL;
    ah_sandbox_close(&c->sandbox);
}

static int command_gc(lua_State *L)
{
    command *c = luaL_checkudata(L, 1, COMMAND);

    stop_command(&c->waiter);
    ah_ends_clear(&c->all);
    ah_ends_clear(&c->own[AH_STDOUT]);
    ah_ends_clear(&c->own[AH_STDERR]);
    return 0;
}

/* -- its output -------------------------------------------------------------------------------- */

static void take(command *c, ah_process_stream of, size_t n)
{
    ah_slice s = {ah_process_output(c->p, of).p, n};

    ah_ends_put(&c->all, s);
    if (!c->merged)
        ah_ends_put(&c->own[of], s);
    ah_process_take(c->p, of, n);
}

/* Takes all output: the noted pieces in their order, then bytes that arrived with the end and are
 * in no piece. */
static void take_output(command *c)
{
    for (size_t i = 0; i < c->n_pieces; i++)
        take(c, c->piece[i].of, c->piece[i].n);
    for (int of = AH_STDOUT; of <= AH_STDERR; of++) {
        take(c, (ah_process_stream)of, ah_process_output(c->p, (ah_process_stream)of).n);
        c->seen[of] = 0;
    }
    c->n_pieces = 0;
}

/* Notes that the stream has new bytes. Streams are noted in the order in which they became ready;
 * changes between them beyond the room for pieces lose their order. */
static void note_piece(command *c, ah_process_stream of)
{
    size_t n = ah_process_output(c->p, of).n - c->seen[of], i = c->n_pieces;

    if (n == 0)
        return;
    c->seen[of] += n;
    if (i == MAX_PIECES || (i > 0 && c->piece[i - 1].of == of)) {
        while (c->piece[--i].of != of)
            ;
        c->piece[i].n += n;
    } else {
        c->piece[c->n_pieces++] = (piece){of, n};
    }
}

static void on_job(ah_job *job)
{
    command *c = (command *)(void *)((char *)job - offsetof(command, job));

    take_output(c);
    if (ah_process_ended(c->p, NULL))
        ah_task_waiter_done(&c->waiter);
}

static void on_news(void *ud, ah_process *p)
{
    command *c = ud;

    (void)p;
    note_piece(c, AH_STDOUT);
    note_piece(c, AH_STDERR);
    ah_job_post(c->lua->host, &c->job);
}

/* -- its end ---------------------------------------------------------------------------------- */

static void set_integer(lua_State *L, const char *name, int64_t n)
{
    lua_pushinteger(L, n);
    lua_setfield(L, -2, name);
}

static void set_seconds(lua_State *L, const char *name, int64_t ms)
{
    lua_pushnumber(L, (lua_Number)ms / 1000);
    lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, ah_slice s)
{
    lua_pushlstring(L, s.p, s.n);
    lua_setfield(L, -2, name);
}

/* -- t    t gets { bytes, output, tail } */
static void set_kept(lua_State *L, const ah_ends *k)
{
    set_integer(L, "bytes", k->bytes);
    set_text(L, "output", ah_ends_head(k));
    set_text(L, "tail", ah_ends_tail(k));
}

static void set_own(lua_State *L, const char *name, const ah_ends *k)
{
    lua_createtable(L, 0, 3);
    set_kept(L, k);
    lua_setfield(L, -2, name);
}

/* -- { ... } */
static void push_result(lua_State *L, const command *c, const ah_process_result *r)
{
    static const char *const how[] = {"exited", "stopped", "timed_out", "failed"};

    lua_createtable(L, 0, 14);
    set_text(L, "how", ah_slice_of(how[r->how]));
    if (r->signal) {
        ah_lua_signal_push(L, r->signal);
        lua_setfield(L, -2, "signal");
    } else if (r->code >= 0) {
        set_integer(L, "code", r->code);
    }
    if (r->left >= 0)
        set_integer(L, "left", r->left);
    set_seconds(L, "seconds", r->wall_ms);
    set_seconds(L, "cpu", r->cpu_ms);
    if (r->peak_bytes)
        set_integer(L, "peak", r->peak_bytes);
    set_kept(L, &c->all);
    if (!c->merged) {
        set_own(L, "stdout", &c->own[AH_STDOUT]);
        set_own(L, "stderr", &c->own[AH_STDERR]);
    }
    set_text(L, "sandbox", ah_slice_of(c->sandbox.text));
}

static int fails(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    command *c = luaL_checkudata(L, (int)ctx, COMMAND);
    ah_process_result r;

    (void)status;
    ah_process_ended(c->p, &r);
    if (!ah_ends_whole(&c->all) || !ah_ends_whole(&c->own[AH_STDOUT]) ||
        !ah_ends_whole(&c->own[AH_STDERR]))
        return ah_lua_raise_nomem(L);
    stop_command(&c->waiter);
    if (r.err.status != AH_OK)
        return fails(L, &r.err);
    push_result(L, c, &r);
    return 1;
}

/* -- its beginning ----------------------------------------------------------------------------- */

typedef struct fence {
    ah_launch_limits limits; /* of the base */
    ah_sandbox_kind kind;
    bool network, owners;
} fence;

typedef struct given {
    fence fence; /* of the base */
    ah_slice input;
    bool merge;
    double keep, tail;
} given;

/* Only the library's own Lua uses these two subjects: no page and no annotation shows them. */
static const ah_option fence_rows[] = {
    {.name = "sandbox",
     .kinds = AH_OPT_STRING,
     .words = AH_LAUNCH_SANDBOXES,
     .to = AH_TO_WORD(fence, kind)},
    {.name = "network", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(fence, network)},
    {.name = "owners", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(fence, owners)},
    {0},
};
static const ah_subject fence_subject = {
    .what = "ah.builtin: bash", .row = fence_rows, .base = &ah_subject_process_limits};

static const ah_option command_rows[] = {
    {.name = "argv", .kinds = AH_OPT_LIST},
    {.name = "env", .kinds = AH_OPT_LIST},
    {.name = "folders", .kinds = AH_OPT_LIST},
    {.name = "readable", .kinds = AH_OPT_LIST},
    {.name = "start", .kinds = AH_OPT_OBJECT},
    {.name = "start_in", .kinds = AH_OPT_STRING},
    {.name = "stdin", .kinds = AH_OPT_STRING, .to = AH_TO_HELD(given, input)},
    {.name = "merge", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(given, merge)},
    {.name = "keep", .kinds = AH_OPT_NUMBER, .most = AH_OPT_MOST, .to = AH_TO_DOUBLE(given, keep)},
    {.name = "tail", .kinds = AH_OPT_NUMBER, .most = AH_OPT_MOST, .to = AH_TO_DOUBLE(given, tail)},
    {0},
};
static const ah_subject command_subject = {
    .what = WHAT, .row = command_rows, .base = &fence_subject};

static void set_fence(ah_sandbox_config *cfg, const fence *f)
{
    cfg->kind = f->kind;
    cfg->network = f->network;
    cfg->owners = f->owners;
}

/* -- launch, or -- nil err */
static ah_launch *read_given(lua_State *L, const given *o)
{
    ah_launch *g = ah_launch_push(L);
    int at = lua_gettop(L);

    g->cfg.news = on_news;
    g->cfg.merge = o->merge;
    g->cfg.input = o->input.p != NULL;
    ah_launch_limit(g, &o->fence.limits);
    set_fence(&g->sandbox, &o->fence);
    if (lua_getfield(L, 1, "start_in") != LUA_TNIL)
        g->cfg.cwd = ah_launch_text(L, -1, WHAT, "start_in");
    if (!ah_launch_folders(L, at, 1, WHAT, "folders", g->sandbox.folder, &g->sandbox.n_folders))
        return NULL;
    if (lua_getfield(L, 1, "readable") != LUA_TNIL)
        g->sandbox.reads = true;
    if (!ah_launch_folders(L, at, 1, WHAT, "readable", g->sandbox.readable, &g->sandbox.n_readable))
        return NULL;
    if (lua_getfield(L, 1, "start") != LUA_TNIL)
        g->cfg.cwd_fd = ah_launch_folder_fd(L, -1, WHAT);
    ah_launch_words(L, at, WHAT, "argv");
    if (lua_getfield(L, 1, "env") != LUA_TNIL)
        ah_launch_env(L, g, lua_gettop(L), WHAT);
    lua_settop(L, at);
    return g;
}

/* Never raises. */
static ah_status start(command *c, ah_launch *g, ah_slice input, ah_err *err)
{
    ah_status st;

    g->cfg.ud = c;
    st = ah_launch_start(c->lua, g, &c->sandbox, &c->p, err);
    if (st == AH_OK && input.n > 0)
        st = ah_process_write(c->p, input, err);
    if (st == AH_OK)
        ah_process_close_input(c->p);
    return st;
}

static command *push_command(lua_State *L, const given *o)
{
    command *c = lua_newuserdatauv(L, sizeof *c, 0);

    *c = (command){.waiter.leave = stop_command, .lua = ah_lua_of(L), .job.fn = on_job};
    c->merged = o->merge;
    ah_ends_init(&c->all, &c->lua->mem, (size_t)o->keep, (size_t)o->tail);
    ah_ends_init(&c->own[AH_STDOUT], &c->lua->mem, (size_t)o->keep, (size_t)o->tail);
    ah_ends_init(&c->own[AH_STDERR], &c->lua->mem, (size_t)o->keep, (size_t)o->tail);
    luaL_setmetatable(L, COMMAND);
    return c;
}

/* ah._command { argv, env, folders, readable, start, start_in, stdin, timeout, grace, memory,
 *                file_size, cpu, processes, keep, tail, merge, sandbox, network, owners }
 *  -> { how = "exited" | "timed_out", code | signal, seconds, cpu, peak, bytes, output, tail,
 *       stdout, stderr = { bytes, output, tail } (not with merge), sandbox, left }, or nil and an
 *     error if the command could not be run
 *
 * argv: list of words; env: list of "NAME=value", the whole environment; folders: list of folders
 * (ah._folder) that may be written to in a sandbox; readable: folders that may be read, nil: all;
 * start: the folder where it begins; start_in: a path below that, or an absolute one. Times in
 * seconds, sizes in bytes; nil: no limit. keep, tail: bytes kept of the output's beginning and
 * of its end. merge: both streams are one, in the exact order of writing. left: number of processes
 * that could not be ended; nil: not known. */
static int run_command(lua_State *L)
{
    given o = {0};
    command *c;
    ah_launch *g;
    ah_err err;

    lua_settop(L, 1);
    ah_options_read(L, 1, &command_subject, &o);
    ah_lua_can_await(L);
    if (!(g = read_given(L, &o))) /* -- t launch */
        return 2;
    c = push_command(L, &o); /* -- t launch c */
    ah_task_waiter_keep(L, &c->waiter);
    if (start(c, g, o.input, &err) != AH_OK) {
        stop_command(&c->waiter);
        ah_task_waiter_done(&c->waiter);
        return fails(L, &err);
    }
    return ah_lua_await(L, &c->waiter, lua_gettop(L), finish);
}

/* -- other functions --------------------------------------------------------------------------- */

/* ah._sandbox { sandbox, network } -> a description of the sandbox on this machine, and its kind;
 * or nil, err */
static int describe_sandbox(lua_State *L)
{
    fence f = {0};
    ah_sandbox_config cfg = {.hidden = &ah_lua_of(L)->host->hidden};
    ah_sandbox s;
    ah_err err;

    ah_options_read(L, 1, &fence_subject, &f);
    set_fence(&cfg, &f);
    if (ah_sandbox_choose(&cfg, &s, &err) != AH_OK)
        return fails(L, &err);
    lua_pushstring(L, s.text);
    lua_pushstring(L, ah_sandbox_name(s.cfg.kind));
    return 2;
}

/* ah._warn(ctx, text): emits a `warning` event of the call's run, with a log record */
static int warn(lua_State *L)
{
    ah_slice text;

    text.p = luaL_checklstring(L, 2, &text.n);
    ah_run_warn(ah_lua_check_call(L, 1)->run, text);
    return 0;
}

/* ah._repair(bytes) -> the same as UTF-8, with U+FFFD for invalid bytes */
static int repair(lua_State *L)
{
    ah_slice s;
    ah_buf *b;

    s.p = luaL_checklstring(L, 1, &s.n);
    b = ah_lua_push_buf(L, 3 * s.n + 4);
    ah_utf8_repair(s, b);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    ah_buf_clear(b);
    return 1;
}

/* ah._harmless(bytes) -> the same as UTF-8, with terminal commands spelled out */
static int harmless(lua_State *L)
{
    ah_slice s;
    ah_buf *b;

    s.p = luaL_checklstring(L, 1, &s.n);
    b = ah_lua_push_buf(L, AH_CONTROL_CODE * s.n + 4);
    ah_harmless(s, false, b);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    ah_buf_clear(b);
    return 1;
}

/* ah._line(bytes, most) -> the same in one harmless line of at most so many characters */
static int line(lua_State *L)
{
    lua_Integer most = luaL_checkinteger(L, 2);
    luaL_Buffer lb;
    ah_slice s;
    ah_buf b;

    s.p = luaL_checklstring(L, 1, &s.n);
    luaL_argcheck(L, most >= 0 && most <= MAX_LINE, 2, "out of range");
    ah_buf_init(&b, &ah_mem_libc, 4 * (size_t)most + AH_CONTROL_CODE); /* it never grows */
    b.data = luaL_buffinitsize(L, &lb, b.max);
    b.cap = b.max;
    ah_harmless_line(s, (size_t)most, &b);
    (void)ah_buf_ok(&b);
    luaL_pushresultsize(&lb, b.len);
    return 1;
}

void ah_lua_open_command(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", command_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"_command", run_command},
                                         {"_sandbox", describe_sandbox},
                                         {"_warn", warn},
                                         {"_repair", repair},
                                         {"_harmless", harmless},
                                         {"_line", line},
                                         {NULL, NULL}};

    luaL_newmetatable(L, COMMAND);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
