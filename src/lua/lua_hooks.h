/* Hooks in Lua: policies, approvals, guards, feedback and completion checks of a run (run/hooks.h).
 * A set of hooks owns references to the script's functions and must not move after
 * ah_lua_hooks_init. Policies, guards and feedback are called and cannot wait; `approve` and checks
 * are tasks. Callers: its floor. */
#ifndef AH_LUA_HOOKS_H
#define AH_LUA_HOOKS_H

#include "lua/lua_error.h"
#include "lua/lua_task.h"
#include "run/hooks.h"

/* Functions that runs provide to their hooks. */
typedef struct ah_lua_runs {
    /* For ah_hooks; ud: the ah_lua_hooks. */
    void (*ask)(void *ud, ah_call *call, ah_slice why);
    void (*stop_asking)(void *ud, ah_call *call);
    /* For calls with AH_LOST_ASK (lua_lost_ask.h). */
    void (*ask_lost)(ah_lua *h, ah_call *call, ah_slice arguments);
    void (*stop_ask_lost)(ah_call *call);
    /* Pushes the reply of the run at work as far as it exists; nil if the run has no agent. */
    void (*push_reply)(lua_State *L, const ah_driver_run *d);
} ah_lua_runs;

typedef struct ah_lua_hooks {
    ah_lua *lua;
    ah_hooks core; /* the hooks as a run takes them; their ud is this struct */
    int policies, approve, feedback, checks; /* references; LUA_NOREF: none */
    int guards[2];        /* references: of the input, of the output; LUA_NOREF: none */
    ah_task *checking;    /* the checks at work */
    char check[AH_PLACE]; /* position of the check that was called last */
    size_t calls;         /* calls answered in this run, for feedback */
} ah_lua_hooks;

/* Initialises s, which must not move afterwards. */
void ah_lua_hooks_init(ah_lua_hooks *s, ah_lua *h);
void ah_lua_hooks_clear(ah_lua_hooks *s);
/* Reads `policies`, `approve`, `guards`, `feedback` and `checks` from the table at idx. */
void ah_lua_hooks_read(lua_State *L, int idx, const char *what, ah_lua_hooks *s);
/* Swaps the contents of a and b; neither may have a task at work. */
void ah_lua_hooks_swap(ah_lua_hooks *a, ah_lua_hooks *b);
/* Copies the hooks of `from` into s, which was initialised. Raises when out of memory. */
void ah_lua_hooks_copy(lua_State *L, ah_lua_hooks *s, const ah_lua_hooks *from);

/* Runs the guards on a text before it enters the conversation. Returns AH_OK, or AH_GUARD with the
 * reason of the refusal. */
ah_status ah_lua_guard_input(ah_lua_hooks *s, ah_slice text, ah_err *err);

/* Appends the reason at idx, of any type, to why as text. Of a long reason appends the beginning
 * and how much is left out. Returns false if there is no reason. May raise if the value cannot be
 * made a string. */
bool ah_lua_put_reason(lua_State *L, int idx, ah_buf *why);

#endif
