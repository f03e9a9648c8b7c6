/* Makes a prompt: lays the tree out as nodes, applies overrides, and checks what needs the
 * whole: paths, tools, placeholders, summaries. */
#include "prompt/prompt.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/near.h"
#include "prompt/overrides.h"
#include "prompt/prompt_nodes.h"

enum { MAX_NAME = 128, MAX_TOOLS = 10000 };

/* -- errors ----------------------------------------------------------------------- */

ah_status prompt_refuse(const ah_prompt *p, uint32_t i, ah_status st, ah_err *err, const char *fmt,
                        ...)
{
    char words[sizeof err->message];
    va_list ap;

    va_start(ap, fmt);
    ah_vprint(words, sizeof words, fmt, ap);
    va_end(ap);
    ah_err_set(err, st, "section '%.*s': %s", AH_FMT(node_path(p, i)), words);
    if (err)
        ah_json_detail(err, "section_path", node_path(p, i));
    return st;
}

/* -- paths -------------------------------------------------------------------------- */

/* Returns the index cell of a path, or the free one for it. */
static uint32_t *cell(const ah_prompt *p, ah_slice path)
{
    size_t at = (size_t)ah_slice_hash(path) & (p->n_index - 1);

    while (p->index[at] && !ah_slice_eq(path, node_path(p, p->index[at] - 1)))
        at = (at + 1) & (p->n_index - 1);
    return &p->index[at];
}

uint32_t prompt_find(const ah_prompt *p, ah_slice path)
{
    uint32_t found = p->n_index ? *cell(p, path) : 0;

    return found ? found - 1 : NO_NODE;
}

static ah_text *make_path(const ah_prompt *p, uint32_t parent, const ah_text *key)
{
    ah_text *path = NULL;
    ah_buf b;

    ah_buf_init(&b, p->mem, AH_MAX_SECTION_DEPTH * (AH_MAX_KEY + 1));
    if (parent != NO_NODE) {
        ah_buf_put(&b, node_path(p, parent));
        ah_buf_char(&b, '.');
    }
    ah_buf_put(&b, ah_text_slice(key));
    ah_text_from_buf(&b, "the path", &path, NULL);
    ah_buf_clear(&b);
    return path;
}

/* -- laying out ------------------------------------------------------------------------- */

static ah_schema *params_in_force(const ah_prompt *p, uint32_t parent, const ah_section *s)
{
    if (s->params)
        return s->params;
    return parent == NO_NODE ? NULL : p->node[parent].params;
}

static ah_status lay_out(ah_prompt *p, ah_section *s, uint32_t parent, ah_err *err)
{
    uint32_t i = p->n, *at;
    prompt_node *node = &p->node[i];
    ah_status st = AH_OK;

    *node = (prompt_node){.section = s, .parent = parent, .summarized = s->summarized};
    if (!(node->path = make_path(p, parent, s->key)))
        return ah_err_nomem(err);
    p->n++;
    node->depth = parent == NO_NODE ? 0 : p->node[parent].depth + 1;
    node->params = params_in_force(p, parent, s);
    node->body = ah_template_ref(s->body);
    node->summary = ah_template_ref(s->summary);
    at = cell(p, ah_text_slice(node->path));
    if (*at)
        return prompt_refuse(p, i, AH_PROMPT_VALIDATION, err,
                             "there are two sections of this key; give one another key");
    *at = i + 1;
    for (size_t c = 0; st == AH_OK && c < s->n_children; c++)
        st = lay_out(p, s->child[c], i, err); /* at most AH_MAX_SECTION_DEPTH deep */
    p->node[i].end = p->n;
    return st;
}

