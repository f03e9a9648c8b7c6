/* Front ends: delivers asks to the functions and the program that may respond for a person. An
 * offer belongs to its ask and ends with it; front ends run as tasks of the run that asks.
 * Callers: its floor. */
#ifndef AH_LUA_FRONT_H
#define AH_LUA_FRONT_H

#include "host/ask.h"
#include "lua/lua_state.h"

/* Asks the front ends of the ask's run, all at once. If there are none, or each has ended without a
 * response, asks those of the run around it, and so on, then the program if it takes asks
 * (ah_config.asks). If no responder is left, gives the ask up, now or later. */
void ah_lua_offer(ah_lua *h, ah_ask_item *ask);

/* Sets agent:on_ask and agent:respond, and what hooks need from runs (ah_lua_runs). After
 * ah_lua_open_agent. */
void ah_lua_open_front(lua_State *L);

#endif
