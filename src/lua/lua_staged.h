/* Staged files: keeps what a handler does to a file system in its call's overlay until the commit.
 * The call owns the file systems that are returned here. Callers: its floor. */
#ifndef AH_LUA_STAGED_H
#define AH_LUA_STAGED_H

#include "lua/lua_state.h"
#include "state/fs_staged.h"

/* Returns the file system with which the current code works for `fs`, which may be an overlay of
 * the script: in a handler an overlay or view of the call's own, else fs itself. Borrowed from the
 * call. Raises if the call is over, in reducers, for a change in steps, and when out of memory. */
ah_fs *ah_lua_staged(lua_State *L, ah_fs *fs, bool change);

#endif
