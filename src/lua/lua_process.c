/* ah.process { command, args, ... }: a child process with streams, for programs that talk to others
 * (protocols over stdin and stdout). This file has its start, its input and its end; lua_child.c
 * and lua_child_output.c have the rest. */
#define _GNU_SOURCE /* O_PATH */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/excerpt.h"
#include "lua/lua_child.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_launch.h"
#include "lua/lua_open.h"
#include "lua/lua_options.h"
#include "lua/lua_step.h"
#include "lua/lua_value.h"

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

static const char WHAT[] = "ah.process";

enum {
    MAX_ERRORS = 64 << 10,
    MOST_ERRORS = 16 << 20,
    TOLD = 400, /* bytes of its standard error's end in a message */
    GRACE_MS = 2000,
    STALL_MS = 10 * 1000,
    LAST_WORDS_MS = 1000 /* how long a process may run on after it has closed its input */
};

/* -- words ------------------------------------------------------------------------------------- */

/* Appends "ended with exit code 1". */
static void put_end(const ah_child *c, ah_buf *out)
{
    const ah_process_result *r = &c->result;
    const char *name = r->signal ? ah_lua_signal_name(r->signal) : NULL;

    if (r->how == AH_PROCESS_TIMED_OUT)
        ah_buf_str(out, "was ended: its time was over (timeout)");
    else if (r->how == AH_PROCESS_STOPPED)
        ah_buf_str(out, "was ended by the script");
    else if (r->how == AH_PROCESS_FAILED)
        ah_buf_str(out, r->err.message);
    else if (name)
        ah_buf_fmt(out, "was ended by signal %s", name);
    else if (r->signal)
        ah_buf_fmt(out, "was ended by signal %d", r->signal);
    else
        ah_buf_fmt(out, "ended with exit code %d", r->code);
}

/* Appends the end of its standard error, as one line. */
static void put_last_words(const ah_child *c, ah_buf *out)
{
    ah_slice all = ah_ends_tail(&c->errors);

    if (!ah_ends_whole(&c->errors) || c->errors.bytes == 0)
        return;
    if (all.n == 0)
        all = ah_ends_head(&c->errors);
    while (all.n > 0 && (all.p[all.n - 1] == '\n' || all.p[all.n - 1] == '\r'))
        all.n--;
    if (all.n > TOLD)
        all = (ah_slice){all.p + (all.n - TOLD), TOLD};
    ah_buf_str(out, "; the end of its standard error: ");
    ah_excerpt(all, &c->lua->host->secrets, TOLD, out);
}

/* -- nil err    for a process that takes no more input */
static int fails_gone(lua_State *L, const ah_child *c)
{
    ah_buf *b = ah_lua_push_buf(L, AH_MAX_MESSAGE);
    ah_err err;

    if (c->ended)
        put_end(c, b);
    else
        ah_buf_str(b, "has closed its standard input");
    put_last_words(c, b);
    if (!ah_buf_cut_short(b))
        return ah_lua_raise_nomem(L);
    ah_err_set(&err, AH_INTERNAL, "'%s' takes no more input: it %.*s", c->name,
               AH_FMT(ah_buf_slice(b)));
    return ah_child_fails(L, &err);
}

/* -- nil err */
static int fails_stalled(lua_State *L, const ah_child *c)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE,
               "'%s' has written %d bytes and waits until they are read: read them with p:lines or "
               "p:read meanwhile, or wait with { discard = true }",
               c->name, AH_CHILD_PENDING);
    return ah_child_fails(L, &err);
}

/* -- nil err */
static int fails_ended(lua_State *L, const ah_child *c)
{
    ah_err err;

    ah_err_set(&err, AH_INTERNAL, "'%s' has ended already", c->name);
    return ah_child_fails(L, &err);
}

/* -- input ------------------------------------------------------------------------------------- */

