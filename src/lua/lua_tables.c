/* ah.state: tables by name, which outlive a reload of the script. The registry of the Lua state
 * keeps them. */
#include "lua/lua_error.h"
#include "lua/lua_open.h"

static const char TABLES[] = "agenthost.state"; /* registry: the tables by name */

/* ah.state(name): the table of this name, which is empty at first. */
static int state(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TSTRING)
        return ah_lua_raise(L, AH_USAGE, "ah.state: the name must be a string, found %s",
                            luaL_typename(L, 1));
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, TABLES); /* -- name tables */
    lua_pushvalue(L, 1);
    if (lua_rawget(L, 2) != LUA_TNIL)
        return 1;
    lua_newtable(L);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, 2);
    return 1;
}

void ah_lua_open_tables(lua_State *L)
{
    lua_pushcfunction(L, state);
    lua_setfield(L, -2, "state");
}
