/* JSON Schema, the core of draft 2020-12: compile and check.
 *
 * A schema becomes a flat program: nodes (one a schema), each with a chain of
 * ops (one a rule), tables of properties sorted by name, values to compare with,
 * and links from ops to other nodes. References are indices, names and values
 * are slices of the canonical text, so a schema is a handful of blocks.
 * A value is checked by walking its text with ah_json_reader beside the program:
 * no tree, and recursion goes no deeper than the schema.
 *
 * A new keyword is a line in `keywords` with the function that compiles it and,
 * where it is a rule of its own, an op code with a line in `checks`.
 * Not here: $ref and the rest of the draft (refused); `format` is an annotation. */
#include "model/schema.h"

#include <stdlib.h>

#include "base/near.h"

enum {
    MAX_DEPTH = 64,     /* schemas within schemas: bounds every recursion here */
    MAX_TEXT = 1 << 20, /* bytes of a schema, and of a default with its own defaults */
    MAX_POINTER = 512,  /* bytes in a fault */
    MAX_MESSAGE = 1024, /* bytes in a fault, and in a refusal */
    MAX_FOUND = 60,     /* bytes of a value or name in a message */
    MAX_LISTED = 12,    /* values or names in a message */
    SEEN_INLINE = 128,  /* properties of one object marked without memory */
    FAULT_ROOM = AH_MAX_FAULTS * (MAX_POINTER + MAX_MESSAGE + 8)
};

#define NONE   UINT32_MAX /* index of nothing */
#define TWO_63 9223372036854775808.0

/* Types as bits. A value has exactly one of them: whole numbers within 64 bits
 * T_INTEGER (3.0 too), other numbers T_NUMBER, those no double holds T_HUGE. */
enum {
    T_NULL = 1,
    T_BOOLEAN = 2,
    T_INTEGER = 4,
    T_NUMBER = 8,
    T_STRING = 16,
    T_ARRAY = 32,
    T_OBJECT = 64,
    T_HUGE = 128,
    T_NUMERIC = T_INTEGER | T_NUMBER | T_HUGE,
    T_ANY = 255
};

static const struct {
    const char *name, *words;
    unsigned types;
} type_names[] = {
    {"string", "a string", T_STRING},
    {"number", "a number", T_NUMBER | T_INTEGER},
    {"integer", "an integer", T_INTEGER},
    {"boolean", "a boolean", T_BOOLEAN},
    {"array", "an array", T_ARRAY},
    {"object", "an object", T_OBJECT},
    {"null", "null", T_NULL},
};
enum { TYPE_NAMES = sizeof type_names / sizeof *type_names };

typedef enum op_code {
    OP_FALSE,
    OP_CONST,
    OP_ENUM,
    OP_MINIMUM,
    OP_MAXIMUM,
    OP_ABOVE,
    OP_BELOW,
    OP_MULTIPLE,
    OP_STRING,
    OP_ARRAY,
    OP_OBJECT,
    OP_ANY_OF
} op_code;

typedef struct range {
    uint32_t first, n;
} range;

typedef struct op {
    op_code code;
    uint32_t next;    /* of the same node */
    range list;       /* CONST, ENUM: values; OBJECT: props; ANY_OF: links */
    size_t min, max;  /* STRING, ARRAY, OBJECT: characters, items, members */
    uint32_t rest;    /* ARRAY: node of the items; OBJECT: of members not named */
    bool named;       /* OBJECT: has "properties" */
    ah_slice literal; /* numeric bounds: as written, and its value */
    ah_json_num num;
} op;

typedef struct node {
    unsigned types;       /* by "type" */
    unsigned accepts;     /* of these, what its anyOf leaves */
    uint32_t first, last; /* ops */
    ah_slice fallback;    /* "default", with its own defaults; .p NULL: none */
} node;

typedef struct prop {
    ah_slice name;
    uint32_t node; /* NONE: required only */
    bool required;
} prop;

typedef struct value {
    ah_slice text; /* canonical */
    ah_json_token t;
    ah_json_num num;
} value;

typedef struct table {
    void *at;
    size_t n, cap;
} table;

struct ah_schema {
    const ah_mem *mem;
    size_t refs;
    ah_text *text;
    ah_buf names; /* those with escapes, unescaped; room is made once, so it never moves */
    table nodes, ops, props, values, links;
    table made; /* ah_text *: defaults that had defaults filled in */
};

/* Where in a schema or a value: a chain on the C stack. */
typedef struct place {
    const struct place *up;
    ah_slice key; /* .p NULL: an index */
    bool escaped; /* key is as in the text */
    size_t index;
} place;

/* Tables */

static node *node_at(const ah_schema *s, size_t i)
{
    return (node *)s->nodes.at + i;
}

static op *op_at(const ah_schema *s, size_t i)
{
    return (op *)s->ops.at + i;
}

static prop *prop_at(const ah_schema *s, size_t i)
{
    return (prop *)s->props.at + i;
}

