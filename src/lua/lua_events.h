/* agent:events: bounded queues of the events of an agent, for tasks that look on and may wait. A
 * hub holds the queues of one agent and copies each event into those that take its type. The hub
 * belongs to the agent's observer, a queue to its object in Lua; neither keeps the other. An event
 * that does not fit, or for which there is no memory, is dropped and counted: putting never fails
 * and calls no Lua. Callers: its floor. */
#ifndef AH_LUA_EVENTS_H
#define AH_LUA_EVENTS_H

#include "lua/lua_state.h"

/* The queues of an agent. */
typedef struct ah_event_hub {
    ah_lua_object held;
    ah_lua *lua;
    unsigned types; /* bits of the ah_event_types that any queue takes */
    struct ah_event_queue *first;
} ah_event_hub;

void ah_event_hub_put(ah_event_hub *hub, const ah_notice *e);
/* Ends all queues, which still give what they hold, and frees the hub. NULL does nothing. */
void ah_event_hub_end(ah_event_hub *hub);

/* Reads the options at idx (none or nil: defaults) and makes a queue of *hub, which is made if it
 * is NULL. Pushes what a `for` takes: the queue, nil, nil, and the queue to be closed. Returns 4.
 * Raises. */
int ah_lua_push_events(lua_State *L, int idx, ah_event_hub **hub);

void ah_lua_open_events(lua_State *L);

#endif
