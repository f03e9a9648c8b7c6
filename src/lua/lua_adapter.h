/* Adapters that scripts name or write. */
#ifndef AH_LUA_ADAPTER_H
#define AH_LUA_ADAPTER_H

#include "lua/lua_state.h"
#include "wire/provider.h"

bool ah_lua_is_adapter(lua_State *L, int idx);

/* Sets *out to the adapter at idx, as a new reference: an adapter object, or "provider/model"
 * opened with the given options. AH_USAGE where it is neither. Raises only when out of memory. */
ah_status ah_lua_to_adapter(lua_State *L, int idx, ah_provider_options *o, ah_adapter **out,
                            ah_err *err);

void ah_lua_open_adapter(lua_State *L); /* _adapter, for scripted.lua */

#endif
