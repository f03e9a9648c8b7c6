/* Books: the tools of an ah.registry, as the code that runs now sees and changes them. A book owns
 * its registry of tools and refers to its agents only weakly. Inside a call, changes are made on a
 * copy and take effect with the call's commit; all functions that change a book may raise.
 * Callers: its module. */
#ifndef AH_LUA_BOOK_H
#define AH_LUA_BOOK_H

#include "lua/lua_state.h"
#include "model/registry.h"

#define AH_BOOK "agenthost.registry"

/* A userdata. Its user value is a weak table of the agents that use it. */
typedef struct ah_book {
    ah_lua *lua;
    ah_registry *core; /* NULL: collected */
    uint64_t version;  /* of core; a copy of core has the same version until it is changed */
    uint64_t last;     /* the last version that was assigned */
} ah_book;

enum { AH_BOOK_AGENTS = 1 };

/* Pushes an empty book. Raises when out of memory. */
ah_book *ah_book_push(lua_State *L);
void ah_book_clear(ah_book *b);

/* Returns the tools as the call that runs this code sees them; outside of calls, the current ones.
 * Borrowed until the next change. */
const ah_registry *ah_book_seen(lua_State *L, const ah_book *b);

/* Functions that change the registry at 1: inside a call with its commit, else at once. The agents
 * that use the registry are notified then. They raise if the change is not possible. */
void ah_book_put(lua_State *L, ah_tool *tool,
                 bool replace); /* replace: replaces a tool of the name, or adds it */
bool ah_book_remove(lua_State *L, ah_slice name); /* true if it was there */
void ah_book_pick(lua_State *L, ah_slice name);   /* the tool must be there */
void ah_book_clear_picked(lua_State *L);

/* Called before a run of the agent at idx. Applies at once the changes that the call of this code
 * and the calls around it have made to the agent's registry. Raises. */
void ah_book_deliver(lua_State *L, int idx);

#endif
