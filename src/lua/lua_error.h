/* Errors between C and Lua: error objects, raising them, and the script position where they
 * occurred. Error objects are tables with a metatable, so they own nothing of C.
 * Callers: its floor. */
#ifndef AH_LUA_ERROR_H
#define AH_LUA_ERROR_H

#include <lauxlib.h>
#include <lua.h>

#include "base/err.h"

/* Pushes an error object, { code, message, phase, retryable, status, ... }. It prints as one line
 * and has err:is(code). Raises only when out of memory. */
void ah_lua_push_error(lua_State *L, const ah_err *err);
/* Pushes "script.lua:12", the line of the innermost function outside of agenthost, and returns
 * true. If there is none, pushes nothing and returns false. */
bool ah_lua_push_place(lua_State *L);
/* Raises an error object whose message begins with the script position. */
int ah_lua_raise(lua_State *L, ah_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int ah_lua_raise_err(lua_State *L, const ah_err *err);
/* Writes to out the script position ("script.lua:12") at which the code in co is or raised, for a
 * warning. Leaves out unchanged if co runs no code of the script. */
enum { AH_PLACE = LUA_IDSIZE + 16 };
void ah_lua_where(lua_State *co, char *out, size_t size);
/* The same for the line where the function at idx is defined. */
void ah_lua_defined(lua_State *L, int idx, char *out, size_t size);
/* Reads the value at idx (an error object or any other raised value) into *err, for the log, not
 * for a model. Removes positions from texts. Never raises. */
void ah_lua_read_error(lua_State *L, int idx, ah_err *err);
/* The same, but keeps the position, for the author of the script. */
void ah_lua_read_placed(lua_State *L, int idx, ah_err *err);
/* Pushes the message of the error object at idx, without its code, and returns true. For other
 * values pushes nothing and returns false. */
bool ah_lua_push_message(lua_State *L, int idx);
/* Pushes the metatable `name`, made at the first call, with these methods. Any other member raises
 * "a channel has no 'x': it has send, receive, close", where `object` and `list` are the words. */
void ah_lua_methods(lua_State *L, const char *name, const luaL_Reg *methods, const char *object,
                    const char *list);
void ah_lua_error_class(lua_State *L); /* registers the metatable */
void ah_lua_open_error(lua_State *L);  /* sets ah.error */

/* Registry key: the error, as text, of the last run or agent that failed; nil after a run that
 * succeeded. Explains errors of scripts that ignore `nil, err` and then use the nil. */
#define AH_LAST_FAILURE "agenthost.last_failure"

#endif
