/* Reads the description of a child process from a script, for io/process.h and io/sandbox.h. */
#define _GNU_SOURCE /* O_PATH */
#include "lua/lua_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/disk.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_fs.h"
#include "lua/lua_open.h"
#include "lua/lua_options.h"
#include "lua/lua_value.h"

static const char FOLDER[] = "agenthost.folder";

enum { MAX_PATH_BYTES = 4096, MAX_VARIABLES = 1000 };

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

static int fails(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* -- words ------------------------------------------------------------------------------------- */

const char *ah_launch_text(lua_State *L, int idx, const char *what, const char *name)
{
    size_t n;
    const char *s;

    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: %s must be a string, found a %s", what, name,
                     luaL_typename(L, idx));
    s = lua_tolstring(L, idx, &n);
    if (memchr(s, '\0', n))
        ah_lua_raise(L, AH_USAGE, "%s: %s holds a NUL byte, which no program can be given", what,
                     name);
    return s;
}

/* (launch) user value 1: a table that keeps the values pointed to. -- launch */
ah_launch *ah_launch_push(lua_State *L)
{
    ah_launch *g = lua_newuserdatauv(L, sizeof *g, 1);

    g->cfg = (ah_process_config){.confine = ah_sandbox_enter, .clean = ah_sandbox_clean};
    g->sandbox = (ah_sandbox_config){.hidden = &ah_lua_of(L)->host->hidden};
    g->n_words = 0;
    g->words[AH_SANDBOX_WORDS] = g->env[1] = NULL;
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    return g;
}

/* Keeps the value on top (popped). */
static void keep(lua_State *L, int at)
{
    lua_getiuservalue(L, at, 1); /* -- v kept */
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

/* Keeps the word: code of the script may run before the start (metamethods of its lists) and drop
 * it. */
void ah_launch_word(lua_State *L, int at, int idx, const char *what, const char *name)
{
    ah_launch *g = lua_touserdata(L, at);

    if (g->n_words >= AH_LAUNCH_WORDS)
        ah_lua_raise(L, AH_USAGE, "%s: %s has more than %d words", what, name, AH_LAUNCH_WORDS);
    g->words[AH_SANDBOX_WORDS + g->n_words++] = ah_launch_text(L, idx, what, name);
    g->words[AH_SANDBOX_WORDS + g->n_words] = NULL;
    lua_pushvalue(L, idx);
    keep(L, at);
}

void ah_launch_words(lua_State *L, int at, const char *what, const char *name)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, 1, what, name, &n))
        return;
    for (lua_Integer i = 1; i <= n; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, i);
        ah_launch_word(L, at, -1, what, name);
    }
    lua_pop(L, 1);
}

void ah_launch_env(lua_State *L, ah_launch *g, int idx, const char *what)
{
    size_t n = 0;

    for (; lua_rawgeti(L, idx, (lua_Integer)n + 1) != LUA_TNIL; lua_pop(L, 1)) {
        if (n >= AH_LAUNCH_WORDS)
            ah_lua_raise(L, AH_USAGE, "%s: env has more than %d variables", what, AH_LAUNCH_WORDS);
        g->env[1 + n++] = ah_launch_text(L, -1, what, "env");
    }
    lua_pop(L, 1);
    g->env[1 + n] = NULL;
}

/* -- limits ------------------------------------------------------------------------------------ */

