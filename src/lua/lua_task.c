/* The life of a task, from its first resume to its result; waiting, by a yield if the coroutine
 * can, else by driving. lua_tool.c has arguments and results of handlers, lua_watch.c limits of
 * time, lua_fence.c the fence. */
#include "lua/lua_task.h"

#include <limits.h>

#include "base/lent.h"
#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_step.h"
#include "lua/lua_value.h"

static const char TASK[] = AH_TASK;

enum {
    MAX_RAISED = 1 << 10, /* bytes of a raised value: the log must have room for both */
    MAX_FAILURE = 1 << 20 /* bytes of value and traceback, more than any traceback */
};

/* Returns when the task's time is over, by the loop clock; 0: never. The deadline of a run includes
 * those around it. */
static int64_t end_of(const ah_task *t)
{
    int64_t of_run;

    if (t->watch.closing)
        return t->watch.deadline;
    of_run = t->job.of ? ah_run_cfg(ah_driver_run_run(t->job.of))->deadline : 0;
    return t->deadline && (!of_run || t->deadline < of_run) ? t->deadline : of_run;
}

/* -- life ---------------------------------------------------------------------------------- */

static void let_go(ah_task_waiter *w)
{
    ah_lua *h = w->keeper;

    w->keeper = NULL;
    if (h)
        ah_lua_unref(h, &w->ref);
}

static void leave_parent(ah_task *t)
{
    if (t->in_parent) {
        *t->in_parent = t->sibling;
        if (t->sibling)
            t->sibling->in_parent = t->in_parent;
    }
    t->parent = NULL;
    t->in_parent = NULL;
}

/* The call and the run, which may end before the task. */
static void leave_call(ah_task *t)
{
    t->job.of = NULL;
    t->overlay = NULL;
    t->step = NULL;
    for (ah_task *child = t->children; child; child = child->sibling)
        leave_call(child);
}

/* Children that are ending, or whose code is below us on the C stack, outlive it. */
static void leave_family(ah_task *t)
{
    leave_parent(t);
    while (t->children) {
        leave_call(t->children);
        leave_parent(t->children);
    }
}

/* One that is ending already, or whose code is below us on the C stack, remains a child until its
 * end is over. */
static ah_task *next_to_stop(ah_task *t)
{
    ah_task *child = t->children;

    while (child && (child->ending || child->stopped))
        child = child->sibling;
    return child;
}

static void stop_children(ah_task *t)
{
    ah_task *child;

    while ((child = next_to_stop(t)))
        ah_task_stop(child);
}

/* Ends the wait and the run that was waited for. The run is settled at once, from the inside out:
 * its changes depend on those of the waiting call and must end first. If the state is being closed,
 * the run's own finalizer settles it. */
static void leave(ah_task_waiter *w, bool closing)
{
    static const char why[] = "the call that waited for it was stopped";

    w->task = NULL;
    if (w->done) {
        if (w->lost && !closing)
            w->lost(w);
        return;
    }
    if (w->scope && closing) {
        ah_driver_run_cancel(w->scope, AH_CANCELLED, why);
    } else if (w->scope) {
        ah_driver_run_settle(w->scope, AH_CANCELLED, why);
    } else {
        w->leave(w);
        let_go(w);
    }
}

static void detach(ah_task *t, bool closing)
{
    ah_task_waiter *w = t->waiter;

    t->waiter = NULL;
    if (w)
        leave(w, closing);
    if (w && w->scope && w->leave && !closing)
        w->leave(w);
    ah_job_cancel(&t->job);
    if (closing)
        leave_family(t);
    ah_budget_unref(t->account);
    t->account = NULL;
    ah_text_set(&t->path, NULL);
    if (t->link) {
        *t->link = t->next;
        if (t->next)
            t->next->link = t->link;
        t->link = NULL;
        t->lua->n_tasks--;
    }
}

static int task_gc(lua_State *L)
{
    ah_task *t = luaL_checkudata(L, 1, TASK);

    detach(t, true);
    if (t->ended)
        ah_task_forgotten(L, t);
    return 0;
}

void ah_tasks_forget(ah_lua *h)
{
    while (h->tasks)
        detach(h->tasks, true);
}

/* Ends its own tasks. What they close may stop this one. */
static void begin_end(ah_task *t)
{
    t->ending = true;
    stop_children(t);
}

/* True if the end is still to be reported: to a script in any case. */
static bool is_awaited(const ah_task *t)
{
    return t->ended || !t->stopped;
}

