/* Tasks that scripts start, and their groups: the primitives below lua/agenthost/tasks. A group is
 * the tasks that are waited for together: those that some code has started, or those of a scope.
 * A task that has ended keeps its own results. So its end takes no memory, and always reaches the
 * group and the code that awaits it. */
#include <lauxlib.h>
#include <stdlib.h>

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_line.h"
#include "lua/lua_open.h"
#include "lua/lua_step.h"

enum {
    MAX_DEEP = 100,
    MAX_TASKS = 100 * 1000,
    MAX_KEPT = 64, /* failures of the script's own tasks, for its end */
    SHOWN = 8,     /* tasks in the text of a deadlock */
    ROOM = 8       /* slots of a stack */
};

typedef struct ah_group group;

typedef struct spawned {
    ah_task task;
    group *group;
    struct spawned *next, *before; /* in the group, while at work */
    ah_line awaiters;
    enum { RUNNING, DONE, FAILED, CANCELLED } state;
    bool failing;    /* it is FAILED when its pending closes have run */
    bool pending;    /* FAILED, and left to the code that awaits it */
    bool given_back; /* pending, but all that code was stopped */
    bool awaited;    /* code has got its end, or nothing has to */
} spawned;

/* User values of a spawned task. Two have another meaning when the task has ended. */
enum {
    NEXT = AH_TASK_THREAD, /* in the failures of its group; done with several results: its thread */
    GROUP = AH_TASK_KEPT,
    TRACE = AH_TASK_OWN,
    VALUE = AH_TASK_VALUES + 1, /* the only result, or the raised value */
    PLACE,                      /* the line at which it was started */
    VALUES = PLACE
};

struct ah_group {
    spawned *first, *last; /* at work */
    ah_line waiting;       /* for all of them */
    size_t n_given_back;   /* failures, each with a job that keeps it */
    size_t n_failures;
    bool is_root;  /* of the script itself */
    bool together; /* the first failure ends all others, and is the only one */
    bool race;     /* so does the first end */
    bool over;     /* no task can be started in it */
    bool failed;   /* together: one has failed */
    bool joined;   /* together: nothing will take a failure any more */
};

/* User values of a group: tasks. */
enum { FAILURES = 1, LAST_FAILURE, WON, GROUP_VALUES = WON };

static const char GROUP_META[] = "agenthost.group";
static const char ROOT; /* registry key of the group of the script itself */

static spawned *spawned_of(const ah_task *t)
{
    return (spawned *)(uintptr_t)t;
}

static spawned *check_spawned(lua_State *L, int idx)
{
    ah_task *t = luaL_checkudata(L, idx, AH_TASK);

    luaL_argcheck(L, t->ended, idx, "no task of a script");
    return spawned_of(t);
}

/* Pushes a user value of the userdata on top, which it replaces. */
static int swap_for(lua_State *L, int value)
{
    int type = lua_getiuservalue(L, -1, value);

    lua_remove(L, -2);
    return type;
}

/* -- groups ----------------------------------------------------------------------------------- */

static group *push_group(lua_State *L)
{
    group *g = lua_newuserdatauv(L, sizeof *g, GROUP_VALUES);

    *g = (group){.first = NULL};
    luaL_setmetatable(L, GROUP_META);
    return g;
}

static void enter_group(group *g, spawned *s)
{
    s->group = g;
    s->before = g->last;
    *(g->last ? &g->last->next : &g->first) = s;
    g->last = s;
}

static void leave_group(spawned *s)
{
    group *g = s->group;

    *(s->before ? &s->before->next : &g->first) = s->next;
    *(s->next ? &s->next->before : &g->last) = s->before;
    s->next = s->before = NULL;
}

static spawned *next_to_stop(const group *g)
{
    spawned *s = g->first;

    while (s && s->task.stopped)
        s = s->next;
    return s;
}

/* Ends the tasks of the group. No other can be started in it. What a task closes may end others. */
static void cancel(group *g)
{
    spawned *s;

    g->over = true;
    while ((s = next_to_stop(g)))
        ah_task_stop(&s->task);
}

static bool is_busy(const group *g)
{
    return g->first || g->n_given_back > 0;
}

static void wake_if_done(group *g)
{
    if (!is_busy(g))
        while (ah_line_wake(&g->waiting)) {
        }
}