static const ah_option limit_rows[] = {
    {.name = "timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .to = AH_TO_MS(ah_launch_limits, timeout_ms),
     .doc = "time after which the process is ended in any case"},
    {.name = "grace",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "2",
     .to = AH_TO_MS(ah_launch_limits, grace_ms),
     .doc = "time from TERM to KILL, and on `close` from the end of its input to TERM"},
    {.name = "memory",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = AH_OPT_MOST,
     .unit = "bytes",
     .type = "integer",
     .to = AH_TO_DOUBLE(ah_launch_limits, memory),
     .doc = "address space of each process"},
    {.name = "file_size",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = AH_OPT_MOST,
     .unit = "bytes",
     .type = "integer",
     .to = AH_TO_DOUBLE(ah_launch_limits, file_size),
     .doc = "size of each file that is written"},
    {.name = "cpu",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = AH_OPT_MOST,
     .unit = "seconds",
     .type = "integer",
     .to = AH_TO_DOUBLE(ah_launch_limits, cpu),
     .doc = "processor time of each process"},
    {.name = "processes",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = AH_OPT_MOST,
     .type = "integer",
     .to = AH_TO_DOUBLE(ah_launch_limits, processes),
     .doc = "all processes of the user together; no effect for root"},
    {0},
};
const ah_subject ah_subject_process_limits = {.what = "ah.process",
                                              .type = "ah.ProcessLimits",
                                              .doc = "What a child process may use.",
                                              .row = limit_rows};

void ah_launch_limit(ah_launch *g, const ah_launch_limits *limits)
{
    g->cfg.timeout_ms = limits->timeout_ms;
    g->cfg.grace_ms = limits->grace_ms;
    g->cfg.limits = (ah_process_limits){.memory_bytes = (uint64_t)limits->memory,
                                        .file_bytes = (uint64_t)limits->file_size,
                                        .cpu_s = (uint64_t)limits->cpu,
                                        .processes = (uint64_t)limits->processes};
}

/* -- folders ----------------------------------------------------------------------------------- */

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

int ah_launch_folder_fd(lua_State *L, int idx, const char *what)
{
    const folder *f = luaL_checkudata(L, idx, FOLDER);

    if (f->fd < 0)
        ah_lua_raise(L, AH_USAGE, "%s: a folder is closed", what);
    return f->fd;
}

/* Pushes the present path of the folder. -- path, or nil if the system does not provide it */
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

static bool is_removed(int fd)
{
    struct stat info;

    return fstat(fd, &info) != 0 || info.st_nlink == 0;
}

/* fd is a copy that the object owns. -- folder, or nil and the reason */
static int push_folder(lua_State *L, folder *f, int fd, const char *path)
{
    int e = errno;
    ah_err err;

    if (fd < 0) {
        ah_err_set(&err, AH_USAGE, "cannot open the folder '%.500s': %s", path, strerror(e));
        return fails(L, &err);
    }
    f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* descriptor 0 would mean none */
    e = errno;
    close(fd);
    errno = e;
    return f->fd < 0 ? push_folder(L, f, -1, path) : 1;
}

static folder *new_folder(lua_State *L)
{
    folder *f = lua_newuserdatauv(L, sizeof *f, 0);

    f->fd = -1;
    luaL_setmetatable(L, FOLDER);
    return f;
}

bool ah_launch_push_folder(lua_State *L, const char *path)
{
    folder *f = new_folder(L);

    return push_folder(L, f, open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), path) == 1;
}

/* ah._folder(filesystem) -> folder, true if it is read-only; nil if it is not a folder of the
 * machine. ah._folder(path) -> folder; nil, err. ah._folder() -> the working folder of this
 * process. */
static int folder_of(lua_State *L)
{
    bool read_only = false;
    const char *path = ".";
    folder *f;
    int fd;

    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TUSERDATA) {
        f = new_folder(L);
        if ((fd = ah_fs_folder(ah_lua_check_fs(L, 1), &read_only)) < 0)
            return 0;
        if (push_folder(L, f, fcntl(fd, F_DUPFD_CLOEXEC, 3), "of the filesystem") != 1)
            return 2;
        lua_pushboolean(L, read_only);
        return 2;
    }
    if (!lua_isnil(L, 1))
        path = ah_launch_text(L, 1, "ah._folder", "a folder");
    return ah_launch_push_folder(L, path) ? 1 : 2;
}

/* Adds the folder on top (popped) to the list, unless it has been removed. */
static void add_folder(lua_State *L, int at, ah_sandbox_folder *out, size_t *n, const char *what)
{
    int fd = ah_launch_folder_fd(L, -1, what);

    keep(L, at);
    if (is_removed(fd))
        return;
    push_path(L, fd);
    out[(*n)++] = (ah_sandbox_folder){fd, luaL_optstring(L, -1, "")};
    keep(L, at);
}

