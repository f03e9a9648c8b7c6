/* Typed arguments and values of tools: their classes, the function that renders the value, and
 * examples. An ah_lua_forms owns references. A renderer is called and cannot wait.
 * Callers: its floor. */
#ifndef AH_LUA_RENDER_H
#define AH_LUA_RENDER_H

#include "lua/lua_now.h"

/* References; LUA_NOREF: none. */
typedef struct ah_lua_forms {
    int params, result; /* classes of ah.type */
    int render;         /* function(value) -> text */
} ah_lua_forms;

#define AH_NO_FORMS ((ah_lua_forms){LUA_NOREF, LUA_NOREF, LUA_NOREF})

/* Reads the fields of ah.tool's table at idx. */
void ah_lua_read_forms(lua_State *L, int idx, ah_lua_forms *f);
/* Returns the name of the type that the field has; .p NULL if it has none. Held by the table. */
ah_slice ah_lua_field_type(lua_State *L, int idx, const char *field);
/* Pushes a buffer and returns the JSON of `examples` in it. Without examples pushes nil and returns
 * .p NULL. */
ah_slice ah_lua_push_examples(lua_State *L, int idx);

/* Pushes the call's arguments, as an instance if the tool takes a type. */
void ah_lua_push_args(lua_State *L, const ah_call *call, const ah_lua_forms *f);
/* Pushes the call's arguments without keys (run/said.h). */
void ah_lua_push_said(lua_State *L, const ah_call *call);
/* For the value at idx sets its type and, if the value or the tool has a renderer, the text for the
 * model. Both are held by values left on the stack. If the renderer fails, emits a warning. */
void ah_lua_render(lua_State *L, ah_call *call, const ah_lua_forms *f, int idx, ah_outcome *o);

#endif