static value *value_at(const ah_schema *s, size_t i)
{
    return (value *)s->values.at + i;
}

static uint32_t link_at(const ah_schema *s, size_t i)
{
    return ((uint32_t *)s->links.at)[i];
}

/* n zeroed items at the end; the index of the first, or NONE when out of memory. */
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

static int compare_props(const void *a, const void *b)
{
    return ah_slice_cmp(((const prop *)a)->name, ((const prop *)b)->name);
}

static uint32_t find_prop(const ah_schema *s, range in, ah_slice name)
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

/* Numbers */

/* False when no double holds it. Whole numbers within 64 bits become integers. */
static bool number_of(ah_slice literal, ah_json_num *num)
{
    if (!ah_json_number(literal, num))
        return false;
    if (!num->is_int && num->d >= -TWO_63 && num->d < TWO_63 && (double)(int64_t)num->d == num->d) {
        num->is_int = true;
        num->i = (int64_t)num->d;
    }
    return true;
}

static int compare_int_double(int64_t i, double d)
{
    int64_t whole;

    if (d >= TWO_63)
        return -1;
    if (d < -TWO_63)
        return 1;
    whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    return (d < (double)whole) - (d > (double)whole);
}

static int compare_numbers(ah_json_num a, ah_json_num b)
{
    if (a.is_int && b.is_int)
        return (a.i > b.i) - (a.i < b.i);
    if (a.is_int)
        return compare_int_double(a.i, b.d);
    if (b.is_int)
        return -compare_int_double(b.i, a.d);
    return (a.d > b.d) - (a.d < b.d);
}

/* A double of 2^63 and more is m * 2^e: exact, and no longer than its exponent. */
static bool is_big_multiple(double d, uint64_t of)
{
    int e = 0;
    uint64_t r;

    for (d = d < 0 ? -d : d; d >= TWO_63; d /= 2)
        e++;
    for (r = (uint64_t)d % of; e > 0; e--)
        r = r * 2 % of;
    return r == 0;
}

static bool is_multiple(ah_json_num n, int64_t of)
{
    if (n.is_int)
        return n.i % of == 0;
    return (n.d >= TWO_63 || n.d < -TWO_63) && is_big_multiple(n.d, (uint64_t)of);
}

/* Words */

/* One part of a text of bounded size: what does not fit is cut at a character. */
static size_t begin_part(ah_buf *b, size_t max)
{
    b->max = b->len + max;
    return b->len;
}

static ah_slice end_part(ah_buf *b, size_t start)
{
    if (b->status == AH_BUDGET) {
        ah_buf_reset(b, start + ah_utf8_cut(b->data + start, b->len - start));
        b->max = b->len + 3;
        ah_buf_str(b, "...");
    }
    return (ah_slice){(b->data ? b->data : "") + start, b->len - start};
}

static void put_pointer_key(ah_buf *b, ah_slice key)
{
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~')
            ah_buf_str(b, "~0");
        else if (key.p[i] == '/')
            ah_buf_str(b, "~1");
        else
            ah_buf_char(b, key.p[i]);
    }
}

static void put_pointer(ah_buf *b, const place *at)
{
    ah_buf plain;

    if (!at)
        return;
    put_pointer(b, at->up);
    ah_buf_char(b, '/');
    if (!at->key.p) {
        ah_buf_int(b, (int64_t)at->index);
        return;
    }
    if (!at->escaped) {
        put_pointer_key(b, at->key);
        return;
    }
    ah_buf_init(&plain, b->mem, at->key.n);
    ah_json_unescape(at->key, &plain);
    put_pointer_key(b, ah_buf_slice(&plain));
    ah_buf_clear(&plain);
}

/* A value's text or a name, on one line, cut. */
static void put_found(ah_buf *b, ah_slice text)
{
    char line[MAX_FOUND + 4];
    size_t n = text.n > MAX_FOUND ? ah_utf8_cut(text.p, MAX_FOUND) : text.n;

    for (size_t i = 0; i < n; i++)
        line[i] = (unsigned char)text.p[i] < ' ' ? ' ' : text.p[i];
    if (n < text.n) {
        memcpy(line + n, "...\"", 4);
        n += text.p[0] == '"' ? 4 : 3;
    }
    ah_buf_add(b, line, n);
}

static void put_near(ah_buf *b, const ah_near *near)
{
    if (!near->best.p)
        return;
    ah_buf_str(b, "; did you mean '");
    put_found(b, near->best);
    ah_buf_str(b, "'?");
}

/* "a string, a number or null" */
static void put_types(ah_buf *b, unsigned types)
{
    unsigned left = types & T_NUMBER ? types & ~(unsigned)T_INTEGER : types;
    bool any = false;

    for (size_t i = 0; i < TYPE_NAMES; i++) {
        unsigned bit = type_names[i].types & T_NUMBER ? T_NUMBER : type_names[i].types;

        if (!(left & bit))
            continue;
        left &= ~bit;
        if (any)
            ah_buf_str(b, left & ~(unsigned)T_HUGE ? ", " : " or ");
        ah_buf_str(b, type_names[i].words);
        any = true;
    }
}

