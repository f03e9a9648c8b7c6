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

enum { MOST_LISTS = 16 /* as of toolsets.lua */ };

/* True if the list on top (popped), or a list in it, has a toolset. */
static bool holds_toolset(lua_State *L, int depth)
{
    bool holds = false;

    luaL_checkstack(L, 4, "lists of tools");
    for (lua_Integer i = 1; !holds && lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
        if (is_toolset(L, -1)) {
            holds = true;
            lua_pop(L, 1);
        } else if (lua_istable(L, -1) && depth < MOST_LISTS)
            holds = holds_toolset(L, depth + 1);
        else
            lua_pop(L, 1);
    lua_pop(L, holds ? 1 : 2);
    return holds;
}

static bool has_toolsets(lua_State *L)
{
    int top = lua_gettop(L);
    bool has =
        lua_istable(L, 1) && lua_getfield(L, 1, "tools") == LUA_TTABLE && holds_toolset(L, 1);

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
