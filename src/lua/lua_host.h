/* The Lua side of a host: makes it and calls Lua functions. C enters Lua in two ways only: by
 * ah_lua_call (protected, never yields) and by tasks (lua_task.h). The host is a userdata in the
 * registry; its finalizer frees everything that it owns. Callers: its floor. */
#ifndef AH_LUA_HOST_H
#define AH_LUA_HOST_H

#include "lua/lua_state.h"

/* Makes the host of a Lua state, or returns the one made before. Raises on failure, and if another
 * copy of this library has made a host. cfg: as for ah_host_new. */
ah_lua *ah_lua_host(lua_State *L, const ah_mem *mem, const ah_config *cfg);

void ah_lua_hold(ah_lua *h, ah_lua_object *o);
void ah_lua_let_go(ah_lua_object *o); /* before it is freed; harmless if not held */

/* Calls the function below nargs arguments on L, in protected mode and under a watch: it may be at
 * work as long, and take as much memory, as a tool by default. On failure, which includes these
 * limits, everything is popped and *err filled; a traceback is in the log. Never raises or
 * yields. */
ah_status ah_lua_call(ah_lua *h, lua_State *L, int nargs, int nresults, ah_err *err);
/* The same for code of the script: functions that wait raise in it, with advice. */
ah_status ah_lua_call_as(ah_lua *h, ah_callee as, lua_State *L, int nargs, int nresults,
                         ah_err *err);

void ah_lua_open_log(lua_State *L); /* sets ah.log */

#endif