static int write_on(lua_State *L, int status, lua_KContext ctx)
{
    ah_child_wait *w = lua_touserdata(L, (int)ctx);
    ah_child *c = w->of;

    (void)status;
    if (!c->p)
        return ah_child_is_closed(L, c);
    if (ah_process_written(c->p) >= w->end) {
        lua_pushboolean(L, true);
        return 1;
    }
    if (w->stalled)
        return fails_stalled(L, c);
    if (w->late && w->need == AH_CHILD_WRITTEN) {
        lua_pushnil(L);
        return ah_child_push_late(L, c, "read what was written to it");
    }
    if (c->ended || w->late)
        return fails_gone(L, c);
    if (!ah_process_has_input(c->p) && w->need == AH_CHILD_WRITTEN) {
        w->need = AH_CHILD_END; /* it will report how it ended, if it ends */
        w->until = ah_host_now(c->lua->host) + LAST_WORDS_MS;
    }
    return ah_child_await(L, (int)ctx, w, write_on);
}

/* p:write(text, { timeout }) -> true when the process's pipe has taken the text; nil, err */
static int process_write(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    ah_slice text;
    ah_child_wait *w;
    ah_err err;

    lua_settop(L, 3);
    if (lua_type(L, 2) != LUA_TSTRING)
        return ah_lua_raise(L, AH_USAGE, "process:write: expected a string, found a %s",
                            luaL_typename(L, 2));
    text.p = lua_tolstring(L, 2, &text.n);
    w = ah_child_push_wait(L, c, AH_CHILD_WRITTEN); /* -- p text options w */
    ah_child_options(L, 3, "process:write", &ah_subject_process_time, w);
    if (!c->p || c->closing)
        return ah_child_is_closed(L, c);
    if (c->input_closed) {
        ah_err_set(&err, AH_USAGE,
                   "'%s' takes no more input: process:close_input has ended it, or `stdin` was all",
                   c->name);
        return ah_child_fails(L, &err);
    }
    w->end = c->given + (int64_t)text.n;
    if (ah_process_has_input(c->p)) {
        if (ah_process_write(c->p, text, &err) != AH_OK)
            return ah_child_fails(L, &err);
        c->given = w->end;
    }
    return write_on(L, LUA_OK, 4);
}

static void close_input(ah_child *c)
{
    c->input_closed = true;
    if (c->p)
        ah_process_close_input(c->p);
}

static int process_close_input(lua_State *L)
{
    close_input(ah_child_check(L));
    return 0;
}

/* -- its end ----------------------------------------------------------------------------------- */

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

/* -- { how, exit_code, signal, seconds, ... }, or -- nil err */
static int push_result(lua_State *L, const ah_child *c)
{
    static const char *const how[] = {"exited", "stopped", "timed_out", "failed"};
    const ah_process_result *r = &c->result;

    if (r->how == AH_PROCESS_FAILED)
        return ah_child_fails(L, &r->err);
    lua_createtable(L, 0, 8);
    lua_pushstring(L, how[r->how]);
    lua_setfield(L, -2, "how");
    if (r->signal) {
        ah_lua_signal_push(L, r->signal);
        lua_setfield(L, -2, "signal");
    } else if (r->code >= 0) {
        set_integer(L, "exit_code", r->code);
    }
    set_seconds(L, "seconds", r->wall_ms);
    set_seconds(L, "cpu_seconds", r->cpu_ms);
    if (r->peak_bytes)
        set_integer(L, "memory", r->peak_bytes);
    if (r->left >= 0)
        set_integer(L, "left", r->left);
    lua_pushstring(L, c->sandbox_text);
    lua_setfield(L, -2, "sandbox");
    return 1;
}

static int wait_end(lua_State *L, int status, lua_KContext ctx)
{
    ah_child_wait *w = lua_touserdata(L, (int)ctx);
    ah_child *c = w->of;

    (void)status;
    if (c->ended)
        return push_result(L, c);
    if (!c->p)
        return ah_child_is_closed(L, c);
    if (w->stalled)
        return fails_stalled(L, c);
    if (w->late) {
        lua_pushnil(L);
        return ah_child_push_late(L, c, "ended");
    }
    return ah_child_await(L, (int)ctx, w, wait_end);
}

