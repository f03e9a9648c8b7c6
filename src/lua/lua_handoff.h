/* Handoffs: another agent goes on with a conversation. The agent of the conversation keeps its own
 * parts meanwhile, and the object of the active agent in a user value. The rest of ah.handoff is
 * lua/agenthost/agents/handoff.lua. Callers: its floor. */
#ifndef AH_LUA_HANDOFF_H
#define AH_LUA_HANDOFF_H

#include "lua/lua_agent.h"

enum { AH_MAX_HANDOFFS = 10 }; /* in one run */

void ah_lua_handoffs_clear(ah_lua_agent *a);
/* The fork on top of the stack, b, has the same active agent as the agent at 1. Raises when out of
 * memory. */
void ah_lua_handoffs_copy(lua_State *L, ah_lua_agent *b, const ah_lua_agent *a);
/* True if the conversation, which was loaded, was handed over to another agent: the tools of the
 * fields are kept apart then. */
bool ah_lua_is_handed_over(const ah_lua_agent *a);
/* Moves the tools to those that its own agent has when it is handed back. Raises. */
void ah_lua_handoffs_keep(lua_State *L, ah_lua_agent *a, ah_changes *tools);
/* Opens the active agent of the loaded conversation again. The fields are at 1, the agent is on
 * top. Returns the number of results: the agent, or nil and an error. */
int ah_lua_handoffs_resume(lua_State *L, ah_lua_agent *a);
/* hand_over of the config of a run. */
void ah_lua_hand_over(void *ud, const ah_call *call, ah_handover *to);

void ah_lua_open_handoff(lua_State *L); /* sets ah._conversation, ah._same and ah._hand_over */

#endif
