/* Agents: a conversation together with the settings of its runs. The userdata of an agent owns its
 * adapters, registry, transcript and references; its session belongs to the object in
 * AH_AGENT_SESSION. At most one run is at work; each run lives in a userdata of its own.
 * lua_agent_fields.c reads the fields, lua_agent.c runs, lua_conversation.c saves, loads, forks and
 * changes the model. lua_api_agent.c runs agents for C: by the same code, with a tap in place of a
 * script that waits. Callers: its floor. */
#ifndef AH_LUA_AGENT_H
#define AH_LUA_AGENT_H

#include "lua/lua_agent_store.h"
#include "lua/lua_discover.h"
#include "lua/lua_fallback.h"
#include "lua/lua_hooks.h"
#include "lua/lua_inject.h"
#include "lua/lua_observe.h"
#include "lua/lua_prompt_fields.h"
#include "lua/lua_task.h"
#include "run/background.h"

#define AH_AGENT "agenthost.agent"

/* User values of the agent's object. */
enum {
    AH_AGENT_SESSION = 1,
    AH_AGENT_RESOURCES,
    AH_AGENT_REGISTRY,
    AH_AGENT_DEFINITION, /* the fields with which agent:open begins other conversations */
    AH_AGENT_GIVEN,      /* those that agent:open got for this one; nil: it did not make it */
    AH_AGENT_PARAMS,     /* the parameters that `setup` gets */
    AH_AGENT_BACKGROUND, /* a table that keeps the runs of background calls; nil: none yet */
    AH_AGENT_KEPT,       /* table: tool of agent:as_tool -> its conversation; nil: none */
    AH_AGENT_ACTIVE,     /* agent that the conversation was handed to; nil: its own */
    AH_AGENT_NEXT,       /* the same of a handoff whose call is not finished yet */
    AH_AGENT_VALUES = AH_AGENT_NEXT
};

typedef struct ah_lua_run ah_lua_run; /* one run, in a userdata */

/* The background calls of an agent (lua_background.h). */
typedef struct ah_lua_background {
    ah_background core;
    ah_lua_run *first;       /* those outstanding, the newest first */
    int64_t last;            /* the last ticket */
    int64_t ended;           /* how many have ended, which orders them */
    struct ah_wait *waiting; /* agent:wait at work */
} ah_lua_background;

/* `setup` of a conversation (lua_setup.h). */
typedef struct ah_lua_setup {
    int fn;                        /* reference; LUA_NOREF: no `setup` */
    bool done;                     /* `setup` runs once per conversation */
    ah_text *id;                   /* of the conversation; NULL: not asked for yet */
    ah_text *system;               /* the field `system`, set when `setup` is done; NULL: none */
    ah_changes added;              /* the tools it added; if it runs again, it may add them again */
    struct ah_setting_up *at_work; /* NULL: it is not running */
} ah_lua_setup;

/* Handoffs of a conversation (lua_handoff.h). */
typedef struct ah_lua_handoffs {
    struct ah_lua_agent *active, *next; /* the objects in the user values; NULL: its own */
    const ah_call *call;                /* that hands over to `next`; only compared */
    bool again;                         /* that call is one of an earlier process */
    ah_text *name, *next_name;          /* of the agents; NULL: none, or its own */
    int n;                              /* in the present run */
    size_t at; /* entries of the transcript at the last one, and 1: it has none of it yet */
    /* Its own parts while another agent is active. */
    ah_changes tools;
    ah_text *text;
    ah_adapter *adapter;
    ah_text *settings;
} ah_lua_handoffs;

