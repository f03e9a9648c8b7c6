/* ah.session: sessions, their slices and dispatchers, for scripts. */
#ifndef AH_LUA_SESSION_H
#define AH_LUA_SESSION_H

#include "lua/lua_task.h"

enum { AH_MAX_SESSION_VALUE = 64 << 20 }; /* bytes of one value as JSON */

/* -- sessions (lua_session.c) ------------------------------------------------------- */

/* Pushes a session of its own for an agent. Raises when out of memory. */
ah_session *ah_lua_push_new_session(lua_State *L);
/* Pushes one that holds what the session at idx holds now, with a dispatcher of its own. */
ah_session *ah_lua_push_session_copy(lua_State *L, int idx);
/* The session at idx, borrowed; NULL for anything else, read-only views included. */
ah_session *ah_lua_to_session(lua_State *L, int idx);
/* Pushes the object of a session; nil where scripts have none any more. */
void ah_lua_push_session(lua_State *L, const ah_session *s);
/* Pushes the table of its types, which it shares with its parents and children. */
void ah_lua_push_family(lua_State *L, int session);

/* -- values and reducers (lua_reduce.c) ----------------------------------------------- */

/* A slice's values as of a head, for methods of slices and of a reducer's view. `family` is
 * where the table of the session's types lies on the stack. */
int ah_lua_push_latest(lua_State *L, int family, ah_slice type, const ah_cell *head);
int ah_lua_push_all(lua_State *L, int family, ah_slice type, const ah_cell *head);

/* The value at idx as one of the type: a new text. Raises tool_validation. */
ah_text *ah_lua_session_value(lua_State *L, const ah_session *s, int id, int idx);
/* The list at idx, one value after the other, at the end of *list, which the caller clears
 * (it may hold some of them when this raises). */
void ah_lua_session_values(lua_State *L, const ah_session *s, int id, int idx, ah_list *list);
/* Pushes an empty list that Lua clears. */
ah_list *ah_lua_push_list(lua_State *L);

/* Function on top (popped): the reducer of the slice for the event. */
void ah_lua_set_reducer(lua_State *L, ah_session *s, int family, int slice, int event);
void ah_lua_open_reduce(lua_State *L);

/* -- dispatchers (lua_dispatcher.c) ------------------------------------------------------- */

void ah_lua_push_dispatcher(lua_State *L); /* a new one */
bool ah_lua_is_dispatcher(lua_State *L, int idx);
/* Publishes the value at idx: in a handler when its call is committed, else at once. */
void ah_lua_publish(lua_State *L, int dispatcher, int idx);
/* An event of a run, to the subscribers of its session's dispatcher. Never raises. */
void ah_lua_publish_event(ah_lua *h, ah_run *run, const ah_notice *e);
/* Pushes the dispatcher of a session's object. */
void ah_lua_push_dispatcher_of(lua_State *L, int session);
void ah_lua_open_dispatcher(lua_State *L);

void ah_lua_open_session(lua_State *L); /* session */

#endif
