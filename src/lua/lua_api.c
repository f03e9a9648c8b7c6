/* Implements include/agenthost.h: hosts with their own Lua state or in a caller's, scripts, and
 * errors of calls from C. The rest is in lua_api_*.c. */
#include "lua/lua_api.h"

#include <errno.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#include "agenthost_lua.h"
#include "base/lent.h"
#include "io/http_server.h"
#include "io/sandbox.h"
#include "io/stores.h"
#include "io/yaml.h"
#include "base/json.h"
#include "lua/lua_error.h"
#include "lua/lua_fence.h"
#include "lua/lua_host.h"
#include "lua/lua_modules.h"
#include "lua/lua_memory.h"
#include "lua/lua_task.h"
#include "lua/lua_watch.h"
#include "schema/schema.h"
#include "wire/providers.h"

enum { MAX_WORDS = 64 << 10, MAX_STDIN = 64 << 20, MAX_EVENTS = 4096, MAX_EVENT = 1 << 30 };

/* -- memory ------------------------------------------------------------------------------- */

/* Memory of a host with its own Lua state. It lives longer than that state. */
typedef struct own_memory {
    ah_mem mem; /* first: ah_lua.own is its address */
    ah_lua_memory lua;
} own_memory;

/* ah_realloc_fn does not get the old size. */
static void *lua_realloc(void *ud, void *ptr, size_t old, size_t size)
{
    (void)old;
    if (size)
        return ah_resize(ud, ptr, size);
    ah_free(ud, ptr);
    return NULL;
}

/* -- errors --------------------------------------------------------------------------------- */

void ah_err_json(const ah_err *err, ah_buf *out)
{
    ah_slice details = ah_slice_of(err->details);

    ah_buf_fmt(out, "{\"code\":\"%s\",\"message\":", ah_status_name(err->status));
    ah_json_put_string(out, ah_slice_of(err->message));
    if (ah_phase_name(err->phase))
        ah_buf_fmt(out, ",\"phase\":\"%s\"", ah_phase_name(err->phase));
    ah_buf_fmt(out, ",\"retryable\":%s", err->retryable ? "true" : "false");
    if (err->http_status)
        ah_buf_fmt(out, ",\"status\":%d", err->http_status);
    if (details.n > 2) { /* its members, without its brace */
        ah_buf_char(out, ',');
        ah_buf_add(out, details.p + 1, details.n - 1);
    } else {
        ah_buf_char(out, '}');
    }
}

void ah_embed_error(const ah_mem *mem, const ah_err *err, ah_error *out, ah_text **json)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, mem, MAX_WORDS);
    if (err->status != AH_OK)
        ah_err_json(err, &b);
    ah_text_from_buf(&b, "the error", &t, NULL);
    ah_buf_clear(&b);
    ah_text_set(json, t);
    *out = (ah_error){
        .status = err->status,
        .code = ah_status_name(err->status),
        .message = err->message,
        .phase = ah_phase_name(err->phase),
        .retryable = err->retryable,
        .http_status = err->http_status,
        .json = t ? t->data : "{\"code\":\"internal\",\"message\":\"out of memory\"}",
    };
}

ah_status ah_embed_fail(ah_embed *e, const ah_err *err)
{
    e->err = *err;
    ah_secrets_redact_err(&e->lua->host->secrets, &e->err);
    ah_text_set(&e->words, NULL);
    ah_text_set(&e->err_json, NULL);
    return err->status;
}

AH_API const ah_error *ah_last_error(ah_host *host)
{
    ah_embed *e = ah_embed_of(host);

    if (!e->err_json)
        ah_embed_error(&e->lua->mem, &e->err, &e->error, &e->err_json);
    return &e->error;
}

AH_API const char *ah_errmsg(const ah_host *host)
{
    const ah_embed *e = host ? ah_embed_of(host) : NULL;

    if (!e)
        return "there is no host: ah_open has not made one";
    return e->words ? e->words->data : e->err.message;
}

