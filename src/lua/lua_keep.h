/* Results of which a model is shown a part, kept whole in a file of the run. */
#ifndef AH_LUA_KEEP_H
#define AH_LUA_KEEP_H

#include "lua/lua_state.h"
#include "run/run.h"

/* Writes it into the run's file system, in `o`: `path` gets its path there, or nothing where there
 * is none. `container`: the run's resources (lua_resources.h). Never raises. */
ah_status ah_lua_keep(ah_lua *h, int container, const ah_call *call, ah_overlay *o, ah_slice whole,
                      ah_buf *path, ah_err *err);

#endif
