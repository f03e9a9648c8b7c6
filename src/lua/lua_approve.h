/* Approvals of calls, as a run asks for them (run/hooks.h: ask, stop_asking). */
#ifndef AH_LUA_APPROVE_H
#define AH_LUA_APPROVE_H

#include "run/call.h"

/* ud: the ah_lua_hooks of the run. ah_call_approved ends it. */
void ah_lua_approve(void *ud, ah_call *call, ah_slice why);
void ah_lua_stop_approving(void *ud, ah_call *call);

#endif