/* Compiling */

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
        put_found(b, name);
        ah_buf_str(b, "' at ");
    }
    start = begin_part(b, MAX_POINTER);
    put_pointer(b, at);
    end_part(b, start);
    b->max = MAX_MESSAGE - 8; /* ah_err holds a NUL more, and a cut is marked */
    ah_buf_str(b, at ? " " : "the root ");
    return b;
}

static ah_status refused(compiler *c)
{
    ah_slice words = end_part(&c->message, 0);

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
    put_found(b, found);
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
        if (ah_json_token_is(t, type_names[i].name))
            return type_names[i].types;
    return 0;
}

static ah_status unknown_type(compiler *c, const clause *q, ah_json_token t)
{
    ah_near near = {.to = t.raw};
    ah_buf *b = refusal(c, q->at, ah_slice_of("type"));

    for (size_t i = 0; i < TYPE_NAMES; i++)
        ah_near_offer(&near, ah_slice_of(type_names[i].name));
    ah_buf_str(b, "names no type: '");
    put_found(b, t.raw);
    ah_buf_char(b, '\'');
    put_near(b, &near);
    return refused(c);
}

static ah_status compile_type(compiler *c, const clause *q)
{
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token t = ah_json_next(&r);
    bool list = t.kind == AH_JSON_ARRAY;
    unsigned types = 0, one;

    if (list)
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
        number_of(v->t.raw, &v->num);
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
    if (!number_of(q->value, &num))
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
    if (!number_of(q->value, &num) || !num.is_int || num.i < 0)
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

static void sort_props(ah_schema *s, range in)
{
    for (size_t i = in.first + 1; i < (size_t)in.first + in.n; i++) {
        if (compare_props(prop_at(s, i - 1), prop_at(s, i)) > 0) {
            qsort(prop_at(s, in.first), in.n, sizeof(prop), compare_props);
            return;
        }
    }
}

/* Names that are required without being declared may come twice. */
static range drop_doubles(ah_schema *s, range in)
{
    size_t n = in.n ? 1 : 0;

    for (size_t i = 1; i < in.n; i++)
        if (compare_props(prop_at(s, in.first + n - 1), prop_at(s, in.first + i)) != 0)
            *prop_at(s, in.first + n++) = *prop_at(s, in.first + i);
    return (range){in.first, (uint32_t)n};
}

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
    sort_props(c->s, *props);
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
        if ((i = find_prop(c->s, declared, name)) == NONE) {
            i = props->first + props->n++;
            *prop_at(c->s, i) = (prop){.name = name, .node = NONE};
        }
        prop_at(c->s, i)->required = true;
    }
    if (t.kind != AH_JSON_ARRAY_END)
        return refuse_at(c, q->at, (ah_slice)AH_LIT("required"), required,
                         "must hold names of properties");
    sort_props(c->s, *props);
    *props = drop_doubles(c->s, *props);
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
    put_near(b, &near);
    return refused(c);
}

static unsigned type_of_kind(ah_json_kind kind)
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

    if (k->shape & type_of_kind(kind))
        return k->compile ? k->compile(c, q) : AH_OK;
    b = refusal(c, q->at, ah_slice_of(k->name));
    ah_buf_str(b, "must be ");
    put_types(b, k->shape);
    ah_buf_str(b, ", found ");
    put_found(b, q->value);
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

static unsigned accepted_by_any(const ah_schema *s, range branches)
{
    unsigned types = 0;

    for (size_t i = 0; i < branches.n; i++)
        types |= node_at(s, link_at(s, branches.first + i))->accepts;
    return types;
}

static ah_status run(const ah_schema *s, uint32_t i, ah_slice text, ah_extra extra, ah_faults *faults,
                     ah_buf *with_defaults);

/* Keeps the default as it will be inserted. Where nothing was filled in, that is the schema's own text. */
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
    st = run(s, i, text, AH_EXTRA_SCHEMA, &faults, &filled);
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
        node_at(s, i)->accepts &= accepted_by_any(s, op_at(s, any)->list);
    return fallback.p ? set_default(c, i, fallback, at) : AH_OK;
}

static ah_status compile_schema(compiler *c, ah_slice text, const place *at, uint32_t *out)
{
    static const ah_slice nameless = {NULL, 0};
    ah_json_kind kind = ah_json_kind_of(text);
    uint32_t i = extend(c->s->mem, &c->s->nodes, 1, sizeof(node));
    ah_status st = AH_OK;

    if (i == NONE)
        return ah_err_nomem(c->err);
    if (c->depth == MAX_DEPTH)
        return refuse_at(c, at, nameless, text, "is more than 64 schemas deep");
    *node_at(c->s, i) = (node){.types = T_ANY, .accepts = T_ANY, .first = NONE, .last = NONE};
    c->depth++;
    if (kind == AH_JSON_OBJECT)
        st = compile_object(c, i, text, at);
    else if (kind == AH_JSON_FALSE)
        st = op_of(c, i, OP_FALSE) == NONE ? ah_err_nomem(c->err) : AH_OK;
    else if (kind != AH_JSON_TRUE)
        st = refuse_at(c, at, nameless, text, "must be a schema: an object or a boolean");
    c->depth--;
    if (st == AH_OK)
        *out = i;
    return st;
}

