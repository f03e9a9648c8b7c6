/* Fences around code of a script: limit the Lua memory that it takes, and refuse os.exit in
 * handlers. A fence stops mistakes, not malice: it does not cover memory outside of Lua's
 * allocator, nor a copy of os.exit made earlier (in a state of ah_open the copy is guarded, too).
 * The count is the memory that the code, with the calls inside it, took less the memory freed
 * meanwhile. Over the limit Lua collects all garbage first; the allocation fails only if the whole
 * heap has grown by as much, too. So a task pays neither for the garbage of others nor for its own,
 * collected later. Callers: its floor. */
#ifndef AH_LUA_FENCE_H
#define AH_LUA_FENCE_H

#include "lua/lua_state.h"

/* All zero: no fence. Must not move while it is entered. */
typedef struct ah_fence {
    size_t memory;      /* bytes; 0: the fence does nothing */
    const char *advice; /* text after the limit in the error; NULL: none */
    bool no_exit;       /* os.exit is refused */
    int64_t used;       /* bytes; never below 0 */
    int64_t before;     /* bytes: the smallest heap since it was first entered */
    int64_t asked;      /* `used` with the last refused allocation; 0: not refused by this fence */
    size_t heap_max;    /* max_memory, if that refused the last allocation; else 0 */
    bool began, entered, guards;
    struct ah_fence *outer; /* the fence around it, while entered */
    /* The fence of the call that this code is part of, whose limit and counts hold; NULL: its
     * own. */
    struct ah_fence *shares;
    ah_lua_memory *heap; /* the counter in use, while entered */
    bool laid;           /* it put our allocator over another one */
} ah_fence;

/* Called around each entry; the last entered is left first. Never raise. */
void ah_fence_enter(ah_lua *h, ah_fence *f);
void ah_fence_leave(ah_lua *h, ah_fence *f);
/* Called around a drive, which runs code of others: lift returns the fence that put takes. */
ah_fence *ah_fence_lift(ah_lua *h);
void ah_fence_put(ah_lua *h, ah_fence *f);
/* Gives the code that closes a task's variables additional memory. Returns the limit before, which
 * ah_fence_narrow sets again. */
size_t ah_fence_widen(ah_fence *f);
void ah_fence_narrow(ah_fence *f, size_t memory);
/* Returns the fence that has the limit and the counts of f. */
ah_fence *ah_fence_counted(ah_fence *f);

/* Returns true, with *err filled, if the failure with this lua_Status came from the fence. */
bool ah_fence_failed(const ah_fence *f, int status, ah_err *err);

/* Prepares the guard of os.exit, if os.exit exists. Raises when out of memory. */
void ah_lua_open_fence(lua_State *L);
/* Puts the guard in place for good, in a state of our own. */
void ah_lua_guard_exit(lua_State *L);

#endif
