/* Fields that describe a tool: annotations and version as a script gives them, and the fields of a
 * tool object. Tools are borrowed. Callers: its floor. */
#ifndef AH_LUA_TOOL_FIELDS_H
#define AH_LUA_TOOL_FIELDS_H

#include "lua/lua_state.h"
#include "model/tool.h"

/* Reads `annotations` of the table at 1 into def. Raises for an unknown name, and for a value that
 * is no boolean. */
void ah_lua_read_annotations(lua_State *L, const char *what, ah_tool_def *def);

/* Pushes a new table with the annotations that are set; an empty one for NULL. */
void ah_lua_push_annotations(lua_State *L, const ah_tool *t);
/* Pushes the version, or nil; nil for NULL. */
void ah_lua_push_version(lua_State *L, const ah_tool *t);

/* Pushes one field of the tool and returns true. If tools have no such field, pushes nothing and
 * returns false. */
bool ah_lua_push_tool_field(lua_State *L, const ah_tool *t, const char *key);
/* Raises for an unknown field of tools, with the nearest one. */
int ah_lua_no_tool_field(lua_State *L, const char *key);

#endif
