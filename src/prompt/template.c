/* A compiled template is its text and a list of holes; the text between them is copied
 * unchanged. Rendering allocates nothing but the output. */
#include "prompt/template.h"

typedef struct hole {
    size_t at, n;                     /* bytes that it replaces */
    char name[AH_MAX_PARAM_NAME + 1]; /* "": a dollar sign */
} hole;

struct ah_template {
    const ah_mem *mem;
    size_t refs;
    ah_text *text;
    hole *hole;
    size_t n, cap;
};

/* -- dedenting ------------------------------------------------------------------- */

static size_t indent_of(ah_slice line)
{
    size_t n = 0;

    while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
        n++;
    return n;
}

static bool is_blank(ah_slice line)
{
    return ah_slice_trim(line).n == 0;
}

/* Returns the white space with which all non-blank lines begin. */
static ah_slice common_indent(ah_slice text)
{
    ah_slice common = {NULL, 0};

    while (text.n) {
        ah_slice line = ah_slice_line(&text);
        size_t n = indent_of(line);

        if (is_blank(line))
            continue;
        if (!common.p)
            common = (ah_slice){line.p, n};
        for (size_t i = 0; i < common.n; i++)
            if (i >= n || line.p[i] != common.p[i])
                common.n = i;
    }
    return common;
}

static void dedent(ah_slice text, ah_buf *out)
{
    size_t cut = common_indent(text).n;
    size_t last = 0; /* end of the last character that is not white space */

    while (text.n && ah_buf_ok(out)) {
        ah_slice line = ah_slice_line(&text);

        if (!is_blank(line)) {
            ah_buf_add(out, line.p + cut, line.n - cut);
            last = out->len;
        }
        if (last)
            ah_buf_char(out, '\n');
    }
    while (ah_buf_ok(out) && last && ah_is_blank(out->data[last - 1]))
        last--;
    if (ah_buf_ok(out))
        ah_buf_reset(out, last);
}

/* -- compiling -------------------------------------------------------------------- */

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* Returns the length of the name at p; 0: none. */
static size_t name_length(const char *p, const char *end)
{
    const char *q = p;

    while (q < end && name_char(*q, q == p))
        q++;
    return (size_t)(q - p);
}

/* Reads the hole that begins with the dollar sign at `at`; n is 0 for a plain dollar sign.
 * False: a "${" that begins no placeholder. */
static bool read_hole(ah_slice text, size_t at, hole *out)
{
    const char *p = text.p + at + 1, *end = text.p + text.n;
    size_t n;

    *out = (hole){.at = at};
    if (p == end || (*p != '$' && *p != '{'))
        return true;
    if (*p == '$') {
        out->n = 2;
        return true;
    }
    n = name_length(p + 1, end);
    if (n == 0 || n > AH_MAX_PARAM_NAME || p + 1 + n == end || p[1 + n] != '}')
        return false;
    memcpy(out->name, p + 1, n);
    out->n = n + 3;
    return true;
}

static ah_status keep_hole(ah_template *t, const hole *found, ah_err *err)
{
    hole *grown = ah_grow(t->mem, t->hole, &t->cap, t->n + 1, sizeof *grown);

    if (!grown)
        return ah_err_nomem(err);
    t->hole = grown;
    t->hole[t->n++] = *found;
    return AH_OK;
}

static ah_status find_holes(ah_template *t, ah_err *err)
{
    ah_slice text = ah_text_slice(t->text);
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < text.n; i++) {
        hole found;

        if (text.p[i] != '$')
            continue;
        if (!read_hole(text, i, &found)) {
            ah_json_err_at(text, i,
                           "a placeholder is ${name}, and $${ the text \"${\": this is neither,",
                           err);
            if (err)
                err->status = AH_PROMPT_VALIDATION;
            return AH_PROMPT_VALIDATION;
        }
        if (found.n == 0)
            continue;
        st = keep_hole(t, &found, err);
        i += found.n - 1;
    }
    return st;
}

static ah_status compile(ah_template *t, ah_slice text, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, t->mem, AH_MAX_TEMPLATE + 1); /* room for a line end */
    dedent(text, &b);
    st = ah_text_from_buf(&b, "the template", &t->text, err);
    ah_buf_clear(&b);
    return st == AH_OK ? find_holes(t, err) : st;
}

ah_status ah_template_new(const ah_mem *mem, ah_slice text, ah_template **out, ah_err *err)
{
    ah_template *t;
    ah_status st;

    if (text.n > AH_MAX_TEMPLATE || !ah_utf8_valid(text))
        return ah_err_set(err, AH_PROMPT_VALIDATION, "a template must be UTF-8 of at most %d bytes",
                          AH_MAX_TEMPLATE);
    if (!(t = ah_alloc(mem, sizeof *t)))
        return ah_err_nomem(err);
    *t = (ah_template){.mem = mem, .refs = 1};
    if ((st = compile(t, text, err)) == AH_OK)
        *out = t;
    else
        ah_template_unref(t);
    return st;
}

ah_template *ah_template_ref(ah_template *t)
{
    if (t)
        t->refs++;
    return t;
}

void ah_template_unref(ah_template *t)
{
    if (!t || --t->refs > 0)
        return;
    ah_text_unref(t->text);
    ah_free(t->mem, t->hole);
    ah_free(t->mem, t);
}

ah_slice ah_template_text(const ah_template *t)
{
    return t ? ah_text_slice(t->text) : (ah_slice){NULL, 0};
}

/* -- using ------------------------------------------------------------------------- */

const char *ah_template_unknown(const ah_template *t, ah_slice properties, size_t *at)
{
    for (size_t i = 0; t && i < t->n; i++) {
        const hole *h = &t->hole[i];

        if (h->name[0] && !ah_json_member(properties, h->name).p) {
            *at = h->at;
            return h->name;
        }
    }
    return NULL;
}

const char *ah_template_render(const ah_template *t, ah_slice params, ah_buf *out)
{
    ah_slice text = ah_text_slice(t->text), value;
    size_t done = 0;

    for (size_t i = 0; i < t->n; i++) {
        const hole *h = &t->hole[i];

        ah_buf_add(out, text.p + done, h->at - done);
        done = h->at + h->n;
        if (!h->name[0]) {
            ah_buf_char(out, '$');
            continue;
        }
        value = ah_json_member(params, h->name);
        if (!value.p)
            return h->name;
        if (!ah_json_string(value, out))
            ah_buf_put(out, value);
    }
    ah_buf_add(out, text.p + done, text.n - done);
    return NULL;
}