bool ah_group_open(const group *g)
{
    return is_busy(g) || g->n_failures > 0;
}

/* -- the end of a task ------------------------------------------------------------------------- */

/* The stock interpreter has no log: warnings show it there, after warn "@on" or with lua5.4 -W. */
static void tell(lua_State *L)
{
    const char *text = lua_tostring(L, -1);

    ah_log_put(&ah_lua_of(L)->host->log, AH_LOG_WARNING, "%s", text);
    lua_warning(L, "agenthost: ", 1);
    lua_warning(L, text, 0);
    lua_pop(L, 1);
}

/* Logs the failure of the task at idx, which nothing has awaited. */
static void report(lua_State *L, int idx)
{
    spawned *s = lua_touserdata(L, idx);

    luaL_checkstack(L, ROOM, NULL);
    lua_getiuservalue(L, idx, TRACE);
    lua_getiuservalue(L, idx, VALUE);
    lua_getiuservalue(L, idx, PLACE); /* -- trace value place */
    lua_pushfstring(L, "a task failed, and nothing has awaited it: %s (it was started at %s)",
                    lua_isstring(L, -3)   ? lua_tostring(L, -3)
                    : lua_isstring(L, -2) ? lua_tostring(L, -2)
                                          : luaL_typename(L, -2),
                    lua_tostring(L, -1));
    s->awaited = true;
    tell(L);
    lua_pop(L, 3);
}

static int report_one(lua_State *L)
{
    report(L, 1);
    return 0;
}

/* Called by the collector: nothing waits for the tasks that are at work when a script of the stock
 * interpreter ends. */
void ah_task_forgotten(lua_State *L, ah_task *t)
{
    spawned *s = spawned_of(t);

    if (s->state == FAILED && !s->awaited) {
        report(L, 1);
    } else if (s->state == RUNNING && s->group) {
        lua_getiuservalue(L, 1, PLACE);
        lua_pushfstring(L,
                        "the task of %s was at work when the program ended, and was stopped: "
                        "await it",
                        lua_tostring(L, -1));
        tell(L);
    }
}

/* -- t    If there is no memory for the report, the collector makes it. */
static void report_now(lua_State *L, ah_lua *h)
{
    ah_watch pause;

    ah_watch_pause(h, &pause);
    lua_pushcfunction(L, report_one);
    lua_pushvalue(L, -2);
    ah_lua_call(h, L, 1, 0, NULL);
    ah_watch_go_on(h, &pause);
}

/* (t g) -- t g    Appends t to the failures of g. */
static void append_failure(lua_State *L)
{
    if (lua_getiuservalue(L, -1, LAST_FAILURE) == LUA_TNIL) {
        lua_pushvalue(L, -3);
        lua_setiuservalue(L, -3, FAILURES);
    } else {
        lua_pushvalue(L, -3);
        lua_setiuservalue(L, -2, NEXT);
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, LAST_FAILURE);
}

/* (t g) -- t g    Keeps the failure for the code that waits for the group. */
static void keep_failure(lua_State *L, spawned *s)
{
    group *g = s->group;

    if (g->is_root && g->n_failures >= MAX_KEPT) {
        lua_pushvalue(L, -2);
        report_now(L, s->task.lua);
        lua_pop(L, 1);
    } else if (!g->together) {
        append_failure(L);
        g->n_failures++;
    } else if (!g->joined) {
        s->awaited = true;
        if (!g->failed)
            append_failure(L);
        g->failed = true;
        g->n_failures = 1;
        cancel(g);
    }
}

/* (t) -- t    Takes the results out of the thread, which otherwise keeps them. */
static void keep_results(lua_State *L, spawned *s)
{
    ah_task *t = &s->task;

    if (s->state == DONE && t->nresults > 1)
        return;
    if (s->state == DONE && t->nresults == 1) {
        lua_xmove(t->co, L, 1);
        lua_setiuservalue(L, -2, VALUE);
    }
    lua_pushnil(L);
    lua_setiuservalue(L, -2, AH_TASK_THREAD);
    t->co = NULL;
}

static void release(spawned *s)
{
    ah_lua_unref(s->task.lua, &s->task.ref);
}

/* (t g) -- t g    The failure of a task is left to the code that awaits it, which may yet be
 * stopped before it continues: the task is kept until then. */