bool ah_launch_folders(lua_State *L, int at, int idx, const char *what, const char *name,
                       ah_sandbox_folder *out, size_t *n)
{
    lua_Integer listed;

    *n = 0;
    idx = lua_absindex(L, idx);
    if (!ah_lua_field_list(L, idx, what, name, &listed))
        return true;
    for (lua_Integer i = 1; i <= listed; i++) {
        if (*n == AH_SANDBOX_FOLDERS)
            ah_lua_raise(L, AH_USAGE, "%s: %s has more than %d folders", what, name,
                         AH_SANDBOX_FOLDERS);
        if (lua_rawgeti(L, -1, i) == LUA_TUSERDATA)
            lua_pushvalue(L, -1);
        else if (!ah_launch_push_folder(L, ah_launch_text(L, -1, what, name)))
            return false;
        add_folder(L, at, out, n, what); /* -- list value */
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return true;
}

/* -- the environment --------------------------------------------------------------------------- */

/* The variables that a process has; no others of the host's environment are passed on. */
static const struct {
    const char *name, *otherwise;
    bool fixed;
} usual[] = {{"PATH", "/usr/local/bin:/usr/bin:/bin", false},
             {"HOME", "/", false},
             {"USER", NULL, false},
             {"LOGNAME", NULL, false},
             {"SHELL", NULL, false},
             {"LANG", "C.UTF-8", false},
             {"LC_ALL", NULL, false},
             {"TZ", NULL, false},
             {"TERM", "dumb", true}}; /* it has no terminal */

static const char STORE[] = "AGENTHOST_STORE";

/* -- variables */
static void push_usual(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const char *value = usual[i].fixed ? NULL : getenv(usual[i].name);

        lua_pushstring(L, value ? value : usual[i].otherwise);
        lua_setfield(L, -2, usual[i].name);
    }
}

static bool is_name(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] == '_' || (s.p[i] >= 'a' && s.p[i] <= 'z') ||
              (s.p[i] >= 'A' && s.p[i] <= 'Z') || (i > 0 && s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return s.n > 0;
}

/* -- name value    value: a string, or nil if the process does not have the variable */
static void check_variable(lua_State *L, const char *what)
{
    ah_slice name = {NULL, 0};

    if (lua_type(L, -2) == LUA_TSTRING)
        name.p = lua_tolstring(L, -2, &name.n);
    if (!is_name(name))
        ah_lua_raise(L, AH_USAGE,
                     "%s: env: '%s' is no name of a variable; write env = { NAME = \"value\" }",
                     what, luaL_tolstring(L, -2, NULL));
    if (strcmp(name.p, STORE) == 0)
        ah_lua_raise(L, AH_USAGE,
                     "%s: env: '%s' is never passed to a process: it points to the store of agents",
                     what, STORE);
    if (lua_isboolean(L, -1)) {
        const char *host = lua_toboolean(L, -1) ? getenv(name.p) : NULL;

        lua_pop(L, 1);
        lua_pushstring(L, host);
    } else if (lua_type(L, -1) != LUA_TSTRING) {
        ah_lua_raise(L, AH_USAGE,
                     "%s: env: '%s' must be a string, true (the host's) or false (none)", what,
                     name.p);
    } else {
        ah_launch_text(L, -1, what, name.p);
    }
}

