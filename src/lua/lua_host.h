/* The Lua side of a host: which lua_State it lives in, the door for calls, errors
 * between the two worlds, references. There are two ways from C into Lua and no
 * third: ah_lua_call here (protected, never yields) and tasks (lua_task.h). */
#ifndef AH_LUA_HOST_H
#define AH_LUA_HOST_H

#include <lauxlib.h>
#include <lua.h>

#include "host/host.h"
#include "lua/lua_memory.h"
#include "model/event.h"

typedef struct ah_task ah_task;
typedef struct ah_watch ah_watch;

/* What a function of the script is called as, where it is called and not resumed. It returns
 * before anything else goes on: it cannot wait. */
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

/* What C holds for an object of Lua that the loop knows by its address: in memory of ours, and in the
 * host's list, as a finalizer cannot be relied on (Lua leaves it out when memory is out). */
typedef struct ah_held {
    void (*drop)(struct ah_held *o); /* with the host: ends and frees it */
    struct ah_held *next, **link;
} ah_held;

typedef struct ah_lua {
    ah_mem mem;
    ah_host *host;
    ah_interrupt interrupt; /* of long computations in C: what is at work has no time left */
    lua_State *main;
    lua_State *caller;  /* the thread on which calls from C run */
    lua_State *current; /* the thread that drives; what resumes count their C depth from */
    ah_task *running;   /* the innermost task that is being resumed */
    ah_task *actor; /* the same where its own code runs, not what it drives: whose call changes what */
    struct ah_overlay *tool; /* the call's, while a tool of the program begins it; NULL: none does */
    ah_task *tasks;
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
    ah_held *held;                  /* ah_lua_hold */
    struct ah_undo *undos;          /* objects with an undo copy in open overlays (lua_undo.c) */
    int64_t reducing;               /* number of the reducer at work, while sessions must not change by
                               other ways; 0: none */
    int64_t reductions;             /* so far */
    ah_callee callee;               /* the innermost at work that cannot wait */
    bool subscribed;                /* some dispatcher has had a subscriber */
    bool loaded;                    /* ah_script: past compiling the script */
    ah_lua_memory memory;           /* of a state whose allocator is another's */
    ah_mem *own; /* set by ah_open: the state is ours to close, and this to free after it */
    struct ah_lua_hooks *gate; /* ah.gate; NULL: nothing was said */
    struct ah_embed *embed;    /* lua_api.h; NULL: no C program uses the host */
} ah_lua;

/* Makes the host of a Lua state, once; later calls give the same. Raises on failure, and where
 * another copy of this library has made one. cfg: as ah_host_new has it. */
ah_lua *ah_lua_host(lua_State *L, const ah_mem *mem, const ah_config *cfg);
/* Is agenthost open in L, by another copy of the library? */
bool ah_lua_foreign(lua_State *L);
/* The host of a state in which the library was opened. Raises in what finalizers of the script
 * do after the host's own. */
ah_lua *ah_lua_of(lua_State *L);
/* The same, or NULL where it was not opened or is closed already. Never raises. */
ah_lua *ah_lua_known(lua_State *L);
void ah_lua_push_host(lua_State *L); /* its userdata, or nil */
/* The last step of a __gc: takes the metatable of the userdata at 1 away, as a finalizer of the
 * script that runs later may still hold it. It is then no object of ours. Gives 0. */
int ah_lua_retire(lua_State *L);

void ah_lua_hold(ah_lua *h, ah_held *o);
void ah_lua_let_go(ah_held *o); /* before it is freed; harmless when it is not held */

/* Calls the function below nargs arguments on L, protected and under a watch of its own: so long may
 * it be at work, and take so much memory, as a tool by default. On failure, which that is, too,
 * everything is popped and *err filled (a traceback is in the log); never raises or yields. */
ah_status ah_lua_call(ah_lua *h, lua_State *L, int nargs, int nresults, ah_err *err);
/* The same for code of the script: what waits in it raises, and says what to do instead. */
ah_status ah_lua_call_as(ah_lua *h, ah_callee as, lua_State *L, int nargs, int nresults, ah_err *err);

/* Pushes a compiled-in module ("agenthost.demo"), loading it when it is first needed.
 * On failure nothing is pushed. */
ah_status ah_lua_module(lua_State *L, const char *name, ah_err *err);

/* Pushes the table of agenthost. */
void ah_lua_push_library(lua_State *L);
/* Pushes the function of a compiled-in source ("agenthost.short"). Raises when out of memory. */
void ah_lua_push_chunk(lua_State *L, const char *name);

/* A registry reference; each is released exactly once and then LUA_NOREF. */
int ah_lua_ref(lua_State *L);               /* pops the value; raises when out of memory */
int ah_lua_copy_ref(lua_State *L, int ref); /* another one to the same value; LUA_NOREF stays */
void ah_lua_unref(ah_lua *h, int *ref);

/* -- errors (lua_error.c) ------------------------------------------------------- */

/* Pushes an error object: { code, message, phase, retryable, status, ... } that prints
 * as one line and knows err:is(code). Raises only when out of memory. */
void ah_lua_push_error(lua_State *L, const ah_err *err);
/* Pushes "script.lua:12", the line of the innermost function that is no part of agenthost. False, and
 * nothing: there is none. */