/* Checking */

typedef struct fill { /* a default to insert before value[offset] */
    size_t offset;
    ah_slice name, text;
    bool first; /* nothing stands before it in its object */
} fill;

typedef struct checker {
    const ah_schema *s;
    ah_slice value;
    ah_extra extra;
    ah_faults *faults;
    size_t distance; /* faults so far, the silent ones too */
    int silent;      /* above 0: faults are counted, not told */
    bool filling;
    table fills;             /* fill, by offset, then by name */
    size_t filled, fill_max; /* bytes */
    ah_buf scratch;          /* an unescaped key, or a canonical value: never both in use */
    ah_status status;
} checker;

/* A value under check. */
typedef struct subject {
    ah_json_token t;
    ah_json_reader inside; /* just behind t */
    ah_json_reader end;    /* behind the value, once `ended` */
    bool ended;
    unsigned type;
    ah_json_num num;
    const place *at;
} subject;

static fill *fill_at(const checker *c, size_t i)
{
    return (fill *)c->fills.at + i;
}

static ah_slice text_of(const subject *v)
{
    ah_json_reader r = v->inside;

    return ah_json_skip(&r, v->t);
}

/* Begins a fault; the caller adds its words and calls end_fault. NULL: not wanted
 * (silent, too many) or out of memory. */
static ah_buf *begin_fault(checker *c, const place *at, const char *rule)
{
    ah_faults *f = c->faults;
    ah_fault *fault = f->item + f->n;
    size_t start;

    c->distance++;
    if (c->silent)
        return NULL;
    f->total++;
    if (f->n == AH_MAX_FAULTS)
        return NULL;
    f->texts.max = FAULT_ROOM;
    if (f->n == 0 && !ah_buf_room(&f->texts, FAULT_ROOM)) { /* all at once: the slices must not move */
        c->status = AH_NOMEM;
        return NULL;
    }
    start = begin_part(&f->texts, MAX_POINTER);
    put_pointer(&f->texts, at);
    fault->pointer = end_part(&f->texts, start);
    fault->rule = ah_slice_of(rule);
    fault->message.n = begin_part(&f->texts, MAX_MESSAGE); /* its start, until end_fault */
    return &f->texts;
}

static void end_fault(checker *c)
{
    ah_faults *f = c->faults;
    ah_fault *fault = f->item + f->n++;

    fault->message = end_part(&f->texts, fault->message.n);
}

static void end_found(checker *c, ah_buf *b, const subject *v)
{
    ah_buf_str(b, ", found ");
    put_found(b, text_of(v));
    end_fault(c);
}

/* A fault whose words are only text and the value. */
static void fault_found(checker *c, const subject *v, const char *rule, const char *words)
{
    ah_buf *b = begin_fault(c, v->at, rule);

    if (!b)
        return;
    ah_buf_str(b, words);
    end_found(c, b, v);
}

static void fault_type(checker *c, const subject *v, unsigned types, const char *rule)
{
    bool whole = types & T_INTEGER && !(types & T_NUMBER);
    ah_buf *b = begin_fault(c, v->at, rule);

    if (!b)
        return;
    ah_buf_str(b, "must be ");
    put_types(b, types);
    if (whole && v->type & (T_NUMBER | T_HUGE) && (v->num.d >= TWO_63 || v->num.d < -TWO_63))
        ah_buf_str(b, " of at most 64 bits");
    else if (types & T_NUMBER && v->type == T_HUGE)
        ah_buf_str(b, " within the range of a double");
    end_found(c, b, v);
}

static void check_node(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r, const place *at);

static void check_false(checker *c, const op *o, subject *v)
{
    (void)o;
    fault_found(c, v, "false", "is not allowed");
}

/* Both texts are canonical, so only numbers may be written in two ways. */
static bool same_canonical(ah_slice a, ah_slice b)
{
    ah_json_reader ra = ah_json_read(a), rb = ah_json_read(b);

    for (;;) {
        ah_json_token x = ah_json_next(&ra), y = ah_json_next(&rb);
        ah_json_num m, n;

        if (x.kind != y.kind)
            return false;
        if (x.kind == AH_JSON_END)
            return true;
        if (ah_slice_eq(x.raw, y.raw))
            continue;
        if (x.kind != AH_JSON_NUMBER || !number_of(x.raw, &m) || !number_of(y.raw, &n) ||
            compare_numbers(m, n) != 0)
            return false;
    }
}

