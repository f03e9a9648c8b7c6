/* JSON Schema, drafts 2020-12, 2019-09 and 07: the life of a schema. Documents are kept in
 * canonical form and compiled to one program (compile.c); references are linked and defaults
 * completed (link.c). It is immutable from then on. Checking is in check.c, the program's form
 * in program.h. */
#include "schema/schema.h"

#include <stdlib.h>

#include "schema/program.h"

uint32_t schema_extend(const ah_mem *mem, table *t, size_t n, size_t item)
{
    size_t first = t->n;
    void *p;

    if (n >= NONE - first || !(p = ah_grow(mem, t->at, &t->cap, first + n + 1, item)))
        return NONE;
    t->at = p;
    t->n += n;
    memset((char *)p + first * item, 0, n * item);
    return (uint32_t)first;
}

/* For few names a linear search is faster: most differ in length. */
static uint32_t find_among_few(const ah_schema *s, range in, ah_slice name)
{
    for (uint32_t i = in.first; i < in.first + in.n; i++)
        if (ah_slice_eq(name, prop_at(s, i)->name))
            return i;
    return NONE;
}

uint32_t schema_find_prop(const ah_schema *s, range in, ah_slice name)
{
    enum { FEW = 8 };
    size_t low = in.first, high = low + in.n;

    if (in.n <= FEW)
        return find_among_few(s, in, name);

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = ah_slice_cmp(name, prop_at(s, mid)->name);

        if (c == 0)
            return (uint32_t)mid;
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NONE;
}

uint32_t schema_find_op(const ah_schema *s, uint32_t i, op_code code)
{
    uint32_t o = node_at(s, i)->first;

    while (o != NONE && op_at(s, o)->code != code)
        o = op_at(s, o)->next;
    return o;
}

const anchor *schema_find_anchor(const ah_schema *s, uint32_t in, ah_slice name)
{
    uint32_t i = schema_index_find(&s->anchor_index, (schema_key){{in}, name});

    return i == NONE ? NULL : anchor_at(s, i);
}

ah_slice schema_keep(ah_schema *s, ah_slice text)
{
    uint32_t made = schema_extend(s->mem, &s->made, 1, sizeof(ah_text *));
    ah_text *t = made == NONE ? NULL : ah_text_new(s->mem, text);

    if (t)
        ((ah_text **)s->made.at)[made] = t;
    return ah_text_slice(t);
}

static ah_status keep_document(ah_schema *s, ah_slice text, ah_slice uri, ah_err *err)
{
    uint32_t i = schema_extend(s->mem, &s->documents, 1, sizeof(document));
    ah_buf canon;
    ah_status st;

    if (i == NONE)
        return ah_err_nomem(err);
    document_at(s, i)->uri = (ah_slice)AH_LIT("");
    if (uri.n && !(document_at(s, i)->uri = schema_keep(s, uri)).p)
        return ah_err_nomem(err);
    if (text.n > SCHEMA_TEXT)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "schema: is larger than %d bytes",
                          SCHEMA_TEXT);
    ah_buf_init(&canon, s->mem, 2 * (size_t)SCHEMA_TEXT);
    st = ah_json_canon(s->mem, text, &canon);
    if (st == AH_OK)
        st = ah_text_from_buf(&canon, "schema: its canonical text", &document_at(s, i)->text, err);
    else if (st == AH_NOMEM)
        ah_err_nomem(err);
    if (st != AH_OK && st != AH_NOMEM)
        st =
            ah_err_set(err, AH_PROMPT_VALIDATION, "schema: has no canonical text of at most 2 MiB");
    ah_buf_clear(&canon);
    return st;
}

static int compare_documents(const void *a, const void *b)
{
    return ah_slice_cmp(((const document *)a)->uri, ((const document *)b)->uri);
}

static ah_status keep_documents(ah_schema *s, ah_slice text, const ah_schema_options *o,
                                ah_err *err)
{
    ah_status st = keep_document(s, text, (ah_slice){0}, err);
    size_t names = 0;

    for (size_t i = 0; i < o->n && st == AH_OK; i++)
        st = keep_document(s, o->documents[i].text, o->documents[i].uri, err);
    if (st == AH_OK && o->n)
        qsort(document_at(s, 1), o->n, sizeof(document), compare_documents);
    for (size_t i = 0; i < s->documents.n && st == AH_OK; i++)
        names += document_at(s, i)->text->len;
    ah_buf_init(&s->names, s->mem, names);
    s->given = s->documents.n;
    return st;
}

