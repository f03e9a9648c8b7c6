/* Implements ctx:ask, and converts asks, their calls and their responses between Lua and C. A wait
 * for a response lives in a userdata; its ask is closed when its call is over.
 * Callers: its floor. */
#ifndef AH_LUA_ASK_H
#define AH_LUA_ASK_H

#include "host/ask.h"
#include "lua/lua_task.h"

/* Names of responders in the event `ask_closed`. */
#define AH_BY_SCRIPT "script"
#define AH_BY_FRONT  "front end"

/* ctx:ask { question, schema | params, default, timeout, secret } */
int ah_lua_ctx_ask(lua_State *L);

/* Pushes { id, name, arguments, parent_call } for a call with the arguments `args` (JSON). In this
 * table the former field names for name and id raise an error with the current name. */
void ah_lua_push_call(lua_State *L, const ah_call *call, ah_slice args);

/* Sets `result` and `changes` of the table on top, if the ask is about changes. method: `changes`
 * is one that returns the list, as in policies; else it is the list. The ask is pinned. */
void ah_lua_set_shown(lua_State *L, const ah_ask_item *ask, bool method);

/* Reads the values from `first` to the top of L as a response and appends it to out as JSON. The
 * response to an approval is `true`, `true` and a table of arguments or a text, `false`, or `false`
 * and the reason. Other responses are a table of the response's schema. Returns AH_USAGE for any
 * other value. May raise if a reason cannot be made a string. */
ah_status ah_lua_read_response(lua_State *L, ah_ask_kind kind, int first, ah_buf *out, ah_err *err);

void ah_lua_open_ask(lua_State *L); /* registers the metatables only */

#endif
