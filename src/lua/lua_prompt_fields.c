/* A prompt is bound and rendered while the fields are read, so that what is wrong with it
 * is raised at the script's line. */
#include "lua/lua_prompt_fields.h"

#include "lua/lua_prompt.h"
#include "lua/lua_schema.h"
#include "lua/lua_section.h"
#include "prompt/output.h"
#include "run/disclose.h"

static size_t count_sections(lua_State *L)
{
    lua_Integer n = 0;

    while (lua_geti(L, 1, n + 1) != LUA_TNIL && ah_lua_to_section(L, -1)) {
        lua_pop(L, 1);
        n++;
    }
    lua_pop(L, 1);
    return (size_t)n;
}

/* -- prompt: that of the field, or one of the sections in the array part; NULL and nil: none */
static ah_prompt *push_prompt(lua_State *L, size_t n)
{
    ah_prompt_def def = {.n = n};
    ah_prompt *p;

    if (lua_getfield(L, 1, "prompt") == LUA_TNIL) {
        if (!n)
            return NULL;
        def.section = ah_lua_section_list(L, 1, "ah.run", n);
        return ah_lua_new_prompt(L, &def);
    }
    if (!(p = ah_lua_to_prompt(L, -1)))
        ah_lua_raise(L, AH_USAGE, "ah.run: prompt must be made by ah.prompt, found %s",
                     luaL_typename(L, -1));
    if (n)
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: sections in the array part and in 'prompt': give one of them");
    return p;
}

static void need_prompt(lua_State *L, const ah_prompt *p, const char *field)
{
    if (!p && lua_getfield(L, 1, field) != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE, "ah.run: field '%s' without a prompt", field);
}

/* Prompt on top of the stack. */
static void bind(lua_State *L, ah_prompt *p, ah_prompt_fields *out)
{
    ah_slice params;
    ah_err err;

    lua_getfield(L, 1, "params");
    params = ah_lua_push_params(L, -1, "ah.run: params");
    if (ah_binding_new(p, params, &out->binding, &err) != AH_OK ||
        ah_binding_render(out->binding, NULL, &out->rendered, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

static void read_output(lua_State *L, const ah_prompt *p, ah_prompt_fields *out)
{
    ah_err err;

    if (lua_getfield(L, 1, "output") == LUA_TNIL)
        out->output = p ? ah_schema_ref(ah_prompt_output(p)) : NULL;
    else if (ah_lua_schema(L, -1, &ah_lua_of(L)->mem, &out->output, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

void ah_prompt_fields_read(lua_State *L, const ah_log *log, ah_prompt_fields *out)
{
    int top = lua_gettop(L);
    ah_prompt *p;

    out->n_sections = count_sections(L);
    p = push_prompt(L, out->n_sections);
    need_prompt(L, p, "params");
    need_prompt(L, p, "overrides");
    if (p && lua_getfield(L, 1, "overrides") != LUA_TNIL)
        p = ah_lua_override_prompt(L, p, lua_gettop(L), "ah.run", log);
    if (p)
        bind(L, p, out);
    read_output(L, p, out);
    lua_settop(L, top);
}

void ah_prompt_fields_clear(ah_prompt_fields *p)
{
    ah_rendered_unref(p->rendered);
    ah_binding_unref(p->binding);
    ah_schema_unref(p->output);
    *p = (ah_prompt_fields){0};
}

/* -- what follows from it ----------------------------------------------------------- */

static int raise_taken(lua_State *L, ah_slice name)
{
    ah_err err;

    ah_err_set(&err, AH_PROMPT_VALIDATION, "ah.run: tool '%.*s' is in `tools` and in the prompt",
               AH_FMT(name));
    ah_json_detail(&err, "tool", name);
    return ah_lua_raise_err(L, &err);
}

/* Those of disabled and summarised sections, too: they may come later. */
static void check_names(lua_State *L, const ah_prompt *p, const ah_changes *tools)
{
    for (size_t i = 0; i < tools->n; i++) {
        ah_slice name = ah_text_slice(tools->item[i].tool->name);

        if (ah_prompt_tool(p, name))
            raise_taken(L, name);
    }
}

static ah_status add_read_section(const ah_prompt_fields *p, ah_changes *tools, ah_err *err)
{
    ah_tool *t;
    ah_status st = ah_read_section_tool(p->binding, NULL, &t, err);

    if (st != AH_OK)
        return st;
    st = ah_changes_add(tools, t, NULL, err);
    ah_tool_unref(t);
    return st;
}

void ah_prompt_fields_tools(lua_State *L, const ah_prompt_fields *p, ah_changes *tools)
{
    ah_status st = AH_OK;
    ah_err err;

    if (!p->binding)
        return;
    check_names(L, ah_binding_prompt(p->binding), tools);
    for (size_t i = 0; st == AH_OK && i < p->rendered->n_tools; i++)
        st = ah_changes_add(tools, p->rendered->tool[i].tool, NULL, &err);
    if (st == AH_OK && p->rendered->n_summarized)
        st = add_read_section(p, tools, &err);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
}

void ah_prompt_fields_text(const ah_prompt_fields *p, const ah_adapter *adapter, ah_buf *out)
{
    if (p->rendered && p->rendered->text->len) {
        ah_buf_str(out, out->len ? "\n\n" : "");
        ah_buf_put(out, ah_text_slice(p->rendered->text));
    }
    if (!p->output || (adapter->vt->native_output && ah_schema_is_object(p->output)))
        return;
    ah_buf_str(out, out->len ? "\n\n" : "");
    ah_output_ask(p->output, out);
}
