/* Lua values to JSON text and back: ah.json, ah.null, ah.array, ah.object. */
#ifndef AH_LUA_VALUE_H
#define AH_LUA_VALUE_H

#include <lauxlib.h>
#include <lua.h>

#include "base/json.h"

/* The value at idx as canonical JSON (keys sorted) appended to out. Never raises
 * and calls no metamethod. Refused with AH_TOOL_VALIDATION, the message naming the
 * path ("at .items[3].f: a function cannot be JSON"): functions, threads, userdata (but see below),
 * NaN and infinity, strings that are no UTF-8, tables with mixed or odd keys, holes,
 * cycles, depth over AH_JSON_MAX_DEPTH. {} without a marker is an object ({}). */
ah_status ah_lua_to_json(lua_State *L, int idx, const ah_mem *mem, ah_buf *out, ah_err *err);

/* True if the value at idx is marked as an object: made by ah.object, or decoded from `{}`. */
bool ah_lua_is_object(lua_State *L, int idx);

/* Pushes the value of checked JSON text. Arrays and empty objects carry their
 * marker. Raises only when Lua is out of memory or stack. */
void ah_lua_push_json(lua_State *L, ah_slice checked);

/* Pushes the value of any text; where it is no JSON nothing, and AH_TOOL_VALIDATION names the
 * place. what: the text's name in it. Raises as above. */
ah_status ah_lua_decode(lua_State *L, ah_slice text, const char *what, ah_err *err);

/* Pushes a buffer of at most max bytes that Lua frees (and lua_toclose, where called, at
 * once), so that a raise loses nothing. Large ones are best cleared when done with. */
ah_buf *ah_lua_push_buf(lua_State *L, size_t max);

/* Pushes the table of ah.json and sets ah.null, ah.array, ah.object in the table at -1 below it:
 * called by the opener with the module table on top, which stays there. */
void ah_lua_open_value(lua_State *L);

/* -- things with a class: how they become JSON stands in their metatables ------------------ */

/* A thing that is being written. */
typedef struct ah_lua_json ah_lua_json;

/* Writes the thing on top of L. As ah_lua_to_json itself it never raises, calls no metamethod and
 * allocates nothing in Lua; where it succeeds the stack is as it was. It makes sure of the thing:
 * scripts may have moved what they found in a metatable. AH_NOMEM, or a failure of those below. */
typedef ah_status (*ah_lua_put)(lua_State *L, ah_lua_json *j);

/* Things with the metatable on top become JSON so. Raises when out of memory. */
void ah_lua_set_json(lua_State *L, ah_lua_put put);

/* For text that is JSON already. That it is full is found by whoever gave it. */
ah_buf *ah_lua_json_out(ah_lua_json *j);

/* For an object: begin, try for each member, end. `kind` is the class's own number. */
void ah_lua_json_begin(ah_lua_json *j, int kind);
/* The member whose key (a string) and value are on top, or nothing of it where that cannot be
 * JSON. */
ah_status ah_lua_json_try(ah_lua_json *j);
ah_status ah_lua_json_end(ah_lua_json *j);
/* Returns how many of the things around it are of its class and of the kind. */
int ah_lua_json_around(const ah_lua_json *j, int kind);
/* As ah_lua_to_json refuses: `why` is "a thread cannot be JSON". */
ah_status ah_lua_json_refuse(ah_lua_json *j, const char *why);

#endif
