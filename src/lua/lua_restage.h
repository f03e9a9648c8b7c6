/* The calls that a conversation had at work when its process ended, given back to its agent: files
 * that were being applied are looked at, tools that handlers had added are found by name.
 * Callers: its module. */
#ifndef AH_LUA_RESTAGE_H
#define AH_LUA_RESTAGE_H

#include "journal/fold.h"
#include "lua/lua_state.h"
#include "model/tool.h"
#include "run/recorder.h"

/* `find_tool` of a run's config: a tool of the prompt's sections, or of the fields `tools` and
 * `later` of the strategies. Borrowed until Lua code runs again. ud: the run. */
ah_tool *ah_lua_find_tool(void *ud, ah_slice name);
/* For a fold with a call whose files were being applied: opens their folders, which completes a set
 * of changes that had begun, and records how they are. The stream must then be folded anew. Fails
 * with AH_STORE and AH_NOMEM. */
ah_status ah_lua_end_applying(ah_lua *h, const ah_record_sink *to, const ah_fold *f, ah_err *err);

#endif
