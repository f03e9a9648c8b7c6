/* Agents: a conversation and how it is to be run. lua_agent_fields.c reads the fields,
 * lua_agent.c runs, lua_conversation.c saves, loads, forks and changes the model,
 * lua_api_agent.c has them run for C: by the same code, with a tap in place of a waiting script. */
#ifndef AH_LUA_AGENT_H
#define AH_LUA_AGENT_H

#include "lua/lua_discover.h"
#include "lua/lua_fallback.h"
#include "lua/lua_hooks.h"
#include "lua/lua_inject.h"
#include "lua/lua_observe.h"
#include "lua/lua_prompt_fields.h"
#include "lua/lua_task.h"

#define AH_AGENT "agenthost.agent"

/* User values of its object. */
enum {
    AH_AGENT_SESSION = 1,
    AH_AGENT_RESOURCES,
    AH_AGENT_REGISTRY,
    AH_AGENT_DEFINITION, /* the fields that agent:open begins other conversations with */
    AH_AGENT_PARAMS,     /* the parameters that `setup` sees */
    AH_AGENT_VALUES = AH_AGENT_PARAMS
};
typedef struct ah_lua_run ah_lua_run; /* one run; lives in a userdata */

/* `setup` of a conversation; all but `fn` is zero if there is none (lua_setup.h). */
typedef struct ah_lua_setup {
    int fn;           /* reference; LUA_NOREF: none */
    bool done;        /* once for the conversation */
    ah_text *id;      /* of the conversation; NULL: not yet asked for */
    ah_text *system;  /* the field `system`, set when `setup` is done; NULL: none */
    ah_changes added; /* tools that it has added, for the next time that it adds them */
    struct ah_setting_up *at_work; /* NULL: it is not */
} ah_lua_setup;

/* A conversation and how it is to be run. */
typedef struct ah_lua_agent {
    ah_lua *lua;
    ah_adapter *adapter;
    ah_fallbacks fallback;
    ah_adapter *before; /* agent:use: the one `wire` still borrows; else NULL */
    ah_registry registry;
    ah_registry executors; /* run calls that it cannot (seed 004) */
    ah_inject_rules rules;
    ah_drift_warnings untold;
    ah_prompt_fields prompt;
    ah_lua_strategies strategies;
    ah_lua_discovery discovery;
    ah_lua_hooks hooks;
    ah_lua_setup setup;
    ah_budget *budget; /* NULL: none of its own */
    ah_transcript *transcript;
    ah_session *session; /* borrowed from the object in AH_AGENT_SESSION */
    ah_text *kept;     /* the session in the file it was loaded from, where the script gave none */
    ah_wire wire;      /* of transcript and adapter, kept from run to run */
    ah_text *settings; /* the settings entry its runs are to have */
    ah_run_limits limits;
    ah_text *exempt;          /* what limits.loop.exempt borrows from */
    double timeout, deadline; /* seconds; deadline by ah.now(); 0: none */
    ah_observer observer;
    int fronts; /* reference: list of functions that asks go to (lua_front.c); LUA_NOREF: none */
    ah_lua_run *current;
    int runs;  /* that begun and whose replies are not given out */
    int busy;  /* changes under way that may call the log: it is neither closed nor run meanwhile */
    bool once; /* of ah.run: it ends with its run */
    bool closed;  /* all that it held is freed */
    bool looking; /* its prompt is being rendered: functions of the script are at work */
} ah_lua_agent;

/* The agent at 1; raises where there is none, or a closed one. */
ah_lua_agent *ah_lua_check_agent(lua_State *L);
/* The agent at idx, or NULL where there is something else. */
ah_lua_agent *ah_lua_to_agent(lua_State *L, int idx);

/* Pushes an agent that holds nothing yet but can be collected. */
ah_lua_agent *ah_lua_push_agent(lua_State *L);
/* Reads the fields of the table at 1 into the agent, which may already hold the transcript of a
 * conversation that goes on. Raises for mistakes of the script; AH_PROVIDER for what the world
 * lacks. */
ah_status ah_lua_read_agent(lua_State *L, ah_lua_agent *a, const char *what, ah_err *err);
/* Sets the system text: `text` (.p NULL: none) and the prompt. Raises. */
void ah_lua_say_system(lua_State *L, ah_lua_agent *a, ah_slice text);
/* Declares tools while no run is at work. A tool that the conversation already offers, unchanged,
 * only gets its handler; one with another definition has drifted (run/drift.h); other tools of the
 * conversation stay stale. Raises. */
