/* Adapters in Lua: finds or opens the adapter that a script names or has written. An adapter object
 * owns one reference to its ah_adapter. The function of an adapter written in Lua runs as a task
 * (lua_exchange.h). Callers: its floor. */
#ifndef AH_LUA_ADAPTER_H
#define AH_LUA_ADAPTER_H

#include "lua/lua_state.h"
#include "wire/provider.h"

bool ah_lua_is_adapter(lua_State *L, int idx);

/* Sets *out to a new reference to the adapter at idx: that of an adapter object, or
 * "provider/model" opened with the given options. Returns AH_USAGE for any other value. Raises only
 * when out of memory. */
ah_status ah_lua_to_adapter(lua_State *L, int idx, ah_provider_options *o, ah_adapter **out,
                            ah_err *err);

void ah_lua_open_adapter(lua_State *L); /* sets ah._adapter, for scripted.lua */

#endif