/* The value's canonical text; made once, kept in *canon. */
static ah_slice canonical(checker *c, const subject *v, ah_slice *canon)
{
    ah_slice text;
    ah_status st;

    if (canon->p)
        return *canon;
    text = text_of(v);
    ah_buf_reset(&c->scratch, 0);
    if ((st = ah_json_canon(c->s->mem, text, &c->scratch)) != AH_OK || !ah_buf_ok(&c->scratch))
        c->status = st != AH_OK ? st : c->scratch.status;
    return *canon = ah_buf_slice(&c->scratch);
}

static bool equals(checker *c, const subject *v, const value *to, ah_slice *canon)
{
    if (v->t.kind != to->t.kind)
        return false;
    if (v->t.kind == AH_JSON_NUMBER)
        return v->type == T_HUGE ? ah_slice_eq(v->t.raw, to->t.raw)
                                 : compare_numbers(v->num, to->num) == 0;
    if (v->t.kind == AH_JSON_STRING && !v->t.escaped && !to->t.escaped)
        return ah_slice_eq(v->t.raw, to->t.raw);
    if (v->t.kind == AH_JSON_STRING || v->t.kind == AH_JSON_ARRAY || v->t.kind == AH_JSON_OBJECT)
        return same_canonical(canonical(c, v, canon), to->text);
    return true; /* null, false, true */
}

static void put_value_list(const ah_schema *s, ah_buf *b, range list, size_t *listed)
{
    for (size_t i = 0; i < list.n; i++, ++*listed) {
        if (*listed >= MAX_LISTED)
            continue;
        if (*listed)
            ah_buf_str(b, ", ");
        put_found(b, value_at(s, list.first + i)->text);
    }
}

static void end_list(ah_buf *b, size_t listed)
{
    if (listed > MAX_LISTED)
        ah_buf_fmt(b, " and %zu more", listed - MAX_LISTED);
}

static void check_values(checker *c, const op *o, subject *v)
{
    bool one = o->code == OP_CONST;
    ah_slice canon = {NULL, 0};
    size_t listed = 0;
    ah_buf *b;

    for (size_t i = 0; i < o->list.n; i++)
        if (equals(c, v, value_at(c->s, o->list.first + i), &canon))
            return;
    if (o->list.n == 1)
        c->distance += 2; /* a tag tells the branches of an anyOf apart */
    if (!(b = begin_fault(c, v->at, one ? "const" : "enum")))
        return;
    ah_buf_str(b, one ? "must be " : "must be one of ");
    put_value_list(c->s, b, o->list, &listed);
    end_list(b, listed);
    end_found(c, b, v);
}

static void check_bound(checker *c, const op *o, subject *v)
{
    static const struct {
        const char *rule, *words;
        int from, to; /* what comparing value and bound may give */
    } says[] = {
        [OP_MINIMUM] = {"minimum", "at least", 0, 1},
        [OP_MAXIMUM] = {"maximum", "at most", -1, 0},
        [OP_ABOVE] = {"exclusiveMinimum", "more than", 1, 1},
        [OP_BELOW] = {"exclusiveMaximum", "less than", -1, -1},
    };
    int order = compare_numbers(v->num, o->num);
    ah_buf *b;

    if (order >= says[o->code].from && order <= says[o->code].to)
        return;
    if (!(b = begin_fault(c, v->at, says[o->code].rule)))
        return;
    ah_buf_fmt(b, "must be %s ", says[o->code].words);
    put_found(b, o->literal);
    end_found(c, b, v);
}

static void check_multiple(checker *c, const op *o, subject *v)
{
    ah_buf *b;

    if (v->type != T_HUGE && is_multiple(v->num, o->num.i))
        return;
    if (!(b = begin_fault(c, v->at, "multipleOf")))
        return;
    ah_buf_str(b, "must be a multiple of ");
    put_found(b, o->literal);
    end_found(c, b, v);
}

static void check_limits(checker *c, const op *o, const subject *v, size_t n)
{
    static const struct {
        const char *least, *most, *verb, *one, *many;
    } says[] = {
        [OP_STRING] = {"minLength", "maxLength", "be", "character long", "characters long"},
        [OP_ARRAY] = {"minItems", "maxItems", "have", "item", "items"},
        [OP_OBJECT] = {"minProperties", "maxProperties", "have", "property", "properties"},
    };
    bool few = n < o->min;
    size_t limit = few ? o->min : o->max;
    ah_buf *b;

    if (n >= o->min && n <= o->max)
        return;
    if (!(b = begin_fault(c, v->at, few ? says[o->code].least : says[o->code].most)))
        return;
    ah_buf_fmt(b, "must %s at %s %zu %s, found %zu", says[o->code].verb, few ? "least" : "most", limit,
               limit == 1 ? says[o->code].one : says[o->code].many, n);
    end_fault(c);
}

/* Length of an escape in checked text, a pair of surrogates as one. */
static size_t escape_length(const char *p)
{
    if (p[1] != 'u')
        return 2;
    return (p[2] == 'd' || p[2] == 'D') && strchr("89abAB", p[3]) ? 12 : 6;
}

