/* File systems as Lua objects (metatable "agenthost.filesystem"), for other files here. */
#ifndef AH_LUA_FS_H
#define AH_LUA_FS_H

#include <lauxlib.h>
#include <lua.h>

#include "prompt/fs.h"

/* The file system of the object at idx, borrowed; raises for what is none, or is closed. */
ah_fs *ah_lua_check_fs(lua_State *L, int idx);

/* Pushes an object that will hold a file system; fill the slot with a reference that the
 * object is to own. Raises when out of memory. */
ah_fs **ah_lua_push_fs(lua_State *L);

#endif
