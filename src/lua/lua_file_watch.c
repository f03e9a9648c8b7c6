/* ah.watch: changes of files, passed to a function or to a wait. A watch with a function lasts
 * until it is closed, even without references; one without a function lasts as long as a script
 * holds it. */
#include <math.h>

#include "io/file_watch.h"
#include "lua/lua_task.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_open.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

static const char WATCH[] = "agenthost.watch", WAIT[] = "agenthost.watch_wait";

enum { MAX_PATH_BYTES = 4096, MAX_QUIET_S = 60, MAX_WATCHED = 1000000 };

typedef struct watch watch;

/* One wait for the next changes. */
typedef struct wait {
    ah_task_waiter waiter;
    ah_timer timer;
    watch *of; /* kept by the user value; NULL: closed, or the wait has ended */
} wait;

struct watch {
    ah_lua *lua;
    ah_file_watch *w; /* NULL: closed */
    ah_job job;       /* calls fn */
    wait *wait;       /* NULL: no wait */
    int fn, self;     /* references; LUA_NOREF: no function */
};

static watch *to_watch(lua_State *L)
{
    return luaL_checkudata(L, 1, WATCH);
}

/* -- its life ---------------------------------------------------------------------------------- */

static void forget_wait(wait *x)
{
    ah_timer_unset(&x->timer);
    if (x->of)
        x->of->wait = NULL;
    x->of = NULL;
}

static void stop_waiting(ah_task_waiter *waiter)
{
    forget_wait((wait *)(void *)((char *)waiter - offsetof(wait, waiter)));
}

static int wait_gc(lua_State *L)
{
    forget_wait(luaL_checkudata(L, 1, WAIT));
    return ah_lua_retire(L);
}

static void end_wait(wait *x)
{
    if (!x)
        return;
    forget_wait(x);
    ah_task_waiter_done(&x->waiter);
}

static void clear_watch(watch *w)
{
    ah_file_watch_free(w->w);
    w->w = NULL;
    ah_job_cancel(&w->job);
    ah_lua_unref(w->lua, &w->fn);
    ah_lua_unref(w->lua, &w->self);
}

static int watch_close(lua_State *L)
{
    watch *w = to_watch(L);

    clear_watch(w);
    end_wait(w->wait);
    return 0;
}

/* A waiter keeps its watch, so a wait is left only if the state is being closed. */
static int watch_gc(lua_State *L)
{
    watch *w = to_watch(L);

    if (w->wait)
        forget_wait(w->wait);
    clear_watch(w);
    return ah_lua_retire(L);
}

static int watch_tostring(lua_State *L)
{
    lua_pushstring(L, to_watch(L)->w ? "watch" : "watch (closed)");
    return 1;
}

/* -- changes ----------------------------------------------------------------------------------- */

static void push_change(lua_State *L, const ah_file_change *c)
{
    static const char *const kinds[] = {"created", "changed", "removed", "moved", "overflow"};

    lua_createtable(L, 0, 3);
    lua_pushstring(L, kinds[c->kind]);
    lua_setfield(L, -2, "kind");
    lua_pushlstring(L, c->path->data, c->path->len);
    lua_setfield(L, -2, "path");
    if (c->from) {
        lua_pushlstring(L, c->from->data, c->from->len);
        lua_setfield(L, -2, "from");
    }
}

/* -- list    of the changes, which are then removed from the watch */
static void push_changes(lua_State *L, ah_file_watch *w)
{
    const ah_file_change *list;
    ah_err err;
    size_t n;

    if (ah_file_watch_batch(w, &list, &n, &err) != AH_OK)
        ah_lua_raise_nomem(L);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        push_change(L, &list[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    ah_file_watch_take(w);
}

/* (watch): calls its function. */
static int call_fn(lua_State *L)
{
    watch *w = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, w->self); /* the function may close the watch */
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->fn);
    push_changes(L, w->w);
    lua_call(L, 1, 0);
    return 0;
}

/* Calls the watch's function with the changes. If there is no memory for their list, they are lost,
 * and the warning says that the function failed. */
