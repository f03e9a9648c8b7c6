/* Front ends: who is asked when a person is to respond. */
#ifndef AH_LUA_FRONT_H
#define AH_LUA_FRONT_H

#include "host/ask.h"
#include "lua/lua_agent.h"

/* Asks the front ends of the run of the ask, all at once; where it has none, or each has ended without
 * a response, those of the run around it, and so on; then the program, where it takes asks
 * (ah_config.asks). Where nobody is left who may respond, the ask is given up, now or later. */
void ah_lua_offer(ah_lua *h, ah_ask_item *ask);

/* `asks` of the table at idx. */
void ah_lua_fronts_read(lua_State *L, int idx, ah_lua_agent *a);
/* Makes a ask as `from` does. Raises when out of memory. */
void ah_lua_fronts_copy(lua_State *L, ah_lua_agent *a, const ah_lua_agent *from);

int ah_lua_agent_on_ask(lua_State *L);  /* agent:on_ask(function(ask)) */
int ah_lua_agent_respond(lua_State *L); /* agent:respond(id, value) */

#endif
