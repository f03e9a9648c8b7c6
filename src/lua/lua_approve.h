/* Approvals of calls for a run (run/hooks.h: ask, stop_asking). A pending approval owns its ask and
 * the task of `approve`. Its verdict reaches the run in a job, so ah_lua_approve does not call back
 * into the run, unless the ask cannot be opened: the call is then refused at once.
 * Callers: its module. */
#ifndef AH_LUA_APPROVE_H
#define AH_LUA_APPROVE_H

#include "run/call.h"

/* ud: the ah_lua_hooks of the run. ah_call_approved ends the approval. */
void ah_lua_approve(void *ud, ah_call *call, ah_slice why);
void ah_lua_stop_approving(void *ud, ah_call *call);

#endif