static size_t count_characters(ah_json_token t)
{
    size_t n = 0;

    if (!t.escaped) {
        for (size_t i = 0; i < t.raw.n; i++)
            n += ((unsigned char)t.raw.p[i] & 0xc0) != 0x80;
        return n;
    }
    for (size_t i = 0; i < t.raw.n;) {
        if (t.raw.p[i] == '\\') {
            i += escape_length(t.raw.p + i);
            n++;
        } else {
            n += ((unsigned char)t.raw.p[i++] & 0xc0) != 0x80;
        }
    }
    return n;
}

static void check_string(checker *c, const op *o, subject *v)
{
    size_t bytes = v->t.raw.n; /* a character takes 1 to 12 of them */

    if (bytes > o->max || bytes / 12 < o->min)
        check_limits(c, o, v, count_characters(v->t));
}

static void check_array(checker *c, const op *o, subject *v)
{
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t n = 0;

    for (; (t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END; n++) {
        place at = {.up = v->at, .index = n};

        if (o->rest == NONE)
            ah_json_skip(&r, t);
        else
            check_node(c, o->rest, t, &r, &at);
    }
    v->end = r;
    v->ended = true;
    check_limits(c, o, v, n);
}

static bool is_false(const ah_schema *s, uint32_t i)
{
    return i != NONE && node_at(s, i)->first != NONE && op_at(s, node_at(s, i)->first)->code == OP_FALSE;
}

/* "unknown property; did you mean 'name'? known: limit, name" */
static void fault_unknown(checker *c, const op *o, ah_slice name, const place *at)
{
    ah_near near = {.to = name};
    ah_buf *b = begin_fault(c, at, "additionalProperties");
    size_t listed = 0;

    if (!b)
        return;
    for (size_t i = o->list.first; i < (size_t)o->list.first + o->list.n; i++)
        if (prop_at(c->s, i)->node != NONE)
            ah_near_offer(&near, prop_at(c->s, i)->name);
    ah_buf_str(b, "unknown property");
    put_near(b, &near);
    for (size_t i = o->list.first; i < (size_t)o->list.first + o->list.n; i++) {
        if (prop_at(c->s, i)->node == NONE || ++listed > MAX_LISTED)
            continue;
        ah_buf_str(b, listed > 1 ? ", " : near.best.p ? " known: " : "; known: ");
        put_found(b, prop_at(c->s, i)->name);
    }
    end_list(b, listed);
    if (!listed)
        ah_buf_str(b, "; none are known here");
    end_fault(c);
}

static ah_slice name_of_key(checker *c, ah_json_token key)
{
    if (!key.escaped)
        return key.raw;
    ah_buf_reset(&c->scratch, 0);
    ah_json_unescape(key.raw, &c->scratch);
    if (!ah_buf_ok(&c->scratch))
        c->status = c->scratch.status;
    return ah_buf_slice(&c->scratch);
}

/* Checks the member's value and passes over it; the index of its prop, or NONE. */
static uint32_t check_member(checker *c, const op *o, ah_json_token key, ah_json_reader *r,
                             const place *up)
{
    place at = {.up = up, .key = key.raw, .escaped = key.escaped};
    ah_slice name = name_of_key(c, key);
    uint32_t i = find_prop(c->s, o->list, name);
    uint32_t declared = i == NONE ? NONE : prop_at(c->s, i)->node;
    bool forbid = o->rest == NONE ? o->named && c->extra == AH_EXTRA_FORBID : is_false(c->s, o->rest);
    ah_json_token t = ah_json_next(r);

    if (declared != NONE) {
        check_node(c, declared, t, r, &at);
        return i;
    }
    if (forbid)
        fault_unknown(c, o, name, &at);
    if (forbid || o->rest == NONE)
        ah_json_skip(r, t);
    else
        check_node(c, o->rest, t, r, &at);
    return i;
}

static void add_fill(checker *c, fill f)
{
    uint32_t i;

    c->filled += f.name.n + f.text.n + 4;
    if (c->filled > c->fill_max) {
        c->status = AH_BUDGET;
        return;
    }
    if ((i = extend(c->s->mem, &c->fills, 1, sizeof(fill))) == NONE)
        c->status = AH_NOMEM;
    else
        *fill_at(c, i) = f;
}

/* What the absent members bring: a fault, or a default before the closing brace. */
static void check_absent(checker *c, const op *o, const uint64_t *seen, const subject *v,
                         const char *brace, size_t n)
{
    for (size_t i = 0; i < o->list.n; i++) {
        const prop *p = prop_at(c->s, o->list.first + i);
        ah_slice text = p->node == NONE ? (ah_slice){NULL, 0} : node_at(c->s, p->node)->fallback;
        place at = {.up = v->at, .key = p->name};
        ah_buf *b;

        if (seen[i / 64] >> i % 64 & 1)
            continue;
        if (p->required && (b = begin_fault(c, &at, "required"))) {
            ah_buf_str(b, "is required");
            end_fault(c);
        } else if (!p->required && text.p && c->filling && c->status == AH_OK) {
            add_fill(c, (fill){(size_t)(brace - c->value.p), p->name, text, n == 0});
        }
    }
}

static void check_object(checker *c, const op *o, subject *v)
{
    uint64_t few[SEEN_INLINE / 64] = {0}, *seen = few;
    ah_json_reader r = v->inside;
    ah_json_token t;
    size_t n = 0;

    if (o->list.n > SEEN_INLINE && !(seen = ah_alloc(c->s->mem, (o->list.n / 64 + 1) * sizeof *seen))) {
        c->status = AH_NOMEM;
        return;
    }
    for (; (t = ah_json_next(&r)).kind == AH_JSON_KEY; n++) {
        uint32_t i = check_member(c, o, t, &r, v->at);

        if (i != NONE)
            seen[(i - o->list.first) / 64] |= (uint64_t)1 << (i - o->list.first) % 64;
    }
    v->end = r;
    v->ended = true;
    check_absent(c, o, seen, v, t.raw.p, n);
    check_limits(c, o, v, n);
    if (seen != few)
        ah_free(c->s->mem, seen);
}

/* Do all branches only list values? Then they are one list, for the words. */
static bool only_values(const ah_schema *s, range branches)
{
    for (size_t i = 0; i < branches.n; i++) {
        const node *n = node_at(s, link_at(s, branches.first + i));

        if (n->first == NONE || n->first != n->last || op_at(s, n->first)->code > OP_ENUM ||
            op_at(s, n->first)->code == OP_FALSE)
            return false;
    }
    return true;
}

static void fault_values(checker *c, const op *o, const subject *v)
{
    ah_buf *b = begin_fault(c, v->at, "anyOf");
    size_t listed = 0;

    if (!b)
        return;
    ah_buf_str(b, "must be one of ");
    for (size_t i = 0; i < o->list.n; i++) {
        const node *n = node_at(c->s, link_at(c->s, o->list.first + i));
        put_value_list(c->s, b, op_at(c->s, n->first)->list, &listed);
    }
    end_list(b, listed);
    end_found(c, b, v);
}

/* Faults of the value under a node, counted without telling. */
static size_t distance(checker *c, uint32_t i, subject *v)
{
    size_t before = c->distance, d;

    v->end = v->inside;
    c->silent++;
    check_node(c, i, v->t, &v->end, v->at);
    c->silent--;
    v->ended = true;
    d = c->distance - before;
    c->distance = before;
    return d;
}

/* Tells the faults of the branch that came nearest. A branch of another type (null
 * among them) is far away from any; where all are, the types are what to tell. */
static void check_any_of(checker *c, const op *o, subject *v)
{
    size_t best = SIZE_MAX, mark = c->fills.n, bytes = c->filled;
    uint32_t nearest = NONE;
    ah_json_reader r = v->inside;

    for (size_t i = 0; i < o->list.n; i++) {
        uint32_t branch = link_at(c->s, o->list.first + i);
        size_t d;

        if (!(node_at(c->s, branch)->accepts & v->type))
            continue;
        if ((d = distance(c, branch, v)) == 0)
            return;
        c->fills.n = mark;
        c->filled = bytes;
        if (d < best) {
            best = d;
            nearest = branch;
        }
    }
    if (only_values(c->s, o->list))
        fault_values(c, o, v);
    else if (nearest == NONE)
        fault_type(c, v, accepted_by_any(c->s, o->list), "anyOf");
    else if (c->silent)
        c->distance += best;
    else
        check_node(c, nearest, v->t, &r, v->at);
}

static const struct {
    unsigned types; /* the rule says nothing of values of other types */
    void (*check)(checker *c, const op *o, subject *v);
} checks[] = {
    [OP_FALSE] = {T_ANY, check_false},       [OP_CONST] = {T_ANY, check_values},
    [OP_ENUM] = {T_ANY, check_values},       [OP_MINIMUM] = {T_NUMERIC, check_bound},
    [OP_MAXIMUM] = {T_NUMERIC, check_bound}, [OP_ABOVE] = {T_NUMERIC, check_bound},
    [OP_BELOW] = {T_NUMERIC, check_bound},   [OP_MULTIPLE] = {T_NUMERIC, check_multiple},
    [OP_STRING] = {T_STRING, check_string},  [OP_ARRAY] = {T_ARRAY, check_array},
    [OP_OBJECT] = {T_OBJECT, check_object},  [OP_ANY_OF] = {T_ANY, check_any_of},
};

static int compare_fills(const fill *a, const fill *b)
{
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return ah_slice_cmp(a->name, b->name);
}

/* Fills [from, mid) and [mid, end) are sorted each: makes them one, of equal ones
 * the earlier. Two only where several rules of one schema fill the same value. */
static void merge_fills(checker *c, size_t from, size_t mid)
{
    size_t n = c->fills.n - mid, i = from, j = 0, to;
    size_t kept = mid - from;
    fill *late, *early;

    if (compare_fills(fill_at(c, mid - 1), fill_at(c, mid)) < 0)
        return;
    if (!(late = ah_alloc(c->s->mem, (n + kept) * sizeof *late))) {
        c->status = AH_NOMEM;
        return;
    }
    memcpy(late, fill_at(c, mid), n * sizeof *late);
    early = late + n;
    memcpy(early, fill_at(c, from), kept * sizeof *early);
    for (to = from, i = 0; i < kept || j < n; to++) {
        int order = i == kept ? 1 : j == n ? -1 : compare_fills(early + i, late + j);

        *fill_at(c, to) = order <= 0 ? early[i++] : late[j++];
        if (order == 0)
            j++;
    }
    c->fills.n = to;
    ah_free(c->s->mem, late);
}

static unsigned type_of(subject *v)
{
    if (v->t.kind != AH_JSON_NUMBER)
        return type_of_kind(v->t.kind);
    if (!number_of(v->t.raw, &v->num))
        return T_HUGE;
    return v->num.is_int ? T_INTEGER : T_NUMBER;
}

static void check_ops(checker *c, const node *n, subject *v)
{
    size_t from = c->fills.n;
    const op *o;

    for (uint32_t i = n->first; i != NONE && c->status == AH_OK; i = o->next) {
        size_t mid = c->fills.n;

        o = op_at(c->s, i);
        if (checks[o->code].types & v->type)
            checks[o->code].check(c, o, v);
        if (mid > from && c->fills.n > mid)
            merge_fills(c, from, mid);
    }
}

/* Checks the value that begins with t, just read from r, and passes over it. */
static void check_node(checker *c, uint32_t i, ah_json_token t, ah_json_reader *r, const place *at)
{
    const node *n = node_at(c->s, i);
    subject v = {.t = t, .inside = *r, .at = at};

    if (n->types != T_ANY || n->first != NONE) {
        v.type = type_of(&v);
        if (n->types & v.type)
            check_ops(c, n, &v);
        else
            fault_type(c, &v, n->types, "type");
    }
    if (v.ended)
        *r = v.end;
    else
        ah_json_skip(r, t);
}

static void put_filled(const checker *c, ah_buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < c->fills.n; i++) {
        const fill *f = fill_at(c, i);
        bool more = i > 0 && fill_at(c, i - 1)->offset == f->offset;

        ah_buf_add(out, c->value.p + from, f->offset - from);
        from = f->offset;
        if (more || !f->first)
            ah_buf_char(out, ',');
        ah_json_put_string(out, f->name);
        ah_buf_char(out, ':');
        ah_buf_put(out, f->text);
    }
    ah_buf_add(out, c->value.p + from, c->value.n - from);
}