void schema_begin_compiler(compiler *c, ah_schema *s, shelf *documents, ah_err *err)
{
    ah_buf *all[] = {&c->uri, &c->segment, &c->address, &c->to};

    *c = (compiler){.s = s,
                    .of_root = {DRAFT_2020, VOCABULARY_ALL},
                    .shelf = documents,
                    .work = ah_work_of(SCHEMA_STEPS, NULL),
                    .err = err};
    ah_buf_init(&c->message, s->mem, SCHEMA_MESSAGE);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ah_buf_init(all[i], s->mem, 2 * (size_t)SCHEMA_TEXT);
}

void schema_end_compiler(compiler *c)
{
    ah_buf *all[] = {&c->message, &c->uri, &c->segment, &c->address, &c->to};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ah_buf_clear(all[i]);
    schema_index_clear(c->s->mem, &c->resources);
    schema_index_clear(c->s->mem, &c->places);
    schema_index_clear(c->s->mem, &c->names);
    ah_free(c->s->mem, c->refs.at);
    ah_free(c->s->mem, c->origins.at);
}

ah_status schema_compile_all(ah_schema *s, ah_err *err)
{
    shelf documents = {.s = s};
    compiler c;
    ah_status st;

    schema_begin_compiler(&c, s, &documents, err);
    st = schema_shelf_fill(&c);
    if (st == AH_OK)
        st = schema_compile_document(&c, 0);
    if (st == AH_OK)
        st = schema_link(&c);
    schema_end_compiler(&c);
    schema_shelf_clear(&documents);
    return st;
}

static ah_schema *new_schema(const ah_mem *mem)
{
    ah_schema *s = ah_alloc(mem, sizeof *s);

    if (s) {
        s->mem = mem;
        s->refs = 1;
    }
    return s;
}

ah_status schema_of_document(const ah_schema *like, const document *d, ah_schema **out)
{
    ah_schema *s = new_schema(like->mem);

    if (!s || schema_extend(s->mem, &s->documents, 1, sizeof(document)) == NONE) {
        ah_schema_unref(s);
        return AH_NOMEM;
    }
    s->given = 1;
    s->formats = like->formats;
    s->any_keywords = like->any_keywords;
    s->any_defaults = like->any_defaults;
    *document_at(s, 0) = (document){.text = ah_text_ref(d->text), .uri = d->uri};
    ah_buf_init(&s->names, s->mem, d->text->len);
    *out = s;
    return AH_OK;
}

ah_status ah_schema_compile_with(const ah_mem *mem, ah_slice text, const ah_schema_options *options,
                                 ah_schema **out, ah_err *err)
{
    ah_schema *s = new_schema(mem), *shared = NULL;
    ah_status st;

    if (!s)
        return ah_err_nomem(err);
    s->formats = options->formats;
    s->any_keywords = options->any_keywords;
    s->any_defaults = options->any_defaults;
    if ((st = keep_documents(s, text, options, err)) == AH_OK && options->cache)
        shared = schema_shared(options->cache, s);
    if (st == AH_OK && !shared && (st = schema_compile_all(s, err)) == AH_OK && options->cache)
        schema_share(options->cache, s);
    if (st == AH_OK && !shared)
        *out = s;
    else
        ah_schema_unref(s);
    if (shared)
        *out = shared;
    return st;
}

ah_status ah_schema_compile(const ah_mem *mem, ah_slice text, ah_schema **out, ah_err *err)
{
    ah_schema_options none = {0};

    return ah_schema_compile_with(mem, text, &none, out, err);
}

ah_schema *ah_schema_ref(ah_schema *s)
{
    if (s)
        s->refs++;
    return s;
}

static void free_tables(ah_schema *s)
{
    table *all[] = {&s->documents, &s->nodes,     &s->ops,     &s->props,    &s->values,
                    &s->links,     &s->resources, &s->anchors, &s->patterns, &s->made};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ah_free(s->mem, all[i]->at);
}

void ah_schema_unref(ah_schema *s)
{
    if (!s || --s->refs)
        return;
    schema_unshare(s);
    for (size_t i = 0; i < s->documents.n; i++)
        ah_text_unref(document_at(s, i)->text);
    for (size_t i = 0; i < s->patterns.n; i++)
        ah_pattern_free(pattern_at(s, i));
    for (size_t i = 0; i < s->made.n; i++)
        ah_text_unref(((ah_text **)s->made.at)[i]);
    ah_buf_clear(&s->names);
    schema_index_clear(s->mem, &s->anchor_index);
    free_tables(s);
    ah_free(s->mem, s);
}

ah_text *ah_schema_text(const ah_schema *s)
{
    return document_at(s, 0)->text;
}

bool ah_schema_is_object(const ah_schema *s)
{
    return node_at(s, 0)->types == T_OBJECT;
}

const char *ah_schema_regex_version(char *out, size_t size)
{
    return ah_pattern_version(out, size);
}
