/* The gate (ah.gate): the policies of the whole program. Its hooks are in the registry of the Lua
 * state and never move; a second ah.gate replaces their contents. Callers: its floor. */
#ifndef AH_LUA_GATE_H
#define AH_LUA_GATE_H

#include "lua/lua_state.h"
#include "run/hooks.h"

/* Returns the hooks of ah.gate, valid as long as the state; NULL: ah.gate was not called. */
const ah_hooks *ah_lua_gate(const ah_lua *h);

void ah_lua_open_gate(lua_State *L); /* sets ah.gate in the table on top */

#endif