/* -- calls ------------------------------------------------------------------------------------ */

static ah_status refuse(ah_embed *e, const char *what, const char *where)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE, "%s: it cannot be called %s", what, where);
    ah_log_put(&e->lua->host->log, AH_LOG_ERROR, "%s", err.message);
    return ah_embed_fail(e, &err);
}

/* Clears a cancel that was requested while nothing was at work. */
static void forget_cancel(const ah_embed *e)
{
    ah_host *host = e->lua->host;

    if (host->depth == 0 && e->at_work == 0 && !atomic_load(&e->scripting))
        atomic_store(&host->cancel, false);
}

ah_status ah_embed_may(ah_embed *e, const char *what)
{
    if (e->lua->host->looking)
        return refuse(e, what,
                      "from an observing callback (of the watcher, log, clock, random, tty, a "
                      "store's engine or release)");
    if (e->lua->host->callbacks == 0)
        forget_cancel(e);
    return AH_OK;
}

ah_status ah_embed_enter(ah_embed *e, const char *what)
{
    if (e->lua->host->callbacks)
        return refuse(e, what,
                      "from a callback of the host; call it after the callback has returned");
    if (e->lua->callee != AH_CALLEE_NONE)
        return refuse(e, what, "from an observer of a script, or other code that cannot wait");
    forget_cancel(e);
    return AH_OK;
}

ah_status ah_embed_enter_top(ah_embed *e, const char *what)
{
    ah_status st = ah_embed_enter(e, what);

    if (st == AH_OK && (e->lua->host->depth || atomic_load(&e->scripting)))
        st = refuse(e, what, "from inside a script or a run");
    return st;
}

ah_status ah_embed_call(ah_embed *e, lua_CFunction f, void *arg)
{
    lua_State *L = e->lua->caller;
    ah_err err;

    if (!lua_checkstack(L, 4))
        return ah_embed_fail(e, (ah_err_nomem(&err), &err));
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, arg);
    return ah_lua_call(e->lua, L, 1, 0, &err) == AH_OK ? AH_OK : ah_embed_fail(e, &err);
}

/* -- life ------------------------------------------------------------------------------------ */

static bool known_size(const ah_config *cfg)
{
    return cfg->size == sizeof *cfg || cfg->size == offsetof(ah_config, mcp_pins) ||
           cfg->size == offsetof(ah_config, store) ||
           cfg->size == offsetof(ah_config, max_in_flight) ||
           cfg->size == offsetof(ah_config, tty) || cfg->size == offsetof(ah_config, asks) ||
           cfg->size == offsetof(ah_config, user);
}

/* Fills *out from the config of a program of any version; cfg NULL: with zeros. Returns false for a
 * size of no known version, or if both record and replay are set. */
static bool read_config(const ah_config *cfg, ah_config *out)
{
    *out = (ah_config){.size = sizeof *out};
    if (!cfg)
        return true;
    if (!known_size(cfg))
        return false;
    memcpy(out, cfg, cfg->size);
    return !out->record || !out->replay;
}

typedef struct opening {
    const ah_config *cfg;
    const ah_mem *mem;
} opening;

static void free_embed(ah_embed *e)
{
    const ah_mem *mem = &e->lua->mem;

    ah_agents_close(e, true);
    ah_events_forget(e, NULL);
    ah_asks_forget(e);
    ah_buf_clear(&e->scratch);
    ah_text_unref(e->words);
    ah_text_unref(e->err_json);
    ah_text_unref(e->about);
    ah_text_unref(e->result);
    ah_text_unref(e->returned);
    ah_text_unref(e->tools);
    ah_text_unref(e->asks_json);
    ah_free(mem, e);
}

/* True if the program may still answer a call, an ask or a request. */
static bool may_answer(const ah_embed *e)
{
    const ah_host *h = e->lua->host;

    return e->pending || (h->cfg.asks && h->asks.first) || (h->cfg.transport.start && h->runs);
}

