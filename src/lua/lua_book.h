/* The contents of an ah.registry (lua_book.c): its tools as the code that runs now sees and changes
 * them. */
#ifndef AH_LUA_BOOK_H
#define AH_LUA_BOOK_H

#include "lua/lua_state.h"
#include "model/registry.h"

#define AH_BOOK "agenthost.registry"

/* A userdata. Its user value is a table of the agents that use it, weakly. */
typedef struct ah_book {
    ah_lua *lua;
    ah_registry *core; /* NULL: collected */
    uint64_t version;  /* of core; copies of core have the same until they are changed */
    uint64_t last;     /* the last version that was assigned */
} ah_book;

enum { AH_BOOK_AGENTS = 1 };

/* Pushes an empty one. Raises when out of memory. */
ah_book *ah_book_push(lua_State *L);
void ah_book_clear(ah_book *b);

/* Returns the tools as the call in which the code runs sees them; outside of calls, as they are.
 * Borrowed until something changes. */
const ah_registry *ah_book_seen(lua_State *L, const ah_book *b);

/* Each changes the registry at 1: in a call with its commit, else at once; the agents that use it
 * are notified then. Raise if the change is not possible. */
void ah_book_put(lua_State *L, ah_tool *tool, bool replace); /* replace: or adds */
bool ah_book_remove(lua_State *L, ah_slice name);            /* true if it was there */
void ah_book_pick(lua_State *L, ah_slice name);              /* the tool must be there */
void ah_book_clear_picked(lua_State *L);

/* Called before a run of the agent at idx: applies now the changes of its registry by the call in
 * which the code runs and the calls around it. Raises. */
void ah_book_deliver(lua_State *L, int idx);

#endif
