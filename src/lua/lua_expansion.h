/* The sections that a handler requests by raising visibility_expansion_required. */
#ifndef AH_LUA_EXPANSION_H
#define AH_LUA_EXPANSION_H

#include <lua.h>

#include "base/json.h"

/* The fields requested_overrides, section_keys and reason of the error object on top of `from` as
 * the JSON object that ah_outcome.expansion is, appended to *out: nothing where it names no
 * section. L has room for a call. AH_TOOL_VALIDATION says which of them is wrong. */
ah_status ah_lua_expansion(lua_State *L, lua_State *from, ah_buf *out, ah_err *err);

#endif
