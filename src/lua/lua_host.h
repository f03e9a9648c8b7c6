/* The Lua side of a host: how it is made, and the door for calls. There are two ways from C into
 * Lua and no third: ah_lua_call here (protected, never yields) and tasks (lua_task.h). */
#ifndef AH_LUA_HOST_H
#define AH_LUA_HOST_H

#include "lua/lua_state.h"

/* Makes the host of a Lua state, once; later calls give the same. Raises on failure, and where
 * another copy of this library has made one. cfg: as ah_host_new has it. */
ah_lua *ah_lua_host(lua_State *L, const ah_mem *mem, const ah_config *cfg);

void ah_lua_hold(ah_lua *h, ah_lua_object *o);
void ah_lua_let_go(ah_lua_object *o); /* before it is freed; harmless when it is not held */

/* Calls the function below nargs arguments on L, protected and under a watch of its own: so long
 * may it be at work, and take so much memory, as a tool by default. On failure, which that is, too,
 * everything is popped and *err filled (a traceback is in the log); never raises or yields. */
ah_status ah_lua_call(ah_lua *h, lua_State *L, int nargs, int nresults, ah_err *err);
/* The same for code of the script: what waits in it raises, and says what to do instead. */
ah_status ah_lua_call_as(ah_lua *h, ah_callee as, lua_State *L, int nargs, int nresults,
                         ah_err *err);

void ah_lua_open_log(lua_State *L); /* log */

#endif
