/* The event loop of one host: watched descriptors, timers, a wake-up that any
 * thread or signal handler may give. It knows nothing of HTTP, runs or Lua.
 * Linux: one epoll descriptor that also holds an eventfd and a timerfd, so that
 * an embedder can watch it. Elsewhere (or built with AH_POLLER_POLL): poll(2). */
#ifndef AH_IO_LOOP_H
#define AH_IO_LOOP_H

#include <stdint.h>

#include "base/err.h"
#include "base/seconds.h"

typedef struct ah_loop ah_loop;

/* Milliseconds of a clock that only goes forward; injectable for tests. */
typedef int64_t (*ah_clock_fn)(void *ud);

/* clock NULL: the system's monotonic one. */
ah_status ah_loop_new(const ah_mem *mem, ah_clock_fn clock, void *ud, ah_loop **out, ah_err *err);
void ah_loop_free(ah_loop *loop); /* watches and timers must be gone; NULL is fine */

int64_t ah_loop_now(ah_loop *loop); /* ms, read from the clock at each call */

enum { AH_IN = 1, AH_OUT = 2 };

/* Watches fd for AH_IN | AH_OUT; events 0 ends it (harmless when there is none, cannot
 * fail). Calling again changes it; to change nothing costs nothing. One watch a
 * descriptor; end it before closing the descriptor. fn is called from ah_loop_wait with
 * the events that came (errors and hang-ups are told as both). */
typedef void (*ah_watch_fn)(void *ud, int fd, int events);
ah_status ah_loop_watch(ah_loop *loop, int fd, int events, ah_watch_fn fn, void *ud, ah_err *err);

/* Timers live in the caller's memory and need none of ours: setting one cannot
 * fail. Zero is an unset timer with its fn to be filled. They must not move
 * while set. fn is called from ah_loop_wait once, after the timer was unset; of
 * those for the same time the first one set comes first. Setting and unsetting cost
 * little more with thousands of them than with one. */
typedef struct ah_timer ah_timer;
struct ah_timer {
    void (*fn)(ah_timer *t);
    int64_t at;                    /* loop's clock, ms */
    uint64_t number;               /* of the setting: later ones are larger */
    ah_timer *child, *next, *prev; /* loop.c's */
    ah_loop *loop;                 /* NULL: not set */
    bool due;                      /* its time has come, and it is about to be called */
};
void ah_timer_set(ah_loop *loop, ah_timer *t, int64_t at); /* sets or moves */
void ah_timer_unset(ah_timer *t);                          /* harmless when not set */

/* Waits at most timeout_ms (-1: until something comes, 0: not at all) for
 * descriptors, timers or a wake-up, calls what is due, and returns true when
 * anything was called or a wake-up came. A signal ends the wait early, with true.
 * Callbacks may set and unset watches and timers of this loop. One call does not
 * promise to do all that is due (timers due may come first, descriptors with the
 * next call): call again while it returns true. Waits may nest. */
bool ah_loop_wait(ah_loop *loop, int timeout_ms);

/* True if a wait would end by a wake-up or a signal alone: nothing is watched, no timer is set. */
bool ah_loop_idle(const ah_loop *loop);

/* Makes the current or next ah_loop_wait return. From any thread, async-signal-safe. */
void ah_loop_wake(ah_loop *loop);

/* A descriptor that is readable when ah_loop_wait(loop, 0) would do something, or
 * -1 where the system has none; and the ms until the next timer (-1: none). From
 * the first call of ah_loop_fd on, timers are armed in the descriptor too. */
int ah_loop_fd(ah_loop *loop);
int ah_loop_timeout(ah_loop *loop);

const char *ah_loop_kind(void); /* "epoll" or "poll", for --version */

#endif
