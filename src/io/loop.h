/* The event loop of one host: watched descriptors, timers, and a wake-up that any thread or signal
 * handler may trigger. Used by one thread, except ah_loop_wake; callbacks may re-enter it. It owns
 * its own descriptors; watched ones and timers are the caller's. On Linux one epoll descriptor
 * contains an eventfd and a timerfd, so that an embedder can watch it; elsewhere (or built with
 * AH_POLLER_POLL) it uses poll(2). Callers: its floor. */
#ifndef AH_IO_LOOP_H
#define AH_IO_LOOP_H

#include <stdint.h>

#include "base/err.h"
#include "base/seconds.h"

typedef struct ah_loop ah_loop;

/* Milliseconds of a monotonic clock; replaceable for tests. */
typedef int64_t (*ah_clock_fn)(void *ud);

/* clock NULL: the system's monotonic clock. */
ah_status ah_loop_new(const ah_mem *mem, ah_clock_fn clock, void *ud, ah_loop **out, ah_err *err);
void ah_loop_free(ah_loop *loop); /* watches and timers must be gone; NULL is allowed */

int64_t ah_loop_now(ah_loop *loop); /* ms, read from the clock at each call */

enum { AH_IN = 1, AH_OUT = 2 };

/* Watches fd for AH_IN | AH_OUT. events 0 ends the watch, which cannot fail, and does nothing if
 * there is none. A second call changes the watch; an unchanged one costs nothing. One watch per
 * descriptor; end it before closing the descriptor. fn is called from ah_loop_wait with the events
 * that occurred (errors and hang-ups count as both). */
typedef void (*ah_watch_fn)(void *ud, int fd, int events);
ah_status ah_loop_watch(ah_loop *loop, int fd, int events, ah_watch_fn fn, void *ud, ah_err *err);

/* Timers are in the caller's memory, so setting one cannot fail. All zero, with fn set, is an unset
 * timer. A timer must not move while it is set. fn is called from ah_loop_wait once, after the
 * timer was unset; of timers for the same time the one set first comes first. Setting and unsetting
 * cost little more with thousands of timers than with one. */
typedef struct ah_timer ah_timer;
struct ah_timer {
    void (*fn)(ah_timer *t);
    int64_t at;                    /* time of the loop's clock, ms */
    uint64_t number;               /* number of the setting: later ones are larger */
    ah_timer *child, *next, *prev; /* used by loop.c */
    ah_loop *loop;                 /* NULL: not set */
    bool due;                      /* it has expired and is about to be called */
    bool aside;                    /* set by the owner: ah_loop_idle disregards it */
};
void ah_timer_set(ah_loop *loop, ah_timer *t, int64_t at); /* sets or moves */
void ah_timer_unset(ah_timer *t);                          /* no effect if not set */

/* Waits at most timeout_ms (-1: without limit, 0: not at all) for descriptors, timers or a wake-up,
 * and calls what is due. Returns true if anything was called or a wake-up came. A signal ends the
 * wait early, with true. Callbacks may set and unset watches and timers of this loop. One call need
 * not do everything that is due (due timers may come first, descriptors with the next call): call
 * it again while it returns true. Waits may nest. */
bool ah_loop_wait(ah_loop *loop, int timeout_ms);

/* True if only a wake-up or a signal would end a wait: nothing is watched, and
 * no timer is set but those that are `aside`. */
bool ah_loop_idle(const ah_loop *loop);

/* Makes the current or next ah_loop_wait return. Callable from any thread; async-signal-safe. */
void ah_loop_wake(ah_loop *loop);

/* ah_loop_fd: a descriptor that is readable when ah_loop_wait(loop, 0) would do something, or -1 if
 * the system has none. From its first call on, timers are armed in the descriptor too.
 * ah_loop_timeout: ms until the next timer; -1: none. */
int ah_loop_fd(ah_loop *loop);
int ah_loop_timeout(ah_loop *loop);

const char *ah_loop_kind(void); /* "epoll" or "poll", for --version */

#endif
