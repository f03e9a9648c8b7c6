/* Tools that scripts add and remove in mid-conversation, and strategies written in Lua. */
#ifndef AH_LUA_INJECT_H
#define AH_LUA_INJECT_H

#include "lua/lua_state.h"
#include "run/inject.h"

/* The tool, or list of tools, at idx as additions; raises where it is something else. `by` is
 * the provenance (may be NULL); `what` begins the error's words. */
void ah_lua_add_tools(lua_State *L, int idx, const char *what, ah_changes *c, ah_text *by);
/* The name, or list of names or tools, at idx as removals. */
void ah_lua_remove_tools(lua_State *L, int idx, const char *what, ah_changes *c);
/* Pushes empty changes that Lua frees, so that a raise loses nothing. */
ah_changes *ah_lua_push_changes(lua_State *L, const ah_mem *mem);

/* The strategies of an agent, in order; they live as long as it. */
typedef struct ah_lua_strategies {
    ah_lua *lua;
    ah_strategy *item;
    struct ah_lua_strategy *own; /* of the script, in order */
    size_t n, n_own;             /* the core's have no own */
} ah_lua_strategies;

void ah_lua_strategies_init(ah_lua_strategies *s, ah_lua *h);
void ah_lua_strategies_clear(ah_lua_strategies *s);
/* Reads `strategies`, `max_tools`, `on_conflict`, `hint` and `max_restarts` from the table at
 * idx. */
void ah_lua_strategies_read(lua_State *L, int idx, ah_lua_strategies *s);
/* The tools in the field `tools` (there from the start) or `later` (that may come) of each, as
 * additions. Raises where there is something else. */
void ah_lua_strategies_tools(lua_State *L, const ah_lua_strategies *s, const char *field,
                             ah_changes *c);
/* Puts behind the descriptions of the additions what the field `describe` of each, { tool = words
 * }, says of them, unless the conversation in `r` has the tool without. Raises where it is
 * something else. */
void ah_lua_strategies_describe(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                                ah_changes *c);
/* Says in the agent's transcript what is to be found by them (run/search.h). Raises for a tool's
 * name that is taken. */
void ah_lua_strategies_defer(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                             ah_transcript *t);
/* A strategy of the core's before all of them, three times at most. Raises when out of memory. */
void ah_lua_strategies_lead(lua_State *L, ah_lua_strategies *s, ah_strategy first);
/* Makes s, which was initialised, hold the strategies of `from`. Raises when out of memory. */
void ah_lua_strategies_copy(lua_State *L, ah_lua_strategies *s, const ah_lua_strategies *from);

void ah_lua_open_inject(lua_State *L);

#endif