static const ah_option wait_rows[] = {
    {.name = "discard",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(ah_child_wait, discard),
     .doc = "discards the output meanwhile"},
    {0},
};
const ah_subject ah_subject_process_wait = {.what = "process:wait",
                                            .type = "ah.WaitOptions",
                                            .row = wait_rows,
                                            .base = &ah_subject_process_time};

/* p:wait { timeout, discard } -> how it ended; nil, err if the time is over or it never ran */
static int process_wait(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    ah_child_wait *w;

    lua_settop(L, 2);
    w = ah_child_push_wait(L, c, AH_CHILD_END); /* -- p options w */
    ah_child_options(L, 2, "process:wait", &ah_subject_process_wait, w);
    if (w->discard && c->p && !c->ended)
        ah_child_drop_output(c);
    return wait_end(L, LUA_OK, 3);
}

static int closed(lua_State *L, int status, lua_KContext ctx)
{
    ah_child_wait *w = lua_touserdata(L, (int)ctx);
    ah_child *c = w->of;

    (void)status;
    if (!c->ended && c->p)
        return ah_child_await(L, (int)ctx, w, closed);
    ah_child_let_go(c);
    return c->ended ? push_result(L, c) : ah_child_is_closed(L, c);
}

/* Ends the waits for its output now; waits for its end continue. */
static void begin_closing(ah_child *c)
{
    if (c->closing || !c->p)
        return;
    c->closing = true;
    close_input(c);
    ah_child_drop_output(c);
    ah_buf_clear(&c->part);
    c->used = c->looked = 0;
    if (!c->ended)
        ah_timer_set(c->lua->host->loop, &c->patience, ah_host_now(c->lua->host) + c->grace_ms);
    ah_child_wake(c);
}

/* p:close() -> as wait: closes its input, and after `grace` ends the process with all below it */
static int process_close(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    ah_child_wait *w;

    lua_settop(L, 1);
    if (c->p && !c->ended)
        ah_lua_can_await(L);
    w = ah_child_push_wait(L, c, AH_CHILD_END); /* -- p w */
    w->discard = true;
    begin_closing(c);
    return closed(L, LUA_OK, 2);
}

/* __close of a variable: ends the process at once if no time may be taken. */
static int process_leave(lua_State *L)
{
    ah_child *c = ah_child_of(L);

    lua_settop(L, 1);
    if (!c || !c->p)
        return 0;
    if (c->ended || ah_lua_may_linger(L))
        return process_close(L);
    c->closing = true;
    ah_child_let_go(c);
    ah_child_wake(c);
    return 0;
}

/* p:kill(signal) -> true; nil, err if it has ended */
static int process_kill(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    int sig = ah_lua_signal_of("TERM");

    if (lua_isinteger(L, 2))
        sig = lua_tointeger(L, 2) >= 1 && lua_tointeger(L, 2) <= 64 ? (int)lua_tointeger(L, 2) : 0;
    else if (!lua_isnoneornil(L, 2))
        sig = lua_type(L, 2) == LUA_TSTRING ? ah_lua_signal_of(lua_tostring(L, 2)) : 0;
    if (!sig)
        return ah_lua_raise(
            L, AH_USAGE,
            "process:kill: '%s' is no signal; give a name such as \"TERM\", \"INT\" or "
            "\"KILL\", or a number from 1 to 64",
            luaL_tolstring(L, 2, NULL));
    if (!c->p)
        return ah_child_is_closed(L, c);
    if (c->ended)
        return fails_ended(L, c);
    if (sig == ah_lua_signal_of("KILL"))
        ah_process_kill(c->p);
    else
        ah_process_signal(c->p, sig);
    lua_pushboolean(L, true);
    return 1;
}