void ah_lua_declare(lua_State *L, ah_lua_agent *a, ah_conflict on_conflict, ah_changes *c);
/* Reads only the fields about the model and its options; absent ones stay as they were. */
ah_status ah_lua_read_model(lua_State *L, ah_lua_agent *a, ah_err *err);
/* Appends its settings to the transcript, unless they are in force already. */
ah_status ah_lua_say_settings(ah_lua_agent *a, ah_err *err);
/* For changes while no run is at work: the first returns the means to make them, the second makes
 * them. */
ah_injection ah_lua_injection_idle(ah_lua_agent *a, ah_inject_rules *rules);
ah_status ah_lua_change_idle(ah_lua_agent *a, ah_inject_rules *rules, ah_changes *c, ah_err *err);
/* Adds the function on top (popped) to its front ends (lua_front.c). Raises when out of memory. */
void ah_lua_add_front(lua_State *L, ah_lua_agent *a);
/* Returns the agent of the run; NULL: it is not the run of an agent. */
ah_lua_agent *ah_lua_agent_of(const ah_driver_run *d);
/* Returns the program's agent whose run this is, or the nearest one around it; NULL: none. */
ah_agent *ah_lua_program_agent(const ah_driver_run *d);
/* The run of the agent that is at work; NULL: none. */
ah_driver_run *ah_lua_agent_at_work(const ah_lua_agent *a);
/* Returns when a run that begins in a call must end at the latest, by the loop clock, as the run
 * and the call around it demand (each may be NULL); 0: no limit. */
int64_t ah_lua_deadline_around(const ah_driver_run *parent, const ah_overlay *around);
/* Pushes the reply of the run at work, as far as it exists; nil if it is not the run of an
 * agent. */
void ah_lua_push_reply_so_far(lua_State *L, const ah_driver_run *d);
/* Reference to the resources of a run (lua_resources.h); LUA_NOREF: it has none. */
int ah_lua_run_resources(const ah_driver_run *d);
/* Pushes the userdata of a run that is at work, whose first user value is its agent. */
void ah_lua_push_run(lua_State *L, const ah_driver_run *d);
/* Returns when a run that begins now must end (loop clock), by its own limits and those of the run
 * and the call around it (each may be NULL); 0: never. */
int64_t ah_lua_agent_deadline(const ah_lua_agent *a, const ah_driver_run *parent,
                              const ah_overlay *around);
/* Frees all that the agent holds, also a process of its model. Not while a run is at work. */
void ah_lua_agent_close(ah_lua_agent *a);
/* Pushes nil and the error; for `return`. */
int ah_lua_fail(lua_State *L, const ah_err *err);

/* -- runs for C -- */

/* The callbacks of a C program that runs an agent. Both are called from within the driver. */
typedef struct ah_tap {
    ah_agent *agent;
    void (*event)(ah_agent *agent, const ah_notice *e); /* NULL: no events */
    void (*done)(ah_agent *agent);                      /* the run has ended, its result stands */
} ah_tap;

/* Begins a run of the agent at idx with the text (or nil) at idx + 1 and pushes the userdata in
 * which it lives; the caller keeps that (it keeps itself until the run is done). NULL: *err has
 * what the world lacks. Raises for wrong use. The tap is borrowed as long as the run; NULL: a
 * script's run, which the script waits for. */
ah_lua_run *ah_lua_start(lua_State *L, int idx, const ah_tap *tap, ah_err *err);
ah_task_waiter *ah_lua_run_waiter(ah_lua_run *r);
ah_driver_run *ah_lua_run_driven(const ah_lua_run *r); /* NULL once it is dropped */
size_t ah_lua_run_first(const ah_lua_run *r);          /* the transcript's length before it */
/* Ends the run where it is, settled, without a call of the tap; harmless when done or dropped. */
void ah_lua_run_drop(ah_lua_run *r);

/* Pushes the agent that the table at 1 defines, or nil and an error; true if it is the agent. */
bool ah_lua_new_agent(lua_State *L, const char *what);

/* Adds methods to those of agents. */
void ah_lua_agent_methods(lua_State *L, const luaL_Reg *methods);
void ah_lua_open_agent(lua_State *L); /* run */

#endif
