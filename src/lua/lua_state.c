/* The host of a main Lua state, found through the registry. Another copy of this library in the
 * same state is recognised by the address of a string. */
#include "lua/lua_state.h"

static const char KEY[] = "agenthost.lua"; /* registry key of the host */
static const char COPY[] =
    "agenthost.copy"; /* registry key of its library copy: the address of this string */

void ah_lua_set_host(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)COPY);
    lua_setfield(L, LUA_REGISTRYINDEX, COPY);
    lua_setfield(L, LUA_REGISTRYINDEX, KEY);
}

bool ah_lua_foreign(lua_State *L)
{
    bool is = lua_getfield(L, LUA_REGISTRYINDEX, COPY) != LUA_TNIL && lua_touserdata(L, -1) != COPY;

    lua_pop(L, 1);
    return is;
}

void ah_lua_push_host(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, KEY);
}

static ah_lua *find(lua_State *L)
{
    ah_lua *h;

    ah_lua_push_host(L);
    h = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return h;
}

ah_lua *ah_lua_known(lua_State *L)
{
    ah_lua *h = lua_checkstack(L, 1) ? find(L) : NULL;

    return h && h->host ? h : NULL;
}

ah_lua *ah_lua_of(lua_State *L)
{
    ah_lua *h = find(L);

    if (h && !h->host)
        luaL_error(L,
                   "agenthost: the Lua state is being closed, nothing of it can be used any more");
    return h;
}

int ah_lua_retire(lua_State *L)
{
    lua_pushnil(L);
    lua_setmetatable(L, 1);
    return 0;
}

int ah_lua_ref(lua_State *L)
{
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

int ah_lua_copy_ref(lua_State *L, int ref)
{
    if (ref == LUA_NOREF)
        return ref;
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    return ah_lua_ref(L);
}

void ah_lua_unref(ah_lua *h, int *ref)
{
    if (*ref > 0)
        luaL_unref(h->main, LUA_REGISTRYINDEX, *ref);
    *ref = LUA_NOREF;
}

int ah_lua_raise_nomem(lua_State *L)
{
    lua_pushliteral(L, "not enough memory");
    return lua_error(L);
}
