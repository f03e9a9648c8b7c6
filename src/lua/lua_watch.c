/* The stack of watches, the hook that reads the clocks, and the end of code whose watch is over. */
#include "lua/lua_watch.h"

#include <time.h>

#include "io/clock.h"
#include "lua/lua_error.h"
#include "lua/lua_memory.h"
#include "lua/lua_task.h"

/* Instructions between two looks at the clock: few at first, so that costly calls are noticed
 * early; at most so many that a look takes less than a hundredth of their time. */
enum { FIRST_COUNT = 8, MOST_COUNT = 400, MOST_GROWTH = 16 };

enum {
    INTERVAL_NS = 1000000, /* target for the time between two looks */
    CPU_NS = 4000000,      /* how often processor time is read, which is a system call */
    LEAST_NS = 10000000,   /* minimum for a call in any case */
    GRACE_MS = 200, /* for calls, after their run has ended; for a script, after ah_terminate */
    CLOSE_GRACE_MS = 1000 /* for the pending closes of a stopped task */
};

enum { MOST_THREADS = 256 }; /* that have resumed one another: more than Lua allows */

/* Work without a wait that others may notice, ns; checked builds are many times slower. */
#ifdef AH_CHECKING
enum { HELD_NS = 1000 * 1000 * 1000 };
#else
enum { HELD_NS = 100 * 1000 * 1000 };
#endif

enum { COUNTED_CALLS = 100000 }; /* before which the clock is read, after a large block */

/* -- the processor's clock ------------------------------------------------------------------ */

/* Returns the processor time used, in us, never 0. One reading serves for some milliseconds: of
 * many short entries, as many are counted too long as too short. */
static int64_t cpu_us(ah_lua *h, int64_t now, bool exact)
{
    struct timespec t;

    if (!exact && h->cpu_us && now - h->cpu_read < CPU_NS)
        return h->cpu_us;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    h->cpu_read = now;
    h->cpu_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + 1;
    return h->cpu_us;
}

static void start_work(ah_lua *h, ah_watch *w, int64_t now)
{
    w->since = w->work_ms || w->task ? cpu_us(h, now, false) : 0;
}

static int64_t *worked(ah_watch *w)
{
    return w->shares ? &w->shares->us : &w->us;
}

static void stop_work(ah_lua *h, ah_watch *w, int64_t now)
{
    if (w->since)
        *worked(w) += cpu_us(h, now, false) - w->since;
    w->since = 0;
}

static bool overworked(ah_lua *h, ah_watch *w, int64_t now)
{
    return w->work_ms && w->since &&
           *worked(w) + cpu_us(h, now, true) - w->since >= w->work_ms * 1000;
}

/* Notes the line at which a task has worked for long without a wait while others exist, once. */
static void note_hold(ah_lua *h, const ah_watch *w, lua_State *L, int64_t now)
{
    if (!w->task || h->busy[0] || now - w->entered < HELD_NS || h->n_tasks < 2)
        return;
    if (w->since && cpu_us(h, now, true) - w->since >= HELD_NS / 1000)
        ah_lua_where(L, h->busy, sizeof h->busy);
}

/* -- when a watch is over --------------------------------------------------------------------- */

/* Returns when the flag was first seen set; 0: it is not set. */
static int64_t seen(atomic_bool *flag, int64_t *first, int64_t now)
{
    if (!atomic_load(flag))
        *first = 0;
    else if (!*first)
        *first = now;
    return *first;
}

/* Returns since when (loop clock) the work of w is not wanted any more; 0: it is wanted. */
static int64_t unwanted_since(ah_lua *h, const ah_watch *w, int64_t now, ah_watch_end *why)
{
    ah_status st = AH_CANCELLED;
    int64_t since = ah_driver_run_ended(h->host, w->of, now, &st);
    int64_t stopped = seen(&h->host->stop, &h->stop_seen, now);
    int64_t cancelled = seen(&h->host->cancel, &h->cancel_seen, now);

    *why = st == AH_DEADLINE ? AH_WATCH_OVER_RUN : AH_WATCH_OVER_CANCELLED;
    if (stopped && (!cancelled || stopped < cancelled))
        cancelled = stopped;
    if (cancelled && (!since || cancelled < since)) {
        since = cancelled;
        *why = AH_WATCH_OVER_CANCELLED;
    }
    return since;
}