static const ah_program program = {
    .free = free_embed, .watch = ah_embed_watch, .cancel = ah_cancel, .may_answer = may_answer};

static void new_embed(lua_State *L, ah_lua *h, const ah_config *cfg)
{
    ah_embed *e = ah_alloc(&h->mem, sizeof *e);

    if (!e)
        ah_lua_raise_nomem(L);
    *e = (ah_embed){.lua = h, .user = cfg->user, .given = LUA_NOREF, .last = &e->first};
    e->max_events = cfg->max_events ? cfg->max_events : MAX_EVENTS;
    ah_buf_init(&e->scratch, &h->mem, MAX_EVENT);
    h->embed = e;
    h->program = &program;
    ah_given_open(L, e);
}

/* Passes a log record to the program. Refused calls that the program makes in there are not logged
 * to it. */
static void put_record(void *ud, ah_log_level level, const char *line)
{
    ah_slice text = ah_slice_of(line), shown;
    ah_host *h = ud;

    if (h->logging)
        return;
    shown = ah_pin(text);
    h->logging = true;
    ah_host_call_out(h, true);
    h->cfg.log(h->cfg.log_ud, level, shown.p);
    ah_host_came_back(h, true);
    h->logging = false;
    ah_unpin(shown, text);
}

/* Opens the host, in any state, with the parts of it that a C program needs. */
static int open_host(lua_State *L)
{
    const opening *o = lua_touserdata(L, 1);
    const ah_config *cfg = o->cfg;
    ah_lua *h = ah_lua_host(L, o->mem, cfg);

    if (cfg->log) {
        h->host->log.fn = put_record;
        h->host->log.ud = h->host;
        h->host->log.level = cfg->log_level;
    }
    if (cfg->model && !(h->model = ah_text_new(&h->mem, ah_slice_of(cfg->model))))
        return ah_lua_raise_nomem(L);
    if (!h->embed)
        new_embed(L, h, cfg);
    luaL_requiref(L, "agenthost", luaopen_agenthost, 0);
    return 0;
}

/* os.exit as Lua has it, but calls the watcher first. */
static int leave(lua_State *L)
{
    ah_host *h = ah_lua_of(L)->host;
    int code =
        lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, EXIT_SUCCESS);

    if (h->cfg.watcher.leaving) {
        ah_host_call_out(h, true);
        h->cfg.watcher.leaving(h->cfg.watcher.ud, code);
        ah_host_came_back(h, true);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static void watch_exit(lua_State *L)
{
    lua_getglobal(L, LUA_OSLIBNAME);
    lua_getfield(L, -1, "exit");
    lua_pushcclosure(L, leave, 1);
    lua_setfield(L, -2, "exit");
    lua_pop(L, 1);
}

static int open_own(lua_State *L)
{
    open_host(L);
    luaL_openlibs(L);
    watch_exit(L);
    ah_lua_guard_exit(L);
    ah_lua_guard_threads(L);
    ah_lua_keep_globals(L);
    return 0;
}

static ah_status set_up(lua_State *L, lua_CFunction f, const void *arg)
{
    int st;

    if (!lua_checkstack(L, 2))
        return AH_NOMEM;
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, (void *)(uintptr_t)arg);
    st = lua_pcall(L, 1, 0, 0);
    if (st != LUA_OK)
        lua_pop(L, 1);
    return st == LUA_OK ? AH_OK : st == LUA_ERRMEM ? AH_NOMEM : AH_INTERNAL;
}

static ah_status open_state(own_memory *m, const ah_config *cfg, ah_host **out)
{
    lua_State *L = lua_newstate(ah_lua_alloc, &m->lua);
    opening o = {cfg, &m->mem};
    ah_status st = L ? set_up(L, open_own, &o) : AH_NOMEM;

    if (st != AH_OK) {
        if (L)
            lua_close(L);
        return st;
    }
    ah_lua_of(L)->own = &m->mem;
    *out = ah_lua_of(L)->host;
    return AH_OK;
}

