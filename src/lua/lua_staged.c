/* The staged files of the call in which Lua code runs now. state/fs_staged.h keeps them. */
#include "lua/lua_staged.h"

#include "lua/lua_error.h"
#include "lua/lua_now.h"

ah_fs *ah_lua_staged(lua_State *L, ah_fs *fs, bool change)
{
    ah_overlay *o = ah_lua_overlay(L);
    ah_err err;

    if (change)
        ah_lua_no_change(L);
    else
        ah_lua_no_reducer(L);
    if (!(fs = ah_fs_staged_in(&ah_lua_of(L)->mem, o, fs, &err)))
        ah_lua_raise_err(L, &err);
    return fs;
}