/* -- given variables    adds those of `given`, or removes them (false) */
static void add_given(lua_State *L, const char *what)
{
    if (lua_isnil(L, -2))
        return;
    if (!lua_istable(L, -2))
        ah_lua_raise(L, AH_USAGE,
                     "%s: field 'env' must be a table, { NAME = \"value\" }, found a %s", what,
                     luaL_typename(L, -2));
    for (lua_pushnil(L); lua_next(L, -3);) { /* -- given variables name value */
        check_variable(L, what);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* -- ... variables    Adds "NAME=value" for each; the pushed table keeps the texts. */
static size_t print_variables(lua_State *L, const char *what, const char **out)
{
    size_t n = 0;

    lua_newtable(L); /* -- variables held */
    for (lua_pushnil(L); lua_next(L, -3); lua_pop(L, 1)) {
        if (n == MAX_VARIABLES)
            ah_lua_raise(L, AH_USAGE, "%s: env has more than %d variables", what, MAX_VARIABLES);
        lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
        out[n] = lua_tostring(L, -1);
        lua_rawseti(L, -4, (lua_Integer)++n);
    }
    return n;
}

void ah_launch_environment(lua_State *L, const char *what)
{
    const char *list[MAX_VARIABLES];
    size_t n;

    luaL_checkstack(L, 12, what);
    push_usual(L); /* -- given variables */
    add_given(L, what);
    n = print_variables(L, what, list); /* -- given variables held */
    qsort(list, n, sizeof *list, compare_words);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushstring(L, list[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_replace(L, -4);
    lua_pop(L, 2); /* -- list */
}

/* ah._environment(env, what) -> list */
static int environment(lua_State *L)
{
    const char *what = luaL_checkstring(L, 2);

    lua_pushvalue(L, 1);
    ah_launch_environment(L, what);
    return 1;
}

/* -- the start --------------------------------------------------------------------------------- */

ah_status ah_launch_start(ah_lua *h, ah_launch *g, ah_sandbox *sandbox, ah_process **out,
                          ah_err *err)
{
    const char *words[AH_SANDBOX_WORDS];
    ah_status st = ah_sandbox_open(&g->sandbox, sandbox, err);
    size_t n;

    if (st != AH_OK)
        return st;
    n = ah_sandbox_words(sandbox, words);
    g->cfg.argv = g->words + (AH_SANDBOX_WORDS - n);
    memcpy(g->words + (AH_SANDBOX_WORDS - n), words, n * sizeof *words);
    snprintf(g->temporary, sizeof g->temporary, "TMPDIR=%s", n ? "/tmp" : sandbox->temporary);
    g->env[0] = g->temporary;
    g->cfg.env = n || sandbox->temporary[0] ? g->env : g->env + 1;
    g->cfg.confine_ud = sandbox;
    g->cfg.fence_fd = sandbox->fence;
    return ah_process_start(&h->mem, h->host->loop, &g->cfg, out, err);
}

/* -- signals ----------------------------------------------------------------------------------- */

static const struct {
    int number;
    const char *name;
} signals[] = {
    {SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},     {SIGTRAP, "TRAP"},
    {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},   {SIGFPE, "FPE"},   {SIGKILL, "KILL"},   {SIGUSR1, "USR1"},
    {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"}, {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"},   {SIGTERM, "TERM"},
    {SIGCHLD, "CHLD"}, {SIGCONT, "CONT"}, {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},   {SIGTTIN, "TTIN"},
    {SIGTTOU, "TTOU"}, {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"}, {SIGWINCH, "WINCH"}, {SIGSYS, "SYS"}};

enum { SIGNALS = sizeof signals / sizeof *signals };

const char *ah_lua_signal_name(int sig)
{
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == sig)
            return signals[i].name;
    return NULL;
}

void ah_lua_signal_push(lua_State *L, int sig)
{
    const char *name = ah_lua_signal_name(sig);

    if (name)
        lua_pushstring(L, name);
    else
        lua_pushfstring(L, "%d", sig);
}

int ah_lua_signal_of(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < SIGNALS; i++)
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    return 0;
}

void ah_lua_open_launch(lua_State *L)
{
    static const luaL_Reg folder_meta[] = {
        {"__gc", folder_gc}, {"__close", folder_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"_folder", folder_of}, {"_environment", environment}, {NULL, NULL}};

    luaL_newmetatable(L, FOLDER);
    luaL_setfuncs(L, folder_meta, 0);
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
