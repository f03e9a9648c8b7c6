/* ah.search: tools that wait to be found (run/search.h), as a strategy of a script. */
#ifndef AH_LUA_SEARCH_H
#define AH_LUA_SEARCH_H

#include "lua/lua_state.h"
#include "run/search.h"

/* The set in the field `search` of the strategy at idx, borrowed from it; NULL: it has none. */
ah_search *ah_lua_search_of(lua_State *L, int idx);

void ah_lua_open_search(lua_State *L); /* search */

#endif
