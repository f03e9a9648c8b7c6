/* Discovery for agents: the fields `discover` and `max_depth`, and ah.retract. The state is part of
 * its agent and must not move. Callers: its floor. */
#ifndef AH_LUA_DISCOVER_H
#define AH_LUA_DISCOVER_H

#include "lua/lua_state.h"
#include "run/discover.h"

struct ah_lua_agent; /* lua_agent.h */

/* The discovery of one agent. Empty if discovery is off. */
typedef struct ah_lua_discovery {
    ah_discovery core;
    bool on;
    bool keep; /* instances are kept for the rest of the conversation (seed 001) */
} ah_lua_discovery;

/* Reads the fields from the table at idx. Discovery becomes a strategy of the agent on top.
 * Raises. */
void ah_lua_discovery_read(lua_State *L, int idx, struct ah_lua_agent *a);
/* Repeats the discoveries in the transcript, for an agent that was loaded or forked and has the
 * transcript and the registry of another. */
ah_status ah_lua_discovery_replay(struct ah_lua_agent *a, ah_err *err);
/* Adds the tools that are still stale to *out, as they are defined now. Raises when out of
 * memory. */
void ah_lua_discovery_redeclare(lua_State *L, const struct ah_lua_agent *a, ah_changes *out);
/* Copies the discovery to the forked agent on top, which already has its transcript and registry.
 * Raises. */
void ah_lua_discovery_copy(lua_State *L, struct ah_lua_agent *a, const struct ah_lua_agent *from);
/* Called when a run of the agent has ended, which for ah.run ends the conversation. */
void ah_lua_discovery_end(struct ah_lua_agent *a);
void ah_lua_discovery_clear(ah_lua_discovery *d);

void ah_lua_open_discover(lua_State *L); /* sets ah.retract */

#endif