/* p:errors() -> its standard error so far, as UTF-8 */
static int process_errors(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    size_t kept = c->errors.head.len + c->errors.tail.len;
    ah_buf *b = ah_lua_push_buf(L, 3 * kept + 128);

    if (!ah_ends_whole(&c->errors))
        return ah_lua_raise_nomem(L);
    ah_ends_print(&c->errors, b);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    ah_buf_clear(b);
    return 1;
}

static int process_tostring(lua_State *L)
{
    const ah_child *c = ah_child_of(L);

    lua_pushfstring(L, "process %s (%s)", c ? c->name : "",
                    !c || !c->p ? "closed"
                    : c->ended  ? "ended"
                                : "running");
    return 1;
}

/* -- its beginning ----------------------------------------------------------------------------- */

typedef struct given {
    ah_launch_limits limits; /* of the base */
    ah_slice input;
    ah_sandbox_kind sandbox;
    bool merge;
    size_t max_errors;
    int64_t stall_ms;
} given;

static const ah_option process_rows[] = {
    {.name = "command",
     .kinds = AH_OPT_OBJECT,
     .needed = true,
     .is = "string",
     .type = "string",
     .doc = "the program: a name to be found in `PATH`, or a path. No shell is used"},
    {.name = "args",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .doc = "its arguments, passed unchanged"},
    {.name = "env",
     .kinds = AH_OPT_TABLE,
     .type = "table<string, string|boolean>",
     .doc = "variables beside [the usual ones](processes.md#what-it-has): a string; `true` for the "
            "host's value; `false` for none"},
    {.name = "cwd",
     .kinds = AH_OPT_STRING,
     .otherwise = "that of the host",
     .doc = "the working folder, opened at the start"},
    {.name = "sandbox",
     .kinds = AH_OPT_STRING | AH_OPT_TABLE,
     .words = AH_LAUNCH_SANDBOXES,
     .otherwise = "`none`",
     .type = "\"none\"|\"auto\"|\"require\"|\"landlock\"|\"bubblewrap\"|ah.ProcessSandbox",
     .to = AH_TO_WORD(given, sandbox),
     .doc = "[limits](processes.md#sandbox) on what it can read, write and reach"},
    {.name = "stdin",
     .kinds = AH_OPT_OBJECT,
     .is = "string or false",
     .type = "string|false",
     .to = AH_TO_HELD(given, input),
     .doc = "its whole input, written and closed at once; false: no input"},
    {.name = "merge",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(given, merge),
     .doc = "joins standard error to standard output, in the order of writing"},
    {.name = "max_errors",
     .kinds = AH_OPT_NUMBER,
     .most = MOST_ERRORS,
     .unit = "bytes",
     .otherwise = "65536",
     .type = "integer",
     .to = AH_TO_SIZE(given, max_errors),
     .doc = "standard error that is kept: the first quarter, and the end"},
    {.name = "stall",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "10",
     .to = AH_TO_MS(given, stall_ms),
     .doc = "time after which a waiting method fails because unread output blocks the process"},
    {0},
};
const ah_subject ah_subject_process = {.what = WHAT,
                                       .type = "ah.ProcessConfig",
                                       .row = process_rows,
                                       .base = &ah_subject_process_limits};

static const ah_option sandbox_rows[] = {
    {.name = "kind",
     .kinds = AH_OPT_STRING,
     .words = AH_LAUNCH_SANDBOXES,
     .otherwise = "`require`",
     .to = AH_TO_WORD(ah_sandbox_config, kind),
     .doc = "the kind, as above"},
    {.name = "read",
     .kinds = AH_OPT_LIST,
     .otherwise = "everything",
     .is = "list of strings",
     .type = "string[]",
     .doc = "folders that it can read, beside the system's, and those in `write`"},
    {.name = "write",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .doc = "folders that it can write to, beside its temporary one (`$TMPDIR`)"},
    {.name = "network",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(ah_sandbox_config, network),
     .doc = "true if the internet can be reached"},
    {.name = "owners",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(ah_sandbox_config, owners),
     .doc = "with `landlock`, for root: keeps the rights over owners"},
    {0},
};
const ah_subject ah_subject_process_sandbox = {
    .what = "ah.process: sandbox", .type = "ah.ProcessSandbox", .row = sandbox_rows};