static void close_pending(ah_task *t)
{
    ah_lua *h = t->lua;
    ah_task *outer = h->running, *actor = h->actor;
    size_t memory;

    h->running = h->actor = t;
    t->watch = (ah_watch){.task = t, .closing = true, .deadline = ah_watch_grace(h)};
    memory = ah_fence_widen(&t->fence);
    ah_watch_enter(h, &t->watch, t->co);
    ah_fence_enter(h, &t->fence);
    lua_resetthread(t->co);
    ah_fence_leave(h, &t->fence);
    ah_fence_narrow(&t->fence, memory);
    ah_watch_leave(h, &t->watch);
    h->running = outer;
    h->actor = actor;
}

/* Runs the pending closes of the coroutine, and releases the task to the collector. Until then its
 * parent knows it, as the call around both may end meanwhile. What is closed can start no tasks,
 * and cannot end the task again. */
static void bury(ah_task *t)
{
    if (!t->ending && t->path)
        ah_lua_step_gone(t);
    begin_end(t);
    t->stopped = true;
    detach(t, false);
    if (!t->returned)
        close_pending(t);
    leave_family(t);
    if (t->ended)
        t->ended(t);
    else
        ah_lua_unref(t->lua, &t->ref);
}

/* Moves the results from the coroutine first: on a thread that is over, an error would not be
 * caught here. */
static int settle(lua_State *L)
{
    ah_task *t = lua_touserdata(L, 1);
    int nresults = (int)lua_tointeger(L, 2);

    luaL_checkstack(L, nresults, "too many results of a task");
    lua_xmove(t->co, L, nresults);
    t->settled(t, nresults);
    t->told = true;
    return 0;
}

static void finish(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    ah_err err;

    begin_end(t);
    t->nresults = nresults;
    t->returned = t->ended != NULL;
    if (!t->returned && is_awaited(t)) {
        lua_pushcfunction(L, settle);
        lua_pushlightuserdata(L, t);
        lua_pushinteger(L, nresults);
        if (ah_lua_call(t->lua, L, 2, 0, &err) != AH_OK && !t->told && is_awaited(t))
            t->failed(t, &err);
    }
    bury(t);
}

/* True if the value was raised on purpose, by error() or assert(). Otherwise it is a mistake in the
 * script, which only its author can correct. */
static bool is_meant(lua_State *co)
{
    lua_Debug ar;

    return lua_type(co, -1) != LUA_TSTRING ||
           (lua_getstack(co, 0, &ar) && lua_getinfo(co, "nS", &ar) && *ar.what == 'C' && ar.name &&
            (strcmp(ar.name, "error") == 0 || strcmp(ar.name, "assert") == 0));
}

/* Returns the log of the task's run or of the nearest run around it with a log; else the host's
 * log. */
static const ah_log *log_of(const ah_task *t)
{
    const ah_log *log = &t->lua->host->log;
    const ah_driver_run *of = t->job.of;

    while (of && !ah_run_cfg(ah_driver_run_run(of))->log->fn)
        of = ah_driver_run_parent(of);
    return of ? ah_run_cfg(ah_driver_run_run(of))->log : log;
}

/* Pushes the raised value as text, cut to MAX_RAISED bytes. */
static ah_buf *push_raised(lua_State *L, lua_State *co)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_FAILURE);
    ah_slice said;
    size_t kept;
    ah_err err;

    if (!lua_checkstack(co, 1))
        ah_lua_raise_nomem(L);
    lua_pushvalue(co, -1);
    lua_xmove(co, L, 1); /* -- b raised */
    if (lua_type(L, -1) == LUA_TSTRING || ah_lua_push_message(L, lua_gettop(L))) {
        said.p = lua_tolstring(L, -1, &said.n);
    } else {
        ah_lua_read_error(L, -1, &err);
        said = ah_slice_of(err.message);
    }
    kept = said.n > MAX_RAISED ? ah_utf8_cut(said.p, MAX_RAISED) : said.n;
    ah_utf8_repair((ah_slice){said.p, kept}, b);
    if (kept < said.n)
        ah_buf_fmt(b, AH_LEFT_OUT, said.n - kept);
    return b;
}

static void note_failure(lua_State *L, ah_task *t)
{
    ah_buf *b = push_raised(L, t->co);

    luaL_traceback(L, t->co, NULL, 0);
    ah_buf_char(b, '\n');
    ah_utf8_repair(ah_slice_of(lua_tostring(L, -1)), b);
    t->mistake = !is_meant(t->co);
    if (ah_buf_ok(b))
        t->failure = ah_text_new(&t->lua->mem, ah_buf_slice(b));
}

