/* Posts: changes of an agent from outside its own model and tools, which are messages to it and
 * tools added or removed. Inside a call they belong to the call's overlay and are made with its
 * commit; a call that fails makes none. A list of posts owns them. Callers: its module. */
#ifndef AH_LUA_POST_H
#define AH_LUA_POST_H

#include "lua/lua_agent.h"
#include "lua/lua_image.h"

/* Send a message to the agent at idx, or change its tools (taken from *c). Inside a call this
 * happens with the call's commit; outside of calls at once, or with the next commit of a run at
 * work. Raise if the change is not possible. */
void ah_lua_send(lua_State *L, int idx, const ah_lua_content *said);
void ah_lua_change(lua_State *L, int idx, ah_changes *c);
/* Called before a run of the agent at idx: makes its posts of the current call and of the calls
 * around it now. Raises. */
void ah_lua_deliver(lua_State *L, int idx);
/* The same for the posts in overlay o and those below it. */
void ah_lua_deliver_in(lua_State *L, ah_overlay *o, const ah_lua_agent *a);

/* One message or change, for code that stages more than that: it is made, and then either undone or
 * announced. */
typedef struct ah_post ah_post;

/* Adds changes (taken from *c) of the agent at idx to *list. Raises when out of memory; the changes
 * are in *list even then. */
void ah_post_change(lua_State *L, int idx, ah_changes *c, ah_post **list);
ah_status ah_post_try(ah_post *list, ah_err *err); /* makes all; on failure some may be made */
void ah_post_undo(ah_post **list);                 /* undoes those that were made; frees all */
void ah_post_tell(ah_post **list);                 /* announces them; frees all */

#endif