static bool is_urgent(const ah_lua *h)
{
    return atomic_load(&h->host->cancel) || atomic_load(&h->host->stop);
}

/* The code of a cancelled task has a moment to close what it has opened, unless the program is
 * cancelled. Its next wait ends it. */
static bool lingers(const ah_lua *h, ah_watch *w, int64_t now)
{
    if (!w->unwanted)
        w->unwanted = now;
    return !is_urgent(h) && now - w->unwanted < GRACE_MS * (int64_t)1000000;
}

/* A call gets a moment more when its run ends, since it may restore something. at_once: the code
 * is at a wait. */
static ah_watch_end judge(ah_lua *h, ah_watch *w, int64_t now, bool at_once)
{
    int64_t ms = ah_host_now(h->host), since;
    ah_watch_end why;

    if (w->deadline && ms >= w->deadline)
        return AH_WATCH_OVER_TIME;
    if (w->closing)
        return AH_IN_TIME;
    if (overworked(h, w, now))
        return AH_WATCH_OVER_WORK;
    if (h->until && !w->task && ms >= h->until)
        return AH_WATCH_OVER_RUN;
    since = unwanted_since(h, w, ms, &why);
    if (!w->task)
        return since && ms - since >= GRACE_MS && now - w->entered >= LEAST_NS ? why : AH_IN_TIME;
    if (w->task->stopped)
        why = AH_WATCH_OVER_CANCELLED;
    else if (!since)
        return AH_IN_TIME;
    return at_once || why == AH_WATCH_OVER_RUN || !lingers(h, w, now) ? why : AH_IN_TIME;
}

/* True if the end of the outer watch ends w: at once if the outer one entered w, after a grace
 * period if it only waits for the work that is done here. A task that was stopped in such a wait
 * has ended its own tasks and runs: the others go on. */
static bool taken_along(const ah_watch *w, const ah_watch *outer, bool waits, int64_t now)
{
    if (waits && outer->task && outer->task->stopped)
        return false;
    return outer->over &&
           (!waits || w->task ||
            (now - outer->ended >= GRACE_MS * (int64_t)1000000 && now - w->entered >= LEAST_NS));
}

static ah_watch_end look(ah_lua *h, int64_t now, bool at_once)
{
    ah_watch *first = h->watch;
    bool waits = false;

    h->checked = now;
    for (ah_watch *w = first; w && !(w != first && first->closing); w = w->outer) {
        if (w->pause) {
            waits = true;
            continue;
        }
        if (!w->over && (w->over = judge(h, w, now, at_once)) != AH_IN_TIME)
            w->ended = now;
        if (first->pause && w->over)
            return w->over;
        if (!first->over && taken_along(first, w, waits, now)) {
            first->over = AH_WATCH_OVER_AROUND;
            first->ended = now;
        }
    }
    return first ? first->over : AH_IN_TIME;
}

ah_watch_end ah_watch_look(ah_lua *h)
{
    return look(h, ah_clock_ns(), true);
}

bool ah_watch_interrupts(void *lua)
{
    ah_lua *h = lua;

    return h->watch ? ah_watch_look(h) != AH_IN_TIME
                    : atomic_load(&h->host->cancel) || atomic_load(&h->host->stop);
}

bool ah_watch_late(ah_lua *h, ah_watch *w)
{
    int64_t now = ah_clock_ns();

    if (!w->over && now - w->entered >= INTERVAL_NS)
        w->over = judge(h, w, now, false);
    return w->over != AH_IN_TIME;
}

bool ah_watch_failed(const ah_watch *w, ah_err *err)
{
    switch (w->over) {
    case AH_IN_TIME:
        return false;
    case AH_WATCH_OVER_WORK:
        ah_err_set(err, AH_INTERNAL, "its code ran for more than %g seconds and was stopped%s",
                   (double)w->work_ms / 1000, w->advice ? w->advice : "");
        break;
    case AH_WATCH_OVER_RUN:
        ah_err_set(err, AH_DEADLINE, "its code was stopped: the time of the run is over");
        break;
    case AH_WATCH_OVER_CANCELLED:
        ah_err_set(err, AH_CANCELLED, "its code was stopped: the run is being cancelled");
        break;
    case AH_WATCH_OVER_TIME:
    case AH_WATCH_OVER_AROUND:
        ah_err_set(err, AH_INTERNAL,
                   "its code was stopped: the time of the enclosing call is over");
        break;
    }
    return true;
}

