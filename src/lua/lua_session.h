/* ah.session: sessions, their slices and their dispatchers. The object of a session owns one
 * reference to its ah_session; the object of a slice keeps that object. Changes inside a call are
 * made in the call's overlay. Callers: its floor. */
#ifndef AH_LUA_SESSION_H
#define AH_LUA_SESSION_H

#include "lua/lua_task.h"

enum { AH_MAX_SESSION_VALUE = 64 << 20 }; /* bytes of one value as JSON */

/* -- sessions (lua_session.c) ------------------------------------------------------- */

/* Pushes a new session for an agent. Raises when out of memory. */
ah_session *ah_lua_push_new_session(lua_State *L);
/* Pushes a copy of the session at idx as it is now, with a dispatcher of its own. */
ah_session *ah_lua_push_session_copy(lua_State *L, int idx);
/* Returns the session at idx, borrowed; NULL for anything else, including read-only views. */
ah_session *ah_lua_to_session(lua_State *L, int idx);
/* Pushes the object of a session; nil if no script holds it any more. */
void ah_lua_push_session(lua_State *L, const ah_session *s);
/* Pushes the table of the session's types, shared by its parents and children. */
void ah_lua_push_family(lua_State *L, int session);

/* -- values and reducers (lua_reduce.c) ----------------------------------------------- */

/* Push the values of a slice for a given head, for methods of slices and of a reducer's view.
 * `family` is the stack index of the table of the session's types. */
int ah_lua_push_latest(lua_State *L, int family, ah_slice type, const ah_cell *head);
int ah_lua_push_all(lua_State *L, int family, ah_slice type, const ah_cell *head);

/* Returns the value at idx, read as one of the type, as a new text. Raises tool_validation. */
ah_text *ah_lua_session_value(lua_State *L, const ah_session *s, int id, int idx);
/* Appends the values of the list at idx to *list, which the caller clears; after a raise it may
 * hold some of them. */
void ah_lua_session_values(lua_State *L, const ah_session *s, int id, int idx, ah_list *list);
/* Pushes an empty list that the collector clears. */
ah_list *ah_lua_push_list(lua_State *L);

/* Sets the function on top (popped) as the reducer of the slice for the event. */
void ah_lua_set_reducer(lua_State *L, ah_session *s, int family, int slice, int event);
void ah_lua_open_reduce(lua_State *L);

/* -- dispatchers (lua_dispatcher.c) ------------------------------------------------------- */

void ah_lua_push_dispatcher(lua_State *L); /* pushes a new one */
bool ah_lua_is_dispatcher(lua_State *L, int idx);
/* Publishes the value at idx: inside a handler with its call's commit, else at once. */
void ah_lua_publish(lua_State *L, int dispatcher, int idx);
/* Passes an event of a run to the subscribers of its session's dispatcher. Never raises. */
void ah_lua_publish_event(ah_lua *h, ah_run *run, const ah_notice *e);
/* Pushes the dispatcher of a session's object. */
void ah_lua_push_dispatcher_of(lua_State *L, int session);
void ah_lua_open_dispatcher(lua_State *L);

void ah_lua_open_session(lua_State *L); /* sets ah.session */

#endif
