/* Loads modules of the Lua half (lua/agenthost), which is compiled in, and keeps the table of
 * agenthost in the registry. Callers: its floor. */
#ifndef AH_LUA_MODULES_H
#define AH_LUA_MODULES_H

#include <lua.h>

#include "base/err.h"

#define AH_LUA_LIBRARY "agenthost.module" /* registry: the table of agenthost */

/* Pushes a compiled-in module ("agenthost.providers.demo"), loaded on first use. On failure pushes
 * nothing. */
ah_status ah_lua_module(lua_State *L, const char *name, ah_err *err);

/* The same as Lua functions, name -> module: the first loads the module each time. */
int ah_lua_load_module(lua_State *L);
int ah_lua_load_module_once(lua_State *L);

/* From now on the compiled-in Lua sees copies of the present globals and standard libraries, so
 * changes that a script makes to its own do not affect it. Raises when out of memory. */
void ah_lua_keep_globals(lua_State *L);
/* Pushes the function of a compiled-in source ("agenthost.short"). Raises when out of memory. */
void ah_lua_push_chunk(lua_State *L, const char *name);

/* Pushes the table of agenthost. */
void ah_lua_push_library(lua_State *L);

#endif
