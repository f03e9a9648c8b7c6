/* The event loop: a table of watched descriptors, a heap of timers, a wake-up descriptor, and a
 * backend that waits: epoll (Linux) or poll(2), behind four functions at the end of the first half.
 * It starts no thread and installs no signal handler; only ah_loop_wake may be called from another
 * thread.
 *
 * The heap is a pairing heap (Fredman and others, 1986): a tree whose nodes are the timers
 * themselves, none earlier than its parent. Setting one is one comparison; removing one joins its
 * children, amortised logarithmic. */
#include "io/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && !defined(AH_POLLER_POLL)
#define AH_POLLER_EPOLL 1
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#else
#define AH_POLLER_EPOLL 0
#include <poll.h>
#endif

#include "io/clock.h"

enum { MAX_FD = 1 << 24, BATCH = 64, MAX_SKIPPED = 4 };

typedef struct watch {
    ah_watch_fn fn;
    void *ud;
    int events; /* 0: not watched */
    /* epoll: counts ended watches, so that an old event is recognised; poll: index in the array. */
    uint32_t tag;
} watch;

struct ah_loop {
    const ah_mem *mem;
    ah_clock_fn clock;
    void *clock_ud;
    watch *watches; /* indexed by descriptor */
    size_t n_watches;
    size_t active;     /* watches with events, except the loop's own */
    ah_timer *first;   /* root of the heap; NULL: no timer is set */
    uint64_t settings; /* the last number given */
    ah_timer due;      /* head of a ring of expired timers, to be called in this wait */
    size_t waited;     /* timers that are set, except those that are `aside` */
    int skipped;       /* waits in a row that called timers and skipped descriptors */
    int depth;         /* nesting depth of waits */
    int wake_in, wake_out;
#if AH_POLLER_EPOLL
    int epoll;
    int timerfd;   /* -1 until ah_loop_fd */
    int64_t armed; /* time set in timerfd, or DISARMED */
#else
    struct pollfd *polled;
    size_t n_polled, cap_polled;
#endif
};

#define DISARMED INT64_MIN

static int64_t monotonic(void *ud)
{
    (void)ud;
    return ah_clock_ms();
}

static ah_status failed(const char *what, ah_err *err)
{
    int e = errno;

    if (e == ENOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, AH_INTERNAL, "the event loop cannot %s: %s", what,
                      e == EMFILE || e == ENFILE ? "too many open files (raise ulimit -n)"
                                                 : strerror(e));
}

#if AH_POLLER_EPOLL
/* ---- epoll ---- */

static ah_status backend_open(ah_loop *loop, ah_err *err)
{
    loop->timerfd = -1;
    loop->armed = DISARMED;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0)
        return failed("open an epoll descriptor", err);
    loop->wake_in = loop->wake_out = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return loop->wake_in < 0 ? failed("open an eventfd", err) : AH_OK;
}

static void backend_close(ah_loop *loop)
{
    if (loop->timerfd >= 0)
        close(loop->timerfd);
    if (loop->wake_in >= 0)
        close(loop->wake_in);
    if (loop->epoll >= 0)
        close(loop->epoll);
}

/* A descriptor that was closed first has already left the epoll set, and its number may belong to
 * another file now: neither is a failure. */
static ah_status backend_set(ah_loop *loop, int fd, int events, ah_err *err)
{
    watch *w = &loop->watches[fd];
    struct epoll_event ev = {.events = (events & AH_IN ? (uint32_t)EPOLLIN : 0) |
                                       (events & AH_OUT ? (uint32_t)EPOLLOUT : 0)};

    if (!events) {
        w->tag++;
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, &ev);
        return AH_OK;
    }
    ev.data.u64 = (uint64_t)w->tag << 32 | (uint32_t)fd;
    if (epoll_ctl(loop->epoll, w->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) == 0)
        return AH_OK;
    if (errno == ENOENT && epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
        return AH_OK;
    return failed("watch a descriptor", err);
}

