/* JSON Schema, the core of draft 2020-12: a schema becomes a program (see
 * schema_program.h) or is refused with the place and the keyword. Checking values
 * is schema_check.c.
 *
 * A new keyword is a line in `keywords` with the function that compiles it and,
 * where it is a rule of its own, an op code with a line in `checks` over there.
 * Not here: $ref and the rest of the draft (refused); `format` is an annotation. */
#include "model/schema.h"

#include <stdlib.h>

#include "model/schema_faults.h"
#include "model/schema_program.h"

enum {
    MAX_DEPTH = 64,    /* schemas within schemas: bounds every recursion of schema*.c */
    MAX_TEXT = 1 << 20 /* bytes of a schema, and of a default with its own defaults */
};

const type_name ah_schema_types[TYPE_NAMES] = {
    {"string", "a string", T_STRING},
    {"number", "a number", T_NUMBER | T_INTEGER},
    {"integer", "an integer", T_INTEGER},
    {"boolean", "a boolean", T_BOOLEAN},
    {"array", "an array", T_ARRAY},
    {"object", "an object", T_OBJECT},
    {"null", "null", T_NULL},
};

/* n zeroed items at the end (n may be 0); the index of the first, or NONE when out of
 * memory. */
static uint32_t extend(const ah_mem *mem, table *t, size_t n, size_t item)
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