static int noted(lua_State *L)
{
    note_failure(L, lua_touserdata(L, 1));
    return 0;
}

static void read_failure(const ah_task *t, int status, ah_err *err)
{
    if (ah_fence_failed(&t->fence, status, err))
        return;
    if (status == LUA_ERRMEM)
        ah_err_nomem(err);
    else
        ah_lua_read_error(t->co, -1, err);
}

static void fail(ah_task *t, int status)
{
    ah_err err;

    begin_end(t);
    lua_pushcfunction(t->lua->caller, noted);
    lua_pushlightuserdata(t->lua->caller, t);
    ah_lua_call(t->lua, t->lua->caller, 1, 0, NULL);
    read_failure(t, status, &err);
    if (is_awaited(t))
        t->failed(t, &err);
    if (t->failure)
        ah_log_raised(log_of(t), t->mistake, ah_text_slice(t->failure));
    ah_text_set(&t->failure, NULL);
    bury(t);
}

static void fail_with(ah_task *t, const ah_err *err)
{
    begin_end(t);
    if (is_awaited(t))
        t->failed(t, err);
    bury(t);
}

/* Called when the hook has yielded out of the task, or the task returned too late. Fails the task
 * if it worked too long, which only the watch knows. For a deadline or a cancelled run, the code
 * that ends the task reports and stops it, or the task is stopped here if no code would. */
static void halt(ah_task *t)
{
    ah_err err;

    t->halted = true;
    if (t->watch.over == AH_WATCH_OVER_WORK && ah_watch_failed(&t->watch, &err))
        fail_with(t, &err);
    else if (t->ended)
        bury(t);
}

/* The code has returned, and tasks that it has started are at work or have failed: the results wait
 * below on its stack. */
static void join(ah_task *t)
{
    ah_err err;

    if (!lua_checkstack(t->co, 4)) {
        ah_err_nomem(&err);
        fail_with(t, &err);
        return;
    }
    lua_pushcfunction(t->co, ah_group_join);
    ah_task_push(t->co, t);
    lua_getiuservalue(t->co, -1, AH_TASK_OWN);
    lua_remove(t->co, -2);
    t->nargs = 1;
    ah_job_post(t->lua->host, &t->job);
}

static void warn_of_hold(ah_task *t)
{
    ah_lua *h = t->lua;

    if (!h->busy[0] || h->busy_told)
        return;
    h->busy_told = true;
    ah_log_put(log_of(t), AH_LOG_WARNING,
               "%s: the code worked for over 100 ms without a wait, and all others waited for it: "
               "call ah.yield() now and then",
               h->busy);
}

static void resume(ah_task *t)
{
    ah_lua *h = t->lua;
    ah_task *outer = h->running, *actor = h->actor;
    lua_State *current = h->current;
    int nargs = t->nargs, nresults, st;
    bool late;

    t->nargs = 0;
    t->waiter = NULL;
    t->running = true;
    h->running = h->actor = t;
    t->watch.of = ah_driver_run_id(t->job.of);
    t->watch.deadline = t->deadline;
    ah_watch_enter(h, &t->watch, t->co);
    ah_fence_enter(h, &t->fence);
    st = lua_resume(t->co, h->current, nargs, &nresults);
    ah_calling_out();
    ah_fence_leave(h, &t->fence);
    late = st != LUA_YIELD && ah_watch_late(h, &t->watch);
    ah_watch_leave(h, &t->watch);
    h->running = outer;
    h->actor = actor;
    h->current = current;
    t->running = false;
    warn_of_hold(t);
    if (t->stopped) {
        bury(t);
    } else if (t->halted || late) {
        halt(t);
    } else if (st == LUA_YIELD) {
        lua_pop(t->co, nresults);
        if (!t->waiter) /* the script's own coroutine.yield(): lets others run */
            ah_job_post(h->host, &t->job);
        else if (t->waiter->done) /* done before the yield was complete */
            ah_job_post(h->host, &t->job);
    } else if (st == LUA_OK && t->own && ah_group_open(t->own)) {
        join(t);
    } else if (st == LUA_OK) {
        finish(t, nresults);
    } else {
        fail(t, st);
    }
}