static ah_status make_room(ah_prompt *p, ah_err *err)
{
    size_t total = 0;

    for (size_t i = 0; i < p->n_sections; i++)
        total += p->section[i]->total;
    if (total > AH_MAX_SECTIONS)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "prompt: %zu sections; at most %d", total,
                          AH_MAX_SECTIONS);
    for (p->n_index = 16; p->n_index < 2 * total; p->n_index *= 2)
        ;
    p->node = ah_alloc(p->mem, (total + 1) * sizeof *p->node);
    p->index = ah_alloc(p->mem, p->n_index * sizeof *p->index);
    return p->node && p->index ? AH_OK : ah_err_nomem(err);
}

static ah_status lay_out_all(ah_prompt *p, ah_err *err)
{
    ah_status st = make_room(p, err);

    for (size_t i = 0; st == AH_OK && i < p->n_sections; i++)
        st = lay_out(p, p->section[i], NO_NODE, err);
    return st;
}

/* -- tools ---------------------------------------------------------------------------------- */

static ah_status gather_tools(ah_prompt *p, ah_err *err)
{
    size_t n = 0;

    for (uint32_t i = 0; i < p->n && n <= MAX_TOOLS; i++) {
        p->node[i].first_tool = n;
        n += p->node[i].section->n_tools;
    }
    if (n > MAX_TOOLS)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "prompt: more than %d tools", MAX_TOOLS);
    if (!(p->own = ah_alloc(p->mem, (n + 1) * sizeof(ah_tool *))))
        return ah_err_nomem(err);
    for (uint32_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->node[i].section->n_tools; k++)
            p->own[p->node[i].first_tool + k] = ah_tool_ref(p->node[i].section->tool[k]);
    return AH_OK;
}

static void drop_own(ah_prompt *p)
{
    for (size_t i = 0; p->own && p->own[i]; i++)
        ah_tool_unref(p->own[i]);
    ah_free(p->mem, p->own);
    p->own = NULL;
}

/* Returns the section that has the tool. */
static uint32_t section_of(const ah_prompt *p, const ah_tool *t)
{
    for (uint32_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->node[i].section->n_tools; k++)
            if (p->own[p->node[i].first_tool + k] == t)
                return i;
    return 0;
}

static ah_status refuse_tool(const ah_prompt *p, uint32_t i, const ah_tool *first, const ah_tool *t,
                             ah_err *err)
{
    ah_err twice;

    ah_tool_twice(first, t, &twice);
    prompt_refuse(p, i, AH_PROMPT_VALIDATION, err, "%s; the first is in section '%.*s'",
                  twice.message, AH_FMT(node_path(p, section_of(p, first))));
    if (err) {
        ah_json_detail(err, "tool", ah_text_slice(t->name));
        if (t->params_type)
            ah_json_detail(err, "params_type", ah_text_slice(t->params_type));
    }
    return AH_PROMPT_VALIDATION;
}

/* Registers the tools of all sections, disabled and summarized ones included. */
static ah_status register_tools(ah_prompt *p, uint32_t i, ah_err *err)
{
    const prompt_node *node = &p->node[i];

    for (size_t k = 0; k < node->section->n_tools; k++) {
        ah_tool *t = p->own[node->first_tool + k];

        const ah_tool *first = ah_registry_find(&p->tools, ah_text_slice(t->name));

        if (first)
            return refuse_tool(p, i, first, t, err);
        if (ah_registry_add(&p->tools, t, err) != AH_OK)
            return ah_err_nomem(err);
    }
    return AH_OK;
}

/* -- checking ---------------------------------------------------------------------------------- */

static ah_slice nearest_member(ah_slice object, const char *name)
{
    ah_near near = {.to = ah_slice_of(name)};
    ah_json_reader r = ah_json_read(object);
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_OBJECT)
        return near.best;
    for (t = ah_json_next(&r); t.kind == AH_JSON_KEY; t = ah_json_next(&r)) {
        ah_near_offer(&near, t.raw);
        ah_json_skip(&r, ah_json_next(&r));
    }
    return near.best;
}

