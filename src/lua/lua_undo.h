/* Undo copies: restores objects that a call has changed in place if the call fails. The overlay of
 * each call has its own copy of each object, held by a reference. Copying and restoring call
 * methods of the script. Callers: its floor. */
#ifndef AH_LUA_UNDO_H
#define AH_LUA_UNDO_H

#include "lua/lua_now.h"

/* Takes the object at idx (an instance of an entity, or an object with the methods snapshot() ->
 * value and restore(value)) into the call's transaction. The snapshot is made now; restore gets it
 * if the call is dropped. Repeated calls have no effect. Raises if another call that is not around
 * this one has the object, if a method is missing, and with any error of snapshot. */
void ah_lua_enlist(lua_State *L, ah_overlay *o, int idx);

#endif
