/* States of entities and of named resources in a stream: records those that a call has changed, and
 * restores them when the objects are first used after the conversation was opened. Each agent owns
 * one list; its recorder gets it as changed_ud. Without a store the list is only for agent:save.
 * Callers: its floor. */
#ifndef AH_LUA_STATES_H
#define AH_LUA_STATES_H

#include "journal/fold.h"
#include "lua/lua_state.h"
#include "run/call.h"

/* The class of resources in records. */
#define AH_RESOURCE_CLASS "agenthost/resource"

/* The last recorded state of an object. */
typedef struct ah_lua_state_item {
    ah_text *class_name, *id;
    ah_text *state; /* JSON; NULL: it has changed, and has none that can be recorded */
    bool due;       /* the object has not got it yet */
    bool not_found; /* its class has no `find` */
} ah_lua_state_item;

typedef struct ah_lua_states {
    ah_lua *lua;
    ah_lua_state_item *item;
    size_t n, cap;
    bool recorded; /* a store has them; false: no warnings, and nothing waits for a record */
    struct ah_undo *changed; /* lua_undo.c: committed changes that no record has yet */
} ah_lua_states;

/* Takes the states of the fold. */
ah_status ah_lua_states_take(ah_lua_states *s, const ah_fold *f, ah_err *err);
void ah_lua_states_clear(ah_lua_states *s);
/* Returns the list for this call: that of the outermost run's agent; NULL: nothing keeps it. */
ah_lua_states *ah_lua_states_of(const ah_call *call);
/* Gives the object at idx its recorded state back, once; class and id name it. Raises with the
 * errors of its restore. */
void ah_lua_restore_state(lua_State *L, ah_lua_states *s, ah_slice class_name, ah_slice id,
                          int idx);
/* Reads the state of the object at idx, which the call has changed, into *out. `name`: of a
 * resource; .p NULL: none. Never raises; a state that cannot be recorded is a warning of the run.
 * Without an id, or after an error, *out stays empty. */
void ah_lua_read_state(lua_State *L, ah_lua *h, ah_call *call, int idx, ah_slice name,
                       ah_lua_state_item *out);
/* Appends to the list what has changed in the object at idx (absolute) since the copy at `was` was
 * made (lua_undo.c). Never raises; an object without a name, or whose state is no JSON, is left
 * out. */
void ah_lua_show_state(lua_State *L, ah_lua *h, int idx, int was, ah_slice name, ah_change_list *l);
void ah_lua_state_item_clear(ah_lua_state_item *i);
/* Appends { class, id, state, find }. */
void ah_lua_print_state(const ah_lua_state_item *i, ah_buf *out);
/* Appends the item to a list in JSON, and keeps the state as the last one. Returns false when out
 * of memory. */
bool ah_lua_record_state(ah_lua_states *s, const ah_lua_state_item *i, bool first, ah_buf *out);
/* Keeps the state (NULL: none any more) as the last one. Returns false when out of memory. */
bool ah_lua_keep_state(ah_lua_states *s, const ah_lua_state_item *i);
/* Appends all states as a JSON list. */
void ah_lua_print_states(const ah_lua_states *s, ah_buf *out);

#endif
