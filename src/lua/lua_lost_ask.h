/* `on_lost = "ask"`: a person says what became of a call that was at work when its process ended.
 * The ask waits in the store if nothing in this process can respond. An ask of this kind owns
 * itself until it is closed or stopped. Callers: its module. */
#ifndef AH_LUA_LOST_ASK_H
#define AH_LUA_LOST_ASK_H

#include "lua/lua_state.h"
#include "run/call.h"

/* For ah_lua_runs. ah_call_found ends the ask, once, unless the second was called. */
void ah_lua_ask_lost(ah_lua *h, ah_call *call, ah_slice arguments);
void ah_lua_stop_ask_lost(ah_call *call);

#endif
