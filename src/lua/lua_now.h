/* The call in which code runs now, and the changes it works in. The members of ctx are
 * lua_ctx.c's. */
#ifndef AH_LUA_NOW_H
#define AH_LUA_NOW_H

#include "lua/lua_task.h"

#define AH_CTX "agenthost.ctx" /* the metatable */

typedef struct ah_ctx {
    ah_call *call; /* NULL once the call is over */
    ah_task *task;
    const struct ah_lua_handler *handler; /* lua_tool.h; lives as long as the call */
    int resources;                        /* reference to ctx.resources; LUA_NOREF: not asked for */
} ah_ctx;

/* Pushes the ctx of a call. Raises when out of memory. */
ah_ctx *ah_lua_push_ctx(lua_State *L, ah_call *call);
/* The call of the ctx at idx; raises where it is over. */
ah_call *ah_lua_check_call(lua_State *L, int idx);

/* The overlay in which code that runs now reads and writes: that of the call whose handler
 * it is (of a tool of the program, while that begins), or of the call in whose handler its run was
 * started; NULL: there is none. Observers of what a handler drives have none either. Raises
 * where that call is over. */
ah_overlay *ah_lua_overlay(lua_State *L);

/* Raises inside reducers, which must change nothing but their slice. */
void ah_lua_no_reducer(lua_State *L);

#endif
