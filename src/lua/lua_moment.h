/* A call as strategies and policies see it. The object is valid only while they are asked. */
#ifndef AH_LUA_MOMENT_H
#define AH_LUA_MOMENT_H

#include "lua/lua_state.h"
#include "run/inject.h"

typedef struct ah_moment {
    struct ah_run *run;
    const struct ah_call *call;
    ah_changes *out;          /* NULL: the call is not answered yet, and nothing can be changed */
    const char *strategy;     /* its name; NULL: a policy's, which changes nothing at all */
    ah_text *by;              /* the provenance of what a strategy adds */
    ah_strategy_cursor *kept; /* the state of a strategy, read so far */
    struct ah_moment_box *box;
} ah_moment;

/* Pushes the object that a script sees; after ah_lua_end_moment it is empty. Raises. */
void ah_lua_push_moment(lua_State *L, ah_moment *m);
void ah_lua_end_moment(ah_moment *m);

/* For strategies. Calls the function on top of L, or the method of the table on top of it, with the
 * moment; popped and replaced by two results, also on failure (nils). Where changes are taken, the
 * first result is added. A script that keeps the moment finds it empty afterwards. */
ah_status ah_lua_with_moment(ah_lua *h, lua_State *L, const char *method, ah_moment *m,
                             ah_err *err);

/* Pushes the list of all answered calls of the conversation, { name, arguments, success }, those
 * of the turn at work included. */
void ah_lua_push_calls(lua_State *L, const ah_transcript *t);

void ah_lua_open_moment(lua_State *L);

#endif