/* False: -- nil err */
static bool read_sandbox(lua_State *L, int at, ah_sandbox_config *cfg)
{
    const char *what = ah_subject_process_sandbox.what;
    int type = lua_getfield(L, 1, "sandbox"), idx = lua_gettop(L);

    if (type != LUA_TTABLE)
        return true;
    cfg->kind = AH_SANDBOX_REQUIRE;
    ah_options_read(L, idx, &ah_subject_process_sandbox, cfg);
    cfg->reads = lua_getfield(L, idx, "read") != LUA_TNIL;
    if (cfg->kind == AH_SANDBOX_NONE && (cfg->reads || lua_getfield(L, idx, "write") != LUA_TNIL))
        ah_lua_raise(L, AH_USAGE, "%s: with kind = \"none\" `read` and `write` cannot be enforced",
                     what);
    return ah_launch_folders(L, at, idx, what, "write", cfg->folder, &cfg->n_folders) &&
           ah_launch_folders(L, at, idx, what, "read", cfg->readable, &cfg->n_readable);
}

static void read_command(lua_State *L, int at)
{
    int type = lua_getfield(L, 1, "command"); /* -- command, kept by the table */

    if (type == LUA_TTABLE)
        ah_lua_raise(
            L, AH_USAGE,
            "%s: field 'command' must be a string, the program; its arguments go into `args`",
            WHAT);
    if (type != LUA_TSTRING || lua_rawlen(L, -1) == 0)
        ah_lua_raise(
            L, AH_USAGE,
            "%s: field 'command' must be a string, the program, as in { command = \"npx\", "
            "args = { ... } }, found %s",
            WHAT, type == LUA_TSTRING ? "an empty one" : luaL_typename(L, -1));
    ah_launch_word(L, at, -1, WHAT, "command");
    ah_launch_words(L, at, WHAT, "args");
}

/* False: -- nil err */
static bool read_folder(lua_State *L, ah_launch *g)
{
    if (lua_getfield(L, 1, "cwd") == LUA_TNIL)
        return true;
    if (!ah_launch_push_folder(L, ah_launch_text(L, -1, WHAT, "cwd")))
        return false;
    g->cfg.cwd_fd = ah_launch_folder_fd(L, -1, WHAT);
    return true;
}

static void read_streams(lua_State *L, ah_launch *g, ah_child *c, const given *o)
{
    size_t first = o->max_errors / 4;
    int type = lua_getfield(L, 1, "stdin");

    if (type != LUA_TNIL && type != LUA_TSTRING && !(type == LUA_TBOOLEAN && !lua_toboolean(L, -1)))
        ah_lua_raise(
            L, AH_USAGE,
            "%s: field 'stdin' must be a string, all that it reads, or false, nothing; without it "
            "process:write writes. Found a %s",
            WHAT, luaL_typename(L, -1));
    g->cfg.input = type != LUA_TBOOLEAN;
    c->input_closed = type == LUA_TBOOLEAN;
    g->cfg.merge = o->merge;
    c->stall_ms = o->stall_ms;
    c->grace_ms = g->cfg.grace_ms;
    ah_ends_clear(&c->errors);
    ah_ends_init(&c->errors, &c->lua->mem, first, o->max_errors - first);
    ah_print(c->name, sizeof c->name, "%s", g->words[AH_SANDBOX_WORDS]);
}

