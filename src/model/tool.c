#include "model/tool.h"

enum {
    MAX_NAME = 64,
    MAX_DESCRIPTION = 200,
    MAX_FULL = 16 << 10,
    MAX_SPEC = 8 << 20,
    MAX_TOOLS_ENTRY = 256 << 20
};

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static ah_status check_name(ah_slice name, ah_err *err)
{
    bool ok = name.n >= 1 && name.n <= MAX_NAME;

    for (size_t i = 0; ok && i < name.n; i++)
        ok = name_char(name.p[i]);
    if (ok)
        return AH_OK;
    return ah_err_set(err, AH_PROMPT_VALIDATION,
                      "tool: name '%.*s' must be 1 to 64 of a-z, 0-9, _ and -", AH_FMT(name));
}

static ah_slice strip(ah_slice s)
{
    while (s.n && strchr(" \t\r\n", s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    return s;
}

static ah_status check_descriptions(const ah_tool_def *def, ah_slice brief, ah_err *err)
{
    if (brief.n < 1 || brief.n > MAX_DESCRIPTION)
        return ah_err_set(
            err, AH_PROMPT_VALIDATION,
            "tool '%.*s': description must have 1 to %d characters, found %zu (longer texts: "
            "full_description)",
            AH_FMT(def->name), MAX_DESCRIPTION, brief.n);
    for (size_t i = 0; i < brief.n; i++)
        if ((unsigned char)brief.p[i] >= 0x7f || (unsigned char)brief.p[i] < 0x20)
            return ah_err_set(err, AH_PROMPT_VALIDATION,
                              "tool '%.*s': description must be printable ASCII, byte %zu is not (other "
                              "characters: full_description)",
                              AH_FMT(def->name), i + 1);
    if (def->full_description.n > MAX_FULL || !ah_utf8_valid(def->full_description))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "tool '%.*s': full_description must be UTF-8 of at most %d bytes",
                          AH_FMT(def->name), MAX_FULL);
    return AH_OK;
}

static ah_status make_spec(ah_tool *t, ah_slice description, ah_err *err)
{
    ah_buf b;
    ah_status st;

    ah_buf_init(&b, t->mem, MAX_SPEC);
    ah_buf_str(&b, "{\"description\":");
    ah_json_put_string(&b, description);
    ah_buf_str(&b, ",\"name\":");
    ah_json_put_string(&b, ah_text_slice(t->name));
    ah_buf_str(&b, ",\"parameters\":");
    ah_buf_put(&b, ah_text_slice(ah_schema_text(t->params)));
    ah_buf_char(&b, '}');
    st = ah_text_from_buf(&b, "tool specification", &t->spec, err);
    ah_buf_clear(&b);
    return st;
}

static ah_status no_params(const ah_mem *mem, ah_schema **out, ah_err *err)
{
    return ah_schema_compile(
        mem, ah_slice_of("{\"additionalProperties\":false,\"properties\":{},\"type\":\"object\"}"), out,
        err);
}

static ah_status fill(ah_tool *t, const ah_tool_def *def, ah_slice brief, ah_err *err)
{
    ah_status st = AH_OK;

    if (!(t->name = ah_text_new(t->mem, def->name)))
        return ah_err_nomem(err);
    if (def->params)
        t->params = ah_schema_ref(def->params);
    else
        st = no_params(t->mem, &t->params, err);
    if (def->result)
        t->result = ah_schema_ref(def->result);
    if (st == AH_OK)
        st = make_spec(t, def->full_description.n ? def->full_description : brief, err);
    return st;
}

ah_status ah_tool_new(const ah_mem *mem, const ah_tool_def *def, ah_tool **out, ah_err *err)
{
    ah_slice brief = strip(def->description);
    ah_status st;
    ah_tool *t;

    if ((st = check_name(def->name, err)) != AH_OK ||
        (st = check_descriptions(def, brief, err)) != AH_OK)
        return st;
    if (def->params && !ah_schema_is_object(def->params))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "tool '%.*s': the parameters' schema must have type object",
                          AH_FMT(def->name));
    if (!(t = ah_alloc(mem, sizeof *t)))
        return ah_err_nomem(err);
    *t = (ah_tool){.mem = mem,
                   .refs = 1,
                   .parallel = def->parallel,
                   .no_handler = def->no_handler,
                   .timeout_ms = def->timeout_ms,
                   .vt = def->vt};
    if ((st = fill(t, def, brief, err)) != AH_OK) {
        ah_tool_unref(t);
        return st;
    }
    t->handler = def->handler;
    *out = t;
    return AH_OK;
}