AH_API ah_status ah_open(const ah_config *cfg, ah_host **out)
{
    ah_config full;
    own_memory *m;
    ah_mem mem;
    ah_status st;

    if (!out || !read_config(cfg, &full))
        return AH_USAGE;
    mem = full.alloc ? (ah_mem){full.alloc, full.alloc_ud} : ah_mem_libc;
    if (!(m = ah_resize(&mem, NULL, sizeof *m)))
        return AH_NOMEM;
    *m = (own_memory){.mem = mem,
                      .lua = {.alloc = lua_realloc, .ud = &m->mem, .max = full.max_memory}};
    if ((st = open_state(m, &full, out)) != AH_OK)
        ah_free(&mem, m);
    return st;
}

/* -- a caller's state ------------------------------------------------------------------------ */

typedef struct attaching {
    opening open;
    const ah_config *given; /* NULL: no config */
    const char *why;        /* the reason why it cannot be opened; NULL: it can */
} attaching;

/* Returns why `copy` or `cfg` cannot be attached, or NULL. Does not use the state, which may belong
 * to another copy of Lua. */
static const char *wrong_copy(const ah_lua_copy *copy, const ah_config *cfg)
{
    if (copy->version != LUA_VERSION_NUM)
        return "the program is built with another version of Lua than agenthost (5.4)";
    if (copy->address != (void (*)(void))lua_newstate)
        return "the program has a Lua of its own, agenthost uses another: link both to the same";
    if (cfg && !known_size(cfg))
        return "the config's size matches no known version of agenthost.h";
    if (cfg && cfg->size > offsetof(ah_config, user) && cfg->max_memory)
        return "max_memory needs a host with a Lua state of its own (ah_open)";
    return NULL;
}

static int attach(lua_State *L)
{
    attaching *a = lua_touserdata(L, 1);

    if (ah_lua_foreign(L))
        a->why = "another copy of agenthost is open in this Lua state";
    else if (ah_lua_of(L) && a->given)
        a->why = "agenthost is open in this Lua state already: attach before, or without a config";
    if (a->why)
        return 0;
    open_host(L); /* finds `open` at the same address */
    ah_lua_of(L)->embed->attached = true;
    return 0;
}

AH_API ah_status ah_attach_copy(lua_State *L, const ah_lua_copy *copy, const ah_config *cfg,
                                ah_host **out, const char **why)
{
    attaching a = {.given = cfg, .why = wrong_copy(copy, cfg)};
    ah_status st = AH_USAGE;
    ah_config full;
    ah_mem mem;

    if (!a.why && !read_config(cfg, &full))
        a.why = "the config has both record and replay: a host does one of them";
    if (!a.why) {
        mem = full.alloc ? (ah_mem){full.alloc, full.alloc_ud} : ah_mem_libc;
        a.open = (opening){&full, &mem};
        st = set_up(L, attach, &a);
        if (st != AH_OK)
            a.why = st == AH_NOMEM ? "out of memory" : "the system gives no event loop";
    }
    if (!a.why)
        *out = ah_lua_of(L)->host;
    else if (why)
        *why = a.why;
    return a.why && st == AH_OK ? AH_USAGE : st;
}

/* The state is the caller's: closes only what the program opened in it. */
static void detach(ah_embed *e)
{
    ah_agents_close(e, false);
    ah_events_forget(e, NULL);
    ah_open_stores_leave(e->lua->host);
}

AH_API void ah_close(ah_host *host)
{
    ah_lua *h = host ? host->owner : NULL;
    ah_mem *own, mem;

    if (!h || ah_embed_enter_top(h->embed, "ah_close") != AH_OK)
        return;
    detach(h->embed);
    if (!h->own)
        return;
    own = h->own;
    mem = *own;
    ah_tasks_end(h);
    lua_close(h->main);
    ah_free(&mem, own);
}