bool ah_lua_push_place(lua_State *L);
/* Raises one with the position of the script's line in front of its message. */
int ah_lua_raise(lua_State *L, ah_status st, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int ah_lua_raise_err(lua_State *L, const ah_err *err);
int ah_lua_raise_nomem(lua_State *L); /* as Lua itself does it; ah_lua_raise_err does for AH_NOMEM */
/* Where the code of the script in co is, or was when it raised: "script.lua:12", for a warning. out
 * stays as it is where none of it is there. */
enum { AH_PLACE = LUA_IDSIZE + 16 };
void ah_lua_where(lua_State *co, char *out, size_t size);
/* The same for where the function at idx begins. */
void ah_lua_defined(lua_State *L, int idx, char *out, size_t size);
/* What is at idx (an error object or anything else that was raised) as *err. Never
 * raises. Texts lose their position: it is for the log, not for a model. */
void ah_lua_read_error(lua_State *L, int idx, ah_err *err);
/* The same with the position, for the script's author. */
void ah_lua_read_placed(lua_State *L, int idx, ah_err *err);
/* Pushes the message of the error object at idx, without its code; false, and nothing, where
 * there is something else. */
bool ah_lua_push_message(lua_State *L, int idx);
void ah_lua_error_class(lua_State *L); /* registers the metatable */
void ah_lua_open_error(lua_State *L);  /* error */

/* In the registry: what the last run or agent that came to nothing failed with, as text; nil once
 * a run went well. For a script that does not look at `nil, err` and stumbles over the nil. */
#define AH_LAST_FAILURE "agenthost.last_failure"

/* -- strict tables (lua_fields.c) ------------------------------------------------ */

/* Raises for a key that is not in `known` (ends with NULL), with the nearest one;
 * 1..n are allowed where `list` says so. From here on the table at idx is one of our
 * own with the same fields: code of the script, which may be called while it is read, cannot
 * reach it, and its fields are all there when reading begins. */
void ah_fields_check(lua_State *L, int idx, const char *what, const char *const *known, bool list);
/* Raises for such a key, of a table or of an object whose members are `known`. */
int ah_lua_unknown(lua_State *L, const char *what, const char *const *known, ah_slice key);
/* Each gives whether the field is there (not nil), and raises when it is of another type. */
bool ah_field_string(lua_State *L, int idx, const char *what, const char *name,
                     ah_slice *out); /* lent by the table */
/* The same, and pushes the string (or nil): it is good as long as it is on the stack. */
bool ah_field_keep(lua_State *L, int idx, const char *what, const char *name, ah_slice *out);
bool ah_field_number(lua_State *L, int idx, const char *what, const char *name, double least,
                     double *out);
bool ah_field_count(lua_State *L, int idx, const char *what, const char *name, int least, int *out);
bool ah_field_bool(lua_State *L, int idx, const char *what, const char *name, bool *out);
/* Which of the words (ends with NULL) the field is; `otherwise` where it is not there. */
int ah_field_choice(lua_State *L, int idx, const char *what, const char *name, const char *const *words,
                    int otherwise);
/* Pushes the field if it is of the type, else pushes nothing. */
bool ah_field_push(lua_State *L, int idx, const char *what, const char *name, int type);

/* The table of methods on top, which is the __index of a `what`, raises so for what it has not. */
void ah_lua_methods_only(lua_State *L, const char *what);

/* Every list that a script or a C program gives is read through one of these: names among its
 * values and nil between them would be passed over by a loop. The first raises "what: ..." for
 * the value at idx; the others are for a field (the list pushed, if it is there), and
 * for those who raise themselves: what is wrong (pushed, and to be put behind the list's name), or NULL.
 * The number of values is what the list had then; whoever runs code of the script reads on with care. */
lua_Integer ah_list_check(lua_State *L, int idx, const char *what);
bool ah_field_list(lua_State *L, int idx, const char *what, const char *name, lua_Integer *n);
const char *ah_list_fault(lua_State *L, int idx);

/* Each sets its functions in the module's table, which is on top of the stack. */
void ah_lua_open_task(lua_State *L);    /* sleep, now, interactive */
void ah_lua_open_tool(lua_State *L);    /* tool, ok, fail, result */
void ah_lua_open_section(lua_State *L); /* section, tools_section */
void ah_lua_open_prompt(lua_State *L);  /* prompt */
void ah_lua_open_type(lua_State *L);    /* type */
void ah_lua_open_session(lua_State *L); /* session */
void ah_lua_open_agent(lua_State *L);   /* run, agent */
void ah_lua_open_http(lua_State *L);    /* http */
void ah_lua_open_serve(lua_State *L);   /* serve */
void ah_lua_open_fs(lua_State *L);      /* filesystem */
void ah_lua_open_models(lua_State *L);
void ah_lua_open_adapter(lua_State *L); /* _adapter, for scripted.lua */
void ah_lua_open_log(lua_State *L);     /* log */
void ah_lua_open_embed(lua_State *L);   /* host_tool */
void ah_lua_open_builtin(lua_State *L); /* _raise, _check_fields */
void ah_lua_open_file(lua_State *L);    /* _append_private */
void ah_lua_open_process(lua_State *L); /* _process, _sandbox, _folder, _repair */

void ah_embed_free(struct ah_embed *e); /* lua_api.c; NULL is fine */
/* lua_api_loop.c: tells the watcher of the config, which there is. */
void ah_embed_watch(struct ah_embed *e, ah_agent *agent, const ah_notice *n);

#endif
