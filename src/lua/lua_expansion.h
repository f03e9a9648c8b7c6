/* The sections that a handler requests by raising visibility_expansion_required. */
#ifndef AH_LUA_EXPANSION_H
#define AH_LUA_EXPANSION_H

#include <lua.h>

#include "base/json.h"

/* Appends the fields requested_overrides, section_keys and reason of the error object on top of
 * `from` to *out, as the JSON object of ah_outcome.expansion; nothing if it names no section. L has
 * room for a call. AH_TOOL_VALIDATION: the error names the field that is wrong. */
ah_status ah_lua_expansion(lua_State *L, lua_State *from, ah_buf *out, ah_err *err);

#endif
