/* ah.search: a set of tools to be found (run/search.h), as a strategy of a script. The strategy's
 * table keeps the set. Callers: its floor. */
#ifndef AH_LUA_SEARCH_H
#define AH_LUA_SEARCH_H

#include "lua/lua_state.h"
#include "run/search.h"

/* Returns the set in the field `search` of the strategy at idx, borrowed; NULL: none. */
ah_search *ah_lua_search_of(lua_State *L, int idx);

void ah_lua_open_search(lua_State *L); /* sets ah.search */

#endif
