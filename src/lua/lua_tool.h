/* Tools whose handlers are Lua functions. */
#ifndef AH_LUA_TOOL_H
#define AH_LUA_TOOL_H

#include "lua/lua_host.h"
#include "model/tool.h"

/* The tool at idx, or NULL where there is something else. Borrowed. */
ah_tool *ah_lua_to_tool(lua_State *L, int idx);

#endif
