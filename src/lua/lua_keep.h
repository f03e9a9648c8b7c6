/* Keeps whole results in files of the run, if the model is shown only a part of them.
 * Callers: its module. */
#ifndef AH_LUA_KEEP_H
#define AH_LUA_KEEP_H

#include "lua/lua_state.h"
#include "run/run.h"

/* Writes `whole` into the run's file system, in the overlay `o`, and appends its path there to
 * `path`, or nothing if the run has no file system. `container`: the run's resources
 * (lua_resources.h). Never raises. */
ah_status ah_lua_keep(ah_lua *h, int container, const ah_call *call, ah_overlay *o, ah_slice whole,
                      ah_buf *path, ah_err *err);

#endif
