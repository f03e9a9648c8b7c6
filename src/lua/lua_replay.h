/* ah._turns, for a replay of handlers (lua/agenthost/testing/handlers.lua): the turns of a stored
 * conversation, each in a store of its own (host/store_replay.h). Callers: its floor. */
#ifndef AH_LUA_REPLAY_H
#define AH_LUA_REPLAY_H

#include <lua.h>

void ah_lua_open_replay(lua_State *L); /* sets _turns */

#endif