static void settle(lua_State *L, spawned *s)
{
    s->pending = s->state == FAILED && s->awaiters.due > 0;
    if (s->pending)
        return;
    if (s->state == FAILED && !s->awaited)
        keep_failure(L, s);
    release(s);
}

/* (t g) -- t g */
static void win(lua_State *L, group *g)
{
    if (lua_getiuservalue(L, -1, WON) == LUA_TNIL) {
        lua_pushvalue(L, -3);
        lua_setiuservalue(L, -3, WON);
        cancel(g);
    }
    lua_pop(L, 1);
}

static void tell_group(lua_State *L, spawned *s)
{
    group *g = s->group;

    lua_getiuservalue(L, -1, GROUP); /* -- t g */
    settle(L, s);
    if (g->race)
        win(L, g);
    wake_if_done(g);
    lua_pop(L, 1);
}

/* The thread for calls has the room: each C function has at least 20 slots. */
static void ended(ah_task *t)
{
    lua_State *L = t->lua->caller;
    spawned *s = spawned_of(t);
    bool room = lua_checkstack(L, ROOM);

#ifdef AH_CHECKING
    if (s->state != RUNNING)
        abort();
#endif
    t->own = NULL;
    leave_group(s);
    s->state = s->failing ? FAILED : t->returned && room ? DONE : CANCELLED;
    while (ah_line_wake(&s->awaiters)) {
    }
    if (!room) {
        release(s);
        return;
    }
    ah_task_push(L, t);
    if (s->state != FAILED) {
        lua_pushnil(L);
        lua_setiuservalue(L, -2, AH_TASK_OWN);
    }
    keep_results(L, s);
    tell_group(L, s);
    lua_pop(L, 1);
}

typedef struct failure {
    spawned *of;
    const ah_err *err;
    bool kept; /* the raised value */
} failure;

/* True if the error is the value that the code has raised; limits of memory and time have errors of
 * ours. */
static bool is_raised(const failure *f)
{
    lua_State *co = f->of->task.co;

    return lua_status(co) == LUA_ERRRUN && f->err->status != AH_NOMEM && lua_checkstack(co, 1);
}

static void push_error(lua_State *L, const failure *f)
{
    lua_State *co = f->of->task.co;

    if (!is_raised(f)) {
        ah_lua_push_error(L, f->err);
        return;
    }
    lua_pushvalue(co, -1);
    lua_xmove(co, L, 1);
}

static int keep_error(lua_State *L)
{
    failure *f = lua_touserdata(L, 1);
    ah_text *trace = f->of->task.failure;

    ah_task_push(L, &f->of->task);
    push_error(L, f);
    lua_setiuservalue(L, -2, VALUE);
    f->kept = true;
    if (trace) {
        lua_pushlstring(L, ah_text_slice(trace).p, ah_text_slice(trace).n);
        lua_setiuservalue(L, -2, TRACE);
    }
    return 0;
}

/* Takes no memory: Lua always has the string of its memory errors. */
static void keep_plain_error(lua_State *L, const failure *f)
{
    if (!lua_checkstack(L, ROOM))
        return;
    ah_task_push(L, &f->of->task);
    if (is_raised(f))
        push_error(L, f);
    else
        lua_pushliteral(L, "not enough memory");
    lua_setiuservalue(L, -2, VALUE);
    lua_pop(L, 1);
}

static void failed(ah_task *t, const ah_err *err)
{
    failure f = {.of = spawned_of(t), .err = err};
    lua_State *L = t->lua->caller;
    bool kept = false;

    f.of->failing = true;
    t->own = NULL;
    if (lua_checkstack(L, ROOM)) {
        ah_task_push(L, t);
        lua_pushnil(L);
        lua_setiuservalue(L, -2, TRACE);
        lua_pop(L, 1);
        lua_pushcfunction(L, keep_error);
        lua_pushlightuserdata(L, &f);
        kept = ah_lua_call(t->lua, L, 1, 0, NULL) == AH_OK;
    }
    if (kept)
        ah_text_set(&t->failure, NULL); /* whoever awaits the task has it */
    if (!f.kept)
        keep_plain_error(L, &f);
}

/* -- starting ---------------------------------------------------------------------------------- */

