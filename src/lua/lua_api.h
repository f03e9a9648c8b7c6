/* The state that a C program adds to its host, shared by the files behind agenthost.h. No other
 * file includes this header. The host frees the ah_embed when its Lua state is closed.
 *  lua_api.c        hosts, scripts, errors
 *  lua_api_given.c  values that the program and its scripts pass to each other, by name
 *  lua_api_tool.c   tools written in C, and their answers; lua_api_call.c calls tools by name
 *  lua_api_agent.c  agents, their runs and replies
 *  lua_api_ask.c    asks that the program responds to
 *  lua_api_store.c  stores, their asks, and engines of the program
 *  lua_api_loop.c   steps, events, cancel and wake
 *
 * Callers: its module. */
#ifndef AH_LUA_LUA_API_H
#define AH_LUA_LUA_API_H

#include <pthread.h>

#include "host/ask.h"
#include "lua/lua_agent.h"

typedef struct ah_event_node ah_event_node;
typedef struct ah_lua_tool_call ah_lua_tool_call;

enum { AH_ASK_TEXTS = 9 };

struct ah_embed {
    ah_lua *lua;
    void *user;
    bool attached; /* to a caller's state */
    _Atomic(pthread_t) thread;
    atomic_bool scripting; /* a script of the host's own state is at work, in `thread` */
    int given;             /* reference: { tools =, agents =, models = }, each by name */

    ah_lua_tool_call *pending; /* calls of the program's tools without an answer yet */
    uint64_t last_call;

    ah_agent *agents;
    int at_work;

    ah_event_node *first, **last, *shown;
    size_t n_events, n_done, max_events, event_bytes, lost;
    ah_buf scratch; /* the last event that was shown */

    ah_ask ask; /* the last ask that was shown, with its texts below */
    char ask_id[AH_ASK_ID];
    ah_text *ask_text[AH_ASK_TEXTS];

    ah_err err; /* of the last call that failed */
    ah_text *words, *err_json;
    ah_error error;
    ah_text *about, *result, *tools, *returned, *asks_json;
};

/* -- lua_api.c -- */
static inline ah_embed *ah_embed_of(const ah_host *host)
{
    return ((ah_lua *)host->owner)->embed;
}
/* Returns AH_OK if the program may now call functions that wait, step, open or close. Otherwise
 * keeps and returns AH_USAGE. */
ah_status ah_embed_enter(ah_embed *e, const char *what);
/* Returns AH_OK if the program may call functions that begin, answer or cancel. They fail in a
 * callback that only observes. */
ah_status ah_embed_may(ah_embed *e, const char *what);
/* The same as ah_embed_enter, but also fails with AH_USAGE inside a run or a wait, that is in a C
 * function that a script called. */
ah_status ah_embed_enter_top(ah_embed *e, const char *what);
/* Keeps the error for ah_last_error and returns its status. */
ah_status ah_embed_fail(ah_embed *e, const ah_err *err);
/* Calls f(arg) in protected mode. Keeps and returns the error that f raises. */
ah_status ah_embed_call(ah_embed *e, lua_CFunction f, void *arg);
/* Fills *out with the error as the public struct, and *json with its JSON. *out borrows from *err
 * and from *json. */
void ah_embed_error(const ah_mem *mem, const ah_err *err, ah_error *out, ah_text **json);
void ah_err_json(const ah_err *err, ah_buf *out);

/* -- lua_api_given.c -- */
#define AH_GIVEN_AGENT "agent" /* the name of the agent if a script returned only an agent */
typedef enum ah_given { AH_GIVEN_TOOLS, AH_GIVEN_AGENTS, AH_GIVEN_MODELS } ah_given;
void ah_given_open(lua_State *L, ah_embed *e);
void ah_given_take(lua_State *L, ah_embed *e, int idx); /* takes a script's return value; raises */
/* Pushes the value of that kind and name, or nil. Raises only when out of memory. */
void ah_given_push(lua_State *L, ah_embed *e, ah_given kind, const char *name);
void ah_given_tool(lua_State *L, ah_embed *e,
                   int idx); /* adds the tool at idx; raises if its name is taken */
/* Raises tool_not_found, with the nearest name. */
int ah_given_no_tool(lua_State *L, ah_embed *e, const char *name);

/* -- lua_api_agent.c, lua_api_ask.c, lua_api_loop.c -- */
ah_status ah_embed_check_principal(const char *what, ah_slice who, ah_err *err);
void ah_asks_forget(ah_embed *e);                  /* frees the ask that ah_ask_next has shown */
void ah_agents_close(ah_embed *e, bool finalized); /* finalized: Lua has freed all of it */
void ah_embed_watch(ah_embed *e, ah_agent *agent,
                    const ah_notice *n); /* the `watch` of ah_program */
ah_event_node *ah_event_new(ah_embed *e, ah_agent *agent, const ah_notice *n); /* NULL: no memory */
/* Makes an event with only the end of a run, for use when there is no memory for more. */
ah_event_node *ah_event_new_done(ah_embed *e, ah_agent *agent);
void ah_event_set_run(ah_event_node *node, int64_t run, int64_t wall_ms);
void ah_event_free(ah_embed *e, ah_event_node *node); /* not queued yet; NULL is fine */
void ah_event_queue(ah_embed *e, ah_event_node *node, bool done);
void ah_events_forget(ah_embed *e, const ah_agent *agent); /* NULL: of all agents */

#endif
