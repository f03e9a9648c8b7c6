/* Modules of the Lua half (lua/agenthost), which is compiled in, and the table of agenthost
 * itself. */
#ifndef AH_LUA_MODULES_H
#define AH_LUA_MODULES_H

#include <lua.h>

#include "base/err.h"

#define AH_LUA_LIBRARY "agenthost.module" /* registry: the table of agenthost */

/* Pushes a compiled-in module ("agenthost.providers.demo"), loading it when it is first needed.
 * On failure nothing is pushed. */
ah_status ah_lua_module(lua_State *L, const char *name, ah_err *err);

/* The same as functions of Lua, name -> module: the first loads it each time. */
int ah_lua_load_module(lua_State *L);
int ah_lua_load_module_once(lua_State *L);

/* From now on the compiled-in Lua sees copies of the globals and standard libraries that there are:
 * what a script does to its own is of no matter to it. Raises when out of memory. */
void ah_lua_keep_globals(lua_State *L);
/* Pushes the function of a compiled-in source ("agenthost.short"). Raises when out of memory. */
void ah_lua_push_chunk(lua_State *L, const char *name);

/* Pushes the table of agenthost. */
void ah_lua_push_library(lua_State *L);

#endif
