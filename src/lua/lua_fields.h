/* Strict tables: checks that each field of a script's table is known and has the right type.
 * Strings are borrowed from the table. Errors are raised at the script's line.
 * Callers: its floor. */
#ifndef AH_LUA_FIELDS_H
#define AH_LUA_FIELDS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "base/slice.h"

/* Raises for a key that is not in `known` (ends with NULL), with the nearest one. The keys 1..n are
 * allowed if `list`. The table at idx is then replaced by a copy of our own: code of the script
 * that runs during reading cannot change it, and inherited fields are in it. Returns the present
 * fields: bit i is known[i]; at most 64. */
uint64_t ah_lua_fields_check(lua_State *L, int idx, const char *what, const char *const *known,
                             bool list);
/* Raises for an unknown key of a table or of an object whose members are `known`. */
int ah_lua_unknown(lua_State *L, const char *what, const char *const *known, ah_slice key);
/* Return true if the field is present (not nil). Raise if it has another type. */
bool ah_lua_field_string(lua_State *L, int idx, const char *what, const char *name,
                         ah_slice *out); /* lent by the table */
/* Pushes the field if it is present, else pushes nothing and returns false. Raises for another
 * type. */
bool ah_lua_field_push(lua_State *L, int idx, const char *what, const char *name, int type);

/* Makes the table of methods on top, the __index of a `what`, raise for an unknown method. */
void ah_lua_methods_only(lua_State *L, const char *what);

/* Checks of lists. Every list from a script or a C program is read through one of these, as a plain
 * loop would skip named keys and stop at nil. The first raises "what: ..." for the value at idx.
 * The second reads a field and pushes the list if it is present. The third pushes and returns the
 * fault, to be appended to the list's name, or returns NULL. The number of values is that at the
 * time of the check; code of the script may change the list later. */
lua_Integer ah_lua_list_check(lua_State *L, int idx, const char *what);
bool ah_lua_field_list(lua_State *L, int idx, const char *what, const char *name, lua_Integer *n);
const char *ah_lua_list_fault(lua_State *L, int idx);

#endif
