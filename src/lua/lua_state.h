/* Our part of a Lua state: its host and all that goes with it, found through the registry;
 * references to values. */
#ifndef AH_LUA_STATE_H
#define AH_LUA_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "host/host.h"
#include "model/event.h"

typedef struct ah_task ah_task;
typedef struct ah_watch ah_watch;
typedef struct ah_embed ah_embed;

/* The role of a script's function that is called and not resumed. It returns before anything else
 * goes on, so it cannot wait. */
typedef enum ah_callee {
    AH_CALLEE_NONE,
    AH_CALLEE_OBSERVER, /* `on` */
    AH_CALLEE_SUBSCRIBER,
    AH_CALLEE_LOG,
    AH_CALLEE_REDUCER,
    AH_CALLEE_POLICY,
    AH_CALLEE_GUARD,
    AH_CALLEE_STRATEGY,
    AH_CALLEE_FEEDBACK,
    AH_CALLEE_SWITCH, /* `enabled` and `visibility` */
    AH_CALLEE_RENDERER,
    AH_CALLEE_ID,
    AH_CALLEE_SNAPSHOT, /* and restore */
    AH_CALLEES
} ah_callee;

/* The counter of Lua's memory (lua_memory.h). */
typedef struct ah_lua_memory {
    lua_Alloc alloc; /* the allocator below, called with ud */
    void *ud;
    size_t max;             /* bytes of the whole heap; 0: any */
    int64_t used;           /* bytes of the whole heap */
    struct ah_fence *fence; /* the innermost; NULL: none */
    struct ah_lua *lua;     /* the host whose watches learn of large blocks; NULL: none */
} ah_lua_memory;

/* Calls of the C program that uses the host (lua_api.h). */
typedef struct ah_program {
    void (*free)(ah_embed *e);
    /* Calls the watcher of the config, which is not NULL. agent: of the program; NULL: a
     * script's. */
    void (*watch)(ah_embed *e, ah_agent *agent, const ah_notice *n);
    void (*cancel)(ah_host *host);
} ah_program;

/* An object of Lua that the loop knows by its address, as C holds it: in memory of ours, and in the
 * host's list, as a finalizer cannot be relied on (Lua leaves it out when memory is out). */
typedef struct ah_lua_object {
    void (*drop)(struct ah_lua_object *o); /* with the host: ends and frees it */
    struct ah_lua_object *next, **link;
} ah_lua_object;

typedef struct ah_lua {
    ah_mem mem;
    ah_host *host;
    ah_interrupt interrupt; /* of long computations in C: what is at work has no time left */
    lua_State *main;
    lua_State *caller;  /* the thread on which calls from C run */
    lua_State *current; /* the thread that drives; what resumes count their C depth from */
    ah_task *running;   /* the innermost task that is being resumed */
    /* the task whose own code runs, not code that it drives; its call gets changes */
    ah_task *actor;
    /* the call's, while a tool of the program begins it; NULL: none does */
    struct ah_overlay *tool;
    ah_task *tasks;
    size_t n_tasks;
    ah_watch *watch; /* the innermost (lua_watch.h); NULL: only the script itself is at work */
    lua_State *volatile thread;     /* the one that is at work, as far as is known */
    int64_t looked, checked;        /* ns: the last look, the last at all clocks */
    int64_t cpu_us, cpu_read;       /* the processor's clock, and when (ns) it was read */
    int64_t stop_seen, cancel_seen; /* loop clock; 0: not */
    int64_t until;                  /* of a run that is being begun (loop clock); 0: none */
    int64_t told;                   /* when the script learned of ah_terminate; 0: it has not */
    int calls;                      /* before which the clock is looked at, beside the count */
    int closes;                     /* coroutine.close in coroutine.close */
    bool guarded;                   /* ah_lua_guard_threads was tried */
    ah_text *model;                 /* given from outside: wins over what scripts name */
    struct ah_models *models;       /* what the program says of models, and has learned */
    ah_lua_object *held;            /* ah_lua_hold */
    struct ah_undo *undos;          /* objects with an undo copy in open overlays (lua_undo.c) */
    int64_t reducing;     /* number of the reducer at work, while sessions must not change by
                               other ways; 0: none */
    int64_t reductions;   /* so far */
    ah_callee callee;     /* the innermost at work that cannot wait */
    bool subscribed;      /* some dispatcher has had a subscriber */
    bool loaded;          /* ah_script: past compiling the script */
    ah_lua_memory memory; /* of a state whose allocator is another's */
    ah_mem *own; /* set by ah_open: the state is ours to close, and this to free after it */
    struct ah_lua_hooks *gate;      /* ah.gate; NULL: nothing was said */
    ah_embed *embed;                /* lua_api.h; NULL: no C program uses the host */
    const ah_program *program;      /* likewise */
    const struct ah_lua_runs *runs; /* lua_hooks.h */
    struct ah_child *children;      /* lua_child.h: processes of scripts */
    void (*end_children)(struct ah_lua *h);
    lua_CFunction own_tool; /* makes a tool of agenthost's own; in no table, so no script has it */
} ah_lua;

/* Makes the userdata on top (popped), which is an ah_lua, the host of this state. Raises when out
 * of memory. */
void ah_lua_set_host(lua_State *L);
/* True if another copy of the library has opened agenthost in L. */
bool ah_lua_foreign(lua_State *L);
/* Returns the host of a state in which the library was opened. Raises in finalizers of the script
 * that run after the host's own. */
ah_lua *ah_lua_of(lua_State *L);
/* The same, or NULL where it was not opened or is closed already. Never raises. */
ah_lua *ah_lua_known(lua_State *L);
void ah_lua_push_host(lua_State *L); /* its userdata, or nil */
/* The last step of a __gc: takes the metatable of the userdata at 1 away, as a finalizer of the
 * script that runs later may still hold it. It is then no object of ours. Returns 0. */
int ah_lua_retire(lua_State *L);

/* A registry reference; each is released exactly once and then LUA_NOREF. */
int ah_lua_ref(lua_State *L);               /* pops the value; raises when out of memory */
int ah_lua_copy_ref(lua_State *L, int ref); /* another one to the same value; LUA_NOREF stays */
void ah_lua_unref(ah_lua *h, int *ref);

int ah_lua_raise_nomem(
    lua_State *L); /* as Lua itself does it; ah_lua_raise_err does for AH_NOMEM */

#endif
