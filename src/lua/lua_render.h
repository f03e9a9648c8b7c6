/* The Lua side of what a tool takes and gives: classes of its arguments and value, the
 * function that renders the value, and examples. */
#ifndef AH_LUA_RENDER_H
#define AH_LUA_RENDER_H

#include "lua/lua_now.h"

/* References; LUA_NOREF: none. */
typedef struct ah_lua_forms {
    int params, result; /* classes of ah.type */
    int render;         /* function(value) -> text */
} ah_lua_forms;

#define AH_NO_FORMS ((ah_lua_forms){LUA_NOREF, LUA_NOREF, LUA_NOREF})

/* From the fields of ah.tool's table at idx. */
void ah_lua_read_forms(lua_State *L, int idx, ah_lua_forms *f);
/* The name of the type that the field is; .p NULL where it is none. Held by the table. */
ah_slice ah_lua_field_type(lua_State *L, int idx, const char *field);
/* Pushes a buffer and returns `examples` as JSON in it; pushes nil, and .p is NULL, where there
 * are none. */
ah_slice ah_lua_push_examples(lua_State *L, int idx);

/* Pushes the call's arguments: an instance where the tool takes a type. */
void ah_lua_push_args(lua_State *L, const ah_call *call, const ah_lua_forms *f);
/* The value at idx: sets its type and, where it or the tool has a renderer, what the model is
 * shown. Both are held by what is left on the stack. A renderer that fails is a warning. */
void ah_lua_render(lua_State *L, ah_call *call, const ah_lua_forms *f, int idx, ah_outcome *o);

#endif
