/* ah.serve: an HTTP server whose requests are answered by a function of the script. */
#ifndef AH_LUA_SERVE_H
#define AH_LUA_SERVE_H

#include "io/http_server.h"
#include "lua/lua_host.h"

/* -- lua_serve_answer.c: requests and answers ------------------------------------------------ */

/* Pushes { method, target, path, query, headers, body, remote }. Raises when out of memory. */
void ah_lua_push_hit(lua_State *L, const ah_hit *hit);
/* Pushes { status, message } and the same without a body, for a request that is refused. */
void ah_lua_push_refused(lua_State *L, const ah_hit *hit);
/* Says what a handler returned, at idx: { status, headers, body }, a text, or nothing, which leaves
 * a refusal to the server's own words. Raises what is wrong with it before anything was said. */
void ah_lua_answer(lua_State *L, int idx, ah_hit *hit);
/* Begins a streamed answer with { status, headers } at idx, or with nothing there; type: of an
 * answer that does not say one, or NULL. Raises likewise. */
void ah_lua_begin_answer(lua_State *L, int idx, ah_hit *hit, const char *type);
/* Pushes { event, data, id, retry } at idx as a server-sent event. */
void ah_lua_push_sse(lua_State *L, int idx);

#endif
