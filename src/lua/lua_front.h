/* Front ends: who is asked when a person is to respond. */
#ifndef AH_LUA_FRONT_H
#define AH_LUA_FRONT_H

#include "host/ask.h"
#include "lua/lua_state.h"

/* Asks the front ends of the run of the ask, all at once; where it has none, or each has ended
 * without a response, those of the run around it, and so on; then the program, where it takes asks
 * (ah_config.asks). Where nobody is left who may respond, the ask is given up, now or later. */
void ah_lua_offer(ah_lua *h, ah_ask_item *ask);

/* agent:on_ask, agent:respond; what hooks need of those who run them. After ah_lua_open_agent. */
void ah_lua_open_front(lua_State *L);

#endif
