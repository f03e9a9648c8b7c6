/* The current call: finds the call whose code runs now, and the overlay in which it makes changes.
 * A ctx is a userdata that borrows its call and raises when the call is over. lua_ctx.c has the
 * members of ctx. Callers: its floor. */
#ifndef AH_LUA_NOW_H
#define AH_LUA_NOW_H

#include "lua/lua_task.h"

#define AH_CTX "agenthost.ctx" /* the metatable of ctx */

typedef struct ah_ctx {
    ah_call *call; /* NULL when the call is over */
    ah_task *task;
    const struct ah_lua_handler *handler; /* lua_tool.h; lives as long as the call */
    int resources;                        /* reference to ctx.resources; LUA_NOREF: not used yet */
} ah_ctx;

/* Pushes the ctx of a call. Raises when out of memory. */
ah_ctx *ah_lua_push_ctx(lua_State *L, ah_call *call);
/* Returns the call of the ctx at idx. Raises if the call is over. */
ah_call *ah_lua_check_call(lua_State *L, int idx);

/* Returns the overlay in which the current code reads and writes: that of the call whose handler
 * runs (or whose tool of the program begins), or of the call in whose handler the current run was
 * started. Returns NULL if there is none, as for observers of what a handler drives. Raises if that
 * call is over. */
ah_overlay *ah_lua_overlay(lua_State *L);

/* Raises inside a reducer, which may change only its slice. */
void ah_lua_no_reducer(lua_State *L);
/* Raises there, and inside of a step, which changes nothing that belongs to a call. */
void ah_lua_no_change(lua_State *L);

#endif
