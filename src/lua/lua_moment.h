/* Moments: one call as a strategy or policy sees it. The object is valid only during the method
 * that gets it; the struct is the caller's. Callers: its floor. */
#ifndef AH_LUA_MOMENT_H
#define AH_LUA_MOMENT_H

#include "lua/lua_state.h"
#include "run/inject.h"

typedef struct ah_moment {
    struct ah_run *run;
    const struct ah_call *call;
    ah_changes *out;          /* NULL: the call has no answer yet, and nothing can be changed */
    const char *strategy;     /* its name; NULL: for a policy, which cannot change anything */
    ah_text *by;              /* provenance of the strategy's additions */
    ah_strategy_cursor *kept; /* the strategy's state, as far as it has been read */
    struct ah_moment_box *box;
} ah_moment;

/* Pushes the object for the script; ah_lua_end_moment empties it. Raises. */
void ah_lua_push_moment(lua_State *L, ah_moment *m);
void ah_lua_end_moment(ah_moment *m);

/* For strategies. Calls the function on top of L, or the method of the table on top, with the
 * moment, and replaces it by two results (nils on failure). If m takes changes, the tools in the
 * first result are added. A script that keeps the moment finds it empty afterwards. */
ah_status ah_lua_with_moment(ah_lua *h, lua_State *L, const char *method, ah_moment *m,
                             ah_err *err);

/* Pushes the list of all answered calls of the conversation, { name, arguments, success },
 * including those of the current turn. */
void ah_lua_push_calls(lua_State *L, const ah_transcript *t);

void ah_lua_open_moment(lua_State *L);

#endif