static void on_unawaited(ah_job *job)
{
    spawned *s = (spawned *)(void *)((char *)job - offsetof(spawned, task.job));
    lua_State *L = s->task.lua->caller;

    s->given_back = false;
    s->group->n_given_back--;
    if (!lua_checkstack(L, ROOM)) {
        release(s);
        return;
    }
    ah_task_push(L, &s->task);
    lua_getiuservalue(L, -1, GROUP);
    settle(L, s);
    wake_if_done(s->group);
    lua_pop(L, 2);
}

/* All that awaited the task may have been stopped: its failure is then raised by others, in a job,
 * since this is called in the midst of ending such code. */
static void unawaited(ah_line *line)
{
    spawned *s = (spawned *)(void *)((char *)line - offsetof(spawned, awaiters));

    if (!s->pending || line->due > 0)
        return;
    s->given_back = true;
    s->group->n_given_back++;
    s->task.job.fn = on_unawaited;
    s->task.job.of = NULL; /* the run may end before */
    ah_job_post(s->task.lua->host, &s->task.job);
}

static void check_begin(lua_State *L, const ah_lua *h, const ah_task *parent)
{
    if (atomic_load(&h->host->stop))
        ah_lua_raise(L, AH_CANCELLED, "cancelled: the program is being ended");
    if (h->callee == AH_CALLEE_REDUCER)
        ah_lua_raise(L, AH_USAGE, "a reducer cannot start a task: it must be a pure function");
    if (lua_gc(L, LUA_GCISRUNNING, 0) < 0)
        ah_lua_raise(L, AH_USAGE, "a finalizer cannot start a task");
    if (parent && parent->stopped)
        ah_lua_raise(L, AH_USAGE, "the task has ended or was cancelled: it can start no other");
    if (parent && parent->over)
        ah_lua_raise(L, AH_USAGE, "the call is over: no task can be started in it");
    if (parent && parent->depth >= MAX_DEEP)
        ah_lua_raise(L, AH_USAGE, "tasks inside tasks are more than %d deep", MAX_DEEP);
    if (h->n_tasks >= MAX_TASKS)
        ah_lua_raise(L, AH_USAGE, "%d tasks are at work, and there can be no more: use ah.map",
                     MAX_TASKS);
}

/* The task whose code runs; NULL: none, or in a function that belongs to no task. */
static ah_task *current(const ah_lua *h)
{
    return h->callee == AH_CALLEE_NONE ? h->actor : NULL;
}

/* The task that a new one belongs to: the one at idx, none for false, else the one at work. */
static ah_task *parent_at(lua_State *L, int idx)
{
    if (lua_isuserdata(L, idx))
        return luaL_checkudata(L, idx, AH_TASK);
    return lua_isnil(L, idx) ? current(ah_lua_of(L)) : NULL;
}

static void push_root(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &ROOT) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    push_group(L)->is_root = true;
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &ROOT);
}

/* Pushes the group of the tasks that the running code starts. */
static void push_own(lua_State *L, ah_lua *h)
{
    ah_task *t = current(h);
    group *g;

    if (!t) {
        push_root(L);
        return;
    }
    ah_task_push(L, t);
    if (!t->own) {
        g = push_group(L);
        lua_setiuservalue(L, -2, AH_TASK_OWN);
        t->own = g;
    }
    swap_for(L, AH_TASK_OWN);
}

/* -- group place f ...    to    group task */
static ah_task *push_task(lua_State *L, ah_lua *h, const ah_task *parent)
{
    ah_task *t = ah_task_new_as(h, L, lua_gettop(L) - 3, parent ? parent->job.of : NULL,
                                sizeof(spawned), VALUES);

    t->failed = failed;
    t->ended = ended;
    spawned_of(t)->awaiters.lost = unawaited;
    t->watch.work_ms = 0;
    t->fence.memory = 0;
    ah_task_push(L, t);
    lua_insert(L, 2); /* -- group task place */
    lua_setiuservalue(L, 2, PLACE);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, GROUP);
    enter_group(lua_touserdata(L, 1), spawned_of(t));
    return t;
}

/* ah._start(group, parent, f, ...): a task that calls f(...), soon. group: nil for that of the code
 * at work; parent: the task with which it is stopped, false for none, nil for the one at work. */
