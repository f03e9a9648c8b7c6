/* Tools whose handlers are Lua functions. */
#ifndef AH_LUA_TOOL_H
#define AH_LUA_TOOL_H

#include "lua/lua_host.h"
#include "model/tool.h"

/* The tool at idx, or NULL where there is something else. Borrowed. */
ah_tool *ah_lua_to_tool(lua_State *L, int idx);
/* Pushes an object for the tool; two objects of one tool are equal. */
void ah_lua_push_tool(lua_State *L, ah_tool *tool);
/* Pushes a tool that takes any arguments, of the name and the function at the two indexes. Raises
 * prompt_validation for a name that no tool can have. */
void ah_lua_push_executor(lua_State *L, int name, int function);
/* Pushes a light array of the n tools of the list on top (nil: none), borrowed from it, above
 * it. Raises AH_PROMPT_VALIDATION for what is no tool; `what` is "ah.section: tools". */
ah_tool **ah_lua_tool_list(lua_State *L, const char *what, size_t *n);

/* A value a handler returned, kept alive for strategies. */
ah_value ah_lua_live(lua_State *L, int idx);            /* .vt NULL when out of memory */
void ah_lua_push_live(lua_State *L, const ah_value *v); /* nil where there is none */

#endif
