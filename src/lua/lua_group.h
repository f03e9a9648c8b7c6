/* Tool groups: several tools under one name, and lists of tools in which groups may stand. Groups
 * are Lua tables; the registry of the Lua state has the latest of each name. Callers: its floor. */
#ifndef AH_LUA_GROUP_H
#define AH_LUA_GROUP_H

#include "lua/lua_state.h"

/* Pushes a flat list of tools from the value at idx: a tool, a group, a group's name, or a list of
 * these and of such lists. A tool that several groups bring is in the list once. Raises
 * AH_PROMPT_VALIDATION for any other value; `what` is the caller's name, such as "ah.run". */
void ah_lua_push_flat_tools(lua_State *L, int idx, const char *what);

void ah_lua_open_group(lua_State *L); /* sets ah.tool_group */

#endif
