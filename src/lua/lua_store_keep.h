/* Methods of ah.store that keep it: export, import, delete, verify, stat; and functions for the
 * programs of the command. Callers: its module. */
#ifndef AH_LUA_STORE_KEEP_H
#define AH_LUA_STORE_KEEP_H

#include <lua.h>

int ah_lua_store_export(lua_State *L); /* store:export(id, { kept }) */
int ah_lua_store_import(lua_State *L); /* store:import(text, { id }) */
int ah_lua_store_delete(lua_State *L); /* store:delete(id) */
int ah_lua_store_verify(lua_State *L); /* store:verify(id, { head }) */
int ah_lua_store_stat(lua_State *L);   /* store:stat() */

/* _store_remove(store, id), _store_erase(store, id, older) and _store_purge(store) of the command
 */
int ah_lua_store_remove(lua_State *L);
int ah_lua_store_erase(lua_State *L);
int ah_lua_store_purge(lua_State *L);

#endif
