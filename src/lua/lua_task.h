/* Tasks: Lua code that may wait. A task is a coroutine that the driver resumes, and in which a
 * waiting function (ah.sleep, ah.http, ah.run) yields. On any other thread the same function drives
 * the host until its wait is done. The registry keeps a task until it has ended; a waiter is in a
 * userdata, which its wait keeps. Callers: its floor. */
#ifndef AH_LUA_TASK_H
#define AH_LUA_TASK_H

#include "host/driver.h"
#include "lua/lua_fence.h"
#include "lua/lua_watch.h"
#include "run/budget.h"

/* A wait for one thing, in a userdata on the stack of the waiting thread. */
typedef struct ah_task_waiter {
    bool done;
    ah_task *task; /* the task that yielded for it; NULL: none */
    /* the run that is waited for, which Ctrl-C cancels; NULL: none, Ctrl-C ends the wait */
    ah_driver_run *scope;
    /* without a scope: the run that produces what is waited for; NULL: none */
    ah_driver_run *within;
    /* The wait is given up. Without a scope: stops its source. With one: its run is settled, and
     * nothing will take its result; NULL: nothing to do. */
    void (*leave)(struct ah_task_waiter *w);
    /* The wait was done, but its code was stopped before it continued. Must not run code of
     * scripts; NULL: nothing to do. */
    void (*lost)(struct ah_task_waiter *w);
    ah_lua *keeper; /* set by ah_task_waiter_keep */
    int ref;        /* in the registry; set by ah_task_waiter_keep */
    /* Ends a wait that would be a deadlock, when nothing can happen any more; NULL: it is one. */
    void (*idle)(struct ah_task_waiter *w);
    /* The word for the wait in the error of a deadlock, if only code of scripts can end it; NULL:
     * the world can. */
    const char *by_code;
} ah_task_waiter;

/* Waits in L until w->done, then calls k and returns its results; used as `return
 * ah_lua_await(...)`. */
int ah_lua_await(lua_State *L, ah_task_waiter *w, lua_KContext ctx, lua_KFunction k);
/* Raises if a wait in L would have to drive but must not: in functions that are called and not
 * resumed (ah_callee), below a function of the program that the host calls, in finalizers, and if
 * too many drives are open. */
void ah_lua_can_await(lua_State *L);
/* True if ah_lua_can_await would not raise, and the wait would yield a task or is at the top of the
 * script: the end of a <close> variable may then take time. */
bool ah_lua_may_linger(lua_State *L);
/* The same as ah_lua_can_await for a run, if it is waited for; also raises if too many runs are
 * around it. */
void ah_lua_can_run(lua_State *L, bool waits);
/* Keeps the userdata on top of L, which holds w, until w is done or left: C knows its address, and
 * Lua does not call every finalizer when memory is out. Call ah_lua_can_await before, so that
 * nothing raises between this and ah_lua_await. */
void ah_task_waiter_keep(lua_State *L, ah_task_waiter *w);
void ah_task_waiter_done(ah_task_waiter *w);

