/* Budgets in Lua (ah.budget): reads and pushes their objects. An object owns one reference to its
 * ah_budget; several runs may share it. Callers: its floor. */
#ifndef AH_LUA_BUDGET_H
#define AH_LUA_BUDGET_H

#include <lua.h>

#include "run/budget.h"

/* Returns a new reference to the budget in the field `budget` of the table at idx, which is an
 * object of ah.budget or a table of its fields; NULL if the field is absent. */
ah_budget *ah_lua_budget_read(lua_State *L, int idx);
/* Pushes the object of a budget. */
void ah_lua_push_budget(lua_State *L, ah_budget *b);
void ah_lua_open_budget(lua_State *L); /* sets ah.budget */

#endif