void ah_watch_until(ah_lua *h, int64_t deadline)
{
    if (h->watch && !h->watch->task)
        h->watch->deadline = deadline;
}

static const char BOUND[] = "agenthost.bound";

static int unbind(lua_State *L)
{
    ah_lua *h = ah_lua_known(L);

    if (h)
        h->until = *(int64_t *)luaL_checkudata(L, 1, BOUND);
    return 0;
}

void ah_watch_bound(lua_State *L, int64_t until)
{
    ah_lua *h = ah_lua_of(L);
    int64_t *before;

    if (!until) {
        lua_pushnil(L);
        return;
    }
    before = lua_newuserdatauv(L, sizeof *before, 0);
    *before = h->until;
    luaL_setmetatable(L, BOUND);
    lua_toclose(L, -1);
    h->until = until;
}

void ah_lua_open_watch(lua_State *L)
{
    luaL_newmetatable(L, BOUND);
    lua_pushcfunction(L, unbind);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}

int64_t ah_watch_grace(ah_lua *h)
{
    int64_t now = ah_host_now(h->host), stopped = seen(&h->host->stop, &h->stop_seen, now);
    int64_t until = now + CLOSE_GRACE_MS, least = now + LEAST_NS / 1000000;

    if (stopped && stopped + GRACE_MS < until)
        until = stopped + GRACE_MS;
    return until < least ? least : until;
}

/* -- the hook ---------------------------------------------------------------------------------- */

static void hook(lua_State *L, lua_Debug *ar);

/* Our allocator, which is in place wherever a watch counts memory, knows the host: asking it is
 * faster than the registry. */
static ah_lua *host_of(lua_State *L)
{
    void *ud;
    ah_lua *h = lua_getallocf(L, &ud) == ah_lua_alloc ? ((ah_lua_memory *)ud)->lua : NULL;

    if (!h)
        h = ah_lua_known(L);
    return h && h->host ? h : NULL;
}

static bool is_watched(const ah_lua *h)
{
    return h->watch && !h->watch->pause;
}

/* Calls the hook before each instruction from now on. */
static void hurry(lua_State *L)
{
    lua_sethook(L, hook, LUA_MASKCOUNT, 1);
}

/* lua_sethook visits all calls that L is in; that time is not counted. */
static void set_count(ah_lua *h, lua_State *L, int64_t count)
{
    lua_sethook(L, hook, LUA_MASKCOUNT | (h->calls > 0 ? LUA_MASKCALL : 0),
                count > 0 ? (int)count : 1);
    h->looked = ah_clock_ns();
}

static void adapt(ah_lua *h, lua_State *L, int64_t took)
{
    int64_t count = lua_gethookcount(L), other = count;

    if (took < INTERVAL_NS / MOST_GROWTH)
        other = count * MOST_GROWTH;
    else if (took < INTERVAL_NS / 2 || took > INTERVAL_NS)
        other = count * INTERVAL_NS / took;
    if (other > MOST_COUNT)
        other = MOST_COUNT;
    if (other != count || (h->calls > 0) != (lua_gethookmask(L) != LUA_MASKCOUNT))
        set_count(h, L, other);
}

/* Returns the coroutine if it runs or has resumed one that runs, else NULL. */
static lua_State *at_work(lua_State *co)
{
    lua_Debug ar;

    return co && lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar) ? co : NULL;
}

/* Returns the coroutine that L has resumed and waits for, found as an argument or upvalue of the
 * function that resumed it. NULL: not found. */
