/* Watches: who lets Lua run says how long. One stands over every entry from C into Lua (a call
 * through ah_lua_call, a task each time it is resumed), the inner ones upon the outer ones: the one
 * that ends first stops the code, and the outer ones hold on. No code of a script runs without
 * one but the script itself, which a program's end alone interrupts (ah_terminate, ah_cancel).
 *
 * A count hook looks at the clock, and guards of coroutine.resume and its like, as the hook
 * belongs to a thread. How many instructions are between two looks follows from the time that the
 * last ones took. Past its end a watch is over for good: a task's own thread is yielded out of,
 * everywhere else an error is raised before each instruction, in all threads between the one
 * that was entered and the one at work, and in what they make or resume. */
#ifndef AH_LUA_WATCH_H
#define AH_LUA_WATCH_H

#include "lua/lua_state.h"

typedef enum ah_watch_end {
    AH_IN_TIME,
    AH_WATCH_OVER_WORK,      /* at work for too long */
    AH_WATCH_OVER_TIME,      /* its own deadline */
    AH_WATCH_OVER_RUN,       /* the time of its run, or of what is around that */
    AH_WATCH_OVER_CANCELLED, /* its run is being cancelled, or all runs are */
    AH_WATCH_OVER_AROUND     /* the watch around it */
} ah_watch_end;

/* Zero with what is to hold: no limit. Lies still while it is entered. */
typedef struct ah_watch {
    int64_t of;         /* number of the run that it belongs to; 0: none */
    ah_task *task;      /* the task that it resumes; NULL: a call, which cannot be yielded out of */
    int64_t deadline;   /* loop clock; 0: none */
    int64_t work_ms;    /* processor time; 0: any */
    const char *advice; /* text after the limit of work in the error; NULL: none */
    struct ah_fence *fence; /* of a call: entered once it was at work for some instructions */
    bool closing;           /* only its deadline counts */
    ah_watch_end over;      /* for good */
    bool pause;             /* the mark of ah_watch_pause */
    ah_watch *outer;        /* from here on its own */
    lua_State *thread;      /* the one that was entered */
    lua_State *back;        /* the one that was at work before */
    lua_Hook hook;          /* its hook before */
    int mask, count;        /* likewise */
    int64_t entered;        /* ns; 0: a call that has just begun */
    int64_t ended;          /* ns: since when it is over */
    int64_t us, since;      /* processor time: used before; at the last entry, 0: not counted now */
} ah_watch;

/* Around each entry, the last entered is left first. Never raise. */
void ah_watch_enter(ah_lua *h, ah_watch *w, lua_State *L);
void ah_watch_leave(ah_lua *h, ah_watch *w);
/* Called around a drive, which does the work of others; deadlines still hold. */
void ah_watch_pause(ah_lua *h, ah_watch *mark);
void ah_watch_go_on(ah_lua *h, ah_watch *mark);

/* Looks at all clocks. Returns why the innermost watch is over; in a pause, why one around it is.
 * AH_IN_TIME: it is not over. */
ah_watch_end ah_watch_look(ah_lua *h);
/* An ah_interrupt for computations in C for the code that is at work; the ud is the ah_lua. */
bool ah_watch_interrupts(void *lua);
/* Raises after a computation that was interrupted; `what` names its place, .n 0: none. Code that
 * catches the error runs to its next instruction and no further. */
int ah_watch_raise(lua_State *L, ah_slice what);
/* The same as ah_watch_look when the code has come back by itself: one long call into C is not
 * interrupted. */
bool ah_watch_late(ah_lua *h, ah_watch *w);
/* Fills *err with why it is over; false: it is not, or its run has that error itself. */
bool ah_watch_failed(const ah_watch *w, ah_err *err);
/* A second limit of the call that is at work. */
void ah_watch_until(ah_lua *h, int64_t deadline);
/* Limits calls by `until` as if it were the end of the run that is being begun, until the pushed
 * value is popped or the code below raises. If `until` is 0, nil is pushed. Raises when out of
 * memory. */
void ah_watch_bound(lua_State *L, int64_t until);
void ah_lua_open_watch(lua_State *L);
/* Returns when the time to close stopped code is over. */
int64_t ah_watch_grace(ah_lua *h);

/* Called in allocations: the clock is looked at before the next instruction; with `calls` also
 * before calls, for a while, as there is now something large that a call may work on for long. */
void ah_watch_soon(ah_lua *h, bool calls);

/* -- threads (lua_coroutine.c) --------------------------------------------------- */

/* Called around code that runs in `co` when the thread L resumes or closes it. Entering raises if
 * the watch is over. */
void ah_watch_into(ah_lua *h, lua_State *L, lua_State *co);
void ah_watch_back(ah_lua *h, lua_State *L);

/* Guards coroutine.resume, wrap and close, and debug.sethook for good: when the library's first
 * watch is entered, in a state of our own before anything else. Raises when out of memory. */
void ah_lua_guard_threads(lua_State *L);

/* -- the script itself ------------------------------------------------------------- */

/* Called in signal handlers on the host's thread: interrupts the Lua code at work. */
void ah_watch_interrupt(ah_lua *h);
/* Called before the script goes on in L: after ah_terminate it has a moment left, or no time at all
 * if its wait did not report that. */
void ah_watch_heed(ah_lua *h, lua_State *L, bool told);

#endif