uint32_t ah_schema_find_prop(const ah_schema *s, range in, ah_slice name)
{
    size_t low = in.first, high = low + in.n;

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

static uint32_t find_op(const ah_schema *s, uint32_t i, op_code code)
{
    uint32_t o = node_at(s, i)->first;

    while (o != NONE && op_at(s, o)->code != code)
        o = op_at(s, o)->next;
    return o;
}

typedef struct compiler {
    ah_schema *s;
    int depth;
    ah_buf message;
    ah_err *err;
} compiler;

typedef struct keyword keyword;

/* A keyword with its value, in the schema it stands in. */
typedef struct clause {
    uint32_t node;
    const keyword *keyword;
    ah_slice value;
    ah_slice schema;
    const place *at; /* of the schema */
} clause;

struct keyword {
    const char *name;
    unsigned shape;                                     /* types its value may have */
    ah_status (*compile)(compiler *c, const clause *q); /* NULL: an annotation */
    op_code code;                                       /* for functions that serve several */
};

/* Begins a refusal: "schema: keyword 'x' at /properties/y ". */
static ah_buf *refusal(compiler *c, const place *at, ah_slice name)
{
    ah_buf *b = &c->message;
    size_t start;

    ah_buf_reset(b, 0);
    b->max = MAX_MESSAGE;
    ah_buf_str(b, "schema: ");
    if (name.p) {
        ah_buf_str(b, "keyword '");
        ah_words_found(b, name);
        ah_buf_str(b, "' at ");
    }
    start = ah_part_begin(b, MAX_POINTER);
    ah_words_pointer(b, at);
    ah_part_end(b, start);
    b->max = MAX_MESSAGE - 8; /* ah_err holds a NUL more, and a cut is marked */
    ah_buf_str(b, at ? " " : "the root ");
    return b;
}

static ah_status refused(compiler *c)
{
    ah_slice words = ah_part_end(&c->message, 0);

    if (!ah_buf_ok(&c->message))
        return ah_err_nomem(c->err);
    return ah_err_set(c->err, AH_PROMPT_VALIDATION, "%.*s", AH_FMT(words));
}

/* The commonest refusal: "... must be a string, found 5". */
static ah_status refuse_at(compiler *c, const place *at, ah_slice name, ah_slice found, const char *want)
{
    ah_buf *b = refusal(c, at, name);

    ah_buf_str(b, want);
    ah_buf_str(b, ", found ");
    ah_words_found(b, found);
    return refused(c);
}

static ah_status refuse(compiler *c, const clause *q, const char *want)
{
    return refuse_at(c, q->at, ah_slice_of(q->keyword->name), q->value, want);
}

/* The op of the node with this code, made where there is none; NONE when out of memory. */
static uint32_t op_of(compiler *c, uint32_t i, op_code code)
{
    ah_schema *s = c->s;
    uint32_t o = find_op(s, i, code);
    node *n = node_at(s, i);

    if (o != NONE || (o = extend(s->mem, &s->ops, 1, sizeof(op))) == NONE)
        return o;
    *op_at(s, o) = (op){.code = code, .next = NONE, .max = SIZE_MAX, .rest = NONE};
    if (n->first == NONE)
        n->first = o;
    else
        op_at(s, n->last)->next = o;
    n->last = o;
    return o;
}

static size_t count_children(ah_slice container)
{
    ah_json_reader r = ah_json_read(container);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    while ((t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_OBJECT_END) {
        if (t.kind == AH_JSON_KEY)
            t = ah_json_next(&r);
        ah_json_skip(&r, t);
        n++;
    }
    return n;
}

/* A key or string of the canonical text, unescaped; it lives as long as the schema. */
static bool name_of(compiler *c, ah_json_token t, ah_slice *out)
{
    ah_buf *names = &c->s->names;
    size_t start = names->len;

    *out = t.raw;
    if (!t.escaped)
        return true;
    if (!names->data && !ah_buf_room(names, names->max))
        return false;
    ah_json_unescape(t.raw, names);
    *out = (ah_slice){names->data + start, names->len - start};
    return ah_buf_ok(names);
}

static ah_status compile_schema(compiler *c, ah_slice text, const place *at, uint32_t *out);

static unsigned type_named(ah_json_token t)
{
    for (size_t i = 0; i < TYPE_NAMES; i++)
        if (ah_json_token_is(t, ah_schema_types[i].name))
            return ah_schema_types[i].types;
    return 0;
}

static ah_status unknown_type(compiler *c, const clause *q, ah_json_token t)
{
    ah_near near = {.to = t.raw};
    ah_buf *b = refusal(c, q->at, ah_slice_of("type"));

    for (size_t i = 0; i < TYPE_NAMES; i++)
        ah_near_offer(&near, ah_slice_of(ah_schema_types[i].name));
    ah_buf_str(b, "names no type: '");
    ah_words_found(b, t.raw);
    ah_buf_char(b, '\'');
    ah_words_near(b, &near);
    return refused(c);
}

static ah_status compile_type(compiler *c, const clause *q)
{
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token t = ah_json_next(&r);
    unsigned types = 0, one;

    if (t.kind == AH_JSON_ARRAY)
        t = ah_json_next(&r);
    for (; t.kind != AH_JSON_END && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&r)) {
        if (t.kind != AH_JSON_STRING)
            return refuse(c, q, "must hold names of types");
        if (!(one = type_named(t)))
            return unknown_type(c, q, t);
        types |= one;
    }
    if (!types)
        return refuse(c, q, "must name a type");
    node_at(c->s, q->node)->types = types;
    return AH_OK;
}

static bool add_value(compiler *c, ah_slice text)
{
    ah_schema *s = c->s;
    uint32_t i = extend(s->mem, &s->values, 1, sizeof(value));
    ah_json_reader r = ah_json_read(text);
    value *v;

    if (i == NONE)
        return false;
    v = value_at(s, i);
    v->text = text;
    v->t = ah_json_next(&r);
    if (v->t.kind == AH_JSON_NUMBER)
        ah_schema_number(v->t.raw, &v->num);
    return true;
}

static ah_status compile_const(compiler *c, const clause *q)
{
    uint32_t o = op_of(c, q->node, OP_CONST);

    if (o == NONE)
        return ah_err_nomem(c->err);
    op_at(c->s, o)->list = (range){(uint32_t)c->s->values.n, 1};
    return add_value(c, q->value) ? AH_OK : ah_err_nomem(c->err);
}

static ah_status compile_enum(compiler *c, const clause *q)
{
    uint32_t o = op_of(c, q->node, OP_ENUM), first = (uint32_t)c->s->values.n;
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token t = ah_json_next(&r);

    if (o == NONE)
        return ah_err_nomem(c->err);
    while ((t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END)
        if (!add_value(c, ah_json_skip(&r, t)))
            return ah_err_nomem(c->err);
    if (c->s->values.n == first)
        return refuse(c, q, "must list at least one value");
    op_at(c->s, o)->list = (range){first, (uint32_t)c->s->values.n - first};
    return AH_OK;
}

static ah_status compile_bound(compiler *c, const clause *q)
{
    uint32_t o = op_of(c, q->node, q->keyword->code);
    ah_json_num num;

    if (o == NONE)
        return ah_err_nomem(c->err);
    if (!ah_schema_number(q->value, &num))
        return refuse(c, q, "must be within the range of a double");
    if (q->keyword->code == OP_MULTIPLE && !(num.is_int && num.i > 0))
        return refuse(c, q, "must be a whole number above 0");
    op_at(c->s, o)->literal = q->value;
    op_at(c->s, o)->num = num;
    return AH_OK;
}

static ah_status compile_limit(compiler *c, const clause *q, bool most)
{
    uint32_t o = op_of(c, q->node, q->keyword->code);
    ah_json_num num;

    if (o == NONE)
        return ah_err_nomem(c->err);
    if (!ah_schema_number(q->value, &num) || !num.is_int || num.i < 0)
        return refuse(c, q, "must be a whole number, 0 or more");
    *(most ? &op_at(c->s, o)->max : &op_at(c->s, o)->min) = (size_t)num.i;
    return AH_OK;
}

static ah_status compile_least(compiler *c, const clause *q)
{
    return compile_limit(c, q, false);
}

static ah_status compile_most(compiler *c, const clause *q)
{
    return compile_limit(c, q, true);
}

/* items and additionalProperties */
static ah_status compile_rest(compiler *c, const clause *q)
{
    place at = {.up = q->at, .key = ah_slice_of(q->keyword->name)};
    uint32_t o = op_of(c, q->node, q->keyword->code), rest;
    ah_status st;

    if (o == NONE)
        return ah_err_nomem(c->err);
    if ((st = compile_schema(c, q->value, &at, &rest)) == AH_OK)
        op_at(c->s, o)->rest = rest;
    return st;
}

static ah_status compile_any_of(compiler *c, const clause *q)
{
    place list = {.up = q->at, .key = ah_slice_of(q->keyword->name)};
    uint32_t o = op_of(c, q->node, OP_ANY_OF);
    size_t n = count_children(q->value);
    uint32_t first = extend(c->s->mem, &c->s->links, n, sizeof(uint32_t));
    ah_json_reader r = ah_json_read(q->value);

    if (o == NONE || first == NONE)
        return ah_err_nomem(c->err);
    if (n == 0)
        return refuse(c, q, "must list at least one schema");
    ah_json_next(&r);
    for (size_t i = 0; i < n; i++) {
        place at = {.up = &list, .index = i};
        uint32_t branch;
        ah_status st = compile_schema(c, ah_json_skip(&r, ah_json_next(&r)), &at, &branch);

        if (st != AH_OK)
            return st;
        ((uint32_t *)c->s->links.at)[first + i] = branch;
    }
    op_at(c->s, o)->list = (range){first, (uint32_t)n};
    return AH_OK;
}

static int compare_props(const void *a, const void *b)
{
    return ah_slice_cmp(((const prop *)a)->name, ((const prop *)b)->name);
}

/* Sorts in names that are required without being declared; they may come twice. */
static void sort_props(ah_schema *s, range *in)
{
    prop *p = prop_at(s, in->first);
    uint32_t n = 1;

    qsort(p, in->n, sizeof *p, compare_props);
    for (uint32_t i = 1; i < in->n; i++)
        if (compare_props(&p[n - 1], &p[i]) != 0)
            p[n++] = p[i];
    in->n = n;
}

/* Canonical text has the members in the order of their names, as the table must. */
static ah_status compile_members(compiler *c, const clause *q, ah_slice properties, range *props)
{
    place list = {.up = q->at, .key = AH_LIT("properties")};
    ah_json_reader r = ah_json_read(properties);
    ah_json_token key = ah_json_next(&r);

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        place at = {.up = &list, .key = key.raw, .escaped = key.escaped};
        ah_slice name, text = ah_json_skip(&r, ah_json_next(&r));
        uint32_t n;
        ah_status st;

        if (!name_of(c, key, &name))
            return ah_err_nomem(c->err);
        if ((st = compile_schema(c, text, &at, &n)) != AH_OK)
            return st;
        *prop_at(c->s, props->first + props->n++) = (prop){.name = name, .node = n};
    }
    return AH_OK;
}

static ah_status compile_names(compiler *c, const clause *q, ah_slice required, range *props)
{
    range declared = *props;
    ah_json_reader r = ah_json_read(required);
    ah_json_token t = ah_json_next(&r);

    while ((t = ah_json_next(&r)).kind == AH_JSON_STRING) {
        ah_slice name;
        uint32_t i;

        if (!name_of(c, t, &name))
            return ah_err_nomem(c->err);
        if ((i = ah_schema_find_prop(c->s, declared, name)) == NONE) {
            i = props->first + props->n++;
            *prop_at(c->s, i) = (prop){.name = name, .node = NONE};
        }
        prop_at(c->s, i)->required = true;
    }
    if (t.kind != AH_JSON_ARRAY_END)
        return refuse_at(c, q->at, (ah_slice)AH_LIT("required"), required,
                         "must hold names of properties");
    if (props->n > declared.n)
        sort_props(c->s, props);
    return AH_OK;
}

/* properties and required share a table, so the first of them does the work of
 * both. Its room is taken before the members' schemas take theirs. */
static ah_status compile_props(compiler *c, const clause *q)
{
    ah_schema *s = c->s;
    ah_slice properties = ah_json_member(q->schema, "properties");
    ah_slice required = ah_json_member(q->schema, "required");
    bool named = properties.p != NULL;
    range props = {0};
    uint32_t o;
    ah_status st;

    if (named && q->value.p != properties.p)
        return AH_OK;
    if (!named)
        properties = (ah_slice)AH_LIT("{}");
    if (ah_json_kind_of(required) != AH_JSON_ARRAY)
        required = (ah_slice)AH_LIT("[]"); /* absent, or refused when its turn comes */
    o = op_of(c, q->node, OP_OBJECT);
    props.first =
        extend(s->mem, &s->props, count_children(properties) + count_children(required), sizeof(prop));
    if (o == NONE || props.first == NONE)
        return ah_err_nomem(c->err);
    if ((st = compile_members(c, q, properties, &props)) != AH_OK ||
        (st = compile_names(c, q, required, &props)) != AH_OK)
        return st;
    op_at(s, o)->named = named;
    op_at(s, o)->list = props;
    return AH_OK;
}

static const keyword keywords[] = {
    {"$comment", T_STRING, NULL, 0},
    {"$schema", T_STRING, NULL, 0},
    {"additionalProperties", T_BOOLEAN | T_OBJECT, compile_rest, OP_OBJECT},
    {"anyOf", T_ARRAY, compile_any_of, OP_ANY_OF},
    {"const", T_ANY, compile_const, OP_CONST},
    {"default", T_ANY, NULL, 0}, /* see set_default: it needs the other rules */
    {"deprecated", T_BOOLEAN, NULL, 0},
    {"description", T_STRING, NULL, 0},
    {"enum", T_ARRAY, compile_enum, OP_ENUM},
    {"examples", T_ARRAY, NULL, 0},
    {"exclusiveMaximum", T_NUMERIC, compile_bound, OP_BELOW},
    {"exclusiveMinimum", T_NUMERIC, compile_bound, OP_ABOVE},
    {"format", T_STRING, NULL, 0},
    {"items", T_BOOLEAN | T_OBJECT, compile_rest, OP_ARRAY},
    {"maxItems", T_NUMERIC, compile_most, OP_ARRAY},
    {"maxLength", T_NUMERIC, compile_most, OP_STRING},
    {"maxProperties", T_NUMERIC, compile_most, OP_OBJECT},
    {"maximum", T_NUMERIC, compile_bound, OP_MAXIMUM},
    {"minItems", T_NUMERIC, compile_least, OP_ARRAY},
    {"minLength", T_NUMERIC, compile_least, OP_STRING},
    {"minProperties", T_NUMERIC, compile_least, OP_OBJECT},
    {"minimum", T_NUMERIC, compile_bound, OP_MINIMUM},
    {"multipleOf", T_NUMERIC, compile_bound, OP_MULTIPLE},
    {"properties", T_OBJECT, compile_props, OP_OBJECT},
    {"readOnly", T_BOOLEAN, NULL, 0},
    {"required", T_ARRAY, compile_props, OP_OBJECT},
    {"title", T_STRING, NULL, 0},
    {"type", T_STRING | T_ARRAY, compile_type, 0},
    {"writeOnly", T_BOOLEAN, NULL, 0},
};
enum { KEYWORDS = sizeof keywords / sizeof *keywords };

static const keyword *find_keyword(ah_json_token key)
{
    for (size_t i = 0; i < KEYWORDS; i++)
        if (ah_json_token_is(key, keywords[i].name))
            return &keywords[i];
    return NULL;
}

static ah_status unknown_keyword(compiler *c, const place *at, ah_slice name)
{
    ah_near near = {.to = name};
    ah_buf *b = refusal(c, at, name);

    for (size_t i = 0; i < KEYWORDS; i++)
        ah_near_offer(&near, ah_slice_of(keywords[i].name));
    ah_buf_str(b, "is not supported");
    ah_words_near(b, &near);
    return refused(c);
}

unsigned ah_schema_type_of(ah_json_kind kind)
{
    switch (kind) {
    case AH_JSON_NULL:
        return T_NULL;
    case AH_JSON_FALSE:
    case AH_JSON_TRUE:
        return T_BOOLEAN;
    case AH_JSON_NUMBER:
        return T_NUMBER;
    case AH_JSON_STRING:
        return T_STRING;
    case AH_JSON_ARRAY:
        return T_ARRAY;
    case AH_JSON_OBJECT:
        return T_OBJECT;
    case AH_JSON_END:
    case AH_JSON_KEY:
    case AH_JSON_ARRAY_END:
    case AH_JSON_OBJECT_END:
        break;
    }
    return 0;
}

static ah_status compile_clause(compiler *c, const clause *q, ah_json_kind kind)
{
    const keyword *k = q->keyword;
    ah_buf *b;

    if (k->shape & ah_schema_type_of(kind))
        return k->compile ? k->compile(c, q) : AH_OK;
    b = refusal(c, q->at, ah_slice_of(k->name));
    ah_buf_str(b, "must be ");
    ah_words_types(b, k->shape);
    ah_buf_str(b, ", found ");
    ah_words_found(b, q->value);
    return refused(c);
}

static ah_status compile_clauses(compiler *c, uint32_t i, ah_slice text, const place *at)
{
    ah_json_reader r = ah_json_read(text);
    ah_json_token key = ah_json_next(&r);

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_json_token t = ah_json_next(&r);
        clause q = {.node = i, .keyword = find_keyword(key), .schema = text, .at = at};
        ah_status st;

        q.value = ah_json_skip(&r, t);
        if (!q.keyword)
            return unknown_keyword(c, at, key.raw);
        if ((st = compile_clause(c, &q, t.kind)) != AH_OK)
            return st;
    }
    return AH_OK;
}

