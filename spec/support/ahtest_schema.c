/* ahtest: facts of schemas that scripts cannot see.
 *
 *   schemas()   -> number of schemas in the host; equal ones count once */
#include "lua/lua_state.h"
#include "support/ahtest.h"

static int schemas(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ah_lua_of(L)->host->schemas.n);
    return 1;
}

void ahtest_open_schema(lua_State *L)
{
    static const luaL_Reg functions[] = {{"schemas", schemas}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
