/* The definition of an agent: its fields as they were when it was made, which other conversations
 * are begun with. */
#ifndef AH_LUA_DEFINITION_H
#define AH_LUA_DEFINITION_H

#include <lua.h>

/* The fields at 1 are the definition of the agent on top: kept with it. Raises. */
void ah_lua_keep_definition(lua_State *L);

/* Functions of Lua. ah.agent { ... }: the agent, or nil and an error. */
int ah_lua_agent_open(lua_State *L);
/* agent:open { id, params, session, resources, messages }: an agent with another conversation of
 * the same definition, or nil and an error. */
int ah_lua_open_conversation(lua_State *L);

void ah_lua_open_definition(lua_State *L); /* agent; agent:open. After ah_lua_open_agent. */

#endif