unsigned ah_schema_accepted(const ah_schema *s, range branches)
{
    unsigned types = 0;

    for (size_t i = 0; i < branches.n; i++)
        types |= node_at(s, link_at(s, branches.first + i))->accepts;
    return types;
}

/* Keeps the default as it will be inserted. Where nothing was filled in, that is the
 * schema's own text. */
static bool keep_default(ah_schema *s, uint32_t i, ah_slice text, const ah_buf *filled)
{
    uint32_t made;
    ah_text *t;

    if (filled->len == text.n) {
        node_at(s, i)->fallback = text;
        return true;
    }
    if ((made = extend(s->mem, &s->made, 1, sizeof(ah_text *))) == NONE)
        return false;
    if (!(t = ah_text_new(s->mem, ah_buf_slice(filled))))
        return false;
    ((ah_text **)s->made.at)[made] = t;
    node_at(s, i)->fallback = ah_text_slice(t);
    return true;
}

/* A default stands in for the value a handler relies on, so it must conform. */
static ah_status set_default(compiler *c, uint32_t i, ah_slice text, const place *at)
{
    ah_schema *s = c->s;
    ah_faults faults;
    ah_buf filled, *b;
    ah_status st;

    ah_faults_init(&faults, s->mem);
    ah_buf_init(&filled, s->mem, MAX_TEXT);
    st = ah_schema_check_at(s, i, text, AH_EXTRA_SCHEMA, &faults, &filled);
    if (st == AH_BUDGET) {
        st = refuse_at(c, at, (ah_slice)AH_LIT("default"), text,
                       "grows over 1 MiB with its own defaults");
    } else if (st == AH_OK && faults.n) {
        b = refusal(c, at, (ah_slice)AH_LIT("default"));
        ah_buf_str(b, "does not conform: ");
        ah_faults_print(&faults, b);
        st = refused(c);
    } else if (st != AH_OK || !keep_default(s, i, text, &filled)) {
        st = ah_err_nomem(c->err);
    }
    ah_buf_clear(&filled);
    ah_faults_clear(&faults);
    return st;
}

