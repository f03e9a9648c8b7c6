/* Calls whose handler had begun when their process ended, for a run that goes on (run/hooks.h:
 * lost, stop_lost): `on_lost` of the tool, a function of the script, runs as a task and finds out
 * what became of the call. Callers: its module. */
#ifndef AH_LUA_LOST_H
#define AH_LUA_LOST_H

#include "run/call.h"

/* ud: the ah_lua_hooks of the run. ah_call_found ends the search, once, unless the second was
 * called. */
void ah_lua_find_lost(void *ud, ah_call *call, ah_slice key, ah_slice arguments);
void ah_lua_stop_lost(void *ud, ah_call *call);

#endif