static int start(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_task *parent, *t;

    luaL_checktype(L, 3, LUA_TFUNCTION);
    parent = parent_at(L, 2);
    check_begin(L, h, parent);
    if (lua_isnil(L, 1)) {
        push_own(L, h);
        lua_replace(L, 1);
    }
    if (((group *)luaL_checkudata(L, 1, GROUP_META))->over)
        ah_lua_raise(L, AH_USAGE, "the tasks were cancelled: no other can be started beside them");
    if (!ah_lua_push_place(L))
        lua_pushliteral(L, "a program");
    lua_replace(L, 2); /* -- group place f ... */
    t = push_task(L, h, parent);
    if (parent)
        ah_task_adopt(L, parent, t);
    ah_lua_step_child(L, current(h), t);
    ah_job_post(h->host, &t->job);
    return 1;
}

/* ah._current(spawned): the task whose code runs; nil: none. spawned: only one that a script has
 * started. */
static int current_task(lua_State *L)
{
    const ah_task *t = current(ah_lua_of(L));

    if (t && (t->ended || !lua_toboolean(L, 1)))
        ah_task_push(L, t);
    else
        lua_pushnil(L);
    return 1;
}

/* -- awaiting ---------------------------------------------------------------------------------- */

/* The task that code has waited for continues with its end. */
static void take_end(spawned *s)
{
    s->awaited = true;
    if (!s->pending)
        return;
    s->pending = false;
    ah_job_cancel(&s->task.job);
    if (s->given_back) {
        s->given_back = false;
        s->group->n_given_back--;
        wake_if_done(s->group);
    }
    release(s);
}

/* Pushes the values on the thread `from`, which keeps them. */
static int copy_results(lua_State *L, lua_State *from, int n)
{
    luaL_checkstack(L, n, "the results of a task");
    for (int i = 1; i <= n; i++) {
        if (!lua_checkstack(from, 1))
            ah_lua_raise_nomem(L);
        lua_pushvalue(from, i);
        lua_xmove(from, L, 1);
    }
    return n;
}

/* Returns what the function of the task at 1, which has ended, has returned; raises what it has
 * raised. */
static int give_end(lua_State *L, spawned *s)
{
    take_end(s);
    if (s->state == DONE && s->task.nresults > 1)
        return copy_results(L, s->task.co, s->task.nresults);
    if (s->state == DONE) {
        lua_getiuservalue(L, 1, VALUE);
        return s->task.nresults;
    }
    if (s->state == FAILED) {
        lua_getiuservalue(L, 1, VALUE);
        return lua_error(L);
    }
    lua_getiuservalue(L, 1, PLACE);
    return ah_lua_raise(L, AH_CANCELLED, "the task of %s was cancelled", lua_tostring(L, -1));
}

static spawned *waited_for(const ah_task *t)
{
    ah_line *line = ah_line_of(t);

    return line && line->lost == unawaited
               ? (spawned *)(void *)((char *)line - offsetof(spawned, awaiters))
               : NULL;
}

static void check_circle(lua_State *L, spawned *s)
{
    const ah_task *own = ah_lua_of(L)->actor;
    const spawned *other = s;

    if (!own || !own->ended)
        return;
    while (other && &other->task != own)
        other = waited_for(&other->task);
    if (!other)
        return;
    lua_getiuservalue(L, 1, PLACE);
    ah_task_push(L, own);
    swap_for(L, PLACE);
    if (&s->task == own)
        ah_lua_raise(L, AH_USAGE, "a task cannot await itself (it was started at %s)",
                     lua_tostring(L, -1));
    ah_lua_raise(L, AH_USAGE, "tasks await each other: those of %s and %s", lua_tostring(L, -1),
                 lua_tostring(L, -2));
}

static int awaited(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    ah_turn_came(lua_touserdata(L, 2));
    return give_end(L, lua_touserdata(L, 1));
}

/* task:await(): waits for its end, and returns what its function has returned. Raises what that has
 * raised, or an error of code `cancelled`. */
static int await(lua_State *L)
{
    spawned *s = check_spawned(L, 1);
    ah_turn *turn;

    lua_settop(L, 1);
    if (s->state != RUNNING)
        return give_end(L, s);
    check_circle(L, s);
    lua_settop(L, 1);
    turn = ah_line_join(L, &s->awaiters, 1, "await");
    return ah_lua_await(L, &turn->waiter, 0, awaited);
}

