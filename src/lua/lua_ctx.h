/* ctx: the second argument of a handler. */
#ifndef AH_LUA_CTX_H
#define AH_LUA_CTX_H

#include <lua.h>

void ah_lua_open_ctx(lua_State *L); /* the metatable only */

#endif
