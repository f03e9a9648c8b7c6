/* File systems as Lua objects (metatable "agenthost.filesystem"). An object owns one reference to
 * its ah_fs. Callers: its floor. */
#ifndef AH_LUA_FS_H
#define AH_LUA_FS_H

#include <lauxlib.h>
#include <lua.h>

#include "state/fs.h"

/* Returns the file system of the object at idx, borrowed. Raises for any other value and for a
 * closed one. */
ah_fs *ah_lua_check_fs(lua_State *L, int idx);

void ah_lua_open_fs(lua_State *L); /* sets ah.filesystem */

#endif
