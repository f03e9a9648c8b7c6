/* Changes of an agent from outside of its own model and tools: messages sent to it, tools added or
 * removed. In a call they are kept with the call (lua_post.c). */
#ifndef AH_LUA_POST_H
#define AH_LUA_POST_H

#include "lua/lua_agent.h"
#include "lua/lua_image.h"

/* A message for the agent at idx, or changes of its tools (taken from *c): made when the call in
 * which the code runs is committed; outside of calls at once, in the run at work to its next
 * commit. Raise where they cannot be made. */
void ah_lua_send(lua_State *L, int idx, const ah_lua_content *said);
void ah_lua_change(lua_State *L, int idx, ah_changes *c);
/* The agent at idx is about to run: what the call in which the code runs, and those around it, have
 * for it is made now. Raises. */
void ah_lua_deliver(lua_State *L, int idx);
/* The same of what is in that overlay and those below it. */
void ah_lua_deliver_in(lua_State *L, ah_overlay *o, const ah_lua_agent *a);

/* One of them, for who stages more than that: made, and then undone or told. */
typedef struct ah_post ah_post;

/* Changes (taken from *c) of the agent at idx. Raises when out of memory; it is in *list by then.
 */
void ah_post_change(lua_State *L, int idx, ah_changes *c, ah_post **list);
ah_status ah_post_try(ah_post *list, ah_err *err); /* all of it; some may be made on failure */
void ah_post_undo(ah_post **list);                 /* those that are made; frees all */
void ah_post_tell(ah_post **list);                 /* likewise */

#endif
