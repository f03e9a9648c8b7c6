/* ah._process, for built-in tools: a command, waited for by a handler. It is below supervisors
 * (io/process.h) and, where that is wanted, in a sandbox. A call that is stopped, and a host
 * that is closed, kill it. Beside it: ah._sandbox, ah._folder, ah._warn, ah._repair.
 *
 * Folders are objects that hold a descriptor: where a command works and may write is opened once, and
 * a link that a command puts in its place leads nowhere. */
#define _GNU_SOURCE /* O_PATH */
#include "io/disk.h"
#include "io/process.h"
#include "io/sandbox.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_fs.h"
#include "lua/lua_now.h"
#include "lua/lua_open.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PROCESS[] = "agenthost.process";
static const char FOLDER[] = "agenthost.folder";
static const char WHAT[] = "ah._process";

enum { MAX_WORDS = 4096, MAX_PATH_BYTES = 4096, STREAMS = 2, MAX_PIECES = 16 };

/* Of some output the beginning, and of what came behind it the end. */
typedef struct kept {
    ah_buf head, tail;
    size_t tail_bytes;
    int64_t bytes;
} kept;

/* Bytes of a stream that came, and wait to be taken. */
typedef struct piece {
    ah_process_stream of;
    size_t n;
} piece;

typedef struct command {
    ah_waiter waiter;
    ah_lua *lua;
    ah_process *p;
    ah_job job;
    ah_sandbox sandbox;
    bool merged;       /* by the system: there is one stream */
    kept all;          /* both streams, in the order in which they came */
    kept own[STREAMS]; /* each of them; empty where they are merged */
    piece piece[MAX_PIECES];
    size_t n_pieces, seen[STREAMS]; /* seen: bytes of a stream in the pieces */
} command;

/* -- its life -------------------------------------------------------------------------------- */

static void stop_command(ah_waiter *w)
{
    command *c = (command *)(void *)((char *)w - offsetof(command, waiter));

    ah_job_cancel(&c->job);
    ah_process_free(c->p);
    c->p = NULL;
    ah_sandbox_close(&c->sandbox);
}

static void clear_kept(kept *k)
{
    ah_buf_clear(&k->head);
    ah_buf_clear(&k->tail);
}

static int command_gc(lua_State *L)
{
    command *c = luaL_checkudata(L, 1, PROCESS);

    stop_command(&c->waiter);
    clear_kept(&c->all);
    clear_kept(&c->own[AH_STDOUT]);
    clear_kept(&c->own[AH_STDERR]);
    return 0;
}

/* -- its output --------------------------------------------------------------------------------- */

/* Of what is behind the beginning the last bytes are kept, and are moved only now and then. */
static void add_tail(kept *k, ah_slice s)
{
    if (s.n > k->tail_bytes)
        s = (ah_slice){s.p + (s.n - k->tail_bytes), k->tail_bytes};
    ah_buf_put(&k->tail, s);
    if (k->tail.len > 2 * k->tail_bytes)
        ah_buf_drop(&k->tail, k->tail.len - k->tail_bytes);
}

static void keep(kept *k, ah_slice s)
{
    size_t room = k->head.max - k->head.len, first = s.n < room ? s.n : room;

    ah_buf_add(&k->head, s.p, first);
    if (s.n > first)
        add_tail(k, (ah_slice){s.p + first, s.n - first});
    k->bytes += (int64_t)s.n;
}

static void take(command *c, ah_process_stream of, size_t n)
{
    ah_slice s = {ah_process_output(c->p, of).p, n};

    keep(&c->all, s);
    if (!c->merged)
        keep(&c->own[of], s);
    ah_process_take(c->p, of, n);
}

/* What no piece tells of has come with the end. */
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

/* Which stream has something new: those that became ready first are told of first. More changes from
 * one to the other than there is room for lose their order. */
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
        ah_waiter_done(&c->waiter);
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
static void set_kept(lua_State *L, const kept *k)
{
    size_t n = k->tail.len < k->tail_bytes ? k->tail.len : k->tail_bytes;

    set_integer(L, "bytes", k->bytes);
    set_text(L, "output", ah_buf_slice(&k->head));
    set_text(L, "tail", (ah_slice){n ? k->tail.data + (k->tail.len - n) : "", n});
}

static void set_own(lua_State *L, const char *name, const kept *k)
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
    if (r->signal)
        set_integer(L, "signal", r->signal);
    else if (r->code >= 0)
        set_integer(L, "code", r->code);
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