/* The end of its wait may come while its own tasks are being ended with it. */
static void on_job(ah_job *job)
{
    ah_task *t = (ah_task *)(void *)((char *)job - offsetof(ah_task, job));

    if (!t->ending)
        resume(t);
}

ah_task *ah_task_new_as(ah_lua *h, lua_State *L, int nargs, ah_driver_run *of, size_t size,
                        int values)
{
    ah_task *t;

    ah_lua_guard_threads(L);
    t = lua_newuserdatauv(L, size, values); /* -- f args t */
    memset(t, 0, size);
    t->lua = h;
    t->nargs = nargs;
    t->ref = LUA_NOREF;
    t->job = (ah_job){.fn = on_job, .of = of};
    luaL_setmetatable(L, TASK);
    t->co = lua_newthread(L); /* -- f args t co */
    lua_setiuservalue(L, -2, AH_TASK_THREAD);
    t->watch = (ah_watch){.task = t, .work_ms = h->host->work_ms};
    t->fence = (ah_fence){.memory = AH_TOOL_MEMORY};
    if (!lua_checkstack(t->co, nargs + 1))
        luaL_error(L, "too many arguments for a task");
    t->ref = ah_lua_ref(L); /* -- f args */
    lua_xmove(L, t->co, nargs + 1);
    t->next = h->tasks;
    t->link = &h->tasks;
    if (t->next)
        t->next->link = &t->next;
    h->tasks = t;
    h->n_tasks++;
    return t;
}

ah_task *ah_task_new(ah_lua *h, lua_State *L, int nargs, ah_driver_run *of)
{
    return ah_task_new_as(h, L, nargs, of, sizeof(ah_task), AH_TASK_VALUES);
}

void ah_task_keep(lua_State *L, ah_task *t)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, t->ref); /* -- v t */
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, AH_TASK_KEPT);
    lua_pop(L, 1);
}

void ah_task_push(lua_State *L, const ah_task *t)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, t->ref);
}

/* The limits of a call hold for all its tasks together. The last user value of each keeps the one
 * that has the counts: a child that is below it on the C stack may outlive it. */
static void share_limits(lua_State *L, ah_task *parent, ah_task *t)
{
    t->watch.work_ms = parent->watch.work_ms;
    t->watch.advice = parent->watch.advice;
    t->fence.advice = parent->fence.advice;
    t->fence.no_exit = parent->fence.no_exit;
    if (!ah_fence_counted(&parent->fence)->memory && !parent->watch.work_ms)
        return; /* a task of a script */
    t->fence.shares = ah_fence_counted(&parent->fence);
    t->watch.shares = parent->watch.shares ? parent->watch.shares : &parent->watch;
    ah_task_push(L, t);
    ah_task_push(L, parent);
    if (parent->fence.shares) {
        lua_getiuservalue(L, -1, AH_TASK_LIMITS);
        lua_remove(L, -2);
    }
    lua_setiuservalue(L, -2, AH_TASK_LIMITS);
    lua_pop(L, 1);
}

void ah_task_adopt(lua_State *L, ah_task *parent, ah_task *t)
{
    t->parent = parent;
    t->depth = parent->depth + 1;
    t->sibling = parent->children;
    t->in_parent = &parent->children;
    if (t->sibling)
        t->sibling->in_parent = &t->sibling;
    parent->children = t;
    t->overlay = parent->overlay;
    t->deadline = parent->deadline;
    share_limits(L, parent, t);
}

void ah_task_begin(ah_task *t)
{
    resume(t);
}

void ah_task_stop(ah_task *t)
{
    if (!t->running && !t->ending) {
        bury(t);
        return;
    }
    /* Its code, or its end, is below us on the C stack; or it is over. */
    t->stopped = t->over = true;
    leave_call(t);
    stop_children(t);
}

void ah_tasks_end(ah_lua *h)
{
    ah_task *t = h->tasks;

    while (t) {
        if (t->ended && !t->running && !t->ending) {
            ah_task_stop(t);
            t = h->tasks; /* others may have ended with it */
        } else {
            t = t->next;
        }
    }
}

/* Returns the task whose own coroutine is L, or NULL. */
static ah_task *task_of(lua_State *L)
{
    ah_task *t = ah_lua_of(L)->running;

    return t && t->co == L ? t : NULL;
}

/* -- waiting -------------------------------------------------------------------------------- */

void ah_task_waiter_keep(lua_State *L, ah_task_waiter *w)
{
    lua_pushvalue(L, -1);
    w->ref = ah_lua_ref(L);
    w->keeper = ah_lua_of(L);
}

