/* Tools whose handlers are Lua functions. */
#ifndef AH_LUA_TOOL_H
#define AH_LUA_TOOL_H

#include "lua/lua_host.h"
#include "model/tool.h"

/* The tool at idx, or NULL where there is something else. Borrowed. */
ah_tool *ah_lua_to_tool(lua_State *L, int idx);

/* A value a handler returned, kept alive for strategies. */
ah_value ah_lua_live(lua_State *L, int idx);            /* .vt NULL when out of memory */
void ah_lua_push_live(lua_State *L, const ah_value *v); /* nil where there is none */

#endif