static bool dispatch(ah_loop *loop, const struct epoll_event *ev)
{
    int fd = (int)(uint32_t)ev->data.u64, events = 0;
    const watch *w = &loop->watches[fd];

    if (!w->events || w->tag != (uint32_t)(ev->data.u64 >> 32))
        return false; /* ended by a callback of this batch */
    if (ev->events & EPOLLIN)
        events |= AH_IN;
    if (ev->events & EPOLLOUT)
        events |= AH_OUT;
    if (ev->events & (EPOLLERR | EPOLLHUP))
        events = AH_IN | AH_OUT;
    w->fn(w->ud, fd, events);
    return true;
}

static bool backend_wait(ah_loop *loop, int timeout_ms)
{
    struct epoll_event batch[BATCH];
    int n = epoll_wait(loop->epoll, batch, BATCH, timeout_ms);
    bool called = false;

    if (n < 0)
        return errno == EINTR;
    for (int i = 0; i < n; i++)
        called |= dispatch(loop, &batch[i]);
    return called;
}

/* Sets the timerfd, if there is one, to the first deadline. Not within a wait, which does it at its
 * end. */
static void arm(ah_loop *loop)
{
    int64_t at = loop->first ? loop->first->at : DISARMED;
    struct itimerspec spec = {0};
    int ms;

    if (loop->timerfd < 0 || loop->depth || at == loop->armed)
        return;
    ms = ah_loop_timeout(loop);
    if (ms >= 0)
        spec.it_value = (struct timespec){ms / 1000, ms % 1000 * 1000000L + 1}; /* 0 would disarm */
    timerfd_settime(loop->timerfd, 0, &spec, NULL);
    loop->armed = at;
}

/* Setting a timerfd again also makes it unreadable. */
static void on_timerfd(void *ud, int fd, int events)
{
    const struct itimerspec off = {0};
    ah_loop *loop = ud;

    (void)events;
    timerfd_settime(fd, 0, &off, NULL);
    loop->armed = DISARMED;
}

int ah_loop_fd(ah_loop *loop)
{
    if (loop->timerfd >= 0)
        return loop->epoll;
    loop->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->timerfd < 0)
        return -1;
    if (ah_loop_watch(loop, loop->timerfd, AH_IN, on_timerfd, loop, NULL) != AH_OK) {
        close(loop->timerfd);
        loop->timerfd = -1;
        return -1;
    }
    loop->active--;
    arm(loop);
    return loop->epoll;
}

#else
/* ---- poll ---- */

static bool set_flags(int fd)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static ah_status backend_open(ah_loop *loop, ah_err *err)
{
    int ends[2];

    if (pipe(ends) < 0)
        return failed("open a pipe", err);
    loop->wake_in = ends[0];
    loop->wake_out = ends[1];
    return set_flags(ends[0]) && set_flags(ends[1]) ? AH_OK : failed("set up a pipe", err);
}

static void backend_close(ah_loop *loop)
{
    if (loop->wake_in >= 0)
        close(loop->wake_in);
    if (loop->wake_out >= 0)
        close(loop->wake_out);
    ah_free(loop->mem, loop->polled);
}

static void remove_polled(ah_loop *loop, size_t slot)
{
    loop->polled[slot] = loop->polled[--loop->n_polled];
    loop->watches[loop->polled[slot].fd].tag = (uint32_t)slot;
}

static ah_status backend_set(ah_loop *loop, int fd, int events, ah_err *err)
{
    watch *w = &loop->watches[fd];
    struct pollfd *p;

    if (!events) {
        remove_polled(loop, w->tag);
        return AH_OK;
    }
    if (!w->events) {
        p = ah_grow(loop->mem, loop->polled, &loop->cap_polled, loop->n_polled + 1, sizeof *p);
        if (!p)
            return ah_err_nomem(err);
        loop->polled = p;
        w->tag = (uint32_t)loop->n_polled;
        p[loop->n_polled++] = (struct pollfd){.fd = fd};
    }
    loop->polled[w->tag].events =
        (short)((events & AH_IN ? POLLIN : 0) | (events & AH_OUT ? POLLOUT : 0));
    return AH_OK;
}

static void dispatch(ah_loop *loop, int fd, int came)
{
    const watch *w = &loop->watches[fd];
    int events = (came & POLLIN ? AH_IN : 0) | (came & POLLOUT ? AH_OUT : 0);

    if (came & (POLLERR | POLLHUP | POLLNVAL))
        events = AH_IN | AH_OUT;
    w->fn(w->ud, fd, events);
}

