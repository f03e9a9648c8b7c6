/* Direct calls: calls a tool by name without a model, from C (lua_api_call.c) or from a script
 * (registry:execute). Such a call is a run of its own, whose model makes only this call. It lives
 * in a userdata that is kept until the run is done; it may wait. Callers: its floor. */
#ifndef AH_LUA_DIRECT_H
#define AH_LUA_DIRECT_H

#include "lua/lua_state.h"
#include "model/tool.h"

/* The result of a direct call. Everything is borrowed until `take` returns. */
typedef struct ah_direct_reply {
    ah_status status; /* AH_OK: the call succeeded */
    bool ended;       /* no answer: the run of the call ended first, or a handler ended the run */
    ah_slice details; /* of the error that ended it, as in ah_err; empty: none */
    const ah_text *words; /* the answer as rendered for a model; NULL: none */
    ah_text *value;       /* the value as JSON, not rendered; only if the call succeeded */
    const ah_value *live; /* the value as the handler returned it; only if the call succeeded */
} ah_direct_reply;

/* Fills *err for a call that failed or has no words. */
void ah_direct_error(const ah_direct_reply *r, ah_err *err);

typedef int (*ah_direct_take)(lua_State *L, const ah_direct_reply *r);

/* Calls the tool (borrowed) with args (checked JSON), waits, and returns the results of take; used
 * as `return ah_lua_direct(...)`. In a handler the call is nested in the handler's call. */
int ah_lua_direct(lua_State *L, ah_tool *tool, ah_slice args, ah_direct_take take);

#endif
