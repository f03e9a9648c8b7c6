/* Steps of durable handlers for Lua. Functions that reach outside ask ah_lua_durable first; in a
 * durable handler they go through lua/agenthost/tasks/steps.lua, which records what they get, or
 * gives what is recorded. Inside of a step they work as everywhere else. Steps belong to their
 * call (run/step.h); an object of a step is valid as long as the handler.
 * Callers: its floor. */
#ifndef AH_LUA_STEP_H
#define AH_LUA_STEP_H

#include "lua/lua_task.h"

/* True in the code of a durable handler, or of a task that it has started, outside of all steps. */
bool ah_lua_durable(lua_State *L);
/* Calls the function `name` of steps.lua with `plain` and the arguments on the stack; used as
 * `return ah_lua_through_step(...)`. */
int ah_lua_through_step(lua_State *L, const char *name, lua_CFunction plain);
/* Raises AH_USAGE in a durable handler outside of a step: `what` cannot be repeated. */
void ah_lua_no_step(lua_State *L, const char *what);
/* True in the code of a handler that is replayed, or of its tasks. */
bool ah_lua_replays(lua_State *L);
/* Raises AH_NOT_RECORDED in such code: no record says what `what` gave. */
void ah_lua_no_replay(lua_State *L, const char *what);
/* Returns the overlay for a run that begins here: `o`, or in a step one of its own. */
ah_overlay *ah_lua_step_overlay(lua_State *L, ah_overlay *o);

/* Returns the key of the step at idx, borrowed as long as its call; NULL: it is not a step. */
const ah_text *ah_lua_step_key(lua_State *L, int idx);

/* Gives the task t, which code of `by` starts (NULL: of none), its path. Raises when out of
 * memory. */
void ah_lua_step_child(lua_State *L, ah_task *by, ah_task *t);
/* The task is cancelled: its steps need not be asked for. */
void ah_lua_step_gone(const ah_task *t);

void ah_lua_open_step(lua_State *L); /* sets _step, _outside and other helpers of steps.lua */

#endif
