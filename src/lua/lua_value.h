/* Converts Lua values to JSON text and back: ah.json, ah.null, ah.array, ah.object. Results are
 * appended to buffers of the caller; nothing is kept. Callers: its floor. */
#ifndef AH_LUA_VALUE_H
#define AH_LUA_VALUE_H

#include <lauxlib.h>
#include <lua.h>

#include "base/json.h"

/* Appends the value at idx to out as canonical JSON (keys sorted). Never raises and calls no
 * metamethod. Returns AH_TOOL_VALIDATION, with the path in the message ("at .items[3].f: a function
 * cannot be JSON"), for functions, threads, userdata (see below for exceptions), NaN and infinity,
 * strings that are not UTF-8, tables with mixed or unusual keys, holes, cycles, and depth over
 * AH_JSON_MAX_DEPTH. {} without a marker is an object ({}). */
ah_status ah_lua_to_json(lua_State *L, int idx, const ah_mem *mem, ah_buf *out, ah_err *err);

/* True if the value at idx is marked as an object: made by ah.object, or decoded from `{}`. */
bool ah_lua_is_object(lua_State *L, int idx);

/* Pushes the value of checked JSON text. Arrays and empty objects get their marker. Raises only if
 * Lua is out of memory or stack. */
void ah_lua_push_json(lua_State *L, ah_slice checked);

/* Pushes the value of any text. If it is not JSON, pushes nothing and returns AH_TOOL_VALIDATION
 * with the place; what: the name of the text in the message. Raises as ah_lua_push_json does. */
ah_status ah_lua_decode(lua_State *L, ah_slice text, const char *what, ah_err *err);

/* Pushes a buffer of at most max bytes in a userdata, so that a raise loses nothing. The collector
 * frees it, or the end of the function after lua_toclose. Clear large buffers after use. */
ah_buf *ah_lua_push_buf(lua_State *L, size_t max);

/* Pushes the table of ah.json, and sets ah.null, ah.array and ah.object in the module table, which
 * is on top when this is called and stays there. */
void ah_lua_open_value(lua_State *L);

/* -- objects with a class: their metatable has the function that writes them as JSON -------- */

/* The JSON of an object while it is being written. */
typedef struct ah_lua_json ah_lua_json;

/* Writes the object on top of L. Like ah_lua_to_json it never raises, calls no metamethod and
 * allocates nothing in Lua; on success it leaves the stack unchanged. It must check the object's
 * type, since scripts may move functions of a metatable. Returns AH_NOMEM or a failure of the
 * functions below. */
typedef ah_status (*ah_lua_put)(lua_State *L, ah_lua_json *j);

/* Makes objects with the metatable on top become JSON through `put`. Raises when out of memory. */
void ah_lua_set_json(lua_State *L, ah_lua_put put);

/* Returns the buffer, for text that is JSON already. The owner of the buffer checks for
 * overflow. */
ah_buf *ah_lua_json_out(ah_lua_json *j);

/* For an object: begin, try for each member, end. `kind` is a number of the class's own. */
void ah_lua_json_begin(ah_lua_json *j, int kind);
/* Adds the member whose key (a string) and value are on top; adds nothing if the value cannot be
 * JSON. */
ah_status ah_lua_json_try(ah_lua_json *j);
ah_status ah_lua_json_end(ah_lua_json *j);
/* Returns how many objects of its class and of this kind are around it. */
int ah_lua_json_around(const ah_lua_json *j, int kind);
/* Fails as ah_lua_to_json does; `why` is "a thread cannot be JSON". */
ah_status ah_lua_json_refuse(ah_lua_json *j, const char *why);

#endif