static ah_status compile_object(compiler *c, uint32_t i, ah_slice text, const place *at)
{
    ah_schema *s = c->s;
    ah_status st = compile_clauses(c, i, text, at);
    ah_slice fallback = ah_json_member(text, "default");
    uint32_t any;

    if (st != AH_OK)
        return st;
    node_at(s, i)->accepts = node_at(s, i)->types;
    if ((any = find_op(s, i, OP_ANY_OF)) != NONE)
        node_at(s, i)->accepts &= ah_schema_accepted(s, op_at(s, any)->list);
    return fallback.p ? set_default(c, i, fallback, at) : AH_OK;
}

static ah_status compile_schema(compiler *c, ah_slice text, const place *at, uint32_t *out)
{
    ah_json_kind kind = ah_json_kind_of(text);
    uint32_t i = extend(c->s->mem, &c->s->nodes, 1, sizeof(node));
    ah_status st = AH_OK;

    if (i == NONE)
        return ah_err_nomem(c->err);
    if (c->depth == MAX_DEPTH)
        return refuse_at(c, at, (ah_slice){0}, text, "is more than 64 schemas deep");
    *node_at(c->s, i) = (node){.types = T_ANY, .accepts = T_ANY, .first = NONE, .last = NONE};
    c->depth++;
    if (kind == AH_JSON_OBJECT)
        st = compile_object(c, i, text, at);
    else if (kind == AH_JSON_FALSE)
        st = op_of(c, i, OP_FALSE) == NONE ? ah_err_nomem(c->err) : AH_OK;
    else if (kind != AH_JSON_TRUE)
        st = refuse_at(c, at, (ah_slice){0}, text, "must be a schema: an object or a boolean");
    c->depth--;
    if (st == AH_OK)
        *out = i;
    return st;
}