ah_tool *ah_tool_ref(ah_tool *t)
{
    if (t)
        t->refs++;
    return t;
}

void ah_tool_unref(ah_tool *t)
{
    if (!t || --t->refs > 0)
        return;
    if (t->handler.vt)
        t->handler.vt->release(t->handler.p);
    ah_schema_unref(t->params);
    ah_schema_unref(t->result);
    ah_text_unref(t->name);
    ah_text_unref(t->spec);
    ah_free(t->mem, t);
}

/* -- registry -------------------------------------------------------------- */

void ah_registry_init(ah_registry *r, const ah_mem *mem)
{
    *r = (ah_registry){.mem = mem};
}

void ah_registry_clear(ah_registry *r)
{
    for (size_t i = 0; i < r->n; i++)
        ah_tool_unref(r->tool[i]);
    if (r->mem) {
        ah_free(r->mem, r->tool);
        ah_free(r->mem, r->index);
    }
    ah_registry_init(r, r->mem);
}

static size_t hash(ah_slice s)
{
    size_t h = 2166136261u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h;
}

/* The index cell of a name: its own, or the free one where it would go. */
static uint32_t *cell(const ah_registry *r, ah_slice name)
{
    size_t i = hash(name) & (r->n_index - 1);

    while (r->index[i] && !ah_slice_eq(name, ah_text_slice(r->tool[r->index[i] - 1]->name)))
        i = (i + 1) & (r->n_index - 1);
    return &r->index[i];
}

static bool grow_index(ah_registry *r)
{
    size_t n = r->n_index ? r->n_index * 2 : 16;
    uint32_t *index = ah_alloc(r->mem, n * sizeof *index);

    if (!index)
        return false;
    ah_free(r->mem, r->index);
    r->index = index;
    r->n_index = n;
    for (size_t i = 0; i < r->n; i++)
        *cell(r, ah_text_slice(r->tool[i]->name)) = (uint32_t)i + 1;
    return true;
}

ah_tool *ah_registry_find(const ah_registry *r, ah_slice name)
{
    uint32_t at = r->n_index ? *cell(r, name) : 0;

    return at ? r->tool[at - 1] : NULL;
}

ah_status ah_registry_add(ah_registry *r, ah_tool *tool, ah_err *err)
{
    ah_slice name = ah_text_slice(tool->name);
    ah_tool **grown;

    if (ah_registry_find(r, name))
        return ah_err_set(err, AH_PROMPT_VALIDATION, "tool '%.*s' is declared twice", AH_FMT(name));
    if (!(grown = ah_grow(r->mem, r->tool, &r->cap, r->n + 1, sizeof *grown)))
        return ah_err_nomem(err);
    r->tool = grown;
    if ((r->n + 1) * 2 > r->n_index && !grow_index(r))
        return ah_err_nomem(err);
    r->tool[r->n++] = ah_tool_ref(tool);
    *cell(r, name) = (uint32_t)r->n;
    return AH_OK;
}

ah_status ah_registry_entry(const ah_registry *r, ah_text **out, ah_err *err)
{
    ah_buf b;
    ah_status st;

    ah_buf_init(&b, r->mem, MAX_TOOLS_ENTRY);
    ah_buf_str(&b, "{\"type\":\"tools_added\",\"tools\":[");
    for (size_t i = 0; i < r->n; i++) {
        if (i)
            ah_buf_char(&b, ',');
        ah_buf_put(&b, ah_text_slice(r->tool[i]->spec));
    }
    ah_buf_str(&b, "]}");
    st = ah_text_from_buf(&b, "tools", out, err);
    ah_buf_clear(&b);
    return st;
}
