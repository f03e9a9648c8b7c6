/* Policies, approvals, guards, feedback and completion checks written in Lua (run/hooks.h). */
#ifndef AH_LUA_HOOKS_H
#define AH_LUA_HOOKS_H

#include "lua/lua_error.h"
#include "lua/lua_task.h"
#include "run/hooks.h"

/* Functions that the hooks of a run need of whoever runs it. */
typedef struct ah_lua_runs {
    /* As ah_hooks has them; ud: the ah_lua_hooks. */
    void (*ask)(void *ud, ah_call *call, ah_slice why);
    void (*stop_asking)(void *ud, ah_call *call);
    /* Pushes the reply of the run at work, as far as it is; nil where it is none of an agent. */
    void (*push_reply)(lua_State *L, const ah_driver_run *d);
} ah_lua_runs;

typedef struct ah_lua_hooks {
    ah_lua *lua;
    ah_hooks core;                           /* what a run is given; ud is this */
    int policies, approve, feedback, checks; /* references; LUA_NOREF: none */
    int guards[2];                           /* of the input, of the output; likewise */
    ah_task *checking;                       /* the checks at work */
    char check[AH_PLACE];                    /* where the one that was called last stands */
    size_t calls;                            /* answered in this run, for feedback */
} ah_lua_hooks;

/* It must not move afterwards. */
void ah_lua_hooks_init(ah_lua_hooks *s, ah_lua *h);
void ah_lua_hooks_clear(ah_lua_hooks *s);
/* Reads `policies`, `approve`, `guards`, `feedback` and `checks` from the table at idx. */
void ah_lua_hooks_read(lua_State *L, int idx, const char *what, ah_lua_hooks *s);
/* Each gets what the other one holds; neither has a task at work. */
void ah_lua_hooks_swap(ah_lua_hooks *a, ah_lua_hooks *b);
/* Makes s, which was initialised, hold what `from` holds. Raises when out of memory. */
void ah_lua_hooks_copy(lua_State *L, ah_lua_hooks *s, const ah_lua_hooks *from);

/* Runs the guards on a text for the model before it enters the conversation: AH_OK, or AH_GUARD and
 * the reason of the refusal. */
ah_status ah_lua_guard_input(ah_lua_hooks *s, ah_slice text, ah_err *err);

/* The reason at idx, whatever it is, in words: of a long one as much as there may be, and how much
 * is left out. False: there is none. May raise where the value cannot be made a string. */
bool ah_lua_put_reason(lua_State *L, int idx, ah_buf *why);

#endif
