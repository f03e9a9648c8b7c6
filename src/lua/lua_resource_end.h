/* The end of resources: of a run, and of what a call alone has of them. */
#ifndef AH_LUA_RESOURCE_END_H
#define AH_LUA_RESOURCE_END_H

#include "lua/lua_now.h"

/* Closes what a run has of them, the newest first, and releases the reference. Never raises. */
void ah_lua_close_resources(ah_lua *h, int *ref);
/* The handler is over: closes what is of the call alone. Never raises. */
void ah_lua_leave_resources(ah_lua *h, ah_ctx *c);
/* Pushes a function of lua/agenthost/resources.lua. Raises. */
void ah_lua_push_resource_function(lua_State *L, const char *name);

#endif