/* Callbacks may add and remove entries during the walk: an entry moved to a passed place is left
 * for the next wait, and none is called twice. */
static bool backend_wait(ah_loop *loop, int timeout_ms)
{
    bool called = false;
    int left = poll(loop->polled, loop->n_polled, timeout_ms);

    if (left < 0)
        return errno == EINTR;
    for (size_t i = 0; left > 0 && i < loop->n_polled; i++) {
        struct pollfd p = loop->polled[i];

        if (!p.revents)
            continue;
        loop->polled[i].revents = 0;
        left--;
        called = true;
        dispatch(loop, p.fd, p.revents);
    }
    return called;
}

static void arm(ah_loop *loop)
{
    (void)loop;
}

int ah_loop_fd(ah_loop *loop)
{
    (void)loop;
    return -1;
}
#endif

/* ---- wake-up ---- */

/* An eventfd returns its 8 bytes at once; a pipe is emptied. */
static void on_wake(void *ud, int fd, int events)
{
    char bytes[64];

    (void)ud;
    (void)events;
    while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
}

void ah_loop_wake(ah_loop *loop)
{
    const uint64_t one = 1;
    int e = errno; /* a signal handler must not change errno */

    while (write(loop->wake_out, &one, sizeof one) < 0 && errno == EINTR)
        ;
    errno = e;
}

/* ---- watches ---- */

static ah_status grow_watches(ah_loop *loop, int fd, ah_err *err)
{
    size_t cap = loop->n_watches;
    watch *w = ah_grow(loop->mem, loop->watches, &cap, (size_t)fd + 1, sizeof *w);

    if (!w)
        return ah_err_nomem(err);
    if (cap > loop->n_watches)
        memset(w + loop->n_watches, 0, (cap - loop->n_watches) * sizeof *w);
    loop->watches = w;
    loop->n_watches = cap;
    return AH_OK;
}

ah_status ah_loop_watch(ah_loop *loop, int fd, int events, ah_watch_fn fn, void *ud, ah_err *err)
{
    ah_status st = AH_OK;
    watch *w;

    if (fd < 0 || fd >= MAX_FD || (events & ~(AH_IN | AH_OUT)) || (events && !fn))
        return ah_err_set(err, AH_USAGE, "ah_loop_watch: descriptor %d, events %d", fd, events);
    if ((size_t)fd >= loop->n_watches && events)
        st = grow_watches(loop, fd, err);
    if (st != AH_OK || (size_t)fd >= loop->n_watches)
        return st;
    w = &loop->watches[fd];
    if (events != w->events)
        st = backend_set(loop, fd, events, err);
    if (st == AH_OK) {
        loop->active += (size_t)(events != 0) - (size_t)(w->events != 0);
        w->events = events;
        w->fn = fn;
        w->ud = ud;
    }
    return st;
}

bool ah_loop_idle(const ah_loop *loop)
{
    return !loop->active && !loop->waited;
}

/* ---- timers ---- */

