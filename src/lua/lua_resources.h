/* Resources of runs (lua/agenthost/resources.lua), for C code that knows when runs and calls end.
 * The resources of one run are a Lua value, held by a reference that the run owns and
 * ah_lua_close_resources releases. Callers: its floor. */
#ifndef AH_LUA_RESOURCES_H
#define AH_LUA_RESOURCES_H

#include "lua/lua_now.h"

/* Pushes the definitions of `resources` in the table at 1 and of the prompt of `b` (NULL: none);
 * nil if there are none. Raises. */
void ah_lua_push_bound(lua_State *L, ah_binding *b);
/* Returns a reference to a new run's resources, made from the definitions on top (popped);
 * LUA_NOREF for nil. Raises. */
int ah_lua_open_resources_of(lua_State *L);
/* For `setup`: replaces a run's resources on top by the view that `setup` gets. Resources that it
 * binds belong to that run from then on. Raises. */
void ah_lua_push_own_resources(lua_State *L);
/* Replaces a run's resources on top by the definitions, with those bound since; nil if there are
 * none. Raises. */
void ah_lua_push_bound_of(lua_State *L);

/* Pushes ctx.resources, made on first use; ctx is at 1. */
void ah_lua_push_resources(lua_State *L, ah_ctx *c);
/* Pushes ctx.filesystem, or nil; ctx is at 1. */
void ah_lua_push_filesystem(lua_State *L, ah_ctx *c);
/* Pushes the file system of a run (given by its reference); nil if it has none, or one that is made
 * on first use and has not been made yet. Raises. */
void ah_lua_push_files(lua_State *L, int container);

void ah_lua_open_resources(lua_State *L); /* sets ah._fenced */

#endif
