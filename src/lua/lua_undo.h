/* Undo copies: restores objects that a call has changed in place if the call fails. The overlay of
 * each call has its own copy of each object, held by a reference. Copying and restoring call
 * methods of the script. Callers: its floor. */
#ifndef AH_LUA_UNDO_H
#define AH_LUA_UNDO_H

#include "lua/lua_now.h"
#include "lua/lua_states.h"

/* Takes the object at idx (an instance of an entity, or an object with the methods snapshot() ->
 * value and restore(value)) into the call's transaction. The snapshot is made now; restore gets it
 * if the call is dropped. Repeated calls have no effect. Raises if another call that is not around
 * this one has the object, if a method is missing, and with any error of snapshot. name: under
 * which a store keeps the state of an object that is no entity; .p NULL: none. */
void ah_lua_enlist(lua_State *L, ah_overlay *o, int idx, ah_slice name);
/* `restage_entity` of a run's config: the state joins the call's overlay as a change; its object
 * gets it when it is first used after the commit. */
ah_status ah_lua_restage_entity(void *ud, ah_call *call, ah_slice item, ah_err *err);
/* `changed` of a recorder: appends the states of the objects that the call which is prepared has
 * changed. ud: the ah_lua_states. */
void ah_lua_put_changed(void *ud, ah_buf *out);
/* Keeps the states of committed changes for which there was no memory before. False: out of memory.
 * Only without a store. */
bool ah_lua_keep_changed(ah_lua_states *s);
/* Drops what is still to be recorded. */
void ah_lua_forget_changed(ah_lua_states *s);

#endif