static ah_status run(const ah_schema *s, uint32_t i, ah_slice text, ah_extra extra, ah_faults *faults,
                     ah_buf *with_defaults)
{
    checker c = {
        .s = s, .value = text, .extra = extra, .faults = faults, .filling = with_defaults != NULL};
    ah_json_reader r = ah_json_read(text);

    faults->n = faults->total = 0;
    ah_buf_reset(&faults->texts, 0);
    if (with_defaults)
        c.fill_max = with_defaults->max - with_defaults->len;
    /* canonical text is longer than its source only in numbers (1e20) */
    ah_buf_init(&c.scratch, s->mem, text.n > SIZE_MAX / 64 ? SIZE_MAX : text.n * 32 + 64);
    check_node(&c, i, ah_json_next(&r), &r, NULL);
    if (c.status == AH_OK && with_defaults && !faults->n) {
        put_filled(&c, with_defaults);
        c.status = with_defaults->status;
    }
    ah_free(s->mem, c.fills.at);
    ah_buf_clear(&c.scratch);
    return c.status;
}

ah_status ah_schema_check(const ah_schema *s, ah_slice text, ah_extra extra, ah_faults *faults,
                          ah_buf *with_defaults)
{
    return run(s, 0, text, extra, faults, with_defaults);
}

void ah_faults_init(ah_faults *f, const ah_mem *mem)
{
    *f = (ah_faults){.n = 0};
    ah_buf_init(&f->texts, mem, FAULT_ROOM);
}

void ah_faults_clear(ah_faults *f)
{
    ah_buf_clear(&f->texts);
    f->n = f->total = 0;
}

void ah_faults_print(const ah_faults *f, ah_buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        if (i)
            ah_buf_str(out, "; ");
        ah_buf_put(out, f->item[i].pointer);
        if (f->item[i].pointer.n)
            ah_buf_str(out, ": ");
        ah_buf_put(out, f->item[i].message);
    }
    if (f->total > f->n)
        ah_buf_fmt(out, "; ... and %zu more", f->total - f->n);
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
