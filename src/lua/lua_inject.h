/* Injection from Lua: tools that scripts add and remove while a conversation goes on, and
 * strategies written in Lua. Changes hold references to tools; an agent owns its strategies.
 * Callers: its floor. */
#ifndef AH_LUA_INJECT_H
#define AH_LUA_INJECT_H

#include "lua/lua_state.h"
#include "run/inject.h"

/* Adds the tool, or list of tools, at idx to the changes. Raises for any other value. `by` is the
 * provenance (may be NULL); `what` begins the error message. */
void ah_lua_add_tools(lua_State *L, int idx, const char *what, ah_changes *c, ah_text *by);
/* Adds removals for the name, or the list of names or tools, at idx. */
void ah_lua_remove_tools(lua_State *L, int idx, const char *what, ah_changes *c);
/* Pushes empty changes in a userdata, which frees them after a raise. */
ah_changes *ah_lua_push_changes(lua_State *L, const ah_mem *mem);

/* The strategies of an agent, in order. They live as long as the agent. */
typedef struct ah_lua_strategies {
    ah_lua *lua;
    ah_strategy *item;
    struct ah_lua_strategy *own; /* strategies of the script, in order */
    size_t n, n_own;             /* n includes the strategies of the core */
} ah_lua_strategies;

void ah_lua_strategies_init(ah_lua_strategies *s, ah_lua *h);
void ah_lua_strategies_clear(ah_lua_strategies *s);
/* Reads `strategies`, `max_tools`, `on_conflict`, `hint` and `max_restarts` from the table at
 * idx. */
void ah_lua_strategies_read(lua_State *L, int idx, ah_lua_strategies *s);
/* Adds the tools in the field `tools` (present from the start) or `later` (may come later) of each
 * strategy. Raises if the field is no list of tools. */
void ah_lua_strategies_tools(lua_State *L, const ah_lua_strategies *s, const char *field,
                             ah_changes *c);
/* Appends to the descriptions of the additions the texts in the field `describe` of each strategy,
 * { tool = text }, unless the conversation in `r` has the tool without them. Raises if the field is
 * something else. */
void ah_lua_strategies_describe(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                                ah_changes *c);
/* Records in the agent's transcript which tools the strategies hide until they are found
 * (run/search.h). Raises if a tool's name is taken. */
void ah_lua_strategies_defer(lua_State *L, const ah_lua_strategies *s, const ah_registry *r,
                             ah_transcript *t);
/* Puts a strategy of the core before all others; at most three times. Raises when out of memory. */
void ah_lua_strategies_lead(lua_State *L, ah_lua_strategies *s, ah_strategy first);
/* Copies the strategies of `from` into s, which was initialised. Raises when out of memory. */
void ah_lua_strategies_copy(lua_State *L, ah_lua_strategies *s, const ah_lua_strategies *from);

void ah_lua_open_inject(lua_State *L);

#endif
