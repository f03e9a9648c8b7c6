/* File systems as Lua objects (metatable "agenthost.filesystem"), for other files here. */
#ifndef AH_LUA_FS_H
#define AH_LUA_FS_H

#include <lauxlib.h>
#include <lua.h>

#include "state/fs.h"

/* The file system of the object at idx, borrowed; raises for what is none, or is closed. */
ah_fs *ah_lua_check_fs(lua_State *L, int idx);

void ah_lua_open_fs(lua_State *L); /* filesystem */

#endif
