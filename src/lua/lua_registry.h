/* ah.registry: tools that a script keeps by name, for runs and for direct calls (seed 004). The
 * object is a book (lua_book.h); an agent keeps the registry that it uses as a user value.
 * Callers: its floor. */
#ifndef AH_LUA_REGISTRY_H
#define AH_LUA_REGISTRY_H

#include "lua/lua_agent.h"

/* Reads the field `registry` of the table at 1: adds its tools to c, picked ones in full. A tool
 * that c already has is not added again. The agent at `agent` gets later registrations. Raises if
 * the field is something else. */
void ah_lua_read_registry(lua_State *L, int agent, ah_changes *c);
/* Makes the agent at idx use the registry on top of the stack (popped; nil: none). */
void ah_lua_use_registry(lua_State *L, int idx);

void ah_lua_open_registry(lua_State *L); /* sets ah.registry */

#endif