AH_API void *ah_user(const ah_host *host)
{
    return ah_embed_of(host)->user;
}

/* -- scripts ------------------------------------------------------------------------------ */

typedef struct script {
    const char *path; /* NULL: standard input */
    const char *text; /* NULL, or the text of a script with the name `path` */
    size_t len;
    int argc;
    char **argv;
} script;

static void push_stdin(lua_State *L)
{
    luaL_Buffer b;
    size_t n, all = 0;

    luaL_buffinit(L, &b);
    do {
        char *to = luaL_prepbuffer(&b);

        n = fread(to, 1, LUAL_BUFFERSIZE, stdin);
        luaL_addsize(&b, n);
        all += n;
    } while (n == LUAL_BUFFERSIZE && all < MAX_STDIN);
    luaL_pushresult(&b);
}

/* Loads the text. Skips a first line that begins with #, as luaL_loadfile does. */
static int load_stdin(lua_State *L)
{
    const char *s;
    size_t n;

    push_stdin(L);
    if (ferror(stdin)) {
        lua_pushfstring(L, "cannot read standard input: %s", strerror(errno));
        return LUA_ERRFILE;
    }
    s = lua_tolstring(L, -1, &n);
    while (n && *s == '#' && s[0] != '\n') {
        const char *nl = memchr(s, '\n', n);
        size_t skip = nl ? (size_t)(nl - s) : n;

        s += skip;
        n -= skip;
    }
    return luaL_loadbufferx(L, s, n, "=stdin", "t");
}

