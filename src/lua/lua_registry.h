/* ah.registry: tools that a script keeps by name, for runs and by themselves (seed 004). */
#ifndef AH_LUA_REGISTRY_H
#define AH_LUA_REGISTRY_H

#include "lua/lua_agent.h"

/* The field `registry` of the table at 1: its tools are added to c, those it has picked in full; a
 * tool that is among them already is not added again. The agent at `agent` gets what is registered
 * later. Raises where the field is something else. */
void ah_lua_read_registry(lua_State *L, int agent, ah_changes *c);
/* The agent at idx uses the registry on top of the stack (popped; nil: none). */
void ah_lua_use_registry(lua_State *L, int idx);

void ah_lua_open_registry(lua_State *L); /* registry */

#endif
