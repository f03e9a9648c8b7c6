/* Discovery for agents: the fields `discover` and `max_depth`, and ah.retract. */
#ifndef AH_LUA_DISCOVER_H
#define AH_LUA_DISCOVER_H

#include "lua/lua_state.h"
#include "run/discover.h"

struct ah_lua_agent; /* lua_agent.h */

/* Of one agent; it must not move. Empty where discovery is off. */
typedef struct ah_lua_discovery {
    ah_discovery core;
    bool on;
    bool keep; /* instances stay at hand for the rest of the conversation (seed 001) */
} ah_lua_discovery;

/* Reads the fields from the table at idx: a strategy of the agent's, which is on top. Raises. */
void ah_lua_discovery_read(lua_State *L, int idx, struct ah_lua_agent *a);
/* For an agent that has the transcript and the registry of another: loaded, or forked. */
ah_status ah_lua_discovery_replay(struct ah_lua_agent *a, ah_err *err);
/* Its tools that stay stale, as they are defined now, as additions. Raises when out of memory. */
void ah_lua_discovery_redeclare(lua_State *L, const struct ah_lua_agent *a, ah_changes *out);
/* The same discovery for the forked agent on top; its transcript and registry are there. Raises. */
void ah_lua_discovery_copy(lua_State *L, struct ah_lua_agent *a, const struct ah_lua_agent *from);
/* A run of the agent has ended: with ah.run, so has its conversation. */
void ah_lua_discovery_end(struct ah_lua_agent *a);
void ah_lua_discovery_clear(ah_lua_discovery *d);

void ah_lua_open_discover(lua_State *L); /* retract */

#endif
