/* The results of a handler, as an outcome. */
#ifndef AH_LUA_RESULT_H
#define AH_LUA_RESULT_H

#include "lua/lua_state.h"
#include "run/run.h"

typedef struct ah_lua_result {
    ah_outcome o;
    ah_buf *value;
    ah_buf *images; /* NULL: there are none */
    int at;         /* where on the stack the value lies; 0: there is none */
    ah_err err;     /* holds the outcome's words where the value was refused */
} ah_lua_result;

/* Reads the nresults values from `first` on. The outcome borrows from r and from the stack values,
 * and is valid as long as both; r must not move. Raises only when out of memory. */
void ah_lua_result_read(lua_State *L, int first, int nresults, ah_lua_result *r);
/* Frees the texts now, not when the collector comes: they may be large. */
void ah_lua_result_clear(ah_lua_result *r);

void ah_lua_open_result(lua_State *L); /* ok, fail, result: into the table on top */

#endif
