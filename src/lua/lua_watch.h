/* Watches: limit how long Lua code runs. Each entry from C into Lua (ah_lua_call, each resume of a
 * task) is under a watch, which the caller owns; the watch that ends first stops the code. Only the
 * script itself runs without one, and only the end of the program interrupts it (ah_terminate,
 * ah_cancel). A count hook reads the clocks; the number of instructions between two looks follows
 * from the time that the previous ones took. Since a hook belongs to one thread, coroutine.resume
 * and the like are guarded. When a watch is over, a task's own thread yields. In all other threads
 * from the entered one to the running one, each instruction raises; in a task after a grace period,
 * in which variables marked <close> are closed. Callers: its floor. */
#ifndef AH_LUA_WATCH_H
#define AH_LUA_WATCH_H

#include "lua/lua_state.h"

typedef enum ah_watch_end {
    AH_IN_TIME,
    AH_WATCH_OVER_WORK,      /* worked for too long */
    AH_WATCH_OVER_TIME,      /* its own deadline */
    AH_WATCH_OVER_RUN,       /* the time of its run, or of a run or call around that */
    AH_WATCH_OVER_CANCELLED, /* its run is being cancelled, or all runs are */
    AH_WATCH_OVER_AROUND     /* the watch around it */
} ah_watch_end;

/* One watch. All zero means no limit. Must not move while it is entered. */
typedef struct ah_watch {
    int64_t of;             /* number of the run that it belongs to; 0: none */
    ah_task *task;          /* the task that it resumes; NULL: a call, which cannot yield */
    int64_t deadline;       /* loop clock; 0: none */
    int64_t work_ms;        /* ms of processor time; 0: unlimited */
    const char *advice;     /* text after the limit of work in the error; NULL: none */
    struct ah_fence *fence; /* for a call: entered after its first instructions */
    bool closing;           /* only its deadline counts */
    ah_watch_end over;      /* final once set */
    bool pause;             /* made by ah_watch_pause */
    ah_watch *outer;        /* set by the functions below, from here on */
    lua_State *thread;      /* the thread that was entered */
    lua_State *back;        /* the thread that ran before */
    lua_Hook hook;          /* the earlier hook of the thread */
    int mask, count;        /* of that hook */
    int64_t entered;        /* ns; 0: a call that has just begun */
    int64_t ended;          /* ns: when it was found to be over */
    int64_t unwanted;       /* ns: when its task was found to be cancelled; 0: it is not */
    int64_t told;           /* ns: when its code first got an error for that; 0: not yet */
    int64_t us,
        since; /* processor time in us: used before; at the last entry (0: not counted now) */
    /* The watch of the call that this code is part of, which has `us`; NULL: this one. */
    struct ah_watch *shares;
} ah_watch;

/* Called around each entry; the last entered is left first. Never raise. */
void ah_watch_enter(ah_lua *h, ah_watch *w, lua_State *L);
void ah_watch_leave(ah_lua *h, ah_watch *w);
/* Called around a drive, which runs code of others; deadlines still hold. */
void ah_watch_pause(ah_lua *h, ah_watch *mark);
void ah_watch_go_on(ah_lua *h, ah_watch *mark);

/* Reads all clocks and returns why the innermost watch is over; in a pause, why one around it is
 * over. AH_IN_TIME: not over. */
ah_watch_end ah_watch_look(ah_lua *h);
/* An ah_interrupt for computations in C on behalf of the current code; ud is the ah_lua. */
bool ah_watch_interrupts(void *lua);
/* Called before an error is raised in the current code because its watch is over. */
void ah_watch_told(ah_lua *h);
/* Called at a wait: a task whose watch is over ends there, and what it has opened is closed.
 * Returns if the code is in time, or cannot be yielded. */
void ah_watch_halt(lua_State *L);
/* Called after a computation was interrupted; `what` names its place (.n 0: none). Ends the code,
 * or raises where it cannot be yielded. Code that catches the error is stopped at its next
 * instruction, or after the grace period of a task. */
int ah_watch_raise(lua_State *L, ah_slice what);
/* Returns true if w is over once its code has returned by itself: one long call into C is not
 * interrupted. */
bool ah_watch_late(ah_lua *h, ah_watch *w);
/* Fills *err with the reason why w is over. Returns false if it is not over. */
bool ah_watch_failed(const ah_watch *w, ah_err *err);
/* Sets the deadline of the call that runs now; does nothing in a task. */
void ah_watch_until(ah_lua *h, int64_t deadline);
/* Limits calls by `until`, as if that were the end of the run that is being begun, until the pushed
 * value is popped or the code below raises. If `until` is 0, pushes nil. Raises when out of
 * memory. */
void ah_watch_bound(lua_State *L, int64_t until);
void ah_lua_open_watch(lua_State *L);
/* Returns the end of the time for closing code that was stopped (loop clock). */
int64_t ah_watch_grace(ah_lua *h);

/* Called in allocations: the clock is read before the next instruction. With `calls` it is also
 * read before calls for a while, since a call may work long on a large block. */
void ah_watch_soon(ah_lua *h, bool calls);

/* -- threads (lua_coroutine.c) --------------------------------------------------- */

/* Called around code that runs in `co`, when the thread L resumes or closes it. Entering raises if
 * the watch is over. */
void ah_watch_into(ah_lua *h, lua_State *L, lua_State *co);
void ah_watch_back(ah_lua *h, lua_State *L);

/* Guards coroutine.resume, wrap and close, and debug.sethook for good. Called when the library's
 * first watch is entered or, in a state of our own, before anything else. Raises when out of
 * memory. */
void ah_lua_guard_threads(lua_State *L);

/* -- the script itself ------------------------------------------------------------- */

/* Called in signal handlers on the host's thread: interrupts the Lua code that runs. */
void ah_watch_interrupt(ah_lua *h);
/* Called before the script continues in L. After ah_terminate it interrupts the script: at once, or
 * a moment later if the script's wait has already reported the end (`told`). */
void ah_watch_heed(ah_lua *h, lua_State *L, bool told);

#endif
