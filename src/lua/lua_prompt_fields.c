/* A prompt is bound and rendered while the fields are read, so that what is wrong with it
 * is raised at the script's line. */
#include "lua/lua_prompt_fields.h"

#include "lua/lua_prompt.h"
#include "lua/lua_schema.h"
#include "lua/lua_section.h"
#include "lua/lua_value.h"
#include "prompt/output.h"
#include "run/disclose.h"

enum { MAX_SYSTEM = 64 << 20 };

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
static void bind(lua_State *L, ah_prompt *p, const ah_transcript *t, ah_prompt_fields *out)
{
    ah_slice params;
    ah_err err;

    lua_getfield(L, 1, "params");
    params = ah_lua_push_params(L, -1, "ah.run: params");
    if (ah_binding_new(p, params, &out->binding, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_disclosure_init(&out->disclosure, out->binding);
    if (ah_disclosure_replay(&out->disclosure, t, &err) != AH_OK ||
        ah_binding_render(out->binding, NULL, &out->base, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    if (out->disclosure.n == 0)
        out->rendered = ah_rendered_ref(out->base);
    else if (ah_binding_render(out->binding, &out->disclosure.shown, &out->rendered, &err) != AH_OK)
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

void ah_prompt_fields_read(lua_State *L, const ah_log *log, const ah_transcript *t,
                           ah_prompt_fields *out)
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
        bind(L, p, t, out);
    read_output(L, p, out);
    lua_settop(L, top);
}

void ah_prompt_fields_clear(ah_prompt_fields *p)
{
    ah_rendered_unref(p->base);
    ah_rendered_unref(p->rendered);
    ah_disclosure_clear(&p->disclosure);
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

static ah_status add_read_section(ah_prompt_fields *p, ah_changes *tools, ah_err *err)
{
    ah_tool *t;
    ah_status st = ah_read_section_tool(&p->disclosure, &t, err);

    if (st != AH_OK)
        return st;
    st = ah_changes_add(tools, t, NULL, err);
    ah_tool_unref(t);
    return st;
}

void ah_prompt_fields_tools(lua_State *L, ah_prompt_fields *p, ah_changes *tools)
{
    ah_status st = AH_OK;
    ah_err err;

    if (!p->binding)
        return;
    check_names(L, ah_binding_prompt(p->binding), tools);
    for (size_t i = 0; st == AH_OK && i < p->rendered->n_tools; i++)
        st = ah_changes_add(tools, p->rendered->tool[i].tool, NULL, &err);
    if (st == AH_OK && p->base->n_summarized)
        st = add_read_section(p, tools, &err);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* What stands around the prompt's text. */
static void set_around(lua_State *L, ah_prompt_fields *p, ah_slice system, ah_buf *words)
{
    ah_disclosure *d = &p->disclosure;
    ah_err err;

    ah_text_set(&d->before, NULL);
    ah_text_set(&d->after, NULL);
    if (!(d->before = ah_text_new(d->mem, system)))
        ah_lua_raise_nomem(L);
    if (ah_text_from_buf(words, "output", &d->after, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* Is `before` (a JSON string) this text? */
static bool in_force(lua_State *L, ah_slice before, const ah_buf *text)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_SYSTEM);
    bool is;

    is = ah_json_string(before, b) && ah_slice_eq(ah_buf_slice(b), ah_buf_slice(text));
    ah_buf_clear(b);
    lua_pop(L, 1);
    return is;
}

static void put_words(const ah_prompt_fields *p, bool native, ah_buf *out)
{
    if (p->output && !native)
        ah_output_ask(p->output, out);
}

void ah_prompt_fields_text(lua_State *L, ah_prompt_fields *p, bool native, ah_slice system,
                           ah_slice before, ah_buf *out)
{
    ah_buf *words = ah_lua_push_buf(L, MAX_SYSTEM);

    put_words(p, native, words);
    if (!p->binding) {
        ah_buf_put(out, system);
        if (words->len)
            ah_buf_str(out, out->len ? "\n\n" : "");
        ah_buf_put(out, ah_buf_slice(words));
        lua_pop(L, 1);
        return;
    }
    set_around(L, p, system, words);
    ah_disclosure_text(&p->disclosure, p->base, out);
    if (p->rendered != p->base && !in_force(L, before, out)) {
        ah_buf_reset(out, 0);
        ah_disclosure_text(&p->disclosure, p->rendered, out);
    }
    lua_pop(L, 1);
}

void ah_prompt_fields_copy(lua_State *L, ah_prompt_fields *p, const ah_prompt_fields *from,
                           ah_registry *tools)
{
    ah_tool *own = NULL;
    ah_err err;

    *p = (ah_prompt_fields){.n_sections = from->n_sections,
                            .output = from->output ? ah_schema_ref(from->output) : NULL};
    if (!from->binding)
        return;
    p->binding = ah_binding_ref(from->binding);
    p->base = ah_rendered_ref(from->base);
    p->rendered = ah_rendered_ref(from->rendered);
    ah_disclosure_init(&p->disclosure, p->binding);
    if (ah_disclosure_copy(&p->disclosure, &from->disclosure, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    if (!ah_registry_find(tools, ah_slice_of(AH_READ_SECTION)) || !p->base->n_summarized)
        return;
    if (ah_read_section_tool(&p->disclosure, &own, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_registry_put(tools, own);
    ah_tool_unref(own);
}