void ah_task_waiter_done(ah_task_waiter *w)
{
    w->done = true;
    let_go(w);
    if (w->task)
        ah_job_post(w->task->lua->host, &w->task->job);
}

static int nothing(lua_State *L)
{
    (void)L;
    return 0;
}

/* Ctrl-C in the stock interpreter sets a hook on the main state that raises an error at its next
 * step. Makes such a step, and returns true if it raised; the error is then on L. */
static bool interrupted(ah_lua *h, lua_State *L)
{
    lua_State *main = h->main;

    if (!(lua_gethookmask(main) & LUA_MASKCALL) || !lua_checkstack(main, 4))
        return false;
    lua_pushcfunction(main, nothing);
    if (lua_pcall(main, 0, 0, 0) == LUA_OK)
        return false;
    if (main != L)
        lua_xmove(main, L, 1);
    return true;
}

/* Returns the scope of a drive, in which only the awaited run and its descendants run, or the run
 * that produces the awaited thing. h itself means "no run at all", since no run descends from
 * it. Any code may end a wait that code of scripts ends: NULL. */
static ah_driver_run *scope_of(ah_lua *h, const ah_task_waiter *w)
{
    if (h->host->depth == 0 || w->by_code)
        return NULL;
    return w->scope ? w->scope : w->within ? w->within : (ah_driver_run *)(void *)h;
}

typedef enum drive_end { CAME, INTERRUPTED, CANCELLED, STUCK } drive_end;

static bool is_waiting(const ah_task *t)
{
    return t->waiter && !t->waiter->done && (t->waiter->by_code || t->waiter->scope);
}

/* True if nothing will ever happen in a drive of this scope: all its tasks wait for each other or
 * for runs, the loop for nothing, and nothing for an answer of the program. What is outside of the
 * scope waits for the end of the drive. */
static bool is_stuck(const ah_lua *h, const ah_driver_run *scope)
{
    const ah_task *t = h->tasks;

    if (ah_host_has_job(h->host, scope) || !ah_host_idle(h->host) ||
        (h->embed && h->program->may_answer(h->embed)))
        return false;
    while (t &&
           (t->running || t->ending || is_waiting(t) || !ah_driver_run_within(t->job.of, scope)))
        t = t->next;
    return !t;
}

/* Ends the waits that need not be a deadlock: that of w and those of tasks of the scope. Returns
 * false if there are none. */
static bool end_idle(const ah_lua *h, const ah_driver_run *scope, ah_task_waiter *w)
{
    bool ended = w->idle != NULL;

    if (ended)
        w->idle(w);
    for (const ah_task *t = h->tasks; t; t = t->next) {
        if (!t->waiter || t->waiter->done || !t->waiter->idle ||
            !ah_driver_run_within(t->job.of, scope))
            continue;
        t->waiter->idle(t->waiter);
        ended = true;
    }
    return ended;
}

static const char DEADLOCK[] = "deadlock: all code waits for other code";

/* Ends a run in which all code waits for other code. */
static void cancel_stuck(ah_lua *h, ah_driver_run *run)
{
    lua_State *L = h->caller;
    const char *text = NULL;
    bool room = lua_checkstack(L, 1);

    if (room) {
        lua_pushcfunction(L, ah_lua_push_stuck);
        room = ah_lua_call(h, L, 0, 1, NULL) == AH_OK;
    }
    text = room ? lua_tostring(L, -1) : NULL;
    ah_driver_run_cancel(run, AH_USAGE, text ? text : DEADLOCK);
    if (room)
        lua_pop(L, 1);
}

/* Returns how long a drive may wait, in ms; -1: without limit. Computed here because a run whose
 * handler drives sets no timer meanwhile, and its cancellation does not wake the drive. */
static int patience(ah_lua *h, drive_end end)
{
    int64_t at = end == CAME && h->running ? end_of(h->running) : 0, now;

    if (end == CAME && ah_watch_look(h) != AH_IN_TIME)
        return 0;
    if (!at)
        return -1;
    now = ah_host_now(h->host);
    return at - now < INT_MAX ? (int)(at > now ? at - now : 0) : INT_MAX;
}

static void cancel_inner(ah_driver_run *inner, drive_end end, ah_watch_end over)
{
    if (end == INTERRUPTED)
        ah_driver_run_cancel(inner, AH_CANCELLED, "interrupted");
    else if (over == AH_WATCH_OVER_TIME || over == AH_WATCH_OVER_RUN)
        ah_driver_run_cancel(inner, AH_DEADLINE, "the time of the enclosing call is over");
    else
        ah_driver_run_cancel(inner, AH_CANCELLED, "the enclosing run was cancelled");
}

