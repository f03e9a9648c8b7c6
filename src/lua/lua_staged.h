/* The files of a call: what its handler does to a file system is staged in its overlay. */
#ifndef AH_LUA_STAGED_H
#define AH_LUA_STAGED_H

#include "lua/lua_state.h"
#include "state/fs.h"
#include "state/overlay.h"

/* In which code that runs now is to work with `fs`, an overlay of the script's as well: an overlay
 * or a view that is the call's own, where it is the code of a handler; else fs itself. Borrowed
 * from the call. Raises where the call is over, in reducers, and when out of memory. */
ah_fs *ah_lua_staged(lua_State *L, ah_fs *fs);
/* The same for what is done in `o` by no handler; NULL with *err set: failed. Never raises. */
ah_fs *ah_lua_staged_in(const ah_mem *mem, ah_overlay *o, ah_fs *fs, ah_err *err);

#endif
