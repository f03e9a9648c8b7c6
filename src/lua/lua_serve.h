/* ah.serve: an HTTP server whose requests a function of the script answers. Each request is a task
 * that may wait; the functions here read and write its ah_hit, which they borrow.
 * Callers: its module. */
#ifndef AH_LUA_SERVE_H
#define AH_LUA_SERVE_H

#include "io/http_server.h"
#include "lua/lua_host.h"

/* -- lua_serve_answer.c: requests and answers ------------------------------------------------ */

/* Pushes { method, target, path, query, headers, body, remote }. Raises when out of memory. */
void ah_lua_push_hit(lua_State *L, const ah_hit *hit);
/* Pushes { status, message } and the same members without a body, for a request that is refused. */
void ah_lua_push_refused(lua_State *L, const ah_hit *hit);
/* Sends the result of a handler at idx: { status, headers, body }, a text, or nil, which leaves a
 * refusal to the server's own text. Raises for a wrong value before anything is sent. */
void ah_lua_answer(lua_State *L, int idx, ah_hit *hit);
/* Begins a streamed answer with { status, headers } at idx, or with defaults for nil. type: the
 * content type if the table gives none; may be NULL. Raises as ah_lua_answer does. */
void ah_lua_begin_answer(lua_State *L, int idx, ah_hit *hit, const char *type);
/* Pushes { event, data, id, retry } at idx as a server-sent event. */
void ah_lua_push_sse(lua_State *L, int idx);

#endif
