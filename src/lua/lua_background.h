/* Background calls of agents: begins them, keeps them until their results are taken, and
 * agent:wait, agent:background, agent:cancel_background. Each call is a run of its own in a
 * userdata, which the agent's table keeps; while its handler is at work, the registry keeps it,
 * too. Callers: its floor. */
#ifndef AH_LUA_BACKGROUND_H
#define AH_LUA_BACKGROUND_H

#include "lua/lua_agent.h"

void ah_lua_background_init(ah_lua_agent *a);
/* Takes the results that are there into the conversation, while no run is at work. */
void ah_lua_background_take(ah_lua_agent *a);
/* Stops the outstanding calls, and emits their last events. Raises if one of them is below us on
 * the C stack. */
void ah_lua_background_close(lua_State *L, ah_lua_agent *a);
/* Drops the outstanding calls without a word, and ends agent:wait. */
void ah_lua_background_clear(ah_lua_agent *a);
/* Called when something has changed that agent:wait looks at. */
void ah_lua_background_wake(ah_lua_agent *a);
/* Called when the run is freed: it is no longer listed. */
void ah_lua_background_forget(ah_lua_run *r);
/* No C program gets events of background calls any more. */
void ah_lua_background_untap(ah_lua_agent *a);
/* A note for each ticket of an earlier conversation: `why` it has no result. Raises. */
void ah_lua_background_lost(lua_State *L, ah_lua_agent *a, const char *why);

void ah_lua_open_background(lua_State *L); /* adds the methods of agents */

#endif
