/* Stores in Lua (ah.store): reads and pushes their objects, and the store of the host. An object
 * owns one reference to its open store. Callers: its floor. */
#ifndef AH_LUA_STORE_H
#define AH_LUA_STORE_H

#include <lua.h>

#include "host/keeper.h"

/* Sets *out to a new reference to the store that the value at idx names: an object of ah.store, a
 * path, or a table of its fields. For nil it is the host's store (ah_config.store,
 * AGENTHOST_STORE), and NULL if it has none. Raises for a wrong field; holds nothing then. */
ah_status ah_lua_to_store(lua_State *L, int idx, ah_open_store **out, ah_err *err);
/* Returns the store of the object at 1. Raises if it is closed, or not to be used here. */
ah_open_store *ah_lua_check_store(lua_State *L);
/* Returns the UTF-8 text at idx, an argument of a method. Raises for anything else. */
ah_slice ah_lua_store_text(lua_State *L, int idx, const char *method, const char *what);
/* Pushes an object of ah.store that holds no store yet, and returns its place for a reference: code
 * that may raise keeps one there. */
ah_open_store **ah_lua_push_held_store(lua_State *L);
/* Pushes the object of an open store, which references it. */
void ah_lua_push_store(lua_State *L, ah_open_store *s);

/* Sets ah.store, and for the programs of the command _conversations, _spent, _opened,
 * _unfinished, _store_remove, _store_erase and _store_purge. */
void ah_lua_open_store(lua_State *L);

#endif
