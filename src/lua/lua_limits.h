/* Reads limits that scripts set in fields of ah.run. Callers: its floor. */
#ifndef AH_LUA_LIMITS_H
#define AH_LUA_LIMITS_H

#include "lua/lua_state.h"
#include "run/loop_detector.h"

/* Reads the field `loop_detector` of the table at idx: false, or { warn, stop, window,
 * pattern_window, exempt = { names } }. Windows that are not given grow with `stop`. Sets *exempt
 * to the text that rules->exempt borrows from; the caller owns it. Raises `usage`. */
void ah_lua_read_loop(lua_State *L, int idx, const ah_mem *mem, ah_loop_detector_rules *rules,
                      ah_text **exempt);

#endif
