/* Binds and renders a prompt while the fields are read, so that its faults are raised at the
 * script's line. */
#include "lua/lua_prompt_fields.h"

#include "lua/lua_error.h"
#include "lua/lua_now.h"
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

/* -- prompt: that of the field, or one made of the sections in the array part; nil (returns NULL):
 * none */
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
        ah_lua_raise(L, AH_USAGE, "ah.run: prompt must be made by ah.prompt, found %s%s",
                     luaL_typename(L, -1),
                     lua_type(L, -1) == LUA_TSTRING ? "; a text is 'system'" : "");
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

/* Binds the prompt, which is on top of the stack. */
static void bind(lua_State *L, ah_prompt *p, const ah_transcript *t, ah_session *session,
                 ah_prompt_fields *out)
{
    ah_overlay *o = ah_lua_overlay(L);
    ah_disclosure *d = &out->disclosure;
    ah_override_source shown;
    ah_slice params;
    ah_err err;

    lua_getfield(L, 1, "params");
    params = ah_lua_push_params(L, -1, "ah.run: params");
    if (ah_visibility_register(session, &err) != AH_OK ||
        ah_binding_new(p, params, &out->binding, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_disclosure_init(d, out->binding, session);
    out->since = ah_disclosure_text_at(t);
    if (ah_disclosure_replay(d, t, o, &err) != AH_OK ||
        ah_disclosure_look(d, o, &shown, &err) != AH_OK ||
        ah_binding_render(out->binding, &shown, &out->rendered, &err) != AH_OK ||
        ah_disclosure_told(d, t, out->since, out->rendered, NULL, &out->told, &err) != AH_OK)
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
                           ah_session *session, ah_prompt_fields *out)
{
    int top = lua_gettop(L);
    ah_prompt *p;

    out->n_sections = count_sections(L);
    p = push_prompt(L, out->n_sections);
    if (lua_getfield(L, 1, "setup") == LUA_TNIL) /* `setup` uses params, too */
        need_prompt(L, p, "params");
    need_prompt(L, p, "overrides");
    if (p && lua_getfield(L, 1, "overrides") != LUA_TNIL)
        p = ah_lua_override_prompt(L, p, lua_gettop(L), "ah.run", log);
    if (p)
        bind(L, p, t, session, out);
    read_output(L, p, out);
    lua_settop(L, top);
}

void ah_prompt_fields_clear(ah_prompt_fields *p)
{
    ah_rendered_prompt_unref(p->told);
    ah_rendered_prompt_unref(p->rendered);
    ah_disclosure_clear(&p->disclosure);
    ah_binding_unref(p->binding);
    ah_schema_unref(p->output);
    *p = (ah_prompt_fields){0};
}

/* -- tools and system text ---------------------------------------------------------- */

/* Raises if a tool has the name of one of the prompt's tools. Tools of disabled and summarized
 * sections count, since they may be offered later. */
static void check_names(lua_State *L, const ah_prompt *p, const ah_changes *tools)
{
    ah_err err;

    for (size_t i = 0; i < tools->n; i++) {
        const ah_tool *tool = tools->item[i].tool,
                      *there = ah_prompt_tool(p, ah_text_slice(tool->name));

        if (there && ah_tool_twice(tool, there, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
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

/* True if the session opens the section, or a section around it. */
static bool was_opened(const ah_disclosure *d, ah_slice path)
{
    ah_visibility v = AH_SUMMARY;

    for (size_t n = 1; n <= path.n; n++)
        if ((n == path.n || path.p[n] == '.') &&
            ah_overrides_find((void *)&d->now, (ah_slice){path.p, n}, &v) && v == AH_FULL)
            return true;
    return false;
}

static ah_status add_tool(const ah_prompt_fields *p, const ah_section_tool *t, ah_changes *tools,
                          ah_err *err)
{
    ah_status st = ah_changes_add(tools, t->tool, NULL, err);

    if (st == AH_OK)
        tools->item[tools->n - 1].yields = was_opened(&p->disclosure, t->section);
    return st;
}

void ah_prompt_fields_tools(lua_State *L, ah_prompt_fields *p, bool offered, ah_changes *tools)
{
    ah_status st = AH_OK;
    ah_err err;

    if (!p->binding)
        return;
    check_names(L, ah_binding_prompt(p->binding), tools);
    for (size_t i = 0; st == AH_OK && i < p->rendered->n_tools; i++)
        st = add_tool(p, &p->rendered->tool[i], tools, &err);
    if (st == AH_OK && (offered || p->told->n_summarized || p->rendered->n_summarized))
        st = add_read_section(p, tools, &err);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* Sets the texts before and after the prompt's text. */
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

/* True if the script's last system text equals this one, whatever a strategy has set since. */
static bool in_force(const ah_transcript *t, const ah_buf *text, ah_err *err)
{
    size_t at = ah_disclosure_text_at(t);
    ah_slice before =
        at ? ah_json_member(ah_text_slice(t->entry[at - 1].json), "text") : (ah_slice){NULL, 0};
    bool is;
    ah_buf b;

    ah_buf_init(&b, t->mem, MAX_SYSTEM);
    is = ah_json_string(before, &b) && ah_slice_eq(ah_buf_slice(&b), ah_buf_slice(text));
    if (!ah_buf_ok(&b))
        ah_err_nomem(err);
    ah_buf_clear(&b);
    return is;
}

static void put_words(const ah_prompt_fields *p, bool native, ah_buf *out)
{
    if (p->output && !native)
        ah_output_ask(p->output, out);
}

/* Records the current rendering as the one in the system text, with nothing read since. */
static void settle_text(ah_prompt_fields *p, const ah_transcript *t)
{
    ah_rendered_prompt_unref(p->told);
    p->told = ah_rendered_prompt_ref(p->rendered);
    p->since = t->n;
}

void ah_prompt_fields_text(lua_State *L, ah_prompt_fields *p, bool native, ah_slice system,
                           const ah_transcript *t, ah_buf *out)
{
    ah_buf *words = ah_lua_push_buf(L, MAX_SYSTEM);
    ah_err err = {0};

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
    ah_disclosure_text(&p->disclosure, p->told, out);
    if (p->rendered != p->told && !in_force(t, out, &err)) {
        ah_buf_reset(out, 0);
        ah_disclosure_text(&p->disclosure, p->rendered, out);
        settle_text(p, t);
    }
    if (err.status != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pop(L, 1);
}

void ah_prompt_fields_copy(lua_State *L, ah_prompt_fields *p, const ah_prompt_fields *from,
                           ah_session *session, ah_registry *tools)
{
    ah_tool *own = NULL;
    ah_err err;

    *p = (ah_prompt_fields){.n_sections = from->n_sections,
                            .since = from->since,
                            .output = from->output ? ah_schema_ref(from->output) : NULL};
    if (!from->binding)
        return;
    p->binding = ah_binding_ref(from->binding);
    p->told = from->told ? ah_rendered_prompt_ref(from->told) : NULL;
    p->rendered = ah_rendered_prompt_ref(from->rendered);
    ah_disclosure_init(&p->disclosure, p->binding, session);
    if (ah_disclosure_copy(&p->disclosure, &from->disclosure, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    if (!ah_registry_find(tools, ah_slice_of(AH_READ_SECTION)))
        return;
    if (ah_read_section_tool(&p->disclosure, &own, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_registry_put(tools, own, NULL); /* it replaces one, so it cannot fail */
    ah_tool_unref(own);
}

/* -- at the start of a run --------------------------------------------------------- */

ah_binding *ah_prompt_fields_params(lua_State *L, const ah_prompt_fields *p, int idx)
{
    ah_slice params = ah_lua_push_params(L, idx, "agent:run: params");
    ah_binding *made = NULL;
    ah_err err;

    if (ah_slice_eq(params, ah_binding_params(p->binding)))
        made = ah_binding_ref(p->binding);
    else if (ah_binding_new(ah_binding_prompt(p->binding), params, &made, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pop(L, 1);
    return made;
}

void ah_prompt_fields_bind(ah_prompt_fields *p, ah_binding *binding)
{
    ah_disclosure_bind(&p->disclosure, binding);
    ah_binding_unref(p->binding);
    p->binding = binding;
}

/* True if the registry's tool of this name is this one. */
static bool offers(const ah_registry *tools, const ah_tool *t)
{
    return ah_registry_find(tools, ah_text_slice(t->name)) == t;
}

/* True if the registry never had a tool of this name: there was no room for it, or it came in a
 * turn that a fork does not have. */
static bool is_unknown(const ah_registry *tools, const ah_tool *t)
{
    ah_slice name = ah_text_slice(t->name);

    return !ah_registry_find(tools, name) && !ah_registry_had(tools, name, NULL);
}

/* Adds the tools that the prompt has now and has not offered yet. */
static ah_status add_new(ah_prompt_fields *p, const ah_rendered_prompt *had,
                         const ah_rendered_prompt *now, const ah_registry *tools, ah_changes *out,
                         ah_err *err)
{
    ah_text *by = ah_text_new(out->mem, ah_slice_of("{\"script\":\"prompt\"}"));
    ah_status st = by ? AH_OK : ah_err_nomem(err);

    for (size_t i = 0; i < now->n_tools && st == AH_OK; i++) {
        ah_tool *t = now->tool[i].tool;

        if ((!ah_rendered_prompt_has(had, t) || is_unknown(tools, t)) && !offers(tools, t))
            st = ah_changes_bring(out, tools, t, by, err);
    }
    if (st == AH_OK && now->n_summarized && !ah_registry_find(tools, ah_slice_of(AH_READ_SECTION)))
        st = add_read_section(p, out, err);
    ah_text_unref(by);
    return st;
}

static ah_status remove_tool(ah_tool *t, const ah_rendered_prompt *now, const ah_registry *tools,
                             ah_changes *out, ah_err *err)
{
    if (!t || ah_rendered_prompt_has(now, t) || !offers(tools, t))
        return AH_OK;
    if (ah_changes_remove(out, ah_text_slice(t->name), err) != AH_OK)
        return err->status;
    out->item[out->n - 1].ours = true;
    return AH_OK;
}

/* Removes the tools of sections that were read and are not open any more. */
static ah_status remove_read(ah_prompt_fields *p, const ah_transcript *t,
                             const ah_rendered_prompt *had, const ah_rendered_prompt *now,
                             const ah_registry *tools, ah_changes *out, ah_err *err)
{
    const ah_prompt *prompt = ah_binding_prompt(p->binding);
    ah_overrides opened;
    ah_status st;

    ah_overrides_init(&opened, out->mem);
    st = ah_disclosure_opened(&opened, t, 0, err);
    for (size_t i = 0; i < opened.n && st == AH_OK; i++) {
        const ah_section *s = ah_prompt_section(prompt, opened.item[i].path);

        for (size_t k = 0; s && k < s->n_tools && st == AH_OK; k++) {
            ah_tool *tool = ah_prompt_tool(prompt, ah_text_slice(s->tool[k]->name));

            if (!ah_rendered_prompt_has(had, tool))
                st = remove_tool(tool, now, tools, out, err);
        }
    }
    ah_overrides_clear(&opened);
    return st;
}

static ah_status change_tools(ah_prompt_fields *p, const ah_transcript *t,
                              const ah_rendered_prompt *had, const ah_rendered_prompt *now,
                              const ah_registry *tools, ah_changes *out, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < had->n_tools && st == AH_OK; i++)
        st = remove_tool(had->tool[i].tool, now, tools, out, err);
    if (st == AH_OK)
        st = remove_read(p, t, had, now, tools, out, err);
    return st == AH_OK ? add_new(p, had, now, tools, out, err) : st;
}

/* True if the system text is still right for the rendering `now`. `told` is the rendering in it;
 * NULL: not known, so the texts are compared. */
static bool still_told(const ah_prompt_fields *p, const ah_transcript *t,
                       const ah_rendered_prompt *now, ah_err *err)
{
    bool is;
    ah_buf b;

    if (p->told)
        return p->told == now ||
               ah_slice_eq(ah_text_slice(p->told->text), ah_text_slice(now->text));
    ah_buf_init(&b, t->mem, MAX_SYSTEM);
    ah_disclosure_text(&p->disclosure, now, &b);
    if (!ah_buf_ok(&b))
        ah_buf_error(&b, "the system text", err);
    is = in_force(t, &b, err);
    ah_buf_clear(&b);
    return is;
}

/* Called after a restart, which has replaced the system text: it includes sections read before. */
static void after_restart(ah_prompt_fields *p, const ah_transcript *t)
{
    if (!p->disclosure.rewrote)
        return;
    p->disclosure.rewrote = false;
    ah_rendered_prompt_unref(p->told);
    p->told = NULL;
    p->since = ah_disclosure_text_at(t);
}

ah_status ah_prompt_fields_look(ah_prompt_fields *p, const ah_transcript *t,
                                const ah_registry *tools, const ah_overlay *o, ah_prompt_look *look,
                                ah_changes *out, ah_err *err)
{
    ah_rendered_prompt *had = NULL;
    ah_override_source shown;
    ah_status st;

    *look = (ah_prompt_look){0};
    if (!p->binding)
        return AH_OK;
    after_restart(p, t);
    err->status = AH_OK;
    if ((st = ah_disclosure_look(&p->disclosure, o, &shown, err)) != AH_OK ||
        (st = ah_binding_render_again(p->binding, &shown, p->rendered, &look->rendered, err)) !=
            AH_OK ||
        (st = ah_disclosure_told(&p->disclosure, t, p->since, look->rendered, p->told, &look->told,
                                 err)) != AH_OK ||
        (st = ah_disclosure_given(&p->disclosure, p->rendered, &had, err)) != AH_OK)
        return st;
    look->rewritten = !still_told(p, t, look->told, err);
    if ((st = err->status) == AH_OK && look->rendered != had)
        st = change_tools(p, t, had, look->rendered, tools, out, err);
    ah_rendered_prompt_unref(had);
    if (st == AH_OK && look->rewritten) /* after the tools: it breaks the cache for them, too */
        st = ah_disclosure_set_prompt(&p->disclosure, look->rendered, out, err);
    return st;
}

void ah_prompt_fields_settle(ah_prompt_fields *p, ah_prompt_look *look, const ah_transcript *t,
                             bool done)
{
    if (done && look->rendered) {
        ah_rendered_prompt_unref(p->rendered);
        p->rendered = ah_rendered_prompt_ref(look->rendered);
        ah_rendered_prompt_unref(p->told);
        p->told = ah_rendered_prompt_ref(look->told);
        if (look->rewritten)
            settle_text(p, t);
        ah_disclosure_begin(&p->disclosure, p->rendered);
    }
    ah_rendered_prompt_unref(look->told);
    ah_rendered_prompt_unref(look->rendered);
    *look = (ah_prompt_look){0};
}
