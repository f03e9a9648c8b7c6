/* ah.type: classes of plain data, for slices of sessions and for tools. The class is a userdata
 * that owns its name and schema. Callers: its floor. */
#ifndef AH_LUA_TYPE_H
#define AH_LUA_TYPE_H

#include "lua/lua_state.h"
#include "schema/schema.h"

/* A class, in a userdata. Its instances are plain tables with the class's metatable. */
typedef struct ah_lua_type {
    ah_text *name;     /* ^[A-Za-z_][A-Za-z0-9_]{0,63}$ */
    ah_schema *schema; /* of type object */
} ah_lua_type;

/* Returns the class at idx, or NULL. */
const ah_lua_type *ah_lua_to_type(lua_State *L, int idx);
/* Pushes and returns the class of the instance at idx; for other values pushes nothing and returns
 * NULL. */
const ah_lua_type *ah_lua_push_type_of(lua_State *L, int idx);
/* Makes the table on top an instance of the class at idx. */
void ah_lua_make_instance(lua_State *L, int idx);
/* Pushes the `render` of the class at idx; if it has none, pushes nothing and returns false. */
bool ah_lua_push_type_render(lua_State *L, int idx);

void ah_lua_open_type(lua_State *L); /* sets ah.type */

#endif