static ah_status no_program(const ah_launch *g, ah_err *err)
{
    const char *command = *g->cfg.argv;
    int e = errno;

    return ah_err_set(err, AH_USAGE, "there is no program '%s'%s%s", command,
                      e == ENOENT ? "" : ": ", e == ENOENT ? "" : strerror(e));
}

/* Finds the program. A missing one is reported now. `file` stays open for the sandbox. */
static ah_status find_command(ah_launch *g, char *path, int *file, ah_err *err)
{
    ah_status st;

    g->cfg.argv = g->words + AH_SANDBOX_WORDS;
    g->cfg.env = g->env + 1;
    if ((st = ah_process_find(&g->cfg, path, err)) != AH_OK) {
        if (strchr(*g->cfg.argv, ' '))
            ah_err_set(err, AH_USAGE,
                       "there is no program '%s': no shell reads it, its arguments go into `args`",
                       *g->cfg.argv);
        return st;
    }
    if (faccessat(g->cfg.cwd_fd ? g->cfg.cwd_fd : AT_FDCWD, path, X_OK, 0) != 0)
        return no_program(g, err);
    if (g->sandbox.reads)
        *file = openat(g->cfg.cwd_fd ? g->cfg.cwd_fd : AT_FDCWD, path, O_PATH | O_CLOEXEC);
    g->sandbox.program = *file > 0 ? *file : 0;
    g->sandbox.program_path = path;
    return AH_OK;
}

/* Never raises. */
static ah_status start(ah_child *c, ah_launch *g, ah_slice input, ah_err *err)
{
    char path[AH_PROCESS_PATH];
    int file = -1;
    ah_status st = find_command(g, path, &file, err);

    if (st == AH_OK)
        st = ah_launch_start(c->lua, g, &c->sandbox, &c->p, err);
    if (file >= 0)
        close(file);
    snprintf(c->sandbox_text, sizeof c->sandbox_text, "%s", c->sandbox.text);
    if (st == AH_OK && input.p)
        st = ah_process_write(c->p, input, err);
    if (st == AH_OK && (input.p || c->input_closed))
        close_input(c);
    return st;
}

/* ah.process { command, args, env, cwd, sandbox, timeout, ... } -> process; nil, err */
static int start_process(lua_State *L)
{
    given o = {.max_errors = MAX_ERRORS, .stall_ms = STALL_MS};
    ah_launch *g;
    ah_child *c;
    ah_err err;

    ah_lua_no_step(L, "ah.process");
    lua_settop(L, 1);
    o.limits.grace_ms = GRACE_MS;
    ah_options_read(L, 1, &ah_subject_process, &o);
    g = ah_launch_push(L); /* -- t launch */
    c = ah_child_new(L);   /* -- t launch process */
    read_command(L, 2);
    ah_launch_limit(g, &o.limits);
    read_streams(L, g, c, &o);
    g->sandbox.kind = o.sandbox;
    lua_getfield(L, 1, "env");
    ah_launch_environment(L, WHAT);
    ah_launch_env(L, g, lua_gettop(L), WHAT);
    if (!read_sandbox(L, 2, &g->sandbox) || !read_folder(L, g))
        return 2;
    g->cfg.news = ah_child_news;
    g->cfg.ud = c;
    g->cfg.max_pending = AH_CHILD_PENDING;
    if (start(c, g, o.input, &err) != AH_OK) {
        ah_child_let_go(c);
        return ah_child_fails(L, &err);
    }
    lua_settop(L, 3);
    return 1;
}

void ah_lua_open_process(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__close", process_leave}, {"__tostring", process_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"write", process_write}, {"close_input", process_close_input},
        {"line", ah_child_line},  {"lines", ah_child_lines},
        {"read", ah_child_read},  {"errors", process_errors},
        {"wait", process_wait},   {"kill", process_kill},
        {"close", process_close}, {NULL, NULL}};

    ah_lua_open_child(L);
    luaL_getmetatable(L, AH_CHILD_OBJECT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "process");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, start_process);
    lua_setfield(L, -2, "process");
}
