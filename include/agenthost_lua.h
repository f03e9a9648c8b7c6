/* agenthost for programs that bring their own lua_State. */
#ifndef AGENTHOST_LUA_H
#define AGENTHOST_LUA_H

#include <lua.h>

#include "agenthost.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the library in L and pushes its table, as `require "agenthost"` does. */
AH_API int luaopen_agenthost(lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
