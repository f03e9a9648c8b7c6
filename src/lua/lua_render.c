/* Typed arguments and values of tools, and the rendering of values for the model (seed 002, Result
 * Rendering Protocol): by the tool's own `render`, else by that of the value's type, else as JSON,
 * which the core does. */
#include "lua/lua_render.h"

#include <stdio.h>

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"
#include "run/said.h"

enum { MAX_EXAMPLES = 1 << 20, MAX_SAID = 64 << 20 };

static void keep_class(lua_State *L, int idx, const char *field, int *ref)
{
    lua_getfield(L, idx, field);
    if (*ref == LUA_NOREF && ah_lua_to_type(L, -1))
        *ref = ah_lua_ref(L);
    else
        lua_pop(L, 1);
}

void ah_lua_read_forms(lua_State *L, int idx, ah_lua_forms *f)
{
    keep_class(L, idx, "params", &f->params);
    keep_class(L, idx, "schema", &f->params);
    keep_class(L, idx, "result", &f->result);
    if (lua_getfield(L, idx, "render") != LUA_TNIL)
        f->render = ah_lua_ref(L);
    else
        lua_pop(L, 1);
}

ah_slice ah_lua_field_type(lua_State *L, int idx, const char *field)
{
    const ah_lua_type *t;

    lua_getfield(L, idx, field);
    t = ah_lua_to_type(L, -1);
    lua_pop(L, 1);
    return t ? ah_text_slice(t->name) : (ah_slice){NULL, 0};
}

ah_slice ah_lua_push_examples(lua_State *L, int idx)
{
    const char *fault;
    ah_buf *b;
    ah_err err;

    if (lua_getfield(L, idx, "examples") == LUA_TNIL)
        return (ah_slice){NULL, 0};
    if ((fault = ah_lua_list_fault(L, -1)) != NULL)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.tool: examples%s", fault);
    b = ah_lua_push_buf(L, MAX_EXAMPLES);
    if (ah_lua_to_json(L, -2, b->mem, b, &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_PROMPT_VALIDATION,
                     "ah.tool: examples: %s", err.message);
    return ah_slice_is(ah_buf_slice(b), "{}") ? (ah_slice){NULL, 0} : ah_buf_slice(b);
}

void ah_lua_push_args(lua_State *L, const ah_call *call, const ah_lua_forms *f)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->params); /* -- class */
    ah_lua_push_json(L, ah_text_slice(call->args));
    if (ah_lua_to_type(L, -2))
        ah_lua_make_instance(L, -2);
    lua_remove(L, -2);
}

void ah_lua_push_said(lua_State *L, const ah_call *call)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_SAID);

    ah_said_args(call, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    ah_buf_clear(b);
    lua_remove(L, -2);
}

/* -- rendering ----------------------------------------------------------------------------- */

/* Pushes the renderer for a value of the class on top (or nil there). */
static bool push_renderer(lua_State *L, const ah_lua_forms *f)
{
    if (f->render != LUA_NOREF) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, f->render);
        return true;
    }
    return ah_lua_to_type(L, -1) && ah_lua_push_type_render(L, -1);
}

static void warn(ah_call *call, const char *why)
{
    char words[1200];

    ah_print(words, sizeof words, "the renderer of tool '%s' failed, so the model gets JSON: %s",
             call->tool->name->data, why);
    ah_run_warn(call->run, ah_slice_of(words));
}

void ah_lua_render(lua_State *L, ah_call *call, const ah_lua_forms *f, int idx, ah_outcome *o)
{
    const ah_lua_type *t;
    ah_slice text;
    ah_err err;

    luaL_checkstack(L, 8, "rendering");
    if ((t = ah_lua_push_type_of(L, idx)))
        o->type = ah_text_slice(t->name);
    else
        lua_rawgeti(L, LUA_REGISTRYINDEX, f->result); /* -- class or nil */
    if (o->exclude_value || !push_renderer(L, f))
        return;
    lua_pushvalue(L, idx);
    if (ah_lua_call_as(ah_lua_of(L), AH_CALLEE_RENDERER, L, 1, 1, &err) != AH_OK) {
        warn(call, err.message);
        return;
    }
    if (lua_type(L, -1) != LUA_TSTRING) {
        warn(call, "it returned no string");
        return;
    }
    text.p = lua_tolstring(L, -1, &text.n);
    if (ah_utf8_valid(text))
        o->render = text;
    else
        warn(call, "its text is not UTF-8");
}
