/* Observers in Lua: `on` (events) and `log` (records) of a run, and the counters of ah.metrics.
 * They never change an outcome: their error becomes one `warning` event. */
#ifndef AH_LUA_OBSERVE_H
#define AH_LUA_OBSERVE_H

#include "lua/lua_state.h"
#include "run/run.h"

typedef struct ah_observer {
    ah_lua *lua;
    int on, log;      /* references, LUA_NOREF: nobody */
    unsigned types;   /* bits of the ah_event_types that `on` listens to */
    unsigned watched; /* of those that the host's watcher is told */
    ah_log records;   /* what a run logs to: `log`, else the host's log */
    bool failing;     /* the error of a warning's observer is not told again */
    bool log_failed;  /* that `log` fails was told */
} ah_observer;

void ah_observer_init(ah_observer *o, ah_lua *h);
void ah_observer_clear(ah_observer *o);
/* Makes o, which was initialised, observe as `from` does. Raises when out of memory. */
void ah_observer_copy(lua_State *L, ah_observer *o, const ah_observer *from);
/* Reads `on` and `log` from the table at idx; raises for what is no observer. The
 * observer must not move afterwards. */
void ah_observer_read(lua_State *L, int idx, ah_observer *o);

static inline bool ah_observer_wants(const ah_observer *o, ah_event_type type)
{
    return ((o->types | o->watched) >> type & 1) != 0;
}

/* Pushes an event as the table that observers get. */
void ah_lua_push_event(lua_State *L, const ah_notice *e);

/* Tells the host's watcher and the observer. agent: of the program; NULL: a script's. */
void ah_observer_event(ah_observer *o, ah_run *run, ah_agent *agent, const ah_notice *e);

void ah_lua_open_metrics(lua_State *L); /* ah.metrics, into the table on top */

#endif