static void on_job(ah_job *job)
{
    watch *w = (watch *)(void *)((char *)job - offsetof(watch, job));
    ah_lua *h = w->lua;
    lua_State *L = h->caller;
    char where[AH_PLACE] = "?";
    ah_err err;

    if (!lua_checkstack(L, 3))
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->fn);
    ah_lua_defined(L, -1, where, sizeof where);
    lua_pop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->self); /* keeps the watch while its function runs */
    lua_pushcfunction(L, call_fn);
    lua_pushlightuserdata(L, w);
    if (ah_lua_call_as(h, AH_CALLEE_OBSERVER, L, 1, 0, &err) != AH_OK)
        ah_log_put(&h->host->log, AH_LOG_WARNING, "the function of ah.watch (%s) failed: %s", where,
                   err.message);
    if (w->w && ah_file_watch_ready(w->w))
        ah_file_watch_take(w->w);
    if (w->w && ah_file_watch_ended(w->w))
        clear_watch(w);
    lua_pop(L, 1);
}

static void on_news(void *ud, ah_file_watch *of)
{
    watch *w = ud;

    (void)of;
    if (w->fn != LUA_NOREF)
        ah_job_post(w->lua->host, &w->job);
    else
        end_wait(w->wait);
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void on_time(ah_timer *timer)
{
    end_wait((wait *)(void *)((char *)timer - offsetof(wait, timer)));
}

/* -- list, or nil if the watch is closed or has ended, or the time is over */
static int push_next(lua_State *L, watch *w)
{
    if (!w->w || !ah_file_watch_ready(w->w)) {
        lua_pushnil(L);
        return 1;
    }
    push_changes(L, w->w);
    return 1;
}

static int waited(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    return push_next(L, to_watch(L));
}

static double seconds_at(lua_State *L, int idx)
{
    double s = HUGE_VAL;

    if (!lua_isnoneornil(L, idx)) {
        if (lua_type(L, idx) != LUA_TNUMBER || !((s = lua_tonumber(L, idx)) >= 0))
            ah_lua_raise(L, AH_USAGE,
                         "watch:next: the timeout must be a number of seconds, 0 or more");
    }
    return s;
}

/* (watch) -- watch wait */
static wait *push_wait(lua_State *L)
{
    wait *x = lua_newuserdatauv(L, sizeof *x, 1);

    *x = (wait){.waiter.leave = stop_waiting, .timer.fn = on_time};
    luaL_setmetatable(L, WAIT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return x;
}

/* watch:next(timeout): waits for changes. */
static int watch_next(lua_State *L)
{
    watch *w = to_watch(L);
    double timeout = seconds_at(L, 2);
    ah_loop *loop = w->lua->host->loop;
    wait *x;

    if (w->fn != LUA_NOREF)
        return ah_lua_raise(L, AH_USAGE,
                            "watch:next: this watch calls its function; make one without a "
                            "function to wait for changes");
    if (w->wait)
        return ah_lua_raise(L, AH_USAGE, "watch:next: another task waits for this watch already");
    if (!w->w || ah_file_watch_ready(w->w) || ah_file_watch_ended(w->w) || timeout <= 0)
        return push_next(L, w);
    lua_settop(L, 1);
    ah_lua_can_await(L);
    x = push_wait(L);
    ah_task_waiter_keep(L, &x->waiter);
    x->of = w;
    w->wait = x;
    if (timeout < 1e9)
        ah_timer_set(loop, &x->timer, ah_loop_now(loop) + ah_ms_of(timeout));
    return ah_lua_await(L, &x->waiter, 0, waited);
}

/* watch:changes(): for changes in w:changes() do */
static int watch_changes(lua_State *L)
{
    to_watch(L);
    lua_pushcfunction(L, watch_next);
    lua_pushvalue(L, 1);
    return 2;
}

/* -- ah.watch ---------------------------------------------------------------------------------- */

static const char *path_at(lua_State *L, int idx)
{
    size_t n;
    const char *s;

    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "ah.watch: the path must be a string, found %s",
                     lua_isnone(L, idx) ? "nothing" : luaL_typename(L, idx));
    s = lua_tolstring(L, idx, &n);
    if (n == 0 || n >= MAX_PATH_BYTES || memchr(s, '\0', n))
        ah_lua_raise(L, AH_USAGE,
                     "ah.watch: the path must have 1 to %d bytes, and no NUL among them",
                     MAX_PATH_BYTES - 1);
    return s;
}

static const ah_option watch_rows[] = {
    {.name = "recursive",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(ah_file_watch_config, recursive),
     .doc = "watches everything below a folder, including later entries. Links are not followed"},
    {.name = "quiet",
     .kinds = AH_OPT_NUMBER,
     .most = MAX_QUIET_S,
     .otherwise = "0.05",
     .unit = "seconds",
     .to = AH_TO_MS(ah_file_watch_config, quiet_ms),
     .doc =
         "a batch is delivered after this time without changes, and after a second at the latest"},
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = MAX_WATCHED,
     .otherwise = "50000",
     .to = AH_TO_SIZE(ah_file_watch_config, max),
     .doc = "largest number of files and folders to watch"},
    {0},
};
const ah_subject ah_subject_watch = {
    .what = "ah.watch", .type = "ah.WatchOptions", .row = watch_rows};