/* True for a cancel that came when the run had just ended; a script that continues would miss
 * it. */
static bool missed_cancel(const ah_lua *h, const ah_task_waiter *w, unsigned cancels)
{
    ah_run_result result;

    if (h->host->depth > 0 || !w->scope || h->host->cancels == cancels)
        return false;
    ah_run_result_of(ah_driver_run_run(w->scope), &result);
    return result.err.status != AH_CANCELLED;
}

/* Drives until w is done, or until something ends a wait that is not for a run (a run is cancelled
 * instead, and waited for). INTERRUPTED: the error is on top of L. */
static drive_end drive_for(lua_State *L, ah_lua *h, ah_task_waiter *w)
{
    ah_driver_run *scope = scope_of(h, w);
    lua_State *current = h->current;
    unsigned cancels = h->host->cancels;
    ah_fence *fences = ah_fence_lift(h);
    ah_task *actor = h->actor;
    drive_end end = CAME;
    ah_watch_end over = AH_IN_TIME;
    ah_watch pause;

    ah_watch_pause(h, &pause);
    h->host->waits += h->host->depth++ == 0;
    h->current = L;
    h->actor = NULL; /* observers of what is driven have no call */
    while (!w->done && (end == CAME || w->scope)) {
        if (is_stuck(h, scope) && !end_idle(h, scope, w)) {
            end = w->by_code ? STUCK : end;
            if (end == CAME && w->scope && h->tasks)
                cancel_stuck(h, w->scope);
        }
        if (w->done || end == STUCK)
            break;
        ah_host_step(h->host, scope, patience(h, end));
        if (end != CAME)
            continue;
        if (interrupted(h, L))
            end = INTERRUPTED;
        else if ((!w->scope && h->host->cancels != cancels) ||
                 (over = ah_watch_look(h)) != AH_IN_TIME)
            end = CANCELLED;
        if (end != CAME && w->scope)
            cancel_inner(w->scope, end, over);
    }
    ah_calling_out();
    h->current = current;
    h->actor = actor;
    h->host->depth--;
    ah_watch_go_on(h, &pause);
    ah_fence_put(h, fences);
    if (!h->watch)
        ah_watch_heed(h, L, true);
    if (end == CAME && h->embed && missed_cancel(h, w, cancels))
        h->program->cancel(h->host);
    return end;
}

static drive_end drive(lua_State *L, ah_lua *h, ah_task_waiter *w)
{
    ah_task *t = h->running;
    const ah_task_waiter *outer = t ? t->drives : NULL;
    drive_end end;

    if (!t)
        return drive_for(L, h, w);
    t->drives = w;
    end = drive_for(L, h, w);
    t->drives = outer;
    return end;
}

static const char TOO_DEEP[] =
    "runs inside runs are more than 8 deep (does a tool run an agent that calls it?)";
_Static_assert(AH_MAX_DEPTH == 8, "TOO_DEEP says so");

/* Errors for callees that cannot wait, with an alternative. A wait that cannot yield must drive,
 * and nothing may drive below code that is in the middle of its work. */
static const char *const cannot_wait[AH_CALLEES] = {
    [AH_CALLEE_OBSERVER] =
        "an observer cannot wait: keep what it needs, and wait in a handler or after the run",
    [AH_CALLEE_SUBSCRIBER] =
        "a subscriber cannot wait: keep what it needs, and wait in a handler or after the run",
    [AH_CALLEE_LOG] = "a log function cannot wait: keep the line, and wait after the run",
    [AH_CALLEE_REDUCER] = "a reducer cannot wait: it must be a pure function",
    [AH_CALLEE_POLICY] = "a policy cannot wait: return \"ask\" and why, and wait in `approve`",
    [AH_CALLEE_GUARD] = "a guard cannot wait: what takes time belongs into `checks`",
    [AH_CALLEE_STRATEGY] =
        "a strategy cannot wait: wait in the tool's handler, whose result it is shown",
    [AH_CALLEE_FEEDBACK] = "feedback cannot wait: wait in a handler or in one of `checks`",
    [AH_CALLEE_SWITCH] =
        "`enabled` and `visibility` cannot wait: find out before the run, and give it "
        "to the prompt in `params`",
    [AH_CALLEE_RENDERER] = "a renderer cannot wait: wait in the handler, and put it into the value",
    [AH_CALLEE_ID] = "the id of an entity cannot wait: find it out before the entity is returned",
    [AH_CALLEE_SNAPSHOT] = "snapshot and restore cannot wait: they only copy the object",
};