static ah_status check_template(const ah_prompt *p, uint32_t i, const char *what,
                                const ah_template *t, ah_err *err)
{
    ah_slice properties = ah_section_params_of(p->node[i].params), near;
    size_t at;
    const char *name = ah_template_unknown(t, properties, &at);
    char said[256];
    ah_err place;

    if (!name)
        return AH_OK;
    near = nearest_member(properties, name);
    ah_print(said, sizeof said, "%s: no parameter is called '%s'%s%.*s%s", what, name,
             near.p ? " (did you mean '" : "", AH_FMT(near), near.p ? "'?)" : "");
    ah_json_err_at(ah_template_text(t), at, said, &place);
    prompt_refuse(p, i, AH_PROMPT_VALIDATION, err, "%s", place.message);
    if (err)
        ah_json_detail(err, "param", ah_slice_of(name));
    return AH_PROMPT_VALIDATION;
}

static ah_status check_node(ah_prompt *p, uint32_t i, ah_err *err)
{
    const prompt_node *node = &p->node[i];
    ah_status st;

    if (!node->summary && (node->summarized.vt || node->summarized.on))
        return prompt_refuse(p, i, AH_PROMPT_VALIDATION, err,
                             "it may be summarized, so it needs a summary");
    if ((st = check_template(p, i, "template", node->body, err)) == AH_OK &&
        (st = check_template(p, i, "summary", node->summary, err)) == AH_OK)
        st = register_tools(p, i, err);
    return st;
}

static bool is_name(ah_slice s)
{
    bool ok = s.n >= 1 && s.n <= MAX_NAME;

    for (size_t i = 0; ok && i < s.n; i++) {
        char c = s.p[i];

        ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (i && strchr("._-", c) && c);
    }
    return ok;
}

/* Names separated by '/' (seed 002: "examples/tooling"). A key has no '/', so "ns/key"
 * identifies one prompt. */
static bool is_namespace(ah_slice s)
{
    const char *slash;

    while (s.n <= MAX_NAME && (slash = memchr(s.p, '/', s.n)) != NULL) {
        if (!is_name((ah_slice){s.p, (size_t)(slash - s.p)}))
            return false;
        s.n -= (size_t)(slash + 1 - s.p);
        s.p = slash + 1;
    }
    return is_name(s);
}

static ah_status keep_name(ah_prompt *p, const char *what, ah_slice name, bool (*may)(ah_slice),
                           ah_text **out, ah_err *err)
{
    if (!name.p)
        return AH_OK;
    if (!may(name))
        return ah_err_set(
            err, AH_PROMPT_VALIDATION,
            "prompt: %s '%.*s' must be 1 to %d of a-z, 0-9, '.', '_' and '-', the first a "
            "letter or digit%s",
            what, AH_FMT(name), MAX_NAME,
            may == is_namespace ? "; or such names with '/' between them" : "");
    *out = ah_text_new(p->mem, name);
    return *out ? AH_OK : ah_err_nomem(err);
}

static ah_status make_id(ah_prompt *p, ah_err *err)
{
    ah_status st;
    ah_buf b;

    if (p->ns && !p->key)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "prompt: ns without key");
    ah_buf_init(&b, p->mem, 2 * MAX_NAME + 1);
    ah_buf_put(&b, ah_text_slice(p->ns));
    ah_buf_str(&b, p->ns ? "/" : "");
    ah_buf_put(&b, ah_text_slice(p->key));
    st = ah_text_from_buf(&b, "the name", &p->id, err);
    ah_buf_clear(&b);
    return st;
}

/* -- making ------------------------------------------------------------------------------------ */

static ah_status keep_sections(ah_prompt *p, const ah_prompt_def *def, ah_err *err)
{
    if (!(p->section = ah_alloc(p->mem, (def->n + 1) * sizeof(ah_section *))))
        return ah_err_nomem(err);
    for (; p->n_sections < def->n; p->n_sections++)
        p->section[p->n_sections] = ah_section_ref(def->section[p->n_sections]);
    return AH_OK;
}

