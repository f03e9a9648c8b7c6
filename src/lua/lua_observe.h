/* Observers in Lua: `on` (events) and `log` (records) of a run, and the counters of ah.metrics. An
 * observer owns references to the script's functions. They are called and cannot wait; an error of
 * theirs becomes one `warning` event and never changes an outcome. Callers: its floor. */
#ifndef AH_LUA_OBSERVE_H
#define AH_LUA_OBSERVE_H

#include "lua/lua_state.h"
#include "run/run.h"

typedef struct ah_observer {
    ah_lua *lua;
    int on, log;      /* references; LUA_NOREF: none */
    unsigned types;   /* bits of the ah_event_types that `on` listens to */
    unsigned watched; /* bits of the ah_event_types that the host's watcher gets */
    ah_log records;   /* the log of a run: `log`, else the host's log */
    bool failing;     /* a `warning` is being delivered: an error in that is not reported */
    bool log_failed;  /* the failure of `log` has been reported */
} ah_observer;

void ah_observer_init(ah_observer *o, ah_lua *h);
void ah_observer_clear(ah_observer *o);
/* Copies the functions of `from` into o, which was initialised. Raises when out of memory. */
void ah_observer_copy(lua_State *L, ah_observer *o, const ah_observer *from);
/* Reads `on` and `log` from the table at idx. Raises for values of other types. The observer must
 * not move afterwards. */
void ah_observer_read(lua_State *L, int idx, ah_observer *o);

static inline bool ah_observer_wants(const ah_observer *o, ah_event_type type)
{
    return ((o->types | o->watched) >> type & 1) != 0;
}

/* Pushes an event as the table that observers get. */
void ah_lua_push_event(lua_State *L, const ah_notice *e);

/* Calls the host's watcher and the observer. agent: the program's; NULL: a script's. */
void ah_observer_event(ah_observer *o, ah_run *run, ah_agent *agent, const ah_notice *e);

void ah_lua_open_metrics(lua_State *L); /* sets ah.metrics in the table on top */

#endif