static bool is_before(const ah_timer *a, const ah_timer *b)
{
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

/* Joins two heaps; either may be NULL. */
static ah_timer *join(ah_timer *a, ah_timer *b)
{
    ah_timer *top = !b || (a && is_before(a, b)) ? a : b, *under = top == a ? b : a;

    if (!under)
        return top;
    under->prev = top;
    under->next = top->child;
    if (top->child)
        top->child->prev = under;
    top->child = under;
    return top;
}

/* Joins a list of heaps: in pairs on the way there, then the pairs on the way back. */
static ah_timer *join_all(ah_timer *list)
{
    ah_timer *pairs = NULL, *all = NULL;

    while (list) {
        ah_timer *a = list, *b = a->next, *pair;

        list = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        pair = join(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs) {
        ah_timer *pair = pairs;

        pairs = pair->next;
        pair->next = NULL;
        all = join(all, pair);
    }
    return all;
}

static void take_out(ah_loop *loop, ah_timer *t)
{
    ah_timer *under = join_all(t->child);

    if (t == loop->first) {
        loop->first = under;
        return;
    }
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next)
        t->next->prev = t->prev;
    loop->first = join(loop->first, under);
}

void ah_timer_set(ah_loop *loop, ah_timer *t, int64_t at)
{
    ah_timer_unset(t);
    t->at = at;
    t->number = ++loop->settings;
    t->loop = loop;
    loop->waited += !t->aside;
    loop->first = join(loop->first, t);
    if (loop->first == t)
        arm(loop);
}

/* An armed timerfd stays armed: it wakes once without effect, and that wait corrects it. */
void ah_timer_unset(ah_timer *t)
{
    if (!t->loop)
        return;
    if (t->due) {
        t->prev->next = t->next;
        t->next->prev = t->prev;
    } else {
        take_out(t->loop, t);
    }
    t->child = t->next = t->prev = NULL;
    t->loop->waited -= !t->aside;
    t->loop = NULL;
    t->due = false;
}

static void put_due(ah_loop *loop, ah_timer *t)
{
    ah_timer_unset(t);
    t->loop = loop;
    loop->waited += !t->aside;
    t->due = true;
    t->prev = loop->due.prev;
    t->next = &loop->due;
    t->prev->next = t;
    loop->due.prev = t;
}

/* Moves expired timers to `due`, so that a timer set by a callback of this wait is called by the
 * next one at the earliest. */
static void expire(ah_loop *loop)
{
    int64_t now = loop->first ? ah_loop_now(loop) : 0;

    while (loop->first && loop->first->at <= now)
        put_due(loop, loop->first);
}

static bool run_timers(ah_loop *loop)
{
    bool called = false;

    expire(loop);
    while (loop->due.next != &loop->due) {
        ah_timer *t = loop->due.next;

        ah_timer_unset(t);
        t->fn(t);
        called = true;
    }
    return called;
}

int ah_loop_timeout(ah_loop *loop)
{
    const ah_timer *first = loop->first;
    int64_t now;
    uint64_t left;

    if (!first)
        return -1;
    now = ah_loop_now(loop);
    if (first->at <= now)
        return 0;
    left = (uint64_t)first->at - (uint64_t)now;
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* ---- the loop ---- */

int64_t ah_loop_now(ah_loop *loop)
{
    return loop->clock(loop->clock_ud);
}

ah_status ah_loop_new(const ah_mem *mem, ah_clock_fn clock, void *ud, ah_loop **out, ah_err *err)
{
    ah_loop *loop = ah_alloc(mem, sizeof *loop);
    ah_status st;

    if (!loop)
        return ah_err_nomem(err);
    loop->mem = mem;
    loop->clock = clock ? clock : monotonic;
    loop->clock_ud = ud;
    loop->wake_in = loop->wake_out = -1;
    loop->due.next = loop->due.prev = &loop->due;
    loop->active = (size_t)-1; /* the wake-up makes it 0 */
    st = backend_open(loop, err);
    if (st == AH_OK)
        st = ah_loop_watch(loop, loop->wake_in, AH_IN, on_wake, loop, err);
    if (st != AH_OK) {
        ah_loop_free(loop);
        return st;
    }
    *out = loop;
    return AH_OK;
}

void ah_loop_free(ah_loop *loop)
{
    if (!loop)
        return;
    assert(!loop->first && loop->due.next == &loop->due);
    backend_close(loop);
    ah_free(loop->mem, loop->watches);
    ah_free(loop->mem, loop);
}

static int wait_ms(ah_loop *loop, int timeout_ms)
{
    int next = timeout_ms == 0 ? -1 : ah_loop_timeout(loop);

    return next >= 0 && (timeout_ms < 0 || next < timeout_ms) ? next : timeout_ms;
}

/* Due timers save the system call of this wait, but not of many in a row, so that descriptors do
 * not starve. */
bool ah_loop_wait(ah_loop *loop, int timeout_ms)
{
    bool called;

    loop->depth++;
    called = run_timers(loop);
    if (called && loop->skipped < MAX_SKIPPED) {
        loop->skipped++;
    } else {
        loop->skipped = 0;
        called |= backend_wait(loop, called ? 0 : wait_ms(loop, timeout_ms));
        called |= run_timers(loop);
    }
    loop->depth--;
    arm(loop);
    return called;
}

const char *ah_loop_kind(void)
{
#if defined(__linux__) && !defined(AH_POLLER_POLL)
    return "epoll";
#else
    return "poll";
#endif
}
