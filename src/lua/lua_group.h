/* Tool groups: tools under one name, and lists of tools in which groups may stand. */
#ifndef AH_LUA_GROUP_H
#define AH_LUA_GROUP_H

#include "lua/lua_state.h"

/* Pushes a list of tools from what is at idx: a tool, a group, a group's name, or a list of those
 * and of such lists. A tool that comes more than once through groups stands in it once. Raises
 * AH_PROMPT_VALIDATION for what is none of these; `what` is "ah.run". */
void ah_lua_push_flat_tools(lua_State *L, int idx, const char *what);

void ah_lua_open_group(lua_State *L); /* tool_group */

#endif
