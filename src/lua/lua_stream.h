/* Streams: responses that are read as they arrive, made by ah.http { stream = ... }. A stream is a
 * userdata whose state the host holds; it owns the transfer and the bytes that were not read
 * yet. Callers: its module. */
#ifndef AH_LUA_STREAM_H
#define AH_LUA_STREAM_H

#include "lua/lua_host.h"

typedef enum ah_stream_kind { AH_STREAM_BYTES, AH_STREAM_LINES, AH_STREAM_SSE } ah_stream_kind;

/* Makes the request and waits for the head of the response; used as `return ah_lua_stream(...)`.
 * Copies the request except its header lines, which must be valid until this returns or yields.
 * most: maximum bytes of one line or event. */
int ah_lua_stream(lua_State *L, const ah_http_request *req, ah_stream_kind kind, size_t most);

void ah_lua_push_http_headers(lua_State *L, const ah_transfer *t); /* lua_http.c */
void ah_lua_stream_class(lua_State *L);                            /* registers the metatable */

#endif
