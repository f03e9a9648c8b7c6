/* The host of a main Lua state; the protected call, which logs a traceback; ah.log. lua_open.c
 * builds the library's table. */
#include "lua/lua_host.h"

#include "base/lent.h"
#include "lua/lua_error.h"
#include "lua/lua_memory.h"
#include "lua/lua_task.h"
#include "lua/lua_watch.h"

static const char HOST[] = "agenthost.host"; /* the metatable */

static int host_gc(lua_State *L)
{
    ah_lua *h = luaL_checkudata(L, 1, HOST);

    if (h->embed)
        h->program->free(h->embed);
    h->embed = NULL;
    if (h->children)
        h->end_children(h);
    while (h->held)
        h->held->drop(h->held);
    ah_tasks_forget(h);
    ah_host_free(h->host);
    h->host = NULL;
    ah_text_set(&h->model, NULL);
    ah_models_free(h->models);
    h->models = NULL;
    ah_free(&h->mem, h->name);
    h->names = (ah_staged_names){0};
    return 0;
}

static lua_State *main_thread(lua_State *L)
{
    lua_State *main;

    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main;
}

/* Made before all other objects of ours, so that it is finalized last. */
static ah_lua *new_host(lua_State *L, const ah_mem *mem, const ah_config *cfg)
{
    static const luaL_Reg meta[] = {{"__gc", host_gc}, {NULL, NULL}};
    ah_lua *h = lua_newuserdatauv(L, sizeof *h, 1); /* -- h */
    ah_err err;

    *h = (ah_lua){.mem = *mem, .main = main_thread(L)};
    h->thread = h->main;
    luaL_newmetatable(L, HOST);
    luaL_setfuncs(L, meta, 0);
    lua_setmetatable(L, -2);
    h->caller = lua_newthread(L); /* -- h caller */
    lua_setiuservalue(L, -2, 1);
    if (!(h->models = ah_models_new(&h->mem)))
        ah_lua_raise_nomem(L);
    if (ah_host_new(&h->mem, cfg, &h->host, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    h->host->owner = h;
    h->interrupt = (ah_interrupt){ah_watch_interrupts, h};
    ah_lua_error_class(L);
    ah_lua_set_host(L);
    return h;
}

/* Raises for another copy of the library, whose structs may be of another version. */
ah_lua *ah_lua_host(lua_State *L, const ah_mem *mem, const ah_config *cfg)
{
    ah_lua *h;

    if (ah_lua_foreign(L))
        luaL_error(L,
                   "another copy of agenthost is open in this Lua state; this one is " AH_VERSION);
    h = ah_lua_of(L);
    return h ? h : new_host(L, mem, cfg);
}

void ah_lua_hold(ah_lua *h, ah_lua_object *o)
{
    o->next = h->held;
    o->link = &h->held;
    if (o->next)
        o->next->link = &o->next;
    h->held = o;
}

void ah_lua_let_go(ah_lua_object *o)
{
    if (!o->link)
        return;
    *o->link = o->next;
    if (o->next)
        o->next->link = o->link;
    o->link = NULL;
}

/* -- protected calls ---------------------------------------------------------------- */

/* True if Lua code, of a script or of the library, is running in L. */
static bool in_lua(lua_State *L)
{
    lua_Debug ar;

    for (int level = 0; lua_getstack(L, level, &ar); level++)
        if (lua_getinfo(L, "S", &ar) && *ar.what != 'C')
            return true;
    return false;
}

/* Keeps the error unchanged and logs its origin. An error that C raises without Lua around it has
 * no position that would help a script's author. */
static int on_error(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "error object";

    if (!in_lua(L))
        return 1;
    luaL_traceback(L, L, text, 1);
    ah_log_put(&h->host->log, AH_LOG_INFO, "%s", lua_tostring(L, -1));
    lua_settop(L, 1);
    return 1;
}

static int guard(lua_State *L)
{
    ah_lua_guard_threads(L);
    return 0;
}

/* Guards the thread functions of L. When out of memory, the next call tries again. */
static void guard_threads(ah_lua *h, lua_State *L)
{
    lua_pushcfunction(L, guard);
    if (lua_pcall(L, 0, 0, 0) == LUA_OK)
        h->guarded = true;
    else
        lua_pop(L, 1);
}

/* -- on_error f args    With `script`, a call that returns after its watch was over has failed as
 * well, because it caught the error that stopped it. Calls of our own functions are complete when
 * they return: only the code that they called has failed. */
static int call_watched(ah_lua *h, lua_State *L, int nargs, int nresults, bool script, ah_err *err)
{
    ah_watch w = {.of = h->host->serving, .work_ms = h->host->work_ms};
    ah_fence f = {.memory = AH_TOOL_MEMORY};
    int base = lua_gettop(L) - nargs - 1, st;

    if (!ah_lua_memory_of(h->main)) /* replacing an allocator costs more than most calls */
        w.fence = &f;
    else
        ah_fence_enter(h, &f);
    ah_watch_enter(h, &w, L);
    st = lua_pcall(L, nargs, nresults, base);
    ah_calling_out();
    ah_watch_leave(h, &w);
    ah_fence_leave(h, &f);
    if (st == LUA_OK && !(script && w.over))
        return LUA_OK;
    if (ah_watch_failed(&w, err) || ah_fence_failed(&f, st, err))
        return LUA_ERRERR;
    ah_lua_read_error(L, -1, err);
    if (st == LUA_ERRMEM)
        ah_err_nomem(err);
    return st;
}

static ah_status call(ah_lua *h, lua_State *L, int nargs, int nresults, bool script, ah_err *err)
{
    int base = lua_gettop(L) - nargs;
    ah_err own;

    err = err ? err : &own;
    if (!lua_checkstack(L, 8 + (nresults > 0 ? nresults : 0))) {
        lua_settop(L, base - 1);
        return ah_err_nomem(err);
    }
    if (!h->guarded)
        guard_threads(h, L);
    lua_pushcfunction(L, on_error); /* -- f args on_error */
    lua_insert(L, base);            /* -- on_error f args */
    if (call_watched(h, L, nargs, nresults, script, err) != LUA_OK) {
        lua_settop(L, base - 1);
        return err->status;
    }
    lua_remove(L, base);
    return AH_OK;
}

ah_status ah_lua_call(ah_lua *h, lua_State *L, int nargs, int nresults, ah_err *err)
{
    return call(h, L, nargs, nresults, false, err);
}

ah_status ah_lua_call_as(ah_lua *h, ah_callee as, lua_State *L, int nargs, int nresults,
                         ah_err *err)
{
    ah_callee outer = h->callee;
    ah_status st;

    h->callee = as;
    st = call(h, L, nargs, nresults, true, err);
    h->callee = outer;
    return st;
}

/* -- ah.log ---------------------------------------------------------------------------- */

static int log_put(lua_State *L)
{
    static const char *const levels[] = {"debug", "info", "warning", "error", NULL};
    const char *word = luaL_checkstring(L, 1), *text = luaL_checkstring(L, 2);

    for (int i = 0; levels[i]; i++)
        if (strcmp(word, levels[i]) == 0) {
            ah_log_put(&ah_lua_of(L)->host->log, (ah_log_level)i, "%s", text);
            return 0;
        }
    return ah_lua_raise(
        L, AH_USAGE, "ah.log: there is no level '%s'; there are debug, info, warning, error", word);
}

void ah_lua_open_log(lua_State *L)
{
    lua_pushcfunction(L, log_put);
    lua_setfield(L, -2, "log");
}
