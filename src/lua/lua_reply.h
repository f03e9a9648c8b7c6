/* Replies of runs, complete or partial. A reply is a userdata that owns a reference to the
 * transcript and reads messages and calls from it on use. Callers: its floor. */
#ifndef AH_LUA_REPLY_H
#define AH_LUA_REPLY_H

#include "lua/lua_state.h"
#include "run/run.h"

/* Pushes the reply of a run that has ended; `first` is the transcript's length before the run. */
void ah_lua_push_reply(lua_State *L, const ah_run *run, ah_transcript *t, size_t first);
/* Pushes the reply of a run that ended in another process. ended: its record `run_ended`; agent:
 * .p NULL: none. */
void ah_lua_push_recorded(lua_State *L, ah_transcript *t, size_t first, ah_slice ended,
                          ah_slice agent);
/* Fills *err with the error of that record. */
void ah_lua_recorded_error(const ah_lua *h, ah_slice ended, ah_status code, ah_err *err);
/* Appends the names of the tools that the entries [first, last) added (kind AH_ENTRY_TOOLS_ADDED)
 * or removed (AH_ENTRY_TOOLS_REMOVED) in mid-conversation, as a JSON list. */
void ah_lua_put_changed_tools(const ah_transcript *t, size_t first, size_t last, ah_entry_kind kind,
                              ah_buf *out);
/* Pushes the first n entries as messages. */
void ah_lua_push_messages(lua_State *L, const ah_transcript *t, size_t n);
/* Pushes the transcript's JSON text. */
void ah_lua_push_transcript(lua_State *L, const ah_transcript *t);
/* lua_CFunction (reply, whole): what ah_lua_push_recorded reads, as JSON; the entries of its run,
 * or of the whole conversation, as the JSON text of a transcript; the index in it of the first
 * entry of the run. */
int ah_lua_reply_parts(lua_State *L);
void ah_lua_open_reply(lua_State *L);

#endif
