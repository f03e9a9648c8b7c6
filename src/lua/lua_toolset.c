/* Finds toolsets among the tools of a run or an agent. */
#include "lua/lua_toolset.h"

#include "lua/lua_error.h"
#include "lua/lua_modules.h"

static bool is_toolset(lua_State *L, int idx)
{
    bool is = lua_istable(L, idx) && luaL_getmetafield(L, idx, "__toolset") != LUA_TNIL;

    if (is)
        lua_pop(L, 1);
    return is;
}

static bool has_toolsets(lua_State *L)
{
    int top = lua_gettop(L);
    bool has = false;

    if (lua_istable(L, 1) && lua_getfield(L, 1, "tools") == LUA_TTABLE)
        for (lua_Integer i = 1; !has && lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
            has = is_toolset(L, -1);
            lua_pop(L, 1);
        }
    lua_settop(L, top);
    return has;
}

void ah_lua_attach_toolsets(lua_State *L)
{
    int top = lua_gettop(L);
    ah_err err;

    if (!has_toolsets(L))
        return;
    if (ah_lua_module(L, "agenthost.toolsets", &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, "attach");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    lua_replace(L, 1);
    lua_settop(L, top);
}
