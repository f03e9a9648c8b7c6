/* ah.budget, for those who give a run one. */
#ifndef AH_LUA_BUDGET_H
#define AH_LUA_BUDGET_H

#include <lua.h>

#include "run/budget.h"

/* `budget` of the table at idx: an object of ah.budget, or its fields. A new reference, or NULL. */
ah_budget *ah_lua_budget_read(lua_State *L, int idx);
/* Pushes the object of a budget. */
void ah_lua_push_budget(lua_State *L, ah_budget *b);
void ah_lua_open_budget(lua_State *L); /* budget */

#endif