static void push_arg(lua_State *L, const script *s)
{
    lua_createtable(L, s->argc, 1);
    lua_pushstring(L, s->path ? s->path : "-");
    lua_rawseti(L, -2, 0);
    for (int i = 0; i < s->argc; i++) {
        lua_pushstring(L, s->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushvalue(L, -1);
    lua_setglobal(L, "arg");
}

/* Adds the cause to an error such as that of `ah.run { ... }.text` on nil: the error that was
 * returned with the nil. */
static void add_cause(lua_State *L)
{
    if (!strstr(lua_tostring(L, 1), "a nil value") ||
        lua_getfield(L, LUA_REGISTRYINDEX, AH_LAST_FAILURE) == LUA_TNIL)
        return;
    lua_pushfstring(L, "%s\nbefore that ah.run or ah.agent returned nil: %s", lua_tostring(L, 1),
                    lua_tostring(L, -1));
    lua_replace(L, 1);
    lua_settop(L, 1);
}

/* Adds a traceback to a text that the script's code raised. Error objects print themselves, a
 * script that could not be compiled has no frames, and the error of a task has a traceback
 * already. */
static int on_error(lua_State *L)
{
    if (ah_lua_of(L)->loaded && lua_type(L, 1) == LUA_TSTRING &&
        !strstr(lua_tostring(L, 1), "\nstack traceback:\n")) {
        add_cause(L);
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
    }
    return 1;
}

static int load(lua_State *L, const script *s)
{
    if (!s->text)
        return s->path ? luaL_loadfilex(L, s->path, "t") : load_stdin(L);
    lua_pushfstring(L, "@%s", s->path);
    return luaL_loadbufferx(L, s->text, s->len, lua_tostring(L, -1), "t");
}

/* Keeps the value that the script returned, on top of L: its tools, agents and models, or its
 * text. */
static void take_result(lua_State *L, ah_embed *e)
{
    ah_slice s = {NULL, 0};
    ah_text *t = NULL;

    ah_given_take(L, e, -1);
    if (lua_type(L, -1) == LUA_TSTRING)
        s.p = lua_tolstring(L, -1, &s.n);
    if (s.p && !(t = ah_text_new(&e->lua->mem, s)))
        ah_lua_raise_nomem(L);
    ah_text_set(&e->returned, t);
}

/* Replaces two results on top by the first. Raises the error of `return ah.agent { ... }` if that
 * returned nil and an error, so that the script fails. */
static void raise_returned(lua_State *L)
{
    if (lua_isnil(L, -2) && ah_lua_push_message(L, -1)) {
        lua_pop(L, 1);
        lua_error(L);
    }
    lua_pop(L, 1);
}

static int run_script(lua_State *L)
{
    const script *s = lua_touserdata(L, 1);
    int st;

    ah_text_set(&ah_lua_of(L)->embed->returned, NULL);
    lua_settop(L, 1);
    push_arg(L, s); /* script arg */
    if ((st = load(L, s)) == LUA_ERRFILE)
        return ah_lua_raise(L, AH_USAGE, "%s", lua_tostring(L, -1));
    if (st != LUA_OK)
        return lua_error(L);
    ah_lua_of(L)->loaded = true;
    luaL_checkstack(L, s->argc, "too many arguments to the script");
    for (int i = 0; i < s->argc; i++) /* the strings of arg: texts of programs are long */
        lua_rawgeti(L, 2, i + 1);
    lua_call(L, s->argc, 2);
    raise_returned(L);
    take_result(L, ah_lua_of(L)->embed);
    return 0;
}

/* (error, message by ah_lua_read_error) -- text of the error. A plain table would print as an
 * address. */
static int words_of(lua_State *L)
{
    if (lua_isstring(L, 1) || luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL)
        luaL_tolstring(L, 1, NULL);
    else
        lua_pushstring(L, lua_touserdata(L, 2));
    return 1;
}

/* Keeps the error on top of L (popped) with its full text, and returns its status. */
static ah_status keep_error(ah_embed *e, lua_State *L)
{
    ah_lua *h = e->lua;
    ah_text *words;
    bool printed;
    ah_slice s;
    ah_err err;

    ah_lua_read_error(L, -1, &err);
    lua_pushcfunction(L, words_of);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, err.message);
    printed = ah_lua_call(h, L, 2, 1, NULL) == AH_OK;
    if (printed)
        s.p = lua_tolstring(L, -1, &s.n);
    else
        s = ah_slice_of(err.message);
    err.message[strcspn(err.message, "\n")] = '\0'; /* the kept text has the traceback */
    ah_embed_fail(e, &err);
    if ((words = ah_text_new(&h->mem, s))) {
        words->len = ah_secrets_redact(&h->host->secrets, words->data, words->len);
        words->data[words->len] = '\0';
    }
    lua_pop(L, printed ? 1 : 0);
    ah_text_set(&e->words, words);
    return err.status;
}

static ah_status judge(ah_embed *e, lua_State *L, int st)
{
    ah_status status = st == LUA_OK ? AH_OK : keep_error(e, L);

    if (status == AH_USAGE && e->lua->loaded) /* an error in the script, not in the call */
        status = AH_INTERNAL;
    if (st == LUA_ERRMEM)
        status = AH_NOMEM;
    if (status != AH_OK)
        e->err.status = status;
    return status;
}

/* Calls f with the pointer. Scripts of a host with its own state run on the main thread, which
 * ah_cancel can interrupt. */
static ah_status call(ah_embed *e, const char *what, lua_CFunction f, void *ud)
{
    lua_State *L = e->attached ? e->lua->caller : e->lua->main;
    ah_status status = e->attached ? ah_embed_enter(e, what) : ah_embed_enter_top(e, what);
    ah_err err;

    if (status != AH_OK)
        return status;
    if (!lua_checkstack(L, 4))
        return ah_embed_fail(e, (ah_err_nomem(&err), &err));
    atomic_store(&e->thread, pthread_self());
    atomic_store(&e->scripting, !e->attached);
    e->lua->loaded = false;
    lua_pushcfunction(L, on_error);
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, ud);
    ah_watch_heed(e->lua, L, false);
    status = judge(e, L, lua_pcall(L, 1, 0, -3));
    lua_pop(L, 1);
    atomic_store(&e->scripting, false);
    return status;
}

