/* Items of `tools` that stand for tools of others, such as ah.mcp: the table of fields is replaced
 * by one in which `setup` and a strategy add their tools (lua/agenthost/toolsets.lua).
 * Callers: its floor. */
#ifndef AH_LUA_TOOLSET_H
#define AH_LUA_TOOLSET_H

#include <lua.h>

/* Replaces the table at 1 if its `tools` has such items. Raises. */
void ah_lua_attach_toolsets(lua_State *L);

#endif