static bool is_whole(const kept *k)
{
    return ah_buf_ok(&k->head) && ah_buf_ok(&k->tail);
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    command *c = luaL_checkudata(L, (int)ctx, PROCESS);
    ah_process_result r;

    (void)status;
    ah_process_ended(c->p, &r);
    if (!is_whole(&c->all) || !is_whole(&c->own[AH_STDOUT]) || !is_whole(&c->own[AH_STDERR]))
        return ah_lua_raise_nomem(L);
    stop_command(&c->waiter);
    if (r.err.status != AH_OK)
        return fails(L, &r.err);
    push_result(L, c, &r);
    return 1;
}

/* -- its beginning -------------------------------------------------------------------------------- */

static const char *text_at(lua_State *L, int idx, const char *what)
{
    size_t n;
    const char *s;

    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s must be a string, found a %s", what, luaL_typename(L, idx));
    s = lua_tolstring(L, idx, &n);
    if (memchr(s, '\0', n))
        ah_lua_raise(L, AH_USAGE, "%s holds a NUL byte, which no program can be given", what);
    return s;
}

/* The list in the field, with a NULL behind it; held by the list. Returns how many. */
static size_t read_words(lua_State *L, const char *name, const char **out, size_t most)
{
    size_t n = 0;

    out[0] = NULL;
    if (!ah_field_push(L, 1, WHAT, name, LUA_TTABLE))
        return 0;
    for (; lua_rawgeti(L, -1, (lua_Integer)n + 1) != LUA_TNIL; lua_pop(L, 1)) {
        if (n >= most)
            ah_lua_raise(L, AH_USAGE, "%s has more than %d words", name, (int)most);
        out[n++] = text_at(L, -1, name);
    }
    lua_pop(L, 2);
    out[n] = NULL;
    return n;
}

static uint64_t number_of(lua_State *L, const char *name, double factor)
{
    double v = 0;

    ah_field_number(L, 1, WHAT, name, 0, &v);
    return (uint64_t)(v * factor);
}

static const char *string_of(lua_State *L, const char *name)
{
    const char *s = NULL;

    if (lua_getfield(L, 1, name) != LUA_TNIL)
        s = text_at(L, -1, name);
    lua_pop(L, 1); /* the table keeps it */
    return s;
}

static void read_sandbox(lua_State *L, ah_sandbox_config *cfg)
{
    const char *name = string_of(L, "sandbox");
    int kind = 0;

    while (name && ah_sandbox_name((ah_sandbox_kind)kind) &&
           strcmp(name, ah_sandbox_name((ah_sandbox_kind)kind)) != 0)
        kind++;
    if (!ah_sandbox_name((ah_sandbox_kind)kind))
        ah_lua_raise(L, AH_USAGE,
                     "sandbox must be \"none\", \"auto\", \"require\", \"landlock\" or "
                     "\"bubblewrap\", found \"%s\"",
                     name);
    cfg->kind = (ah_sandbox_kind)kind;
    ah_field_bool(L, 1, WHAT, "network", &cfg->network);
    ah_field_bool(L, 1, WHAT, "owners", &cfg->owners);
}

static void read_limits(lua_State *L, ah_process_config *cfg)
{
    cfg->timeout_ms = (int64_t)number_of(L, "timeout", 1000);
    cfg->grace_ms = (int64_t)number_of(L, "grace", 1000);
    cfg->limits.memory_bytes = number_of(L, "memory", 1);
    cfg->limits.file_bytes = number_of(L, "file_size", 1);
    cfg->limits.cpu_s = number_of(L, "cpu", 1);
    cfg->limits.processes = number_of(L, "processes", 1);
}

typedef struct folder {
    int fd; /* -1: closed */
} folder;

static int folder_gc(lua_State *L)
{
    folder *f = luaL_checkudata(L, 1, FOLDER);

    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    return 0;
}

static int fd_at(lua_State *L, int idx)
{
    const folder *f = luaL_checkudata(L, idx, FOLDER);

    if (f->fd < 0)
        ah_lua_raise(L, AH_USAGE, "%s: a folder is closed", WHAT);
    return f->fd;
}

/* Where the folder is now. -- path, or nil where the system does not say */
static void push_path(lua_State *L, int fd)
{
    char link[64], path[MAX_PATH_BYTES];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path);
    if (n <= 0 || n == (ssize_t)sizeof path)
        lua_pushnil(L);
    else
        lua_pushlstring(L, path, (size_t)n);
}

/* One that was removed meanwhile holds nothing that could be written to. */
static bool is_removed(int fd)
{
    struct stat info;

    return fstat(fd, &info) != 0 || info.st_nlink == 0;
}

