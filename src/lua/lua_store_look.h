/* Methods of ah.store that look at it: conversations, records, search, subscribe. A subscription
 * references its store. Callers: its module. */
#ifndef AH_LUA_STORE_LOOK_H
#define AH_LUA_STORE_LOOK_H

#include <lua.h>

int ah_lua_store_conversations(lua_State *L); /* store:conversations { ... } */
int ah_lua_store_records(lua_State *L);       /* store:records(id, { ... }) */
int ah_lua_store_search(lua_State *L);        /* store:search(words, { ... }) */
int ah_lua_store_subscribe(lua_State *L);     /* store:subscribe(fn) */

void ah_lua_open_store_look(lua_State *L); /* registers the subscription's metatable */

#endif