static ah_status refuse_null(ah_host *host, const char *what, const char *name)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE, "%s: %s must not be NULL", what, name);
    return ah_embed_fail(ah_embed_of(host), &err);
}

AH_API ah_status ah_script(ah_host *host, const char *path, int argc, char **argv)
{
    script s = {.path = path && strcmp(path, "-") != 0 ? ah_lend_text(path) : NULL,
                .argc = argc,
                .argv = argv};

    if (!path || (argc > 0 && !argv))
        return refuse_null(host, "ah_script", path ? "argv" : "path");
    return call(ah_embed_of(host), "ah_script", run_script, &s);
}

AH_API ah_status ah_load(ah_host *host, const char *name, const char *text, size_t len, int argc,
                         char **argv)
{
    script s = {.path = name ? ah_lend_text(name) : "script",
                .text = text ? ah_lend((ah_slice){text, len}).p : "",
                .len = len,
                .argc = argc,
                .argv = argv};

    if ((!text && len > 0) || (argc > 0 && !argv))
        return refuse_null(host, "ah_load", argc > 0 && !argv ? "argv" : "text");
    return call(ah_embed_of(host), "ah_load", run_script, &s);
}

static int join(lua_State *L)
{
    ah_lua_of(L)->loaded = true;
    return ah_lua_join(L);
}

AH_API ah_status ah_join(ah_host *host)
{
    return call(ah_embed_of(host), "ah_join", join, NULL);
}

AH_API const char *ah_returned(const ah_host *host)
{
    const ah_embed *e = ah_embed_of(host);

    return e->returned ? e->returned->data : NULL;
}

/* -- facts ------------------------------------------------------------------------------------ */

AH_API const char *ah_version(void)
{
    return AH_VERSION;
}

static void put_providers(ah_buf *b)
{
    const ah_service *service;
    const char *name;

    for (size_t i = 0; (name = ah_provider_at(i, &service)) != NULL; i++)
        ah_buf_fmt(b, " %s", name);
    ah_buf_str(b, " " AH_CLAUDE " demo");
}

AH_API const char *ah_about(ah_host *host)
{
    ah_embed *e = ah_embed_of(host);
    ah_lua *h = e->lua;
    char pcre2[64], yaml[32];
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, &h->mem, MAX_WORDS);
    ah_buf_fmt(&b, "agenthost %s\n%s\nlibcurl %s\ntls %s\ncJSON %s\n", AH_VERSION, LUA_RELEASE,
               ah_http_version(), ah_http_tls(), ah_json_version());
    ah_buf_fmt(&b, "pcre2 %s\n", ah_schema_regex_version(pcre2, sizeof pcre2));
    ah_buf_fmt(&b, "libyaml %s\n", ah_yaml_version(yaml, sizeof yaml));
    ah_buf_fmt(&b, "libmicrohttpd %s\n", ah_server_version() ? ah_server_version() : "none");
    ah_buf_fmt(&b, "sqlite %s\n", ah_store_sqlite_version());
    ah_buf_str(&b, "providers");
    put_providers(&b);
    ah_buf_fmt(&b, "\nevents %s\n", ah_loop_kind());
    ah_buf_fmt(&b, "sandboxes%s%s%s\n", ah_sandbox_landlock() ? " landlock" : "",
               ah_sandbox_bubblewrap() ? " bubblewrap" : "",
               ah_sandbox_landlock() || ah_sandbox_bubblewrap() ? "" : " none");
    ah_text_from_buf(&b, "about", &t, NULL);
    ah_buf_clear(&b);
    ah_text_set(&e->about, t);
    return t ? t->data : "";
}
