/* Tasks of no run: what the library's Lua half still does when nobody waits for it, such as a
 * goodbye to a process. */
#ifndef AH_LUA_LATER_H
#define AH_LUA_LATER_H

#include "lua/lua_state.h"

void ah_lua_open_later(lua_State *L); /* _later */

#endif