static lua_State *resumed_by(lua_State *L)
{
    lua_State *co = NULL;
    lua_Debug ar;

    if (!lua_checkstack(L, 4) || !lua_getstack(L, 0, &ar) || !lua_getinfo(L, "f", &ar))
        return NULL;
    for (int i = 1; !co && lua_getupvalue(L, -1, i); i++) {
        co = at_work(lua_tothread(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    for (int i = 1; !co && lua_getlocal(L, &ar, i); i++) {
        co = at_work(lua_tothread(L, -1));
        lua_pop(L, 1);
    }
    return co != L ? co : NULL;
}

/* Calls hurry() for all threads from the one that was entered down to L. */
static void hurry_all(const ah_watch *w, lua_State *L)
{
    lua_State *at = w->thread;

    for (int i = 0; at && at != L && i < MOST_THREADS; i++) {
        hurry(at);
        at = resumed_by(at);
    }
    hurry(L);
}

/* True if the code of a task has had the error, where it could not yield, and may still close what
 * it has opened. Code that has worked too long may not, nor in a program that is being ended. */
static bool unwinds(const ah_watch *w, int64_t now)
{
    bool may = w->closing || (w->over != AH_WATCH_OVER_WORK && w->task &&
                              !atomic_load(&w->task->lua->host->stop));

    return w->task && may && w->told && now - w->told < GRACE_MS * (int64_t)1000000;
}

static void raise_over(ah_watch *w, lua_State *L, int64_t now)
{
    if (unwinds(w, now))
        return;
    if (!w->told)
        w->told = now;
    hurry_all(w, L);
    luaL_error(L, "stopped: the time for this call is over");
}

static bool can_halt(const ah_watch *w, lua_State *L)
{
    return w->task && !w->closing && L == w->thread && lua_isyieldable(L);
}

static void halt(const ah_watch *w, lua_State *L)
{
    w->task->halted = true;
    lua_yield(L, 0);
}

/* Stops the code in L. It can be yielded only before an instruction: in a call (not `counted`) it
 * runs on to the next one. */
static void stop_here(ah_watch *w, lua_State *L, bool counted, int64_t now)
{
    if (unwinds(w, now))
        return;
    if (!can_halt(w, L))
        raise_over(w, L, now);
    else if (!counted)
        hurry(L);
    else
        halt(w, L);
}

void ah_watch_halt(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);

    if (is_watched(h) && can_halt(h->watch, L) && ah_watch_look(h))
        halt(h->watch, L);
}

void ah_watch_told(ah_lua *h)
{
    if (is_watched(h) && h->watch->over && !h->watch->told)
        h->watch->told = ah_clock_ns();
}

int ah_watch_raise(lua_State *L, ah_slice what)
{
    ah_lua *h = ah_lua_of(L);

    ah_watch_halt(L);
    ah_watch_told(h);
    if (is_watched(h))
        hurry_all(h->watch, L);
    return luaL_error(L, "stopped: the time for this call is over%s%s", what.n ? ", at " : "",
                      lua_pushlstring(L, what.n ? what.p : "", what.n));
}

/* The clocks of a call are first read after some instructions: most calls are over before. */
static void begin(ah_lua *h, ah_watch *w, int64_t now)
{
    w->entered = now;
    if (w->fence)
        ah_fence_enter(h, w->fence);
    start_work(h, w, now);
    if (!w->outer ||
        w->outer->pause) /* otherwise the outer watch would read the clock too seldom */
        h->looked = h->checked = now;
}

/* Called for a coroutine that was made under a watch and continues in the script. */
static void unwatched(ah_lua *h, lua_State *L)
{
    lua_sethook(L, NULL, 0, 0);
    if (h)
        ah_watch_heed(h, L, false);
}

static void hook(lua_State *L, lua_Debug *ar)
{
    ah_lua *h = host_of(L);
    ah_watch *w = h ? h->watch : NULL;
    int64_t now, took;

    if (!w) {
        unwatched(h, L);
        return;
    }
    if (w->pause)
        return;
    now = ah_clock_ns();
    if (!w->entered)
        begin(h, w, now);
    took = now - h->looked;
    h->looked = now;
    if (ar->event != LUA_HOOKCOUNT)
        h->calls--;
    if (!w->over) {
        adapt(h, L, took);
        note_hold(h, w, L, now);
        if ((now - h->checked < INTERVAL_NS && !is_urgent(h)) || !look(h, now, false))
            return;
    }
    stop_here(w, L, ar->event == LUA_HOOKCOUNT, now);
}

void ah_watch_soon(ah_lua *h, bool calls)
{
    if (!h || !is_watched(h) || lua_gethook(h->thread) != hook)
        return;
    if (calls)
        h->calls = COUNTED_CALLS;
    lua_sethook(h->thread, hook, LUA_MASKCOUNT | (h->calls > 0 ? LUA_MASKCALL : 0), 1);
}

/* -- entering and leaving ---------------------------------------------------------------------- */

/* Our own thread keeps the hook; another thread gets its own hook back. */
void ah_watch_enter(ah_lua *h, ah_watch *w, lua_State *L)
{
    w->thread = L;
    w->back = h->thread;
    w->outer = h->watch;
    if (L != h->caller) {
        w->hook = lua_gethook(L);
        w->mask = lua_gethookmask(L);
        w->count = lua_gethookcount(L);
    }
    w->entered = 0;
    if (!is_watched(h))
        h->calls = 0;
    if (w->task)
        begin(h, w, ah_clock_ns());
    h->watch = w;
    h->thread = L;
    lua_sethook(L, hook, LUA_MASKCOUNT, FIRST_COUNT);
}

static void go_back(ah_lua *h, const ah_watch *w)
{
    h->watch = w->outer;
    h->thread = w->back;
    if (!h->watch)
        ah_watch_heed(h, h->thread, false);
    else if (!h->watch->pause && h->watch->over)
        hurry(h->thread);
}

void ah_watch_leave(ah_lua *h, ah_watch *w)
{
    if (w->since)
        stop_work(h, w, ah_clock_ns());
    if (w->thread != h->caller && lua_gethook(w->thread) == hook)
        lua_sethook(w->thread, w->hook, w->mask, w->count);
    go_back(h, w);
}

void ah_watch_pause(ah_lua *h, ah_watch *mark)
{
    int64_t now = ah_clock_ns();

    *mark = (ah_watch){.pause = true, .outer = h->watch, .back = h->thread};
    for (ah_watch *w = h->watch; w && !w->pause; w = w->outer)
        stop_work(h, w, now);
    h->watch = mark;
}

void ah_watch_go_on(ah_lua *h, ah_watch *mark)
{
    int64_t now = ah_clock_ns();

    for (ah_watch *w = mark->outer; w && !w->pause; w = w->outer)
        if (w->entered)
            start_work(h, w, now);
    h->looked = now;
    go_back(h, mark);
}

/* -- threads ----------------------------------------------------------------------------------- */

/* Reads the clocks whenever a thread is entered. In a deep stack of short coroutines, no single one
 * may run long enough for a check of its own. */
void ah_watch_into(ah_lua *h, lua_State *L, lua_State *co)
{
    if (is_watched(h)) {
        int64_t now = ah_clock_ns();

        if (h->watch->over || (now - h->checked >= INTERVAL_NS && look(h, now, false)))
            raise_over(h->watch, L, now);
        if (!lua_gethook(co))
            lua_sethook(co, hook, LUA_MASKCOUNT, FIRST_COUNT);
    }
    h->thread = co;
    if (!h->watch)
        ah_watch_heed(h, co, false);
}

void ah_watch_back(ah_lua *h, lua_State *L)
{
    h->thread = L;
    if (!h->watch)
        ah_watch_heed(h, L, false);
    else if (!h->watch->pause && h->watch->over)
        hurry(L);
}

/* -- the script itself ------------------------------------------------------------------------- */

/* Raises at once the first time, since a script may only compute. Then the script has a moment to
 * end. */
static void interrupt(lua_State *L, lua_Debug *ar)
{
    ah_lua *h = host_of(L);
    bool first;
    int64_t now;

    (void)ar;
    if (!h || !atomic_load(&h->host->stop)) {
        lua_sethook(L, NULL, 0, 0);
        luaL_error(L, "interrupted");
        return;
    }
    now = ah_host_now(h->host);
    first = !h->told;
    if (first)
        h->told = now;
    lua_sethook(L, interrupt, LUA_MASKCOUNT, 1);
    if (first || now - h->told >= GRACE_MS)
        luaL_error(L, "interrupted");
}

void ah_watch_interrupt(ah_lua *h)
{
    if (is_watched(h))
        hurry(h->thread);
    else if (h->host->depth == 0)
        lua_sethook(h->thread, interrupt, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT,
                    1);
}

void ah_watch_heed(ah_lua *h, lua_State *L, bool told)
{
    if (!h->own || !atomic_load(&h->host->stop))
        return;
    if (told && !h->told)
        h->told = ah_host_now(h->host);
    if (lua_gethook(L) != interrupt)
        lua_sethook(L, interrupt, LUA_MASKCOUNT, 1);
}
