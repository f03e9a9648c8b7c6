/* Schemas in Lua: ah.schema, and the short forms of parameters. An object owns one reference to its
 * ah_schema. Callers: its floor. */
#ifndef AH_LUA_SCHEMA_H
#define AH_LUA_SCHEMA_H

#include <lauxlib.h>
#include <lua.h>

#include "schema/schema.h"

/* Compiles the value at idx: a JSON Schema as a Lua table, a boolean or a JSON string, a schema of
 * ah.schema, or a type of ah.type. *out is a new reference, which the caller must store at once
 * where a raise cannot lose it. Returns AH_PROMPT_VALIDATION or AH_NOMEM on failure; raises only if
 * Lua is out of memory, and then holds nothing. */
ah_status ah_lua_schema(lua_State *L, int idx, const ah_mem *mem, ah_schema **out, ah_err *err);

/* The same for short forms, such as { name = "string", limit = "integer?" }. */
ah_status ah_lua_short_schema(lua_State *L, int idx, const ah_mem *mem, ah_schema **out,
                              ah_err *err);

/* Pushes an ah.schema object. */
void ah_lua_push_schema(lua_State *L, ah_schema *schema);

/* Reads `params` (short form) or `schema` (JSON Schema) of the table, which may have only one of
 * them, into *out, which a userdata owns. Raises AH_PROMPT_VALIDATION. */
void ah_lua_read_params(lua_State *L, int idx, const char *what, const ah_mem *mem,
                        ah_schema **out);

/* Sets ah.schema in the module table on top of the stack. */
void ah_lua_open_schema(lua_State *L);

#endif
