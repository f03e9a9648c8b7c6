/* ctx: the second argument of a handler. */
#ifndef AH_LUA_CTX_H
#define AH_LUA_CTX_H

#include "lua/lua_task.h"

typedef struct ah_ctx {
    ah_call *call; /* NULL once the call is over */
    ah_task *task;
    const struct ah_lua_handler *handler; /* lua_tool.h; lives as long as the call */
    int resources;                        /* reference to ctx.resources; LUA_NOREF: not asked for */
} ah_ctx;

/* -- ctx */
ah_ctx *ah_lua_push_ctx(lua_State *L, ah_call *call);

/* The call of the ctx at idx; raises where it is over. */
ah_call *ah_lua_check_call(lua_State *L, int idx);

/* The overlay in which code that runs now reads and writes: that of the call whose handler
 * it is (of a tool of the program, while that begins), or of the call in whose handler its run was
 * started; NULL: there is none. Observers of what a handler drives have none either. Raises
 * where that call is over. */
ah_overlay *ah_lua_overlay(lua_State *L);

void ah_lua_open_ctx(lua_State *L); /* the metatable only */

#endif
