/* `setup` of an agent: function(conversation), a task within the first run of each conversation,
 * before that run says anything. What it adds belongs to the conversation, and counts when the
 * function has returned; where it fails, the run fails with its error, what it has staged is
 * dropped, and the next run tries it again. */
#ifndef AH_LUA_SETUP_H
#define AH_LUA_SETUP_H

#include "lua/lua_agent.h"

void ah_lua_setup_init(ah_lua_agent *a);
void ah_lua_setup_clear(ah_lua_agent *a);
/* The field `setup` of the table at 1, for the agent at idx; raises. */
void ah_lua_setup_read(lua_State *L, int idx, ah_lua_agent *a);
/* Keeps the field `system` (.p NULL: none) until `setup` is done; raises when out of memory. */
void ah_lua_setup_system(lua_State *L, ah_lua_agent *a, ah_slice text);
/* A fork is a conversation of its own: its first run sets it up. Raises when out of memory. */
void ah_lua_setup_copy(lua_State *L, ah_lua_agent *a, const ah_lua_agent *from);
/* The id of the conversation; raises where the value at idx is none. */
void ah_lua_setup_id(lua_State *L, ah_lua_agent *a, int idx);
/* True if there is one, and it is not done. */
bool ah_lua_setup_due(const ah_lua_agent *a);

/* The rest of what makes the run ready, once the function has returned; o is what it has
 * changed in the session, to read through. */
typedef ah_status (*ah_setup_fn)(void *ud, ah_overlay *o, ah_err *err);

/* Begins it in that run, which then is ready or fails; stop ends it wherever it is. */
void ah_lua_setup_begin(ah_lua_agent *a, ah_run *run, ah_setup_fn rest, void *ud);
void ah_lua_setup_stop(ah_lua_agent *a);

void ah_lua_open_setup(lua_State *L); /* the metatable only */

#endif
