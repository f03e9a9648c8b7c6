/* The stream of an agent's conversation: opens it in a store, binds the recorder, records changes
 * between runs, and keeps what an unfinished run needs to go on. Without a store nothing is
 * recorded; the text of files is made and read here for all agents. It is part of its agent and
 * must not move. Callers: its module. */
#ifndef AH_LUA_AGENT_STORE_H
#define AH_LUA_AGENT_STORE_H

#include "host/keeper.h"
#include "lua/lua_image.h"
#include "lua/lua_states.h"

struct ah_lua_agent; /* lua_agent.h */

typedef struct ah_lua_stream {
    ah_keeper *keeper; /* NULL: the conversation has no store */
    ah_recorder recorder;
    ah_run_history history; /* of the unfinished run; .run 0: none */
    ah_text *ended;         /* the record `run_ended` of the last run; NULL: none, or in memory */
    size_t ended_first;     /* index of that run's first entry */
    ah_text *opened;        /* the first record; NULL: none */
    ah_text *folder;        /* in which the program was when it opened the stream; NULL: unknown */
    ah_text *base;          /* JSON: the member `base` of the first record; NULL: it is no fork */
    ah_lua_states states;   /* recorded states of entities and resources */
    bool resumed;           /* it is the one that the program resumes */
    bool read;              /* the conversation was read from the store */
    bool loaded;            /* it was read from a file */
    bool bound;             /* the recorder compares the conversation */
    bool claimed;           /* its session is recorded in this stream alone */
    ah_store_watcher watcher; /* set while a run is at work */
} ah_lua_stream;

void ah_lua_stream_init(struct ah_lua_agent *a);
/* Takes the conversation of a file, a `checkpoint`, before ah_lua_stream_read. An unfinished run in
 * it does not count. */
ah_status ah_lua_stream_load(struct ah_lua_agent *a, ah_slice checkpoint, ah_err *err);
/* Appends the conversation as a `checkpoint` for a file. Calls of a pending turn that have no
 * result get one that says so. */
ah_status ah_lua_stream_save(struct ah_lua_agent *a, ah_buf *out, ah_err *err);
/* Reads the fields `store` and `id` of the table at 1. Opens the stream, if there is a store, and
 * takes the conversation from it: transcript and session text of the agent on top. Raises for
 * errors of the script; fails with AH_STORE and AH_CONFLICT. */
ah_status ah_lua_stream_read(lua_State *L, struct ah_lua_agent *a, const char *what, ah_err *err);
/* Binds the recorder, when transcript and session are as recorded. A conversation from elsewhere
 * (a file, a fork) is written as the first checkpoint. */
ah_status ah_lua_stream_bind(lua_State *L, struct ah_lua_agent *a, ah_err *err);
/* Gives the fork on top a stream of its own if the table at idx (or nil) names a store or an id;
 * the store of `from` is its default. Raises. */
ah_status ah_lua_stream_fork(lua_State *L, int idx, struct ah_lua_agent *a,
                             struct ah_lua_agent *from, ah_err *err);
/* Writes what is outstanding, and appends the head of the stream. AH_USAGE: there is no store, or
 * it has no hashes. */
ah_status ah_lua_stream_head(struct ah_lua_agent *a, ah_buf *out, ah_err *err);
/* Raises unless the id can name a stream. */
void ah_lua_stream_check_id(lua_State *L, ah_slice id, const char *what);
/* Raises where a stream would be changed by a call that may still fail. */
void ah_lua_stream_check_outside(lua_State *L, const char *what);
/* While the turn of an unfinished run is pending: moves the entries that came since to those that
 * wait for its commit. */
ah_status ah_lua_stream_defer(struct ah_lua_agent *a, ah_err *err);
/* Records what has changed since, between runs. */
void ah_lua_stream_note(struct ah_lua_agent *a);
/* AH_OK if the agent may begin a run: nothing has failed to be recorded. */
ah_status ah_lua_stream_state(const struct ah_lua_agent *a, ah_err *err);
/* Records and appends everything, and releases the stream. The first fails if that is not
 * possible. */
ah_status ah_lua_stream_settle(struct ah_lua_agent *a, ah_err *err);
void ah_lua_stream_close(struct ah_lua_agent *a);
/* Called when a recorded run has ended or was dropped. unsettled: its turn stays open, and the
 * next run goes on with it. */
void ah_lua_stream_run_over(struct ah_lua_agent *a, bool unsettled);
/* AH_OK if the content (maybe none) is the question of the recorded run whose first entry is
 * `first`; else AH_USAGE, which names that question. */
ah_status ah_lua_stream_same(const struct ah_lua_agent *a, size_t first, const ah_lua_content *said,
                             const char *what, ah_err *err);
/* True if an unfinished run waits in the stream: the next run goes on with it. */
bool ah_lua_stream_resumes(const struct ah_lua_agent *a);
/* Completes the config of a run that is to be recorded: one that no handler has begun. */
void ah_lua_stream_configure(struct ah_lua_agent *a, ah_run_config *cfg);
/* Settles the unfinished run as cancelled. */
ah_status ah_lua_stream_cancel(struct ah_lua_agent *a, ah_err *err);
/* Pushes { question, asks, since }, or nil. */
void ah_lua_stream_push_unfinished(lua_State *L, struct ah_lua_agent *a);
/* True if the recorded run of ah.run is not begun again: it has a reply, or a final error. */
bool ah_lua_stream_is_done(const struct ah_lua_agent *a);

#endif
