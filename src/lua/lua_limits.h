/* Limits that scripts set, read from the fields of ah.run. */
#ifndef AH_LUA_LIMITS_H
#define AH_LUA_LIMITS_H

#include "lua/lua_state.h"
#include "run/loop_detector.h"

/* The field `loop_detector` of the table at idx: false, or { warn, stop, window,
 * pattern_window, exempt = { names } }. The windows grow with `stop` where they are not
 * given. *exempt is set to what rules->exempt borrows from. Raises `usage`. */
void ah_lua_read_loop(lua_State *L, int idx, const ah_mem *mem, ah_loop_detector_rules *rules,
                      ah_text **exempt);

#endif
