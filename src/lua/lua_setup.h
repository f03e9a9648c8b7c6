/* The `setup` of an agent, function(conversation): runs it as a task within the first run of each
 * conversation, before that run adds anything. Its changes are staged in the conversation's
 * userdata, which the task keeps, and take effect together when it has returned. If it fails, the
 * run fails with its error, the changes are dropped, and the next run calls it again.
 * Callers: its floor. */
#ifndef AH_LUA_SETUP_H
#define AH_LUA_SETUP_H

#include "lua/lua_agent.h"

void ah_lua_setup_init(ah_lua_agent *a);
void ah_lua_setup_clear(ah_lua_agent *a);
/* Reads the field `setup` of the table at 1 for the agent at idx. Raises. */
void ah_lua_setup_read(lua_State *L, int idx, ah_lua_agent *a);
/* Keeps the field `system` (.p NULL: none) until `setup` is done. Raises when out of memory. */
void ah_lua_setup_system(lua_State *L, ah_lua_agent *a, ah_slice text);
/* Copies the `setup` of `from` to a fork, whose first run sets it up again. Raises when out of
 * memory. */
void ah_lua_setup_copy(lua_State *L, ah_lua_agent *a, const ah_lua_agent *from);
/* Sets the id of the conversation. Raises if the value at idx is not a valid id. */
void ah_lua_setup_id(lua_State *L, ah_lua_agent *a, int idx, const char *what);
/* Makes an id for a new conversation: 64 random bits. */
enum { AH_NEW_ID = 17 };
void ah_lua_setup_new_id(ah_host *host, char out[AH_NEW_ID]);
/* Pushes the id of the conversation; if none was given, a new one. Raises when out of memory. */
void ah_lua_setup_push_id(lua_State *L, ah_lua_agent *a);
/* True if a `setup` of the conversation has added the tool. */
bool ah_lua_setup_has_added(const ah_lua_agent *a, const ah_tool *tool);
/* True if the agent has a `setup` that is not done. */
bool ah_lua_setup_due(const ah_lua_agent *a);

/* Makes the run ready after the function has returned. o has the function's changes of the session,
 * only for reading. */
typedef ah_status (*ah_setup_fn)(void *ud, ah_overlay *o, ah_err *err);

/* begin starts the task in that run, which then becomes ready or fails; stop ends it at any
 * point. */
void ah_lua_setup_begin(ah_lua_agent *a, ah_run *run, ah_setup_fn rest, void *ud);
void ah_lua_setup_stop(ah_lua_agent *a);

void ah_lua_open_setup(lua_State *L); /* the metatable only */

#endif
