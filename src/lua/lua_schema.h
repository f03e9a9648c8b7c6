/* ah.schema for scripts, and the short forms of parameters. */
#ifndef AH_LUA_SCHEMA_H
#define AH_LUA_SCHEMA_H

#include <lauxlib.h>
#include <lua.h>

#include "schema/schema.h"

/* Compiles what is at idx: a JSON Schema as Lua table or boolean, or as string of
 * JSON, a schema made by ah.schema, or a type made by ah.type. Neither raises (apart from Lua being
 * out of memory, when nothing of ours is held); *out is the caller's reference, to be put at once
 * where a raise cannot lose it. AH_PROMPT_VALIDATION or AH_NOMEM on failure. */
ah_status ah_lua_schema(lua_State *L, int idx, const ah_mem *mem, ah_schema **out, ah_err *err);

/* The same for short forms, e.g. { name = "string", limit = "integer?" }. */
ah_status ah_lua_short_schema(lua_State *L, int idx, const ah_mem *mem, ah_schema **out,
                              ah_err *err);

/* Pushes an ah.schema object. */
void ah_lua_push_schema(lua_State *L, ah_schema *schema);

/* Reads a table's `params` (the short form) or `schema` (JSON Schema), of which it may have
 * one, into *out, which a userdata owns. Raises AH_PROMPT_VALIDATION. */
void ah_lua_read_params(lua_State *L, int idx, const char *what, const ah_mem *mem,
                        ah_schema **out);

/* Sets ah.schema in the module table on top of the stack. */
void ah_lua_open_schema(lua_State *L);

#endif
