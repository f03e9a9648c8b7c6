/* The definition of an agent: a copy of its fields, made when the agent was made, with which
 * agent:open begins other conversations. The agent's object keeps the copy as a user value.
 * Callers: its floor. */
#ifndef AH_LUA_DEFINITION_H
#define AH_LUA_DEFINITION_H

#include <lua.h>

/* Keeps the fields at 1 as the definition of the agent on top. Raises. */
void ah_lua_keep_definition(lua_State *L);

/* Lua functions. ah.agent { ... }: the agent, or nil and an error. */
int ah_lua_agent_open(lua_State *L);
/* agent:open { id, params, session, resources, messages }: an agent with another conversation of
 * the same definition, or nil and an error. */
int ah_lua_open_conversation(lua_State *L);

/* Pushes a copy of what agent:open was given for the agent at 1. Raises. */
void ah_lua_push_given(lua_State *L);
/* (agent, store): the fields by which ah_lua_agent_fill reads the agent's own conversation. */
int ah_lua_own_fields(lua_State *L);
/* (agent, definition, store or false): the fields with which another agent goes on with the
 * agent's conversation by that definition. */
int ah_lua_carried_fields(lua_State *L);

void ah_lua_open_definition(lua_State *L); /* ah.agent, agent:open; after ah_lua_open_agent */

#endif
