/* coroutine.resume, wrap and close as Lua has them, but known to the watches: the hook that reads
 * the clock belongs to one thread, and these functions enter others. debug.sethook does nothing
 * under a watch, since it would remove the watch's hook. */
#include <lualib.h>

#include "lua/lua_watch.h"

/* Closing a coroutine in another's __close takes C stack that Lua 5.4 does not count. */
enum { MAX_CLOSES = 160 };

static const char GUARDED[] = "agenthost.guarded"; /* registry: set once the guards are in place */

/* Upvalue 1 of each function. The host may be finalized before the last call of them. */
static ah_lua *host_of(lua_State *L)
{
    ah_lua *h = lua_touserdata(L, lua_upvalueindex(1));

    return h->host ? h : NULL;
}

static lua_State *check_coroutine(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);

    luaL_argexpected(L, co, 1, "thread");
    return co;
}

/* Resumes co with the values on top of L. Pushes the results and returns their number, or pushes
 * the error and returns -1. */
static int resume(lua_State *L, lua_State *co, int nargs)
{
    ah_lua *h = host_of(L);
    int status, n = 0;

    if (!lua_checkstack(co, nargs)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    if (h)
        ah_watch_into(h, L, co);
    lua_xmove(L, co, nargs);
    status = lua_resume(co, L, nargs, &n);
    if (h)
        ah_watch_back(h, L);
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, n + 1)) {
        lua_pop(co, n);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, n);
    return n;
}

static int guarded_resume(lua_State *L)
{
    lua_State *co = check_coroutine(L);
    int n = resume(L, co, lua_gettop(L) - 1);

    lua_pushboolean(L, n >= 0);
    lua_insert(L, -(n >= 0 ? n : 1) - 1);
    return (n >= 0 ? n : 1) + 1;
}

static int reset(lua_State *L, lua_State *co)
{
    ah_lua *h = host_of(L);
    int status;

    if (h)
        ah_watch_into(h, L, co);
    status = lua_resetthread(co);
    if (h)
        ah_watch_back(h, L);
    return status;
}

/* Raises the coroutine's error again. A text gets the caller's position in front. */
static int raise_again(lua_State *L, lua_State *co)
{
    int status = lua_status(co);

    if (status != LUA_OK && status != LUA_YIELD) {
        status = reset(L, co);
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

/* Upvalue 2: the coroutine. */
static int wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(2));
    int n = resume(L, co, lua_gettop(L));

    return n >= 0 ? n : raise_again(L, co);
}

static int guarded_wrap(lua_State *L)
{
    lua_State *co;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushvalue(L, lua_upvalueindex(1));
    co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, wrapped, 2);
    return 1;
}

static const char *busy(lua_State *L, lua_State *co)
{
    lua_Debug ar;

    if (L == co)
        return "running";
    return lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar) ? "normal" : NULL;
}

static int guarded_close(lua_State *L)
{
    lua_State *co = check_coroutine(L);
    ah_lua *h = host_of(L);
    int status;

    if (busy(L, co))
        return luaL_error(L, "cannot close a %s coroutine", busy(L, co));
    if (h && h->closes >= MAX_CLOSES)
        return luaL_error(L, "C stack overflow (coroutines that close others in __close)");
    if (h)
        h->closes++;
    status = reset(L, co);
    if (h)
        h->closes--;
    lua_pushboolean(L, status == LUA_OK);
    if (status == LUA_OK)
        return 1;
    lua_xmove(co, L, 1);
    return 2;
}

/* Upvalue 2: debug.sethook. */
static int guarded_sethook(lua_State *L)
{
    ah_lua *h = host_of(L);

    if (h && h->watch)
        return 0;
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* -- library host -- library host  replaces the field if it is present */
static void guard(lua_State *L, const char *name, lua_CFunction f)
{
    if (lua_getfield(L, -2, name) == LUA_TFUNCTION) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_pushcclosure(L, f, 2);
        lua_setfield(L, -3, name);
    } else {
        lua_pop(L, 1);
    }
}

static void guard_library(lua_State *L, const char *library, const luaL_Reg *f)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, library) == LUA_TTABLE) {
        ah_lua_push_host(L);
        for (; f->name; f++)
            guard(L, f->name, f->func);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

void ah_lua_guard_threads(lua_State *L)
{
    static const luaL_Reg coroutine[] = {
        {"resume", guarded_resume}, {"wrap", guarded_wrap}, {"close", guarded_close}, {NULL, NULL}};
    static const luaL_Reg debug[] = {{"sethook", guarded_sethook}, {NULL, NULL}};

    luaL_checkstack(L, 8, "guards");
    if (lua_getfield(L, LUA_REGISTRYINDEX, GUARDED) == LUA_TNIL) {
        guard_library(L, LUA_COLIBNAME, coroutine);
        guard_library(L, LUA_DBLIBNAME, debug);
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, GUARDED);
    }
    lua_pop(L, 1);
}