/* (given) The paths are kept in the table of its user value. */
static void read_folders(lua_State *L, int given_at, ah_sandbox_config *cfg)
{
    if (!ah_field_push(L, 1, WHAT, "folders", LUA_TTABLE))
        return;
    lua_newtable(L); /* -- folders paths */
    for (lua_Integer i = 1; lua_rawgeti(L, -2, i) != LUA_TNIL; lua_pop(L, 1), i++) {
        int fd = fd_at(L, -1);

        if (cfg->n_folders == AH_SANDBOX_FOLDERS)
            ah_lua_raise(L, AH_USAGE, "more than %d folders", AH_SANDBOX_FOLDERS);
        if (is_removed(fd))
            continue;
        push_path(L, fd);
        cfg->folder[cfg->n_folders++] = (ah_sandbox_folder){fd, luaL_optstring(L, -1, "")};
        lua_rawseti(L, -3, i);
    }
    lua_pop(L, 1);
    lua_setiuservalue(L, given_at, 1); /* -- folders */
    lua_pop(L, 1);
}

/* What a command is given. Before argv there is room for the words of a sandbox, before env for
 * the temporary folder. */
typedef struct given {
    ah_process_config cfg;
    ah_sandbox_config sandbox;
    ah_slice input;
    const char *words[AH_SANDBOX_WORDS + MAX_WORDS + 1]; /* argv from AH_SANDBOX_WORDS on */
    const char *env[1 + MAX_WORDS + 1];                  /* likewise from 1 on */
    char temporary[sizeof((ah_sandbox *)0)->temporary + sizeof "TMPDIR="];
} given;

/* -- given; raises */
static given *read_given(lua_State *L)
{
    given *g = lua_newuserdatauv(L, sizeof *g, 1);
    int at = lua_gettop(L);

    g->cfg =
        (ah_process_config){.news = on_news, .confine = ah_sandbox_enter, .clean = ah_sandbox_clean};
    g->sandbox = (ah_sandbox_config){0};
    g->input = (ah_slice){NULL, 0};
    g->cfg.cwd = string_of(L, "start_in");
    ah_field_bool(L, 1, WHAT, "merge", &g->cfg.merge);
    g->cfg.input = ah_field_string(L, 1, WHAT, "stdin", &g->input);
    read_limits(L, &g->cfg);
    read_sandbox(L, &g->sandbox);
    read_folders(L, at, &g->sandbox);
    if (lua_getfield(L, 1, "start") != LUA_TNIL)
        g->cfg.cwd_fd = fd_at(L, -1);
    lua_pop(L, 1);
    read_words(L, "argv", g->words + AH_SANDBOX_WORDS, MAX_WORDS);
    read_words(L, "env", g->env + 1, MAX_WORDS);
    return g;
}

/* Never raises. */
static ah_status start(command *c, given *g, ah_err *err)
{
    const char *words[AH_SANDBOX_WORDS];
    ah_status st = ah_sandbox_open(&g->sandbox, &c->sandbox, err);
    size_t n;

    if (st != AH_OK)
        return st;
    n = ah_sandbox_words(&c->sandbox, words);
    g->cfg.argv = g->words + (AH_SANDBOX_WORDS - n);
    memcpy(g->words + (AH_SANDBOX_WORDS - n), words, n * sizeof *words);
    snprintf(g->temporary, sizeof g->temporary, "TMPDIR=%s", n ? "/tmp" : c->sandbox.temporary);
    g->env[0] = g->temporary;
    g->cfg.env = n || c->sandbox.temporary[0] ? g->env : g->env + 1;
    g->cfg.confine_ud = &c->sandbox;
    g->cfg.fence_fd = c->sandbox.fence;
    g->cfg.ud = c;
    st = ah_process_start(&c->lua->mem, c->lua->host->loop, &g->cfg, &c->p, err);
    if (st == AH_OK && g->input.n > 0)
        st = ah_process_write(c->p, g->input, err);
    if (st == AH_OK)
        ah_process_close_input(c->p);
    return st;
}

static void init_kept(lua_State *L, const ah_lua *h, kept *k)
{
    k->tail_bytes = (size_t)number_of(L, "tail", 1);
    ah_buf_init(&k->head, &h->mem, (size_t)number_of(L, "keep", 1));
    ah_buf_init(&k->tail, &h->mem, 3 * k->tail_bytes + 1);
}

static command *push_command(lua_State *L)
{
    command *c = lua_newuserdatauv(L, sizeof *c, 0);

    *c = (command){.waiter.leave = stop_command, .lua = ah_lua_of(L), .job.fn = on_job};
    ah_field_bool(L, 1, WHAT, "merge", &c->merged);
    init_kept(L, c->lua, &c->all);
    init_kept(L, c->lua, &c->own[AH_STDOUT]);
    init_kept(L, c->lua, &c->own[AH_STDERR]);
    luaL_setmetatable(L, PROCESS);
    return c;
}