static ah_status keep_text(ah_schema *s, ah_slice text, ah_err *err)
{
    ah_buf canon;
    ah_status st;

    if (text.n > MAX_TEXT)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "schema: is larger than %d bytes", MAX_TEXT);
    ah_buf_init(&canon, s->mem, 2 * (size_t)MAX_TEXT);
    st = ah_json_canon(s->mem, text, &canon);
    if (st == AH_OK)
        st = ah_text_from_buf(&canon, "schema: its canonical text", &s->text, err);
    else if (st == AH_NOMEM)
        ah_err_nomem(err);
    if (st != AH_OK && st != AH_NOMEM)
        st = ah_err_set(err, AH_PROMPT_VALIDATION, "schema: has no canonical text of at most 2 MiB");
    ah_buf_clear(&canon);
    return st;
}

ah_status ah_schema_compile(const ah_mem *mem, ah_slice text, ah_schema **out, ah_err *err)
{
    ah_schema *s = ah_alloc(mem, sizeof *s);
    compiler c = {.s = s, .err = err};
    uint32_t root;
    ah_status st;

    if (!s)
        return ah_err_nomem(err);
    s->mem = mem;
    s->refs = 1;
    ah_buf_init(&c.message, mem, MAX_MESSAGE);
    if ((st = keep_text(s, text, err)) != AH_OK)
        goto done;
    ah_buf_init(&s->names, mem, s->text->len);
    st = compile_schema(&c, ah_text_slice(s->text), NULL, &root);
done:
    ah_buf_clear(&c.message);
    if (st == AH_OK)
        *out = s;
    else
        ah_schema_unref(s);
    return st;
}

ah_schema *ah_schema_ref(ah_schema *s)
{
    if (s)
        s->refs++;
    return s;
}

void ah_schema_unref(ah_schema *s)
{
    if (!s || --s->refs)
        return;
    for (size_t i = 0; i < s->made.n; i++)
        ah_text_unref(((ah_text **)s->made.at)[i]);
    ah_free(s->mem, s->nodes.at);
    ah_free(s->mem, s->ops.at);
    ah_free(s->mem, s->props.at);
    ah_free(s->mem, s->values.at);
    ah_free(s->mem, s->links.at);
    ah_free(s->mem, s->made.at);
    ah_buf_clear(&s->names);
    ah_text_unref(s->text);
    ah_free(s->mem, s);
}

ah_text *ah_schema_text(const ah_schema *s)
{
    return s->text;
}

bool ah_schema_is_object(const ah_schema *s)
{
    return node_at(s, 0)->types == T_OBJECT;
}
