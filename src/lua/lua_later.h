/* Tasks outside of all runs: work that the library's Lua half finishes in the background, such as
 * ending a process. The host owns these tasks and ends them when it is closed.
 * Callers: its floor. */
#ifndef AH_LUA_LATER_H
#define AH_LUA_LATER_H

#include "lua/lua_state.h"

void ah_lua_open_later(lua_State *L); /* sets ah._later */

#endif