/* ah._process { argv, env, folders, start, start_in, stdin, timeout, grace, memory, file_size, cpu,
 *               processes, keep, tail, merge, sandbox, network, owners }
 * argv: list of words; env: list of "NAME=value", all there is; folders: list of folders
 * (ah._folder), which may be written to in a sandbox; start: the folder where it begins, start_in: a
 * path below that, or an absolute one. Times in seconds, sizes in bytes; 0 or nil: no limit. keep,
 * tail: how much of the output's beginning, and of what follows it. merge: both streams are one, in
 * which what was written has its very order.
 * -> { how = "exited" | "timed_out", code | signal, seconds, cpu, peak, bytes, output, tail,
 *      stdout, stderr = { bytes, output, tail } (not with merge), sandbox, left }, or nil and an error where the command could not be run. Without left: not
 * known how many processes could not be ended. */
static int run_process(lua_State *L)
{
    static const char *const known[] = {"argv",    "env",       "folders", "start",  "start_in",
                                        "stdin",   "timeout",   "grace",   "memory", "file_size",
                                        "cpu",     "processes", "keep",    "tail",   "merge",
                                        "sandbox", "network",   "owners",  NULL};
    command *c;
    given *g;
    ah_err err;

    lua_settop(L, 1);
    ah_fields_check(L, 1, WHAT, known, false);
    ah_lua_can_await(L);
    g = read_given(L);   /* -- t given */
    c = push_command(L); /* -- t given c */
    ah_waiter_keep(L, &c->waiter);
    if (start(c, g, &err) != AH_OK) {
        stop_command(&c->waiter);
        ah_waiter_done(&c->waiter);
        return fails(L, &err);
    }
    return ah_lua_await(L, &c->waiter, lua_gettop(L), finish);
}

/* -- beside it ---------------------------------------------------------------------------------------- */

/* ah._sandbox { sandbox, network } -> what it comes to on this machine, in words, and the kind; or nil,
 * err */
static int describe_sandbox(lua_State *L)
{
    ah_sandbox_config cfg = {0};
    ah_sandbox s;
    ah_err err;

    read_sandbox(L, &cfg);
    if (ah_sandbox_choose(&cfg, &s, &err) != AH_OK)
        return fails(L, &err);
    lua_pushstring(L, s.text);
    lua_pushstring(L, ah_sandbox_name(s.cfg.kind));
    return 2;
}

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* fd is a copy that the object keeps. -- folder, or nil and why */
static int push_folder(lua_State *L, folder *f, int fd, const char *path)
{
    int e = errno;
    ah_err err;

    if (fd < 0) {
        ah_err_set(&err, AH_USAGE, "cannot open the folder '%.500s': %s", path, strerror(e));
        return fails(L, &err);
    }
    f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* 0 is none for who takes it */
    e = errno;
    close(fd);
    errno = e;
    return f->fd < 0 ? push_folder(L, f, -1, path) : 1;
}

/* ah._folder(filesystem) -> folder, whether it is read-only; nil where it is no folder of the machine.
 * ah._folder(path) -> folder; nil, err. ah._folder() -> the folder that this process works in. */
static int folder_of(lua_State *L)
{
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    bool read_only = false;
    const char *path = ".";
    folder *f;
    int fd;

    lua_settop(L, 1);
    f = lua_newuserdatauv(L, sizeof *f, 0);
    f->fd = -1;
    luaL_setmetatable(L, FOLDER);
    if (lua_type(L, 1) == LUA_TUSERDATA) {
        if ((fd = ah_fs_folder(ah_lua_check_fs(L, 1), &read_only)) < 0)
            return 0;
        if (push_folder(L, f, fcntl(fd, F_DUPFD_CLOEXEC, 3), "of the filesystem") != 1)
            return 2;
        lua_pushboolean(L, read_only);
        return 2;
    }
    if (!lua_isnil(L, 1))
        path = text_at(L, 1, "a folder");
    return push_folder(L, f, open(path, flags), path);
}

/* ah._warn(ctx, text): a `warning` event of the call's run, and a line of its log */
static int warn(lua_State *L)
{
    ah_slice text;

    text.p = luaL_checklstring(L, 2, &text.n);
    ah_run_warn(ah_lua_check_call(L, 1)->run, text);
    return 0;
}

/* ah._repair(bytes) -> the same as UTF-8, with U+FFFD for what is none */
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

void ah_lua_open_process(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", command_gc}, {NULL, NULL}};
    static const luaL_Reg folder_meta[] = {{"__gc", folder_gc}, {"__close", folder_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"_process", run_process}, {"_sandbox", describe_sandbox},
                                         {"_folder", folder_of},    {"_warn", warn},
                                         {"_repair", repair},       {NULL, NULL}};

    luaL_newmetatable(L, PROCESS);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, FOLDER);
    luaL_setfuncs(L, folder_meta, 0);
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
}
