/* Policies in Lua, called by a run (run/hooks.h: before, after). They are called, not resumed, so
 * they cannot wait. A policy that fails denies the call or blocks its result.
 * Callers: its module. */
#ifndef AH_LUA_POLICY_H
#define AH_LUA_POLICY_H

#include "lua/lua_state.h"
#include "run/run.h"

/* Replaces the list of n policies on top of L, each a function or a table { before, after, shadow,
 * name }, by a copy that the script cannot change. Raises, with `what` and the field in front. */
void ah_lua_read_policies(lua_State *L, const char *what, lua_Integer n);

/* ud: the ah_lua_hooks of the run. */
bool ah_lua_policy_before(void *ud, ah_run *of, const ah_call *call, size_t i, ah_ruling *out);
bool ah_lua_policy_after(void *ud, ah_run *of, const ah_call *call, size_t i, const ah_outcome *o,
                         ah_slice words, ah_ruling *out);

#endif
