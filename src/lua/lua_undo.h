/* Objects that live in place and can be set back: an undo copy for each call that changes them. */
#ifndef AH_LUA_UNDO_H
#define AH_LUA_UNDO_H

#include "lua/lua_now.h"

/* Takes the object at idx (an instance of an entity, or one with the methods snapshot() -> value
 * and restore(value)) into the call's transaction: its snapshot is made now, and given to restore
 * if the call is dropped. Done once a call; again is harmless. Raises where another call that is no
 * caller of this one has the object, where it lacks a method, or with what snapshot raised. */
void ah_lua_enlist(lua_State *L, ah_overlay *o, int idx);

#endif
