/* Defaults that a program sets for all runs of its host: ah_defaults of agenthost.h
 * (lua_api_given.c). They are kept in the registry of the Lua state. Callers: its floor. */
#ifndef AH_LUA_DEFAULTS_H
#define AH_LUA_DEFAULTS_H

#include <lua.h>
#include <stdbool.h>

/* A Lua function: keeps the fields of the JSON text (of C) at 1, in place of earlier ones. */
int ah_lua_set_defaults(lua_State *L);
/* Fills the absent fields of the table at idx, which is our own and checked, with the defaults, and
 * also absent members of tables in it. options: the conversation keeps its model's options, so
 * `options` gets no defaults. */
void ah_lua_fill_defaults(lua_State *L, int idx, bool options);

#endif
