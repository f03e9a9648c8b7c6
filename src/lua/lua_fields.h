/* Strict tables: each field that a script gives is one that is known, of the type that it has to
 * be. */
#ifndef AH_LUA_FIELDS_H
#define AH_LUA_FIELDS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "base/slice.h"

/* Raises for a key that is not in `known` (ends with NULL), with the nearest one;
 * 1..n are allowed where `list` says so. From here on the table at idx is one of our
 * own with the same fields: code of the script, which may be called while it is read, cannot
 * reach it, and its fields are all there when reading begins. Returns which are: bit i is known[i],
 * of 64 at most. */
uint64_t ah_lua_fields_check(lua_State *L, int idx, const char *what, const char *const *known,
                             bool list);
/* Raises for such a key, of a table or of an object whose members are `known`. */
int ah_lua_unknown(lua_State *L, const char *what, const char *const *known, ah_slice key);
/* Each gives whether the field is there (not nil), and raises when it is of another type. */
bool ah_lua_field_string(lua_State *L, int idx, const char *what, const char *name,
                         ah_slice *out); /* lent by the table */
/* Pushes the field if it is of the type, else pushes nothing. */
bool ah_lua_field_push(lua_State *L, int idx, const char *what, const char *name, int type);

/* The table of methods on top, which is the __index of a `what`, raises so for what it has not. */
void ah_lua_methods_only(lua_State *L, const char *what);

/* Every list that a script or a C program gives is read through one of these: names among its
 * values and nil between them would be passed over by a loop. The first raises "what: ..." for
 * the value at idx; the others are for a field (the list pushed, if it is there), and
 * for those who raise themselves: what is wrong (pushed, and to be put behind the list's name), or
 * NULL. The number of values is what the list had then; whoever runs code of the script reads on
 * with care. */
lua_Integer ah_lua_list_check(lua_State *L, int idx, const char *what);
bool ah_lua_field_list(lua_State *L, int idx, const char *what, const char *name, lua_Integer *n);
const char *ah_lua_list_fault(lua_State *L, int idx);

#endif
