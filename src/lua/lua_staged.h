/* Staged files: keeps what a handler does to a file system in its call's overlay until the commit.
 * The call owns the file systems that are returned here. And staged changes as data for scripts.
 * Callers: its floor. */
#ifndef AH_LUA_STAGED_H
#define AH_LUA_STAGED_H

#include "lua/lua_state.h"
#include "state/fs_staged.h"

/* Returns the file system with which the current code works for `fs`, which may be an overlay of
 * the script: in a handler an overlay or view of the call's own, else fs itself. Borrowed from the
 * call. Raises if the call is over, in reducers, for a change in steps, in a replay, and
 * when out of memory. */
ah_fs *ah_lua_staged(lua_State *L, ah_fs *fs, bool change);
/* A list of changes (docs/reference/changes.md). begin pushes its buffer; end replaces it by the
 * list, and returns 1. Both raise when out of memory. */
void ah_lua_begin_changes(lua_State *L, ah_change_list *l);
int ah_lua_end_changes(lua_State *L, ah_change_list *l);
/* Pushes the changes so far in the overlay of a call, and returns 1. */
int ah_lua_push_staged_changes(lua_State *L, const ah_overlay *o);

#endif