/* True in a collection, in which finalizers may run at any allocation. Lua reports this from 5.4.4
 * on. */
static bool collecting(lua_State *L)
{
    return lua_gc(L, LUA_GCISRUNNING, 0) < 0;
}

/* Returns why a wait in L that cannot yield must not drive, or NULL. */
static const char *no_drive(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);

    if (h->callee != AH_CALLEE_NONE)
        return cannot_wait[h->callee];
    if (h->host->callbacks)
        return "code that a function of the program calls cannot wait while the host calls that "
               "function: wait after it has returned";
    if (collecting(L))
        return "a finalizer cannot wait: use a method or a variable marked <close>";
    return h->host->depth >= AH_MAX_DEPTH ? TOO_DEEP : NULL;
}

static void can_drive(lua_State *L)
{
    const char *why = no_drive(L);

    if (why)
        ah_lua_raise(L, AH_USAGE, "%s", why);
}

static void check_wait(lua_State *L)
{
    if (!(task_of(L) && lua_isyieldable(L)))
        can_drive(L);
    luaL_checkstack(L, 8, "waiting");
}

void ah_lua_can_await(lua_State *L)
{
    if (atomic_load(&ah_lua_of(L)->host->stop)) {
        ah_watch_halt(L);
        ah_lua_raise(L, AH_CANCELLED, "cancelled: the program is being ended");
    }
    check_wait(L);
}

bool ah_lua_may_linger(lua_State *L)
{
    const ah_lua *h = ah_lua_of(L);

    if (atomic_load(&h->host->stop) || !lua_checkstack(L, 8))
        return false;
    return h->running ? task_of(L) && lua_isyieldable(L) : !no_drive(L);
}

/* Raises if `max_nested` of the run around, or of one around that, allows no run within it. */
static void check_depth(lua_State *L, const ah_driver_run *around)
{
    int most = ah_driver_run_deepest(around);

    if (ah_driver_run_depth(around) < most)
        return;
    if (most == AH_MAX_DEPTH)
        ah_lua_raise(L, AH_USAGE, "%s", TOO_DEEP);
    ah_lua_raise(L, AH_USAGE,
                 "runs inside runs are more than %d deep, which `max_nested` of a run around this "
                 "call does not allow: do the work without another run, or raise max_nested (at "
                 "most %d)",
                 most, AH_MAX_DEPTH);
}

/* After ah_terminate a run ends when it begins, with an error that is returned. */
void ah_lua_can_run(lua_State *L, bool waits)
{
    ah_task *t = ah_lua_of(L)->running;

    if (t)
        check_depth(L, t->job.of);
    if (waits)
        check_wait(L);
}

/* The text says that the task at work waits for w. */
static int raise_stuck(lua_State *L, ah_lua *h, const ah_task_waiter *w)
{
    ah_task *t = h->running;
    const ah_task_waiter *outer = t ? t->drives : NULL;
    bool room;

    if (t)
        t->drives = w;
    lua_pushcfunction(L, ah_lua_push_stuck);
    room = ah_lua_call(h, L, 0, 1, NULL) == AH_OK;
    if (t)
        t->drives = outer;
    return ah_lua_raise(L, AH_USAGE, "%s", room ? lua_tostring(L, -1) : DEADLOCK);
}

int ah_lua_await(lua_State *L, ah_task_waiter *w, lua_KContext ctx, lua_KFunction k)
{
    ah_lua *h = ah_lua_of(L);
    ah_task *t = task_of(L);

    if (w->done)
        return k(L, LUA_OK, ctx);
    if (t && lua_isyieldable(L)) {
        w->task = t;
        t->waiter = w;
        ah_calling_out();
        return lua_yieldk(L, 0, ctx, k);
    }
    check_wait(L);
    switch (drive(L, h, w)) {
    case INTERRUPTED:
        leave(w, false);
        return lua_error(L);
    case STUCK:
        leave(w, false);
        return raise_stuck(L, h, w);
    case CANCELLED:
        leave(w, false);
        if (w->scope)
            break; /* the run's own error is returned */
        ah_watch_told(h);
        return ah_lua_raise(L, AH_CANCELLED, "cancelled");
    case CAME:
        break;
    }
    return k(L, LUA_OK, ctx);
}

