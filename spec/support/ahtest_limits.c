/* Limits of a host that are too long for a spec to reach. They belong to the host of the
 * agenthost that was opened in this state, in whichever copy of the library. */
#include "lua/lua_state.h"
#include "support/ahtest.h"

/* work_limit(seconds): processor time for calls of tools without a timeout; returns the earlier
 * limit. */
static int work_limit(lua_State *L)
{
    ah_host *h = ah_lua_of(L)->host;
    int64_t before = h->work_ms;

    h->work_ms = ah_ms_of(luaL_checknumber(L, 1));
    lua_pushnumber(L, (double)before / 1000);
    return 1;
}

void ahtest_open_limits(lua_State *L)
{
    lua_pushcfunction(L, work_limit);
    lua_setfield(L, -2, "work_limit");
}
