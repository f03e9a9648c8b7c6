/* Lua files that hold data: evaluates one in a Lua state of its own, without access to a script's
 * state or to a host. Callers: its floor. */
#ifndef AH_LUA_DATA_H
#define AH_LUA_DATA_H

#include "base/buf.h"

/* Appends the value that the chunk returns to `json`. The chunk has no globals and no functions to
 * call; it may take at most 2 seconds and 64 MiB. Returns AH_USAGE with Lua's message on
 * failure. */
ah_status ah_lua_data(const ah_mem *mem, const char *name, ah_slice text, ah_buf *json,
                      ah_err *err);

#endif