/* -- ah.sleep, ah.now -------------------------------------------------------------------------- */

static const char SLEEP[] = "agenthost.sleep";

typedef struct sleeper {
    ah_task_waiter waiter;
    ah_timer timer;
} sleeper;

static void slept(ah_timer *timer)
{
    ah_task_waiter_done(&((sleeper *)(void *)((char *)timer - offsetof(sleeper, timer)))->waiter);
}

static void stop_sleep(ah_task_waiter *w)
{
    ah_timer_unset(&((sleeper *)(void *)((char *)w - offsetof(sleeper, waiter)))->timer);
}

static int sleep_gc(lua_State *L)
{
    ah_timer_unset(&((sleeper *)luaL_checkudata(L, 1, SLEEP))->timer);
    return 0;
}

static int sleep_end(lua_State *L, int status, lua_KContext ctx)
{
    (void)L;
    (void)status;
    (void)ctx;
    return 0;
}

/* ah.sleep(seconds): waits; other work continues. */
static int ah_sleep(lua_State *L)
{
    double seconds = luaL_checknumber(L, 1);
    ah_lua *h = ah_lua_of(L);
    sleeper *s;

    if (seconds > 0 && ah_lua_durable(L))
        return ah_lua_through_step(L, "sleep", ah_sleep);
    if (!(seconds >= 0) || seconds > 1e9)
        return ah_lua_raise(L, AH_USAGE, "ah.sleep: seconds must be from 0 to 1e9");
    ah_lua_can_await(L);
    s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (sleeper){.waiter.leave = stop_sleep, .timer.fn = slept};
    luaL_setmetatable(L, SLEEP);
    ah_task_waiter_keep(L, &s->waiter);
    ah_timer_set(h->host->loop, &s->timer, ah_host_now(h->host) + ah_ms_of(seconds));
    return ah_lua_await(L, &s->waiter, 0, sleep_end);
}

/* ah.now(): seconds since the epoch, by a clock that never goes back. */
static int ah_now(lua_State *L)
{
    if (ah_lua_durable(L))
        return ah_lua_through_step(L, "now", ah_now);
    lua_pushnumber(L, (double)ah_host_wall(ah_lua_of(L)->host) / 1000);
    return 1;
}

/* ah.random(), ah.random(n), ah.random(m, n): as math.random; in a durable handler a step. */
static int ah_random(lua_State *L)
{
    double x;
    lua_Integer least = 1, most;

    if (ah_lua_durable(L))
        return ah_lua_through_step(L, "random", ah_random);
    x = ah_host_random(ah_lua_of(L)->host);
    if (lua_isnoneornil(L, 1)) {
        lua_pushnumber(L, x);
        return 1;
    }
    if (!lua_isnoneornil(L, 2))
        least = luaL_checkinteger(L, 1);
    most = luaL_checkinteger(L, lua_isnoneornil(L, 2) ? 1 : 2);
    if (least > most || (double)most - (double)least > 9e15)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.random: the interval must not be empty, nor wider than 2^53");
    lua_pushinteger(L, least + (lua_Integer)(x * ((double)(most - least) + 1)));
    return 1;
}

/* ah._clock(): ah.now, never a step. */
static int plain_clock(lua_State *L)
{
    lua_pushnumber(L, (double)ah_host_now(ah_lua_of(L)->host) / 1000);
    return 1;
}

/* ah.interactive(): declares the script a chat, which the program may treat differently
 * (ah_interactive). */
static int interactive(lua_State *L)
{
    atomic_store(&ah_lua_of(L)->host->interactive, true);
    return 0;
}

void ah_lua_open_task(lua_State *L)
{
    static const luaL_Reg functions[] = {{"sleep", ah_sleep},          {"now", ah_now},
                                         {"random", ah_random},        {"_clock", plain_clock},
                                         {"interactive", interactive}, {NULL, NULL}};
    static const luaL_Reg task_meta[] = {{"__gc", task_gc}, {NULL, NULL}};
    static const luaL_Reg sleep_meta[] = {{"__gc", sleep_gc}, {NULL, NULL}};

    ah_lua_open_fence(L);
    ah_lua_open_watch(L);
    luaL_newmetatable(L, TASK);
    luaL_setfuncs(L, task_meta, 0);
    luaL_newmetatable(L, SLEEP);
    luaL_setfuncs(L, sleep_meta, 0);
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
    ah_lua_open_step(L);
}