/* An agent: a conversation and the settings of its runs. */
typedef struct ah_lua_agent {
    ah_lua *lua;
    ah_text *name; /* the field `name`; NULL: none */
    ah_adapter *adapter;
    ah_fallbacks fallback;
    ah_adapter *before; /* the adapter before agent:use, while `wire` borrows from it; else NULL */
    ah_registry registry;
    ah_registry executors; /* functions for calls that no tool has a handler for (seed 004) */
    ah_inject_rules rules;
    ah_drift_warnings untold;
    ah_prompt_fields prompt;
    ah_lua_strategies strategies;
    ah_lua_discovery discovery;
    ah_lua_hooks hooks;
    ah_lua_setup setup;
    ah_lua_handoffs handoffs;
    ah_lua_stream stream;
    ah_budget *budget; /* NULL: no budget of its own */
    ah_transcript *transcript;
    ah_session *session; /* borrowed from the object in AH_AGENT_SESSION */
    ah_text *kept;       /* the session of a file or a stream, if the script gave no session */
    ah_wire wire;        /* of transcript and adapter, kept between runs */
    ah_text *settings;   /* the settings entry for its runs */
    ah_run_limits limits;
    ah_text *exempt;          /* the text that limits.loop.exempt points into */
    double timeout, deadline; /* seconds; the deadline by ah.now(); 0: none */
    ah_observer observer;
    int fronts; /* reference: list of front-end functions (lua_front.c); LUA_NOREF: none */
    ah_lua_run *current;
    ah_lua_background background;
    int runs;     /* runs that have begun and whose replies are not delivered */
    int busy;     /* changes in progress that may call the log: no close and no run meanwhile */
    bool once;    /* made by ah.run: it ends with its run */
    bool closed;  /* everything it held is freed */
    bool looking; /* its prompt is being rendered, which calls functions of the script */
    bool again;   /* it is read again: observers, front ends, model and budget stay as they are */
    bool carried; /* its definition is another one on purpose: no tool has drifted */
} ah_lua_agent;

/* Returns the agent at index 1. Raises for any other value and for a closed agent. */
ah_lua_agent *ah_lua_check_agent(lua_State *L);
/* Returns the agent at idx, or NULL for any other value. */
ah_lua_agent *ah_lua_to_agent(lua_State *L, int idx);

/* Pushes an empty agent that can already be collected. */
ah_lua_agent *ah_lua_push_agent(lua_State *L);
/* Reads the fields of the table at 1 into the agent, which may already hold the transcript of an
 * earlier conversation. Raises for errors of the script. Returns AH_PROVIDER if something outside
 * the script is missing, such as a key. */
ah_status ah_lua_read_agent(lua_State *L, ah_lua_agent *a, const char *what, ah_err *err);
/* Frees the conversation of the agent at 1. The agent keeps its id, and what is more than its
 * fields: subscribers, front ends, the model of agent:use, and what its budget has spent. It counts
 * as closed until it is filled. */
void ah_lua_agent_empty(lua_State *L);
/* Lua function (fields, agent): reads the conversation of an emptied agent from its store, as
 * ah_lua_read_agent. Returns the agent, or nil and an error; then it stays closed. */
int ah_lua_agent_fill(lua_State *L);
/* Sets the system text: `text` (.p NULL: none), then the prompt. Raises. */
void ah_lua_say_system(lua_State *L, ah_lua_agent *a, ah_slice text);
/* Declares tools while no run is at work. A tool that the conversation already offers unchanged
 * only gets its handler. A tool whose definition differs has drifted (run/drift.h). All other tools
 * of the conversation stay stale. Raises. */
void ah_lua_declare(lua_State *L, ah_lua_agent *a, ah_conflict on_conflict, ah_changes *c);
/* Reads only the fields about the model and its options. Absent fields keep their values. */
ah_status ah_lua_read_model(lua_State *L, ah_lua_agent *a, ah_err *err);
/* Appends the agent's settings to the transcript, unless they are already in force. */
ah_status ah_lua_say_settings(ah_lua_agent *a, ah_err *err);
/* Changes while no run is at work: the first returns the means to make them, the second makes
 * them. */
ah_injection ah_lua_injection_idle(ah_lua_agent *a, ah_inject_rules *rules);
ah_status ah_lua_change_idle(ah_lua_agent *a, ah_inject_rules *rules, ah_changes *c, ah_err *err);
/* Adds the function on top (popped) to the agent's front ends (lua_front.c). Raises when out of
 * memory. */
void ah_lua_add_front(lua_State *L, ah_lua_agent *a);
/* Returns the agent of the run; NULL: the run has no agent. */
ah_lua_agent *ah_lua_agent_of_run(void *ud); /* on_ud of the run's config */
ah_lua_agent *ah_lua_agent_of(const ah_driver_run *d);
/* Returns the program's agent that owns this run or the nearest run around it; NULL: none. */
ah_agent *ah_lua_program_agent(const ah_driver_run *d);
/* Returns the agent's run at work; NULL: none. */
ah_driver_run *ah_lua_agent_at_work(const ah_lua_agent *a);
/* Returns the latest end, by the loop clock, that the run and the call around it (each may be NULL)
 * allow a new run; 0: no limit. */
