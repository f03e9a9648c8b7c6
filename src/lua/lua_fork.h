/* Earlier turns of a conversation in a store: agent:fork { at }, agent:mark, agent:rewind, and for
 * the programs of the command _fork and _rewind. Callers: its floor. */
#ifndef AH_LUA_FORK_H
#define AH_LUA_FORK_H

#include "lua/lua_agent.h"

/* agent:fork with the field `at` in the table at 2: the agent, or nil and an error. Raises. */
int ah_lua_fork_at(lua_State *L);
/* Pushes the tools of the agent that have handlers, without those of its `setup`, which adds them
 * again when the conversation goes on. Raises. */
ah_changes *ah_lua_push_handlers(lua_State *L, const ah_lua_agent *a);
/* Gives these handlers to the tools of the conversation that have none. Raises. */
void ah_lua_put_handlers(lua_State *L, ah_lua_agent *a, const ah_changes *c);
/* Sets all but agent:fork. */
void ah_lua_open_fork(lua_State *L);

#endif
