/* Ends resources: those of a run, and those that belong to one call. This calls functions of the
 * script, which may wait (the wait then drives the host). Callers: its floor. */
#ifndef AH_LUA_RESOURCE_END_H
#define AH_LUA_RESOURCE_END_H

#include "lua/lua_now.h"

/* Closes the run's resources, the newest first, and releases the reference. Never raises. */
void ah_lua_close_resources(ah_lua *h, int *ref);
/* Called when a handler is over: closes the resources of that call alone. Never raises. */
void ah_lua_leave_resources(ah_lua *h, ah_ctx *c);
/* Pushes a function of lua/agenthost/resources.lua. Raises. */
void ah_lua_push_resource_function(lua_State *L, const char *name);

#endif
