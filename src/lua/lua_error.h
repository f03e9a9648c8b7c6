/* Errors between the two worlds: error objects, what is raised, and where in the script that
 * was. */
#ifndef AH_LUA_ERROR_H
#define AH_LUA_ERROR_H

#include <lauxlib.h>
#include <lua.h>

#include "base/err.h"

/* Pushes an error object: { code, message, phase, retryable, status, ... } that prints
 * as one line and knows err:is(code). Raises only when out of memory. */
void ah_lua_push_error(lua_State *L, const ah_err *err);
/* Pushes "script.lua:12", the line of the innermost function that is no part of agenthost. False,
 * and nothing: there is none. */
bool ah_lua_push_place(lua_State *L);
/* Raises an error object with the position of the script's line in front of its message. */
int ah_lua_raise(lua_State *L, ah_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int ah_lua_raise_err(lua_State *L, const ah_err *err);
/* Writes the script position of the code in co, or the one where it raised ("script.lua:12"), to
 * out, for a warning. Leaves out unchanged if co runs no code of the script. */
enum { AH_PLACE = LUA_IDSIZE + 16 };
void ah_lua_where(lua_State *co, char *out, size_t size);
/* The same for the line where the function at idx is defined. */
void ah_lua_defined(lua_State *L, int idx, char *out, size_t size);
/* Reads the value at idx (an error object or any other raised value) into *err. Never raises. Texts
 * lose their position: it is for the log, not for a model. */
void ah_lua_read_error(lua_State *L, int idx, ah_err *err);
/* The same with the position, for the script's author. */
void ah_lua_read_placed(lua_State *L, int idx, ah_err *err);
/* Pushes the message of the error object at idx, without its code; false, and nothing, where
 * there is something else. */
bool ah_lua_push_message(lua_State *L, int idx);
void ah_lua_error_class(lua_State *L); /* registers the metatable */
void ah_lua_open_error(lua_State *L);  /* error */

/* Registry key of the error, as text, of the last run or agent that failed; nil after a run that
 * succeeded. For a script that ignores `nil, err` and then uses the nil. */
#define AH_LAST_FAILURE "agenthost.last_failure"

#endif
