/* Defaults that a program sets for all runs of its host: ah_defaults of agenthost.h
 * (lua_api_given.c). */
#ifndef AH_LUA_DEFAULTS_H
#define AH_LUA_DEFAULTS_H

#include <lua.h>
#include <stdbool.h>

/* A function of Lua: keeps the fields that the JSON text (of C) at 1 has, in place of earlier ones.
 */
int ah_lua_set_defaults(lua_State *L);
/* The table at idx, which is one of our own and checked, gets those of its fields that are absent;
 * of tables in it the members that are. `options` are the model's in this conversation, which go
 * on: they get none. */
void ah_lua_fill_defaults(lua_State *L, int idx, bool options);

#endif
