/* What the built-in tools (lua/agenthost/builtin) need of the core: ah._raise, ah._check_fields,
 * so that a mistake in their options is told at the script's line and with the nearest name.
 * What a single one of them needs is in a file of its own. */
#include "lua/lua_host.h"

enum { MAX_KNOWN = 64 };

/* ah._raise(message): a mistake of the script, raised as `usage` at its line. */
static int raise_usage(lua_State *L)
{
    return ah_lua_raise(L, AH_USAGE, "%s", luaL_checkstring(L, 1));
}

/* ah._check_fields(table, what, { names }): raises for a key that is none of the names. */
static int check_fields(lua_State *L)
{
    const char *known[MAX_KNOWN + 1];
    const char *what = luaL_checkstring(L, 2);
    size_t n = lua_rawlen(L, 3);

    luaL_argcheck(L, n <= MAX_KNOWN, 3, "too many names");
    luaL_checkstack(L, MAX_KNOWN + 4, what);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        known[i] = luaL_checkstring(L, -1); /* held by the list */
    }
    known[n] = NULL;
    ah_fields_check(L, 1, what, known, false);
    return 0;
}

void ah_lua_open_builtin(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"_raise", raise_usage}, {"_check_fields", check_fields}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
