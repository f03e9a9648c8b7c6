/* ctx:ask, and asks as Lua sees them: their calls and the responses to them. */
#ifndef AH_LUA_ASK_H
#define AH_LUA_ASK_H

#include "host/ask.h"
#include "lua/lua_task.h"

/* Names of responders, in the event `ask_closed`. */
#define AH_BY_SCRIPT "script"
#define AH_BY_FRONT  "front end"

/* ctx:ask { question, schema | params, default, timeout, secret } */
int ah_lua_ctx_ask(lua_State *L);

/* Pushes { id, name, arguments, parent_call } of a call whose arguments are `args`, JSON. Former
 * field names for its name and its id raise there, with the current name. */
void ah_lua_push_call(lua_State *L, const ah_call *call, ah_slice args);

/* Reads the values from `first` to the top of L as a response and appends it to out as JSON: of an
 * approval `true`, or `true` and a table of arguments or a text; `false`, or `false` and why; or a
 * table of the response's schema. AH_USAGE: it is no response. May raise if a reason cannot be made
 * a string. */
ah_status ah_lua_read_response(lua_State *L, ah_ask_kind kind, int first, ah_buf *out, ah_err *err);

void ah_lua_open_ask(lua_State *L); /* the metatables only */

#endif