int64_t ah_lua_deadline_around(const ah_driver_run *parent, const ah_overlay *around);
/* Pushes the reply of the run at work as far as it exists; nil if the run has no agent. */
void ah_lua_push_reply_so_far(lua_State *L, const ah_driver_run *d);
/* Returns the reference to the run's resources (lua_resources.h); LUA_NOREF: none. */
int ah_lua_run_resources(const ah_driver_run *d);
/* Pushes the userdata of a run at work. Its first user value is the agent. */
void ah_lua_push_run(lua_State *L, const ah_driver_run *d);
/* Returns when a run that begins now must end (loop clock), by the agent's own limits and those of
 * the run and the call around it (each may be NULL); 0: never. */
int64_t ah_lua_agent_deadline(const ah_lua_agent *a, const ah_driver_run *parent,
                              const ah_overlay *around);
/* Frees everything that the agent holds, including a process of its model. Not to be called while a
 * run is at work. */
void ah_lua_agent_close(ah_lua_agent *a);
/* Pushes nil and the error. Returns 2, the number of results. */
int ah_lua_fail(lua_State *L, const ah_err *err);

/* -- runs for C -- */

/* Callbacks of a C program that runs an agent. The driver calls both. */
typedef struct ah_tap {
    ah_agent *agent;
    void (*event)(ah_agent *agent, const ah_notice *e); /* NULL: no events */
    void (*done)(ah_agent *agent);                      /* the run has ended and has its result */
} ah_tap;

/* Begins a run of the agent at idx with the text (or nil) at idx + 1, and pushes the userdata of
 * the run. The caller keeps the userdata; until the run is done, the run keeps it as well. Returns
 * NULL with *err filled if something outside the script is missing, such as a key. Raises for wrong
 * use. The tap is borrowed as long as the run; NULL: a run that a script waits for. */
ah_lua_run *ah_lua_start(lua_State *L, int idx, const ah_tap *tap, ah_err *err);
ah_task_waiter *ah_lua_run_waiter(ah_lua_run *r);
ah_driver_run *ah_lua_run_driven(const ah_lua_run *r); /* NULL once it is dropped */
size_t ah_lua_run_first(const ah_lua_run *r);          /* length of the transcript before the run */
/* Ends and settles the run at once, without a call of the tap. Harmless if it is done or
 * dropped. */
void ah_lua_run_drop(ah_lua_run *r);

/* -- for lua_background.c -- */

/* One run. */
struct ah_lua_run {
    ah_lua_agent *agent;
    ah_driver_run *driven;
    ah_task_waiter waiter;
    bool counted;      /* in agent->runs */
    bool recorded;     /* it is at work, and its records are those of the agent's stream */
    bool left;         /* the task that waited for it was stopped: nothing takes its reply */
    size_t first;      /* length of the transcript before it */
    int resources;     /* reference, lua_resources.h */
    ah_text *said;     /* the user's entry while it waits for `setup`; NULL: none */
    const ah_tap *tap; /* NULL: a script's run */
    /* of a background call: */
    int64_t ticket; /* 0: of none */
    int64_t of;     /* number of the run that has begun it */
    int64_t ended;  /* its place among those that have ended; 0: it is at work */
    ah_lua_run *next;
};

/* Makes a run for the call, and lists it. Raises. */
void ah_lua_run_apart(lua_State *L, ah_lua_agent *a, const ah_call *call, int64_t ticket);
/* Frees what the run of a background call holds; it is no longer listed. late: functions that close
 * its resources cannot wait. */
void ah_lua_run_free_apart(ah_lua_run *r, bool late);
/* Goes on with the conversation of the agent at 1, as agent:run() without a text. */
int ah_lua_run_on(lua_State *L);

/* Pushes the agent that the table at 1 defines and returns true, or pushes nil and an error and
 * returns false. once: it ends with its run; if that is done already in its store, only what a
 * recorded reply needs is read. */
bool ah_lua_new_agent(lua_State *L, const char *what, bool once);

/* Adds methods to the metatable of agents. */
void ah_lua_agent_methods(lua_State *L, const luaL_Reg *methods);
void ah_lua_open_agent(lua_State *L); /* sets ah.run */

#endif