static void read_options(lua_State *L, int idx, ah_file_watch_config *cfg)
{
    if (lua_isnoneornil(L, idx))
        return;
    if (!lua_istable(L, idx))
        ah_lua_raise(L, AH_USAGE, "ah.watch: the options must be a table, found %s",
                     luaL_typename(L, idx));
    ah_options_read(L, idx, &ah_subject_watch, cfg);
}

/* -- watch */
static watch *push_watch(lua_State *L)
{
    watch *w = lua_newuserdatauv(L, sizeof *w, 0);

    *w = (watch){.lua = ah_lua_of(L), .job.fn = on_job, .fn = LUA_NOREF, .self = LUA_NOREF};
    luaL_setmetatable(L, WATCH);
    return w;
}

/* (path, fn, options, watch): a watch with a function keeps itself. */
static void keep_fn(lua_State *L, watch *w)
{
    lua_pushvalue(L, 2);
    w->fn = ah_lua_ref(L);
    lua_pushvalue(L, -1);
    w->self = ah_lua_ref(L);
}

/* ah.watch(path, fn, { recursive, quiet, max }): a watch, or nil and an error. */
static int new_watch(lua_State *L)
{
    ah_file_watch_config cfg = {.path = path_at(L, 1),
                                .max = AH_FILE_WATCH_MAX,
                                .quiet_ms = AH_FILE_WATCH_QUIET_MS,
                                .news = on_news};
    ah_status st;
    watch *w;
    ah_err err;

    lua_settop(L, 3);
    if (!lua_isnil(L, 2) && !lua_isfunction(L, 2))
        ah_lua_raise(
            L, AH_USAGE,
            "ah.watch: the second argument must be a function(changes), or nil to wait for "
            "changes with watch:next; found %s",
            luaL_typename(L, 2));
    read_options(L, 3, &cfg);
    cfg.ud = w = push_watch(L);
    st = ah_file_watch_open(&w->lua->mem, w->lua->host->loop, &cfg, &w->w, &err);
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (st != AH_OK) {
        lua_pushnil(L);
        ah_lua_push_error(L, &err);
        return 2;
    }
    if (lua_isfunction(L, 2))
        keep_fn(L, w);
    return 1;
}

void ah_lua_open_changes(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", watch_gc}, {"__close", watch_close}, {"__tostring", watch_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"next", watch_next}, {"changes", watch_changes}, {"close", watch_close}, {NULL, NULL}};
    static const luaL_Reg wait_meta[] = {{"__gc", wait_gc}, {NULL, NULL}};

    luaL_newmetatable(L, WAIT);
    luaL_setfuncs(L, wait_meta, 0);
    lua_pop(L, 1);
    luaL_newmetatable(L, WATCH);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "watch");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_watch);
    lua_setfield(L, -2, "watch");
}
