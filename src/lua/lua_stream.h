/* Responses that are read as they come: what ah.http { stream = ... } gives. */
#ifndef AH_LUA_STREAM_H
#define AH_LUA_STREAM_H

#include "lua/lua_host.h"

typedef enum ah_stream_kind { AH_STREAM_BYTES, AH_STREAM_LINES, AH_STREAM_SSE } ah_stream_kind;

/* Makes the request and waits for the head of the response: return ah_lua_stream(...). All of the
 * request is copied but its header lines, which are good until this returns or yields. most: bytes
 * of one line or event. */
int ah_lua_stream(lua_State *L, const ah_http_request *req, ah_stream_kind kind, size_t most);

void ah_lua_push_http_headers(lua_State *L, const ah_transfer *t); /* lua_http.c */
void ah_lua_stream_class(lua_State *L);                            /* registers the metatable */

#endif
