/* Reads the results of a handler as an outcome, and makes ah.ok, ah.fail and ah.result. The outcome
 * borrows from the ah_lua_result and from the values on the stack. Callers: its floor. */
#ifndef AH_LUA_RESULT_H
#define AH_LUA_RESULT_H

#include "lua/lua_state.h"
#include "run/run.h"

typedef struct ah_lua_result {
    ah_outcome o;
    ah_buf *value;
    ah_buf *images; /* NULL: none */
    int at;         /* stack index of the value; 0: none */
    ah_err err;     /* holds the outcome's words if the value was refused */
} ah_lua_result;

/* Reads the nresults values from `first` on. The outcome is valid as long as r and the stack
 * values; r must not move. Raises only when out of memory. */
void ah_lua_result_read(lua_State *L, int first, int nresults, ah_lua_result *r);
/* Frees the texts at once instead of at the next collection, since they may be large. */
void ah_lua_result_clear(ah_lua_result *r);

void ah_lua_open_result(lua_State *L); /* sets ok, fail, result in the table on top */

#endif
