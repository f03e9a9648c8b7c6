/* Changes of an agent from outside of its own model and tools: messages sent to it, tools added or
 * removed. In a call they are kept with the call (lua_post.c). */
#ifndef AH_LUA_POST_H
#define AH_LUA_POST_H

#include "lua/lua_agent.h"
#include "lua/lua_image.h"

/* A message for the agent at idx, or changes of its tools (taken from *c). In a call they are made
 * with its commit; outside of calls at once, or in a run at work with its next commit. Raise if
 * they cannot be made. */
void ah_lua_send(lua_State *L, int idx, const ah_lua_content *said);
void ah_lua_change(lua_State *L, int idx, ah_changes *c);
/* Called before a run of the agent at idx: applies now its messages and changes of the call in
 * which the code runs and of the calls around it. Raises. */
void ah_lua_deliver(lua_State *L, int idx);
/* The same for those in that overlay and those below it. */
void ah_lua_deliver_in(lua_State *L, ah_overlay *o, const ah_lua_agent *a);

/* One message or change, for code that stages more than that: it is made, and then undone or
 * announced. */
typedef struct ah_post ah_post;

/* Adds changes (taken from *c) of the agent at idx to *list. Raises when out of memory; they are in
 * *list even then. */
void ah_post_change(lua_State *L, int idx, ah_changes *c, ah_post **list);
ah_status ah_post_try(ah_post *list, ah_err *err); /* makes all; some may be made on failure */
void ah_post_undo(ah_post **list);                 /* undoes those that were made; frees all */
void ah_post_tell(ah_post **list);                 /* announces them; frees all */

#endif