static int waited(lua_State *L, int status, lua_KContext ctx)
{
    bool came = ah_turn_came(lua_touserdata(L, 3));

    (void)status;
    (void)ctx;
    if (came)
        take_end(lua_touserdata(L, 1));
    lua_pushboolean(L, came);
    return 1;
}

/* ah._wait_for(task, seconds): waits at most so long. True if it has ended. */
static int wait_for(lua_State *L)
{
    spawned *s = check_spawned(L, 1);
    double seconds = luaL_checknumber(L, 2);
    ah_turn *turn;

    lua_settop(L, 2);
    if (s->state != RUNNING) {
        lua_pushboolean(L, true);
        return 1;
    }
    turn = ah_line_join(L, &s->awaiters, 1, "await");
    ah_turn_limit(L, turn, seconds);
    return ah_lua_await(L, &turn->waiter, 0, waited);
}

/* task:cancel(): ends it. Its runs are settled, and its variables marked <close> are closed.
 * Harmless if it has ended. A task that cancels itself is ended at its next wait. */
static int cancel_task(lua_State *L)
{
    ah_task_stop(&check_spawned(L, 1)->task);
    return 0;
}

static const char *const states[] = {"running", "done", "failed", "cancelled"};

/* task:status(): "running", "done", "failed" or "cancelled". */
static int task_status(lua_State *L)
{
    lua_pushstring(L, states[check_spawned(L, 1)->state]);
    return 1;
}

static int task_to_string(lua_State *L)
{
    const spawned *s = check_spawned(L, 1);

    lua_getiuservalue(L, 1, PLACE);
    lua_pushfstring(L, "task of %s (%s)", lua_tostring(L, -1), states[s->state]);
    return 1;
}

/* -- groups in Lua ----------------------------------------------------------------------------- */

static group *check_group(lua_State *L)
{
    return luaL_checkudata(L, 1, GROUP_META);
}

/* ah._group(kind): a group whose tasks end together when one of them fails. With "race" they also
 * end when one of them ends. */
static int new_group(lua_State *L)
{
    static const char *const kinds[] = {"together", "race", NULL};
    group *g;
    int kind = luaL_checkoption(L, 1, "together", kinds);

    g = push_group(L);
    g->together = true;
    g->race = kind == 1;
    return 1;
}

/* ah._root(): the group of the script itself. */
static int root_group(lua_State *L)
{
    push_root(L);
    return 1;
}

/* group:cancel(), and __close: ends its tasks. */
static int group_cancel(lua_State *L)
{
    cancel(check_group(L));
    return 0;
}

/* group:shut(): no task can be started in it any more. */
static int group_shut(lua_State *L)
{
    check_group(L)->over = true;
    return 0;
}

/* group:over(): true if no task can be started in it. */
static int group_over(lua_State *L)
{
    lua_pushboolean(L, check_group(L)->over);
    return 1;
}

/* group:failed(): true if one of its tasks has failed. */
static int group_failed(lua_State *L)
{
    lua_pushboolean(L, check_group(L)->failed);
    return 1;
}

/* group:won(): the task that ended first, in a race. */
static int group_won(lua_State *L)
{
    check_group(L);
    lua_getiuservalue(L, 1, WON);
    return 1;
}

/* -- group    to    group first    Finds the first failure that nothing has awaited, or nil; the
 * others are reported. */
static void find_failure(lua_State *L, const group *g)
{
    lua_settop(L, 1);
    lua_pushnil(L); /* -- group first */
    for (lua_getiuservalue(L, 1, FAILURES); !lua_isnil(L, 3); swap_for(L, NEXT)) {
        const spawned *s = lua_touserdata(L, 3);

        if (s->awaited && !g->together)
            continue;
        if (lua_isnil(L, 2)) {
            lua_pushvalue(L, 3);
            lua_replace(L, 2);
        } else {
            report(L, 3);
        }
    }
    lua_pop(L, 1);
}

static int raise_failure(lua_State *L, group *g)
{
    find_failure(L, g);
    lua_pushnil(L);
    lua_setiuservalue(L, 1, FAILURES);
    lua_pushnil(L);
    lua_setiuservalue(L, 1, LAST_FAILURE);
    g->n_failures = 0;
    if (lua_isnil(L, 2))
        return 0;
    ((spawned *)lua_touserdata(L, 2))->awaited = true;
    lua_getiuservalue(L, 2, TRACE);
    if (lua_getiuservalue(L, 2, VALUE) == LUA_TSTRING && g->is_root && lua_isstring(L, -2))
        lua_pop(L, 1); /* nothing catches it: the text with the traceback is shown */
    return lua_error(L);
}

