/* Resources of runs (lua/agenthost/resources.lua), for the C that knows when runs and calls end. */
#ifndef AH_LUA_RESOURCES_H
#define AH_LUA_RESOURCES_H

#include "lua/lua_now.h"

/* Pushes the definitions of `resources` in the table at 1 and of the prompt of `b` (NULL: none);
 * nil where there are none. Raises. */
void ah_lua_push_bound(lua_State *L, ah_binding *b);
/* A reference to what one run has of the definitions on top (popped); LUA_NOREF for nil. Raises. */
int ah_lua_open_resources_of(lua_State *L);
/* For `setup`, with what one run has of them on top (popped). Pushes the resources as it sees them:
 * what it binds there takes part from now on, in that run. Raises. */
void ah_lua_push_own_resources(lua_State *L);
/* Pushes the definitions with what was bound; nil where there are none. Raises. */
void ah_lua_push_bound_of(lua_State *L);

/* Pushes ctx.resources, made when it is first asked for; ctx is at 1. */
void ah_lua_push_resources(lua_State *L, ah_ctx *c);
/* Pushes ctx.filesystem, or nil; ctx is at 1. */
void ah_lua_push_filesystem(lua_State *L, ah_ctx *c);
/* Pushes the file system of a run (its reference), or nil: also where it is made when it is first
 * asked for, and was not yet. Raises. */
void ah_lua_push_files(lua_State *L, int container);

void ah_lua_open_resources(lua_State *L); /* _fenced */

#endif
