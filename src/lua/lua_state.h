/* Our part of a Lua state: the host and everything that belongs to it, found through the registry;
 * references to values. The ah_lua is a userdata, freed when the state is closed.
 * Callers: its floor. */
#ifndef AH_LUA_STATE_H
#define AH_LUA_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "host/host.h"
#include "model/event.h"
#include "state/overlay.h"

typedef struct ah_task ah_task;
typedef struct ah_watch ah_watch;
typedef struct ah_embed ah_embed;

/* The role of a script's function that is called and not resumed. It must return before anything
 * else runs, so it cannot wait. */
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
    AH_CALLEE_SNAPSHOT, /* snapshot and restore */
    AH_CALLEES
} ah_callee;

/* Counts Lua's memory (lua_memory.h). */
typedef struct ah_lua_memory {
    lua_Alloc alloc; /* the allocator below, called with ud */
    void *ud;
    size_t max;             /* bytes of the whole heap; 0: unlimited */
    int64_t used;           /* bytes of the whole heap */
    struct ah_fence *fence; /* the innermost; NULL: none */
    struct ah_lua *lua;     /* the host whose watches are notified of large blocks; NULL: none */
} ah_lua_memory;

/* Functions of the C program's side of a host (lua_api.h). */
typedef struct ah_program {
    void (*free)(ah_embed *e);
    /* Calls the watcher of the config, which is not NULL. agent: the program's; NULL: a
     * script's. */
    void (*watch)(ah_embed *e, ah_agent *agent, const ah_notice *n);
    void (*cancel)(ah_host *host);
    bool (*may_answer)(const ah_embed *e); /* false: nothing waits for the program */
} ah_program;

/* An object whose address the loop or other C code knows. It is allocated by us and listed by the
 * host, because Lua does not call every finalizer when memory is out. */
typedef struct ah_lua_object {
    void (*drop)(
        struct ah_lua_object *o); /* called when the host ends: ends and frees the object */
    struct ah_lua_object *next, **link;
} ah_lua_object;

typedef struct ah_lua {
    ah_mem mem;
    ah_host *host;
    ah_interrupt interrupt; /* for long computations in C: true when the current code must end */
    lua_State *main;
    lua_State *caller;  /* the thread for calls from C */
    lua_State *current; /* the thread that drives; resumes count their C depth from it */
    ah_task *running;   /* the innermost task that is being resumed */
    /* the task whose own code runs, not code that it drives; its call gets the changes */
    ah_task *actor;
    /* the overlay of the call that a tool of the program is beginning; NULL: none */
    struct ah_overlay *tool;
    ah_task *tasks;
    size_t n_tasks;
    char busy[LUA_IDSIZE + 16]; /* the line of a task that held the loop for long; "": none did */
    bool busy_told;             /* that was logged */
    ah_watch *watch;            /* the innermost (lua_watch.h); NULL: only the script itself runs */
    lua_State *volatile thread; /* the thread that runs, as far as known */
    int64_t looked, checked;    /* ns: the last look at the clock, and at all clocks */
    int64_t cpu_us, cpu_read;   /* processor time, and when (ns) it was read */
    int64_t stop_seen, cancel_seen; /* loop clock; 0: not seen */
    int64_t until;                  /* limit of a run that is being begun (loop clock); 0: none */
    int64_t told;                   /* when the script was informed of ah_terminate; 0: not yet */
    int calls;                      /* number of calls before which the clock is read, too */
    int closes;                     /* depth of coroutine.close in coroutine.close */
    bool guarded;                   /* ah_lua_guard_threads was tried */
    ah_text *model;                 /* given from outside; overrides the models of scripts */
    struct ah_models *models;       /* rows of the program, and facts learned */
    ah_lua_object *held;            /* objects kept by ah_lua_hold */
    struct ah_undo *undos;          /* objects with an undo copy in open overlays (lua_undo.c) */
    ah_staged_name *name;           /* of open filesystems (lua_fs.c) and sessions (lua_named.c) */
    size_t cap_names;
    struct ah_lua_named *named; /* sessions and budgets with names (lua_named.c) */
    bool unnamed;               /* these get no store */
    ah_staged_names names;      /* the same, for runs */
    int64_t reducing;     /* number of the running reducer (sessions change only by it); 0: none */
    int64_t reductions;   /* reducers called so far */
    ah_callee callee;     /* the innermost callee that cannot wait */
    bool subscribed;      /* some dispatcher has had a subscriber */
    bool reenter;         /* AGENTHOST_REENTER=always (lua_step.c) */
    bool loaded;          /* ah_script: the script has been compiled */
    ah_lua_memory memory; /* for a state with another allocator */
    ah_mem *own;          /* set by ah_open: the state is ours to close, then this is freed */
    struct ah_lua_hooks *gate;      /* of ah.gate; NULL: none */
    ah_embed *embed;                /* lua_api.h; NULL: no C program uses the host */
    const ah_program *program;      /* NULL: no C program uses the host */
    const struct ah_lua_runs *runs; /* lua_hooks.h */
    struct ah_child *children;      /* lua_child.h: processes of scripts */
    void (*end_children)(struct ah_lua *h);
    lua_CFunction
        own_tool; /* makes tools of agenthost's own; in no table that a script can reach */
} ah_lua;

/* Makes the userdata on top (popped), an ah_lua, the host of this state. Raises when out of
 * memory. */
void ah_lua_set_host(lua_State *L);
/* True if another copy of the library has opened agenthost in L. */
bool ah_lua_foreign(lua_State *L);
/* Returns the host of a state in which the library was opened. Raises in finalizers of the script
 * that run after the host's own. */
ah_lua *ah_lua_of(lua_State *L);
/* The same, but NULL if the library was not opened or is closed already. Never raises. */
ah_lua *ah_lua_known(lua_State *L);
void ah_lua_push_host(lua_State *L); /* its userdata, or nil */
/* The last step of a __gc: removes the metatable of the userdata at 1, since a finalizer of the
 * script that runs later may still hold it. It is then no object of ours. Returns 0. */
int ah_lua_retire(lua_State *L);

/* Registry references. Each is released exactly once and then LUA_NOREF. */
int ah_lua_ref(lua_State *L); /* pops the value; raises when out of memory */
int ah_lua_copy_ref(lua_State *L,
                    int ref); /* a new reference to the same value; LUA_NOREF for LUA_NOREF */
void ah_lua_unref(ah_lua *h, int *ref);

int ah_lua_raise_nomem(
    lua_State *L); /* raises as Lua itself does; ah_lua_raise_err calls it for AH_NOMEM */

#endif
