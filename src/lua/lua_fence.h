/* A fence around the code that is entered: how much memory of Lua it may take, and, for handlers,
 * that os.exit is refused. It stops mistakes, not malice: memory outside of Lua's allocator and an
 * os.exit that was copied before are beyond it (in a state of ah_open the copy is guarded, too).
 *
 * Memory is what the code took less what was freed while it was at work, that of calls inside it
 * included. Over the limit Lua collects all garbage before an allocation fails, and it fails only
 * where the whole heap, too, has grown by as much: so a task does not pay for garbage that others
 * left, nor for its own that was collected in another's time. */
#ifndef AH_LUA_FENCE_H
#define AH_LUA_FENCE_H

#include "lua/lua_state.h"

/* Zero: no fence. */
typedef struct ah_fence {
    size_t memory;      /* bytes; 0: none of all this */
    const char *advice; /* text after the limit in the error; NULL: none */
    bool no_exit;       /* os.exit is refused */
    int64_t used;       /* bytes; never below 0 */
    int64_t before;     /* bytes of the heap at its smallest since it was first entered */
    int64_t asked;      /* `used` if the failed allocation was made; 0: another limit failed it */
    size_t heap_max;    /* max_memory, where the last failure was its; else 0 */
    bool began, entered, guards;
    struct ah_fence *outer; /* the one around it, while entered */
    ah_lua_memory *heap;    /* where it is counted, while entered */
    bool laid;              /* over another's allocator */
} ah_fence;

/* Around each entry; the last entered is left first. Never raise. */
void ah_fence_enter(ah_lua *h, ah_fence *f);
void ah_fence_leave(ah_lua *h, ah_fence *f);
/* Called around a drive, which does the work of others. The result of the first is the argument of
 * the second. */
ah_fence *ah_fence_lift(ah_lua *h);
void ah_fence_put(ah_lua *h, ah_fence *f);
/* Gives the code that closes the task's variables memory of its own. */
void ah_fence_widen(ah_fence *f);

/* True if the failure with this lua_Status came from the fence; *err is then filled. */
bool ah_fence_failed(const ah_fence *f, int status, ah_err *err);

/* Prepares the guard of os.exit, where there is one; raises when out of memory. */
void ah_lua_open_fence(lua_State *L);
/* Puts the guard in place for good, in a state of our own. */
void ah_lua_guard_exit(lua_State *L);

#endif