static int group_waited(lua_State *L, int status, lua_KContext ctx)
{
    group *g = lua_touserdata(L, 1);
    ah_turn *turn;

    (void)status;
    if (ctx)
        ah_turn_came(lua_touserdata(L, 2));
    lua_settop(L, 1);
    if (is_busy(g)) {
        turn = ah_line_join(L, &g->waiting, 1, "all its tasks");
        return ah_lua_await(L, &turn->waiter, 1, group_waited);
    }
    g->joined = true;
    return raise_failure(L, g);
}

int ah_group_join(lua_State *L)
{
    check_group(L);
    return group_waited(L, LUA_OK, 0);
}

int ah_lua_join(lua_State *L)
{
    lua_settop(L, 0);
    push_root(L);
    return ah_group_join(L);
}

/* -- deadlocks ----------------------------------------------------------------------------------
 */

/* Pushes "\n  the task of script.lua:1 waits at script.lua:2 (await)". */
static void push_wait(lua_State *L, const ah_task *t)
{
    char place[AH_PLACE] = ""; /* a tail call has no line */
    const ah_task_waiter *w = t->waiter ? t->waiter : t->drives;

    ah_lua_where(t->co, place, sizeof place);
    lua_pushliteral(L, "a function");
    if (t->ended) {
        ah_task_push(L, t);
        swap_for(L, PLACE);
        lua_pushfstring(L, "the task of %s", lua_tostring(L, -1));
        lua_replace(L, -3);
        lua_pop(L, 1);
    }
    lua_pushfstring(L, "\n  %s waits%s%s (%s)", lua_tostring(L, -1), *place ? " at " : "", place,
                    w && w->by_code ? w->by_code
                    : w && w->scope ? "a run"
                                    : "at work");
    lua_remove(L, -2);
}

/* The list begins with the newest task; the oldest ones are shown. */
int ah_lua_push_stuck(lua_State *L)
{
    const ah_task *shown[SHOWN];
    size_t n = 0, lines = 1;

    for (const ah_task *t = ah_lua_of(L)->tasks; t; t = t->next)
        shown[n++ % SHOWN] = t;
    luaL_checkstack(L, SHOWN + ROOM, NULL);
    lua_pushliteral(L, "deadlock: nothing can go on, as all code waits for other code");
    while (lines <= SHOWN && lines <= n) {
        push_wait(L, shown[(n - lines) % SHOWN]);
        lines++;
    }
    if (n > SHOWN)
        lua_pushfstring(L, "\n  and %d more", (int)(n - SHOWN));
    lua_concat(L, (int)lines + (n > SHOWN));
    return 1;
}

/* -- the tables ---------------------------------------------------------------------------------
 */

static void set_task_meta(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"await", await}, {"cancel", cancel_task}, {"status", task_status}, {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__close", cancel_task}, {"__tostring", task_to_string}, {NULL, NULL}};

    ah_lua_methods(L, AH_TASK, methods, "a task", "await, cancel, status"); /* made by lua_task.c */
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
}

static void set_group_meta(lua_State *L)
{
    static const luaL_Reg methods[] = {{"cancel", group_cancel},
                                       {"shut", group_shut},
                                       {"over", group_over},
                                       {"failed", group_failed},
                                       {"won", group_won},
                                       {"join", ah_group_join},
                                       {NULL, NULL}};

    luaL_newmetatable(L, GROUP_META);
    lua_pushcfunction(L, group_cancel);
    lua_setfield(L, -2, "__close");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void ah_lua_open_spawn(lua_State *L)
{
    static const luaL_Reg functions[] = {{"_start", start},     {"_current", current_task},
                                         {"_group", new_group}, {"_wait_for", wait_for},
                                         {"_root", root_group}, {"_join", ah_lua_join},
                                         {NULL, NULL}};

    ah_lua_open_line(L);
    set_task_meta(L);
    set_group_meta(L);
    luaL_setfuncs(L, functions, 0);
}
