/* Tools with handlers in Lua. A handler runs as a task, in which it may wait. An object owns one
 * reference to its tool; the tool owns the references to its functions. Callers: its floor. */
#ifndef AH_LUA_TOOL_H
#define AH_LUA_TOOL_H

#include "lua/lua_render.h"
#include "model/tool.h"

/* The handler data of a Lua tool. */
typedef struct ah_lua_handler {
    ah_lua *lua;
    int ref; /* LUA_NOREF: it is found in another way */
    ah_lua_forms forms;
    int lost; /* the function `on_lost`; LUA_NOREF: none */
} ah_lua_handler;

/* Starts a call as a task: `run` is called with the arguments and ctx, and ends with ah_lua_handled
 * on the handler's results. The call is answered now or later. */
void ah_lua_start_call(const ah_lua_handler *hd, ah_call *call, lua_CFunction run);
void ah_lua_stop_call(ah_call *call);
/* The continuation behind a handler; the stack holds only the handler's results. */
int ah_lua_handled(lua_State *L, int status, lua_KContext ctx);

/* ah.tool for agenthost's own tools, whose names no other tool may have. Only for bundled
 * modules. */
int ah_lua_own_tool(lua_State *L);
/* Pushes the tool that the table at 1 declares for `what`, with the fields of ah.tool: a method of
 * an entity, function(self, args, ctx), which is never called as a tool. Raises
 * prompt_validation. */
ah_tool *ah_lua_push_method(lua_State *L, const char *what);
/* Returns the handler of a tool made by ah_lua_push_method. */
const ah_lua_handler *ah_lua_handler_of(const ah_tool *t);

/* Returns the tool at idx, borrowed, or NULL for any other value. */
ah_tool *ah_lua_to_tool(lua_State *L, int idx);
/* Pushes an object for the tool. Two objects of one tool are equal. */
void ah_lua_push_tool(lua_State *L, ah_tool *tool);
/* Pushes the list of the tools that are declared, with their specification (seed 001,
 * ToolInjectionContext). */
void ah_lua_push_tools(lua_State *L, const ah_registry *r);
/* Push the handler, or the render function, that ah.tool was given; nil if there is none. */
void ah_lua_push_handler(lua_State *L, const ah_tool *t);
void ah_lua_push_renderer(lua_State *L, const ah_tool *t);
/* Pushes on_lost as ah.tool was given it: a word or a function. */
void ah_lua_push_on_lost(lua_State *L, const ah_tool *t);
/* Pushes a tool that takes any arguments, with the name and the function at the two indexes. Raises
 * prompt_validation for a name that no tool can have. */
void ah_lua_push_executor(lua_State *L, int name, int function);
/* Pushes an array (a userdata) of the n tools of the list on top (nil: none), borrowed from it,
 * above the list. Raises AH_PROMPT_VALIDATION for an item that is not a tool; `what` is
 * "ah.section: tools". */
ah_tool **ah_lua_tool_list(lua_State *L, const char *what, size_t *n);

/* A value that a handler returned, kept for strategies. */
ah_value ah_lua_live(lua_State *L, int idx);            /* .vt NULL when out of memory */
void ah_lua_push_live(lua_State *L, const ah_value *v); /* nil if there is none */

void ah_lua_open_tool(lua_State *L); /* sets tool, ok, fail, result */

#endif
