/* Functions of the core for the library's own Lua (lua/agenthost): ah._raise, ah._check_list and
 * ah._list_fault. They raise errors in a script's values at the script's line and with the
 * nearest name. Functions for a single built-in tool are in files of their own. */
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_open.h"

/* ah._raise(message): raises an error of the script as `usage`, at the line of the script. */
static int raise_usage(lua_State *L)
{
    return ah_lua_raise(L, AH_USAGE, "%s", luaL_checkstring(L, 1));
}

/* ah._check_list(value, what): returns the number of values; raises if it is not a list. */
static int check_list(lua_State *L)
{
    lua_pushinteger(L, ah_lua_list_check(L, 1, luaL_checkstring(L, 2)));
    return 1;
}

/* ah._list_fault(value): the fault of the list, to be appended to its name, or nil. */
static int list_fault(lua_State *L)
{
    luaL_checkany(L, 1);
    if (!ah_lua_list_fault(L, 1))
        lua_pushnil(L);
    return 1;
}

void ah_lua_open_builtin(lua_State *L)
{
    static const luaL_Reg functions[] = {{"_raise", raise_usage},
                                         {"_check_list", check_list},
                                         {"_list_fault", list_fault},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
