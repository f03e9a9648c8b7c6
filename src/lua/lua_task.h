/* Tasks: Lua code that may wait. A task is a coroutine that the driver resumes; a
 * waiting function (ah.sleep, ah.http, ah.run) yields in it. On a thread that is no
 * task of ours the same function drives until what it waits for has come. */
#ifndef AH_LUA_TASK_H
#define AH_LUA_TASK_H

#include "host/driver.h"
#include "lua/lua_fence.h"
#include "lua/lua_watch.h"

/* A wait for one thing; lives in a userdata on the waiting thread's stack. */
typedef struct ah_task_waiter {
    bool done;
    ah_task *task; /* the task that yielded for it; NULL: none */
    /* the run it waits for, which Ctrl-C cancels; NULL: none, Ctrl-C leaves at once */
    ah_driver_run *scope;
    /* without a scope: the run that produces what it waits for; NULL: none */
    ah_driver_run *within;
    void (*leave)(
        struct ah_task_waiter *w); /* without a scope: the wait is given up, stop its source */
    ah_lua *keeper;                /* ah_task_waiter_keep */
    int ref;                       /* likewise: in the registry */
    /* A word for the message of a deadlock, if only other code of scripts can end the wait; NULL:
     * the world can. */
    const char *by_code;
} ah_task_waiter;

/* Waits in L until w->done, then calls k and returns its results: return ah_lua_await(...). */
int ah_lua_await(lua_State *L, ah_task_waiter *w, lua_KContext ctx, lua_KFunction k);
/* Raises where a wait in L could only drive and must not: in what is called and not resumed
 * (ah_callee), below a function of the program that the host calls, in finalizers, and where too
 * many drives are open. */
void ah_lua_can_await(lua_State *L);
/* True if ah_lua_can_await would not raise, and the wait would be a yield of a task or at the top
 * of the script: a variable marked <close> may then take its time to end. */
bool ah_lua_may_linger(lua_State *L);
/* The same as ah_lua_can_await for a run, if it is waited for; also raises if too many other runs
 * are around it. */
void ah_lua_can_run(lua_State *L, bool waits);
/* Keeps the userdata on top of L, which holds w, until w is done or left: C knows its
 * address, and a finalizer cannot be relied on (Lua leaves it out when memory is out).
 * Call ah_lua_can_await before, so that from here on nothing raises up to ah_lua_await. */
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
    bool joins; /* it has started tasks, which are waited for when its code has returned */
    ah_task_waiter *waiter;
    ah_job job;            /* resume */
    ah_overlay *overlay;   /* handlers: of their call; NULL: that of the call around its run */
    bool over;             /* handlers: the call is over, whatever the code still does */
    int64_t deadline;      /* loop clock: its code is stopped then; 0: none */
    int nargs;             /* on co, for the first resume */
    int ref;               /* in the registry, which keeps it */
    bool running, stopped; /* stopped: no callback is called any more */
    bool halted;           /* its code was interrupted, and does not go on */
    bool told; /* `settled` has done its work, whatever its caller is told of the time it took */
    ah_watch watch;
    ah_fence fence;
    /* Exactly one of the two is called last, and none after ah_task_stop. `settled` runs
     * protected and finds its results on top of lua->caller; if it raises, `failed` follows. */
    void (*settled)(ah_task *t, int nresults);
    void (*failed)(ah_task *t, const ah_err *err);
    /* Called in place of the two after its pending closes have run, if it was stopped; NULL: whoever
     * stops it knows. */
    void (*gone)(ah_task *t);
    void *ud;
    /* During `failed`: the raised value, with the traceback; NULL: no memory for it. Code that logs
     * it takes it away. */
    ah_text *failure;
    bool mistake; /* it was not raised by error() or assert() */
};

/* A task of the run `of` for the function below nargs arguments on L (popped). Raises
 * when out of memory. It begins in a job, or at once with ah_task_begin. */
ah_task *ah_task_new(ah_lua *h, lua_State *L, int nargs, ah_driver_run *of);
/* Keeps the value on top of L (popped) alive as long as the task. */
void ah_task_keep(lua_State *L, ah_task *t);
/* Makes `t`, which has not begun, a child of `parent`: it works in the same call and within the same
 * limits, and is stopped when the parent ends. */
void ah_task_adopt(ah_task *parent, ah_task *t);
void ah_task_begin(ah_task *t);
/* Ends the task wherever it is: its pending closes run, no callback is called. */
void ah_task_stop(ah_task *t);

/* Called at the end of the host: forgets the tasks that finalizers have made, which have no
 * finalizer to run. */
void ah_tasks_forget(ah_lua *h);

/* Registry key of a table with two functions of the Lua half: join(task), called when the code of a
 * task that has started others has returned, and stuck(), which returns the text for a deadlock. */
#define AH_TASK_HOOKS "agenthost.task_hooks"
#define AH_TASK "agenthost.thread" /* the metatable of ah_task */

/* Pushes the userdata of the task, which is still to end. */
void ah_task_push(lua_State *L, const ah_task *t);

void ah_lua_open_task(lua_State *L); /* sleep, now, interactive */

#endif
