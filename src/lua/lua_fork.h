/* Earlier turns of a conversation in a store: agent:fork { at }, agent:mark, agent:rewind, and for
 * the programs of the command _fork and _rewind. Callers: its floor. */
#ifndef AH_LUA_FORK_H
#define AH_LUA_FORK_H

#include <lua.h>

/* agent:fork with the field `at` in the table at 2: the agent, or nil and an error. Raises. */
int ah_lua_fork_at(lua_State *L);
/* Sets all but agent:fork. */
void ah_lua_open_fork(lua_State *L);

#endif
