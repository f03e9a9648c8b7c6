/* The embedding door: include/agenthost.h. A host with a Lua state of its own. */
#include <errno.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#include "agenthost_lua.h"
#include "base/json.h"
#include "lua/lua_fence.h"
#include "model/schema.h"

enum { MAX_WORDS = 64 << 10, MAX_STDIN = 64 << 20 };

/* -- life ------------------------------------------------------------------------------- */

/* A host's allocator for Lua. The contract of ah_realloc_fn has no old size. */
static void *lua_realloc(void *ud, void *ptr, size_t old, size_t size)
{
    const ah_mem *m = ud;

    (void)old;
    if (size)
        return ah_resize(m, ptr, size);
    ah_free(m, ptr);
    return NULL;
}

/* os.exit as Lua has it; the watcher is told first. */
static int leave(lua_State *L)
{
    const ah_watcher *w = &ah_lua_of(L)->host->watcher;
    int code = lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, EXIT_SUCCESS);

    if (w->leaving)
        w->leaving(w->ud, code);
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

static int set_up(lua_State *L)
{
    const ah_config *cfg = lua_touserdata(L, 1);
    const ah_mem *mem = lua_touserdata(L, 2);
    ah_lua *h = ah_lua_host(L, mem);

    if (cfg && cfg->watcher)
        h->host->watcher = *cfg->watcher;
    if (cfg && cfg->log) {
        h->host->log.fn = cfg->log;
        h->host->log.ud = cfg->log_ud;
        h->host->log.level = cfg->log_level;
    }
    if (cfg && cfg->model && !(h->model = ah_text_new(mem, ah_slice_of(cfg->model))))
        return ah_lua_raise_nomem(L);
    luaL_openlibs(L);
    watch_exit(L);
    ah_lua_guard_exit(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_agenthost);
    lua_setfield(L, -2, "agenthost");
    return 0;
}

AH_API ah_status ah_open(const ah_config *cfg, ah_host **out)
{
    ah_mem m = cfg && cfg->alloc ? (ah_mem){cfg->alloc, cfg->alloc_ud} : ah_mem_libc;
    ah_mem *mem = ah_resize(&m, NULL, sizeof *mem); /* outlives the Lua state */
    lua_State *L;
    int st;

    if (!mem)
        return AH_NOMEM;
    *mem = m;
    if (!(L = lua_newstate(lua_realloc, mem))) {
        ah_free(&m, mem);
        return AH_NOMEM;
    }
    lua_pushcfunction(L, set_up);
    lua_pushlightuserdata(L, (void *)(uintptr_t)cfg);
    lua_pushlightuserdata(L, mem);
    if ((st = lua_pcall(L, 2, 0, 0)) != LUA_OK) {
        lua_close(L);
        ah_free(&m, mem);
        return st == LUA_ERRMEM ? AH_NOMEM : AH_INTERNAL;
    }
    ah_lua_of(L)->own = mem;
    *out = ah_lua_of(L)->host;
    return AH_OK;
}

AH_API void ah_close(ah_host *host)
{
    ah_lua *h = host ? host->owner : NULL;
    ah_mem *mem, m;

    if (!h || !h->own)
        return;
    mem = h->own;
    m = *mem;
    lua_close(h->main);
    ah_free(&m, mem);
}

/* -- scripts ------------------------------------------------------------------------------ */

