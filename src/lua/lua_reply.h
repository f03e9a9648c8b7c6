/* Replies of runs, complete or partial. A reply is a userdata that owns a reference to the
 * transcript and reads messages and calls from it on use. Callers: its floor. */
#ifndef AH_LUA_REPLY_H
#define AH_LUA_REPLY_H

#include "lua/lua_state.h"
#include "run/run.h"

/* Pushes the reply of a run that has ended; `first` is the transcript's length before the run. */
void ah_lua_push_reply(lua_State *L, const ah_run *run, ah_transcript *t, size_t first);
/* Appends the names of the tools that the entries [first, last) added (kind AH_ENTRY_TOOLS_ADDED)
 * or removed (AH_ENTRY_TOOLS_REMOVED) in mid-conversation, as a JSON list. */
void ah_lua_put_changed_tools(const ah_transcript *t, size_t first, size_t last, ah_entry_kind kind,
                              ah_buf *out);
/* Pushes the first n entries as messages. */
void ah_lua_push_messages(lua_State *L, const ah_transcript *t, size_t n);
/* Pushes the transcript's JSON text. */
void ah_lua_push_transcript(lua_State *L, const ah_transcript *t);
void ah_lua_open_reply(lua_State *L);

#endif