struct ah_task {
    ah_lua *lua;
    lua_State *co;
    ah_task *next, **link; /* in lua->tasks */
    ah_task *parent;       /* the one whose code started it; NULL: none, or that one has ended */
    ah_task *children;     /* those that it started and that are at work */
    ah_task *sibling, **in_parent; /* in parent->children */
    int depth;                     /* tasks around it */
    struct ah_group *own;          /* the tasks that its code has started; NULL: none yet */
    ah_budget *account;            /* runs below the task draw on it, too; owned; NULL: none */
    ah_task_waiter *waiter;
    const ah_task_waiter *drives; /* the innermost wait for which its code drives; NULL: none */
    ah_job job;                   /* resumes the task */
    ah_overlay *overlay; /* handlers: of their call; NULL: that of the call around its run */
    bool over;           /* handlers: the call is over, even if the code still runs */
    ah_text *path;    /* in a durable handler: by numbers of starts, "/2/1"; NULL: its own task */
    unsigned starts;  /* tasks that it has started, for their paths */
    unsigned outside; /* functions of steps in which its code is */
    struct ah_call_step *step; /* outside: the step; NULL: it is not recorded, or over */
    int64_t deadline;          /* loop clock: the code is stopped then; 0: none */
    int nargs;                 /* on co, for the first resume */
    int ref;                   /* in the registry; keeps the task */
    bool running, stopped;     /* stopped: no callback is called any more */
    bool halted;               /* its code was interrupted and does not continue */
    bool returned;             /* with `ended`: its results are on top of `co` */
    bool ending;               /* its end has begun, or is over */
    int nresults;              /* with `returned` */
    bool told; /* `settled` has succeeded, even if its caller reports that it took too long */
    ah_watch watch;
    ah_fence fence;
    /* Exactly one of the two is called last, and neither after ah_task_stop. `settled` runs
     * protected and finds the results on top of lua->caller; if it raises, `failed` follows.
     * `settled` is NULL with `ended`. */
    void (*settled)(ah_task *t, int nresults);
    void (*failed)(ah_task *t, const ah_err *err);
    /* Called last and once, however it has ended, when its pending closes have run. Must not raise;
     * releases `ref`. Every end is given to it, even if there is no memory. NULL: whoever stops the
     * task knows. */
    void (*ended)(ah_task *t);
    void *ud;
    /* During `failed`: the raised value, with the traceback; NULL: no memory for it. A callee that
     * logs it takes it. */
    ah_text *failure;
    bool mistake; /* not raised by error() or assert() */
};

/* User values of a task. */
enum {
    AH_TASK_THREAD = 1, /* `co` */
    AH_TASK_KEPT,       /* set by ah_task_keep */
    AH_TASK_OWN,        /* the userdata of `own` */
    AH_TASK_LIMITS,     /* the task that counts for the limits that it shares */
    AH_TASK_VALUES = AH_TASK_LIMITS
};

/* Makes a task of the run `of` for the function below nargs arguments on L (popped). Raises when
 * out of memory. It begins in a job, or at once with ah_task_begin. */
ah_task *ah_task_new(ah_lua *h, lua_State *L, int nargs, ah_driver_run *of);
/* The same for a larger object that begins with the task, with more user values; the rest of it is
 * zero. */
ah_task *ah_task_new_as(ah_lua *h, lua_State *L, int nargs, ah_driver_run *of, size_t size,
                        int values);
/* Keeps the value on top of L (popped) as long as the task. */
void ah_task_keep(lua_State *L, ah_task *t);
/* Makes `t`, which has not begun, a child of `parent`: it works in the same call, shares its limits
 * with all tasks of the call, and is stopped when the parent ends. */
void ah_task_adopt(lua_State *L, ah_task *parent, ah_task *t);
void ah_task_begin(ah_task *t);
/* Ends the task at any point: its pending closes run, no callback but `ended` is called. Harmless
 * if its end has begun. */
void ah_task_stop(ah_task *t);

/* Called at the end of the host: forgets the tasks that finalizers have made, whose own finalizers
 * will not run. */
void ah_tasks_forget(ah_lua *h);

/* Called before a state is closed: stops the tasks that scripts have started. */
void ah_tasks_end(ah_lua *h);

#define AH_TASK "agenthost.task" /* the metatable of ah_task */

/* -- the tasks that code has started (lua_spawn.c) -------------------------------------------- */

/* True if tasks of the group are at work, or have failed and are not awaited. */
bool ah_group_open(const struct ah_group *g);
/* lua_CFunction (group): waits for the tasks of the group; raises their first failure that nothing
 * has awaited. */
int ah_group_join(lua_State *L);
/* Called by the collector for a task with `ended`, which is at 1: reports an end that nothing has
 * seen. May raise. */
void ah_task_forgotten(lua_State *L, ah_task *t);
/* ah._join, a lua_CFunction: the same for the tasks that no other task has started. */
int ah_lua_join(lua_State *L);
/* Pushes the text of a deadlock, which names the tasks and their lines. Raises when out of
 * memory. */
int ah_lua_push_stuck(lua_State *L);

/* Pushes the userdata of a task that has not ended. */
void ah_task_push(lua_State *L, const ah_task *t);

void ah_lua_open_task(lua_State *L); /* sets sleep, now, interactive */

#endif