static ah_status fill(ah_prompt *p, const ah_prompt_def *def, ah_err *err)
{
    ah_status st;

    if ((st = keep_name(p, "ns", def->ns, is_namespace, &p->ns, err)) != AH_OK ||
        (st = keep_name(p, "key", def->key, is_name, &p->key, err)) != AH_OK ||
        (st = make_id(p, err)) != AH_OK || (st = keep_sections(p, def, err)) != AH_OK ||
        (st = lay_out_all(p, err)) != AH_OK || (st = gather_tools(p, err)) != AH_OK)
        return st;
    if (def->overrides.p && (st = ah_overrides_apply(p, def->overrides, def->log, err)) != AH_OK)
        return st;
    for (uint32_t i = 0; st == AH_OK && i < p->n; i++)
        st = check_node(p, i, err);
    drop_own(p);
    return st;
}

ah_status ah_prompt_new(const ah_mem *mem, const ah_prompt_def *def, ah_prompt **out, ah_err *err)
{
    ah_prompt *p = ah_alloc(mem, sizeof *p);
    ah_status st;

    if (!p)
        return ah_err_nomem(err);
    *p = (ah_prompt){.mem = mem, .refs = 1};
    ah_registry_init(&p->tools, mem);
    if ((st = fill(p, def, err)) != AH_OK) {
        ah_prompt_unref(p);
        return st;
    }
    p->output = ah_schema_ref(def->output);
    p->resources = def->resources;
    *out = p;
    return AH_OK;
}

ah_status ah_prompt_override(ah_prompt *p, ah_slice overrides, const ah_log *log, ah_prompt **out,
                             ah_err *err)
{
    ah_prompt_def def = {.ns = ah_text_slice(p->ns),
                         .key = ah_text_slice(p->key),
                         .section = p->section,
                         .n = p->n_sections,
                         .output = p->output,
                         .overrides = overrides,
                         .log = log};
    ah_status st = ah_prompt_new(p->mem, &def, out, err);

    if (st == AH_OK)
        (*out)->of = ah_prompt_ref(p);
    return st;
}

ah_prompt *ah_prompt_ref(ah_prompt *p)
{
    p->refs++;
    return p;
}

static void free_nodes(ah_prompt *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        ah_text_unref(p->node[i].path);
        ah_template_unref(p->node[i].body);
        ah_template_unref(p->node[i].summary);
    }
    ah_free(p->mem, p->node);
    ah_free(p->mem, p->index);
}

void ah_prompt_unref(ah_prompt *p)
{
    if (!p || --p->refs > 0)
        return;
    drop_own(p);
    ah_registry_clear(&p->tools);
    free_nodes(p);
    for (size_t i = 0; i < p->n_sections; i++)
        ah_section_unref(p->section[i]);
    ah_free(p->mem, p->section);
    if (p->resources.vt)
        p->resources.vt->release(p->resources.p);
    ah_schema_unref(p->output);
    ah_text_unref(p->ns);
    ah_text_unref(p->key);
    ah_text_unref(p->id);
    ah_prompt_unref(p->of);
    ah_free(p->mem, p);
}

/* -- looking ----------------------------------------------------------------------------------- */

ah_slice ah_prompt_id(const ah_prompt *p)
{
    return ah_text_slice(p->id);
}

ah_schema *ah_prompt_output(const ah_prompt *p)
{
    return p->output;
}

const ah_value *ah_prompt_resources(const ah_prompt *p)
{
    while (p->of)
        p = p->of;
    return &p->resources;
}

ah_tool *ah_prompt_tool(const ah_prompt *p, ah_slice name)
{
    return ah_registry_find(&p->tools, name);
}

ah_slice ah_prompt_path(const ah_prompt *p, ah_slice path)
{
    uint32_t i = prompt_find(p, path);

    return i == NO_NODE ? (ah_slice){NULL, 0} : node_path(p, i);
}

ah_section *ah_prompt_section(const ah_prompt *p, ah_slice path)
{
    uint32_t i = prompt_find(p, path);

    return i == NO_NODE ? NULL : p->node[i].section;
}