typedef struct script {
    const char *path;  /* NULL: standard input */
    const char *text;  /* of ah_eval, NULL: of the path; its name is the path */
    bool wants_result; /* the first one, if a string */
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

/* Loads the text; a first line that begins with # is skipped, as luaL_loadfile does. */
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

/* arg[0]: a text's name goes without its mark. */
static const char *name_of(const script *s)
{
    if (!s->path)
        return "-";
    return s->path + (s->text && *s->path);
}

static void set_arg(lua_State *L, const script *s)
{
    lua_createtable(L, s->argc, 1);
    lua_pushstring(L, name_of(s));
    lua_rawseti(L, -2, 0);
    for (int i = 0; i < s->argc; i++) {
        lua_pushstring(L, s->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setglobal(L, "arg");
}

/* Adds a traceback to a text that was raised by the script's code; objects print
 * themselves, and a script that could not be loaded has no frames to show. */
static int on_error(lua_State *L)
{
    if (ah_lua_of(L)->loaded && lua_type(L, 1) == LUA_TSTRING)
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
    return 1;
}

static int load(lua_State *L, const script *s)
{
    if (s->text)
        return luaL_loadbufferx(L, s->text, strlen(s->text), s->path, "t");
    return s->path ? luaL_loadfilex(L, s->path, "t") : load_stdin(L);
}

static int run_script(lua_State *L)
{
    const script *s = lua_touserdata(L, 1);
    int st;

    set_arg(L, s);
    if ((st = load(L, s)) == LUA_ERRFILE)
        return ah_lua_raise(L, AH_USAGE, "%s", lua_tostring(L, -1));
    if (st != LUA_OK)
        return lua_error(L);
    ah_lua_of(L)->loaded = true;
    luaL_checkstack(L, s->argc, "too many arguments to the script");
    for (int i = 0; i < s->argc; i++)
        lua_pushstring(L, s->argv[i]);
    lua_call(L, s->argc, s->wants_result);
    return s->wants_result;
}

static int words_of(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Keeps the words of the error on top of L (popped) and gives its status. */
static ah_status keep_error(ah_lua *h, lua_State *L)
{
    ah_text *words;
    ah_slice s;
    ah_err err;

    ah_lua_read_error(L, -1, &err);
    s = ah_slice_of(err.message);
    lua_pushcfunction(L, words_of);
    lua_insert(L, -2);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        s.p = lua_tolstring(L, -1, &s.n);
    if ((words = ah_text_new(&h->mem, s))) {
        words->len = ah_secrets_redact(&h->host->secrets, words->data, words->len);
        words->data[words->len] = '\0';
    }
    lua_pop(L, 1);
    ah_text_set(&h->errmsg, words);
    return err.status;
}

/* Keeps the result on top of L (popped); NULL in h->errmsg where it is no string. */
static ah_status keep_result(ah_lua *h, lua_State *L)
{
    ah_slice s = {NULL, 0};
    ah_text *t = NULL;

    if (lua_type(L, -1) == LUA_TSTRING)
        s.p = lua_tolstring(L, -1, &s.n);
    if (s.p)
        t = ah_text_new(&h->mem, s);
    lua_pop(L, 1);
    ah_text_set(&h->errmsg, t);
    return s.p && !t ? AH_NOMEM : AH_OK;
}

static ah_status run(ah_lua *h, script *s)
{
    lua_State *L = h->main;
    ah_status status = AH_OK;
    int st;

    if (!lua_checkstack(L, 4))
        return AH_NOMEM;
    h->loaded = false;
    lua_pushcfunction(L, on_error);
    lua_pushcfunction(L, run_script);
    lua_pushlightuserdata(L, s);
    st = lua_pcall(L, 1, s->wants_result, -3);
    if (st != LUA_OK)
        status = keep_error(h, L);
    else if (s->wants_result)
        status = keep_result(h, L);
    if (status == AH_USAGE && h->loaded) /* a mistake in the script, not in how it was called */
        status = AH_INTERNAL;
    lua_pop(L, 1);
    return st == LUA_ERRMEM ? AH_NOMEM : status;
}

AH_API ah_status ah_script(ah_host *host, const char *path, int argc, char **argv)
{
    script s = {.path = strcmp(path, "-") == 0 ? NULL : path, .argc = argc, .argv = argv};

    return run(host->owner, &s);
}

AH_API ah_status ah_eval(ah_host *host, const char *name, const char *text, int argc, char **argv,
                         const char **result)
{
    script s = {.path = name, .text = text, .wants_result = result != NULL, .argc = argc, .argv = argv};
    ah_lua *h = host->owner;
    ah_status st = run(h, &s);

    if (result && st == AH_OK)
        *result = h->errmsg ? h->errmsg->data : NULL;
    return st;
}

AH_API const char *ah_errmsg(const ah_host *host)
{
    const ah_lua *h = host->owner;

    return h->errmsg ? h->errmsg->data : "out of memory";
}

/* -- cancelling ------------------------------------------------------------------------------ */

static void interrupt(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    luaL_error(L, "interrupted");
}

/* Inside a drive the runs are cancelled; outside, a hook stops the script's own code, as
 * the stock interpreter does it (lua_sethook may be called from a signal handler). */
AH_API void ah_cancel(ah_host *host)
{
    ah_lua *h = host->owner;

    if (host->depth == 0)
        lua_sethook(h->main, interrupt, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
    ah_host_cancel(host);
}

/* -- what it is ------------------------------------------------------------------------------- */

AH_API const char *ah_version(void)
{
    return AH_VERSION;
}

AH_API const char *ah_about(ah_host *host)
{
    ah_lua *h = host->owner;
    char pcre2[64];
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, &h->mem, MAX_WORDS);
    ah_buf_fmt(&b, "agenthost %s\n%s\nlibcurl %s\ncJSON %s\n", AH_VERSION, LUA_RELEASE,
               ah_http_version(), ah_json_version());
    ah_buf_fmt(&b, "pcre2 %s\n", ah_schema_regex_version(pcre2, sizeof pcre2));
    ah_buf_fmt(&b, "providers openai demo\nevents %s\n", ah_loop_kind());
    ah_text_from_buf(&b, "about", &t, NULL);
    ah_buf_clear(&b);
    ah_text_set(&h->errmsg, t);
    return t ? t->data : "";
}
