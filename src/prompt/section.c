/* A section is checked alone when it is made: its key, title and texts, that it has a summary if
 * it may need one, and the size of the tree below it. */
#include "prompt/section.h"

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool is_key(ah_slice key)
{
    bool ok = key.n >= 1 && key.n <= AH_MAX_KEY && key.p[0] != '_' && key.p[0] != '-';

    for (size_t i = 0; ok && i < key.n; i++)
        ok = is_key_char(key.p[i]);
    return ok;
}

/* Makes a key: the title in lower case, each run of other characters as one hyphen, none at the
 * ends. */
static size_t derive_key(ah_slice title, char out[AH_MAX_KEY])
{
    size_t n = 0;

    for (size_t i = 0; i < title.n && n < AH_MAX_KEY; i++) {
        char c = title.p[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (is_key_char(c) && c != '-' && !(c == '_' && n == 0))
            out[n++] = c;
        else if (n && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n && out[n - 1] == '-')
        n--;
    return n;
}

static ah_status make_key(ah_section *s, const ah_section_def *def, ah_err *err)
{
    char derived[AH_MAX_KEY];
    ah_slice key = def->key;

    if (!key.p)
        key = (ah_slice){derived, derive_key(def->title, derived)};
    if (!def->key.p && !key.n)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "section: %s: give key",
                          def->title.p ? "no key can be made from its title"
                                       : "it has neither key nor title");
    if (!is_key(key))
        return ah_err_set(
            err, AH_PROMPT_VALIDATION,
            "section: key '%.*s' must be 1 to %d of a-z, 0-9, _ and -, the first a letter "
            "or digit",
            AH_FMT(key), AH_MAX_KEY);
    s->key = ah_text_new(s->mem, key);
    return s->key ? AH_OK : ah_err_nomem(err);
}

static ah_status make_title(ah_section *s, ah_slice title, ah_err *err)
{
    if (!title.p)
        return AH_OK;
    if (!title.n || title.n > AH_MAX_TITLE || !ah_utf8_valid(title) ||
        memchr(title.p, '\n', title.n))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "section '%s': title must be one line of UTF-8, 1 to %d bytes",
                          s->key->data, AH_MAX_TITLE);
    s->title = ah_text_new(s->mem, title);
    return s->title ? AH_OK : ah_err_nomem(err);
}

static ah_status make_template(ah_section *s, const char *what, ah_slice text, ah_template **out,
                               ah_err *err)
{
    ah_err inner;
    ah_status st;

    if (!text.p)
        return AH_OK;
    if ((st = ah_template_new(s->mem, text, out, &inner)) == AH_OK)
        return AH_OK;
    return st == AH_NOMEM
               ? ah_err_nomem(err)
               : ah_err_set(err, st, "section '%s': %s: %s", s->key->data, what, inner.message);
}

static ah_status check_summary(const ah_section *s, const ah_section_def *def, ah_err *err)
{
    if (def->summary.p || (!def->summarized.vt && !def->summarized.on))
        return AH_OK;
    return ah_err_set(err, AH_PROMPT_VALIDATION,
                      "section '%s': it may be summarized, so it needs a summary", s->key->data);
}

static ah_status check_params(const ah_section *s, const ah_section_def *def, ah_err *err)
{
    if (!def->params || ah_schema_is_object(def->params))
        return AH_OK;
    return ah_err_set(err, AH_PROMPT_VALIDATION,
                      "section '%s': the parameters' schema must have type object", s->key->data);
}

static ah_status keep_tools(ah_section *s, const ah_section_def *def, ah_err *err)
{
    if (def->n_tools && !(s->tool = ah_alloc(s->mem, def->n_tools * sizeof(ah_tool *))))
        return ah_err_nomem(err);
    for (; s->n_tools < def->n_tools; s->n_tools++)
        s->tool[s->n_tools] = ah_tool_ref(def->tool[s->n_tools]);
    return AH_OK;
}

static ah_status keep_children(ah_section *s, const ah_section_def *def, ah_err *err)
{
    if (def->n_children && !(s->child = ah_alloc(s->mem, def->n_children * sizeof(ah_section *))))
        return ah_err_nomem(err);
    s->height = s->total = 1;
    for (; s->n_children < def->n_children; s->n_children++) {
        ah_section *c = def->child[s->n_children];

        s->child[s->n_children] = ah_section_ref(c);
        s->height = c->height + 1 > s->height ? c->height + 1 : s->height;
        s->total += c->total;
        if (s->height > AH_MAX_SECTION_DEPTH || s->total > AH_MAX_SECTIONS) {
            s->n_children++; /* the child is referenced */
            return ah_err_set(err, AH_PROMPT_VALIDATION,
                              "section '%s': more than %d levels or %d sections", s->key->data,
                              AH_MAX_SECTION_DEPTH, AH_MAX_SECTIONS);
        }
    }
    return AH_OK;
}

static ah_status fill(ah_section *s, const ah_section_def *def, ah_err *err)
{
    ah_status st = make_key(s, def, err);

    if (st != AH_OK)
        return st;
    if ((st = make_title(s, def->title, err)) == AH_OK &&
        (st = make_template(s, "template", def->body, &s->body, err)) == AH_OK &&
        (st = make_template(s, "summary", def->summary, &s->summary, err)) == AH_OK &&
        (st = check_summary(s, def, err)) == AH_OK && (st = check_params(s, def, err)) == AH_OK &&
        (st = keep_tools(s, def, err)) == AH_OK)
        st = keep_children(s, def, err);
    if (st == AH_PROMPT_VALIDATION && err)
        ah_json_detail(err, "section_path", ah_text_slice(s->key));
    return st;
}

ah_status ah_section_new(const ah_mem *mem, const ah_section_def *def, ah_section **out,
                         ah_err *err)
{
    ah_section *s = ah_alloc(mem, sizeof *s);
    ah_status st;

    if (!s)
        return ah_err_nomem(err);
    *s = (ah_section){.mem = mem, .refs = 1, .keeps_words = def->keeps_words};
    if ((st = fill(s, def, err)) != AH_OK) {
        ah_section_unref(s);
        return st;
    }
    s->params = def->params ? ah_schema_ref(def->params) : NULL;
    s->enabled = def->enabled;
    s->summarized = def->summarized;
    *out = s;
    return AH_OK;
}

ah_section *ah_section_ref(ah_section *s)
{
    s->refs++;
    return s;
}

void ah_section_unref(ah_section *s)
{
    if (!s || --s->refs > 0)
        return;
    for (size_t i = 0; i < s->n_children; i++)
        ah_section_unref(s->child[i]); /* at most AH_MAX_SECTION_DEPTH deep */
    for (size_t i = 0; i < s->n_tools; i++)
        ah_tool_unref(s->tool[i]);
    if (s->enabled.vt)
        s->enabled.vt->release(s->enabled.p);
    if (s->summarized.vt)
        s->summarized.vt->release(s->summarized.p);
    ah_schema_unref(s->params);
    ah_template_unref(s->body);
    ah_template_unref(s->summary);
    ah_text_unref(s->key);
    ah_text_unref(s->title);
    ah_free(s->mem, s->child);
    ah_free(s->mem, s->tool);
    ah_free(s->mem, s);
}

ah_slice ah_section_params_of(const ah_schema *params)
{
    return params ? ah_json_member(ah_text_slice(ah_schema_text(params)), "properties")
                  : (ah_slice){NULL, 0};
}
