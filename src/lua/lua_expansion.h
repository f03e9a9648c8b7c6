/* Reads the sections that a handler requests by raising visibility_expansion_required.
 * Callers: its module. */
#ifndef AH_LUA_EXPANSION_H
#define AH_LUA_EXPANSION_H

#include <lua.h>

#include "base/json.h"

/* Appends the fields requested_overrides, section_keys and reason of the error object on top of
 * `from` to *out, as the JSON object of ah_outcome.expansion. Appends nothing if the object names
 * no section. L needs room for a call. Returns AH_TOOL_VALIDATION, with the field's name, for a
 * wrong field. */
ah_status ah_lua_expansion(lua_State *L, lua_State *from, ah_buf *out, ah_err *err);

#endif
