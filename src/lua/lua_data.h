/* Lua files that hold data. */
#ifndef AH_LUA_DATA_H
#define AH_LUA_DATA_H

#include "base/buf.h"

/* The value that the chunk returns, as JSON appended to `json`. It sees no globals and has no
 * functions to call; it ends after two seconds, and within 64 MiB. AH_USAGE with Lua's words. */
ah_status ah_lua_data(const ah_mem *mem, const char *name, ah_slice text, ah_buf *json,
                      ah_err *err);

#endif
