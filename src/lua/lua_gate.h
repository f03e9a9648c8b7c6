/* The policies of the whole program. */
#ifndef AH_LUA_GATE_H
#define AH_LUA_GATE_H

#include "lua/lua_state.h"
#include "run/hooks.h"

/* The hooks of ah.gate, valid as long as the state; NULL: ah.gate was not called. */
const ah_hooks *ah_lua_gate(const ah_lua *h);

void ah_lua_open_gate(lua_State *L); /* gate: into the table on top */

#endif
