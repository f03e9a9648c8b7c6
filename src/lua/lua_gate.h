/* The policies of the whole program. */
#ifndef AH_LUA_GATE_H
#define AH_LUA_GATE_H

#include "lua/lua_host.h"
#include "run/hooks.h"

/* What ah.gate said; NULL: nothing was. Good as long as the state. */
const ah_hooks *ah_lua_gate(const ah_lua *h);

void ah_lua_open_gate(lua_State *L); /* gate: into the table on top */

#endif
