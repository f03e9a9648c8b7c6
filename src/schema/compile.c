/* The compiler: one function per keyword, called in the order of the canonical text, which sorts
 * keys. Nodes are in the order of the text as well. References are noted, and linked to their nodes
 * later (link.c). Keywords of members, patterns and formats are in members.c.
 *
 * A new keyword is a line in `keywords` with its compiling function; if it is a rule of its own,
 * also an op code with a line in `checks` (check.c). */
#include "schema/clause.h"

ah_status schema_refuse_clause(compiler *c, const clause *q, const char *want)
{
    return schema_refuse(c, q->schema.p, q->keyword->name, q->value, want);
}

uint32_t schema_new_op(compiler *c, uint32_t i, op_code code)
{
    ah_schema *s = c->s;
    uint32_t o = schema_extend(s->mem, &s->ops, 1, sizeof(op));
    node *n = node_at(s, i);

    if (o == NONE)
        return NONE;
    *op_at(s, o) =
        (op){.code = code, .next = NONE, .max = SIZE_MAX, .rest = NONE, .yes = NONE, .no = NONE};
    if (n->first == NONE)
        n->first = o;
    else
        op_at(s, n->last)->next = o;
    n->last = o;
    return o;
}

uint32_t schema_op_of(compiler *c, uint32_t i, op_code code)
{
    uint32_t o = schema_find_op(c->s, i, code);

    return o == NONE ? schema_new_op(c, i, code) : o;
}

size_t schema_count_children(ah_slice container)
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

bool schema_name_of(compiler *c, ah_json_token t, ah_slice *out)
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

static ah_status unknown_type(compiler *c, const clause *q, ah_json_token t)
{
    ah_near near = {.to = t.raw};
    ah_buf *b = schema_refusal(c, q->schema.p, ah_slice_of("type"));

    for (size_t i = 0; schema_type_name(i); i++)
        ah_near_offer(&near, ah_slice_of(schema_type_name(i)));
    ah_buf_str(b, "names no type: '");
    schema_put_found(b, t.raw);
    ah_buf_char(b, '\'');
    schema_put_near(b, &near);
    return schema_refused(c);
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
            return schema_refuse_clause(c, q, "must hold names of types");
        if (!(one = schema_type_named(t)))
            return unknown_type(c, q, t);
        types |= one;
    }
    if (!types)
        return schema_refuse_clause(c, q, "must name a type");
    node_at(c->s, q->node)->types = types;
    return AH_OK;
}

static bool add_value(compiler *c, ah_slice text)
{
    ah_schema *s = c->s;
    uint32_t i = schema_extend(s->mem, &s->values, 1, sizeof(value));
    ah_json_reader r = ah_json_read(text);
    value *v;

    if (i == NONE)
        return false;
    v = value_at(s, i);
    v->text = text;
    v->t = ah_json_next(&r);
    if (v->t.kind == AH_JSON_NUMBER)
        schema_number(v->t.raw, &v->num);
    return true;
}

static ah_status compile_const(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, OP_CONST);

    if (o == NONE)
        return ah_err_nomem(c->err);
    op_at(c->s, o)->list = (range){(uint32_t)c->s->values.n, 1};
    return add_value(c, q->value) ? AH_OK : ah_err_nomem(c->err);
}

static ah_status compile_enum(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, OP_ENUM), first = (uint32_t)c->s->values.n;
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token t = ah_json_next(&r);

    if (o == NONE)
        return ah_err_nomem(c->err);
    while ((t = ah_json_next(&r)).kind != AH_JSON_ARRAY_END)
        if (!add_value(c, ah_json_skip(&r, t)))
            return ah_err_nomem(c->err);
    op_at(c->s, o)->list = (range){first, (uint32_t)c->s->values.n - first};
    return schema_sort_values(c->s, op_at(c->s, o)->list) ? AH_OK : ah_err_nomem(c->err);
}

static ah_status compile_bound(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, q->keyword->code);
    number num;

    if (o == NONE)
        return ah_err_nomem(c->err);
    schema_number(q->value, &num);
    if (q->keyword->code == OP_MULTIPLE && !schema_is_divisor(q->value))
        return schema_refuse_clause(c, q, "must be a number above 0 with at most 18 digits");
    op_at(c->s, o)->num = num;
    return AH_OK;
}

static ah_status compile_limit(compiler *c, const clause *q, bool most)
{
    uint32_t o = schema_op_of(c, q->node, q->keyword->code);
    number num;

    if (o == NONE)
        return ah_err_nomem(c->err);
    if (!schema_number(q->value, &num) || !num.n.is_int || num.n.i < 0)
        return schema_refuse_clause(c, q, "must be a whole number, 0 or more");
    *(most ? &op_at(c->s, o)->max : &op_at(c->s, o)->min) = (size_t)num.n.i;
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

static ah_status set_rest(compiler *c, const clause *q, op_code code)
{
    uint32_t o = schema_op_of(c, q->node, code), rest = NONE;
    ah_status st;

    if (o == NONE)
        return ah_err_nomem(c->err);
    if ((st = schema_compile_value(c, q, &rest)) == AH_OK)
        op_at(c->s, o)->rest = rest;
    return st;
}

/* For rules with one schema: additionalProperties, not, propertyNames, ... */
static ah_status compile_rest(compiler *c, const clause *q)
{
    if (q->keyword->code == OP_OTHER_ITEMS || q->keyword->code == OP_OTHER_PROPERTIES)
        node_at(c->s, q->node)->others = true;
    return set_rest(c, q, q->keyword->code);
}

static ah_status compile_contains(compiler *c, const clause *q)
{
    ah_status st = set_rest(c, q, OP_CONTAINS);
    op *o = st == AH_OK ? op_at(c->s, schema_find_op(c->s, q->node, OP_CONTAINS)) : NULL;

    if (!o)
        return st;
    o->evaluates = c->dialect.draft == DRAFT_2020;
    if (!schema_beside(c, q, "minContains").p)
        o->min = 1;
    return st;
}

/* Compiles a list of schemas to links of the op. */
static ah_status compile_list(compiler *c, const clause *q, op_code code)
{
    uint32_t o = schema_op_of(c, q->node, code);
    size_t n = schema_count_children(q->value);
    uint32_t first = schema_extend(c->s->mem, &c->s->links, n, sizeof(uint32_t));
    ah_json_reader r = ah_json_read(q->value);

    if (o == NONE || first == NONE)
        return ah_err_nomem(c->err);
    if (n == 0)
        return schema_refuse_clause(c, q, "must list at least one schema");
    ah_json_next(&r);
    for (size_t i = 0; i < n; i++) {
        uint32_t branch;
        ah_status st =
            schema_compile_item(c, q, (uint32_t)i, ah_json_skip(&r, ah_json_next(&r)), &branch);

        if (st != AH_OK)
            return st;
        ((uint32_t *)c->s->links.at)[first + i] = branch;
    }
    op_at(c->s, o)->list = (range){first, (uint32_t)n};
    return AH_OK;
}

static ah_status compile_branches(compiler *c, const clause *q)
{
    return compile_list(c, q, q->keyword->code);
}

/* Before draft 2020-12, which has prefixItems, this may be a list of schemas. */
static ah_status compile_items(compiler *c, const clause *q)
{
    if (ah_json_kind_of(q->value) != AH_JSON_ARRAY)
        return set_rest(c, q, OP_ARRAY);
    if (c->dialect.draft == DRAFT_2020)
        return schema_refuse_clause(c, q, "must be a boolean or an object (a list is prefixItems)");
    return schema_count_children(q->value) == 0 ? AH_OK : compile_list(c, q, OP_ARRAY);
}

static ah_status compile_unused(compiler *c, const clause *q)
{
    uint32_t unused;

    return schema_compile_value(c, q, &unused);
}

static ah_status compile_additional_items(compiler *c, const clause *q)
{
    if (ah_json_kind_of(schema_beside(c, q, "items")) == AH_JSON_ARRAY)
        return set_rest(c, q, OP_ARRAY);
    return compile_unused(c, q);
}

static ah_status compile_unique(compiler *c, const clause *q)
{
    if (ah_json_kind_of(q->value) == AH_JSON_TRUE && schema_op_of(c, q->node, OP_UNIQUE) == NONE)
        return ah_err_nomem(c->err);
    return AH_OK;
}

static ah_status compile_condition(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, OP_IF), n = NONE;
    ah_status st = schema_compile_value(c, q, &n);

    if (o == NONE)
        return ah_err_nomem(c->err);
    if (st != AH_OK)
        return st;
    *(q->keyword->name[0] == 'i'   ? &op_at(c->s, o)->rest
      : q->keyword->name[0] == 't' ? &op_at(c->s, o)->yes
                                   : &op_at(c->s, o)->no) = n;
    return AH_OK;
}

bool schema_clause_text(compiler *c, const clause *q, ah_slice *text)
{
    ah_json_reader r = ah_json_read(q->value);

    return schema_name_of(c, ah_json_next(&r), text);
}

/* Addresses */

static ah_status compile_defs(compiler *c, const clause *q)
{
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token key = ah_json_next(&r);
    ah_status st = AH_OK;
    uint32_t unused;

    while (st == AH_OK && (key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice name;

        if (!schema_name_of(c, key, &name))
            return ah_err_nomem(c->err);
        st = schema_compile_member(c, q, name, ah_json_skip(&r, ah_json_next(&r)), &unused);
    }
    return st;
}

static bool is_anchor(ah_slice name, unsigned draft)
{
    bool ok = name.n && ((name.p[0] == '_' && draft == DRAFT_2020) ||
                         ((name.p[0] | 32) >= 'a' && (name.p[0] | 32) <= 'z'));

    for (size_t i = 0; i < name.n && ok; i++)
        ok = (name.p[i] && strchr("-._0123456789", name.p[i])) ||
             (name.p[i] == ':' && draft == DRAFT_2019) ||
             ((name.p[i] | 32) >= 'a' && (name.p[i] | 32) <= 'z');
    return ok;
}

static ah_status compile_anchor(compiler *c, const clause *q)
{
    ah_slice name;

    if (!schema_clause_text(c, q, &name))
        return ah_err_nomem(c->err);
    if (!is_anchor(name, c->dialect.draft))
        return schema_refuse_clause(c, q, "must be a name of letters, digits, '-', '_' and '.'");
    return schema_add_anchor(c, q->node, q->keyword->name, name, q->keyword->name[1] == 'd');
}

/* A dynamic anchor without a name; a schema with an address has at most one. */
static ah_status compile_recursive_anchor(compiler *c, const clause *q)
{
    if (ah_json_kind_of(q->value) == AH_JSON_FALSE)
        return AH_OK;
    if (resource_at(c->s, c->resource)->node != q->node)
        return schema_refuse_clause(c, q, "stands only at the root of a document, or beside $id");
    return schema_add_anchor(c, q->node, q->keyword->name, (ah_slice)AH_LIT(""), true);
}

static ah_status compile_ref(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, q->keyword->code);
    uint32_t r = schema_extend(c->s->mem, &c->refs, 1, sizeof(reference));

    if (o == NONE || r == NONE)
        return ah_err_nomem(c->err);
    ((reference *)c->refs.at)[r] = (reference){o, q->node, q->keyword->name, q->value};
    return AH_OK;
}

static ah_status compile_recursive_ref(compiler *c, const clause *q)
{
    return ah_json_string_is(q->value, "#") ? compile_ref(c, q)
                                            : schema_refuse_clause(c, q, "must be \"#\"");
}

static ah_status compile_default(compiler *c, const clause *q)
{
    node *n = node_at(c->s, q->node);

    n->fallback = q->value;
    n->own_default = true;
    return AH_OK;
}

#define SCHEMA (T_BOOLEAN | T_OBJECT)

#define CORE        VOCABULARY_CORE
#define APPLICATOR  VOCABULARY_APPLICATOR
#define UNEVALUATED VOCABULARY_UNEVALUATED
#define VALIDATION  VOCABULARY_VALIDATION
#define META        VOCABULARY_META
#define FORMAT      VOCABULARY_FORMAT
#define CONTENT     VOCABULARY_CONTENT

/* $schema and $id come first, see compile_object. Keywords of unsupported drafts: `id` of
 * draft-04, `nullable` of OpenAPI. */
static const keyword keywords[] = {
    {"$anchor", T_STRING, compile_anchor, 0, DRAFT_2019_ON, CORE, NULL},
    {"$comment", T_STRING, NULL, 0, DRAFT_ANY, CORE, NULL},
    {"$defs", T_OBJECT, compile_defs, 0, DRAFT_ANY, CORE, NULL},
    {"$dynamicAnchor", T_STRING, compile_anchor, 0, DRAFT_2020, CORE, "$recursiveAnchor"},
    {"$dynamicRef", T_STRING, compile_ref, OP_DYNAMIC_REF, DRAFT_2020, CORE, "$recursiveRef"},
    {"$id", T_STRING, NULL, 0, DRAFT_ANY, CORE, NULL},
    {"$recursiveAnchor", T_BOOLEAN, compile_recursive_anchor, 0, DRAFT_2019, CORE,
     "$dynamicAnchor"},
    {"$recursiveRef", T_STRING, compile_recursive_ref, OP_DYNAMIC_REF, DRAFT_2019, CORE,
     "$dynamicRef"},
    {"$ref", T_STRING, compile_ref, OP_REF, DRAFT_ANY, CORE, NULL},
    {"$schema", T_STRING, NULL, 0, DRAFT_ANY, CORE, NULL},
    {"$vocabulary", T_OBJECT, NULL, 0, DRAFT_2019_ON, CORE, NULL},
    {"additionalItems", SCHEMA, compile_additional_items, OP_ARRAY, DRAFT_7 | DRAFT_2019,
     APPLICATOR, "items"},
    {"additionalProperties", SCHEMA, compile_rest, OP_OBJECT, DRAFT_ANY, APPLICATOR, NULL},
    {"allOf", T_ARRAY, compile_branches, OP_ALL_OF, DRAFT_ANY, APPLICATOR, NULL},
    {"anyOf", T_ARRAY, compile_branches, OP_ANY_OF, DRAFT_ANY, APPLICATOR, NULL},
    {"const", T_ANY, compile_const, OP_CONST, DRAFT_ANY, VALIDATION, NULL},
    {"contains", SCHEMA, compile_contains, OP_CONTAINS, DRAFT_ANY, APPLICATOR, NULL},
    {"contentEncoding", T_STRING, NULL, 0, DRAFT_ANY, CONTENT, NULL},
    {"contentMediaType", T_STRING, NULL, 0, DRAFT_ANY, CONTENT, NULL},
    {"contentSchema", SCHEMA, compile_unused, 0, DRAFT_2019_ON, CONTENT, NULL},
    {"default", T_ANY, compile_default, 0, DRAFT_ANY, META, NULL},
    {"definitions", T_OBJECT, compile_defs, 0, DRAFT_ANY, CORE, NULL},
    {"dependencies", T_OBJECT, schema_compile_dependencies, 0, DRAFT_ANY, APPLICATOR, NULL},
    {"dependentRequired", T_OBJECT, schema_compile_dependencies, OP_DEPEND_NAMES, DRAFT_2019_ON,
     VALIDATION, "dependencies"},
    {"dependentSchemas", T_OBJECT, schema_compile_dependencies, OP_DEPEND_SCHEMAS, DRAFT_2019_ON,
     APPLICATOR, "dependencies"},
    {"deprecated", T_BOOLEAN, NULL, 0, DRAFT_2019_ON, META, NULL},
    {"description", T_STRING, NULL, 0, DRAFT_ANY, META, NULL},
    {"else", SCHEMA, compile_condition, OP_IF, DRAFT_ANY, APPLICATOR, NULL},
    {"enum", T_ARRAY, compile_enum, OP_ENUM, DRAFT_ANY, VALIDATION, NULL},
    {"examples", T_ARRAY, NULL, 0, DRAFT_ANY, META, NULL},
    {"exclusiveMaximum", T_NUMERIC, compile_bound, OP_BELOW, DRAFT_ANY, VALIDATION, NULL},
    {"exclusiveMinimum", T_NUMERIC, compile_bound, OP_ABOVE, DRAFT_ANY, VALIDATION, NULL},
    {"format", T_STRING, schema_compile_format, OP_FORMAT, DRAFT_ANY, FORMAT, NULL},
    {"id", T_ANY, NULL, 0, 0, CORE, "$id"},
    {"if", SCHEMA, compile_condition, OP_IF, DRAFT_ANY, APPLICATOR, NULL},
    {"items", T_BOOLEAN | T_OBJECT | T_ARRAY, compile_items, OP_ARRAY, DRAFT_ANY, APPLICATOR, NULL},
    {"maxContains", T_NUMERIC, compile_most, OP_CONTAINS, DRAFT_2019_ON, VALIDATION, NULL},
    {"maxItems", T_NUMERIC, compile_most, OP_ARRAY, DRAFT_ANY, VALIDATION, NULL},
    {"maxLength", T_NUMERIC, compile_most, OP_STRING, DRAFT_ANY, VALIDATION, NULL},
    {"maxProperties", T_NUMERIC, compile_most, OP_OBJECT, DRAFT_ANY, VALIDATION, NULL},
    {"maximum", T_NUMERIC, compile_bound, OP_MAXIMUM, DRAFT_ANY, VALIDATION, NULL},
    {"minContains", T_NUMERIC, compile_least, OP_CONTAINS, DRAFT_2019_ON, VALIDATION, NULL},
    {"minItems", T_NUMERIC, compile_least, OP_ARRAY, DRAFT_ANY, VALIDATION, NULL},
    {"minLength", T_NUMERIC, compile_least, OP_STRING, DRAFT_ANY, VALIDATION, NULL},
    {"minProperties", T_NUMERIC, compile_least, OP_OBJECT, DRAFT_ANY, VALIDATION, NULL},
    {"minimum", T_NUMERIC, compile_bound, OP_MINIMUM, DRAFT_ANY, VALIDATION, NULL},
    {"multipleOf", T_NUMERIC, compile_bound, OP_MULTIPLE, DRAFT_ANY, VALIDATION, NULL},
    {"not", SCHEMA, compile_rest, OP_NOT, DRAFT_ANY, APPLICATOR, NULL},
    {"nullable", T_ANY, NULL, 0, 0, CORE, "null among the types"},
    {"oneOf", T_ARRAY, compile_branches, OP_ONE_OF, DRAFT_ANY, APPLICATOR, NULL},
    {"pattern", T_STRING, schema_compile_pattern, OP_PATTERN, DRAFT_ANY, VALIDATION, NULL},
    {"patternProperties", T_OBJECT, schema_compile_pattern_properties, OP_OBJECT, DRAFT_ANY,
     APPLICATOR, NULL},
    {"prefixItems", T_ARRAY, compile_branches, OP_ARRAY, DRAFT_2020, APPLICATOR, "items"},
    {"properties", T_OBJECT, schema_compile_props, OP_OBJECT, DRAFT_ANY, APPLICATOR, NULL},
    {"propertyNames", SCHEMA, compile_rest, OP_NAMES, DRAFT_ANY, APPLICATOR, NULL},
    {"readOnly", T_BOOLEAN, NULL, 0, DRAFT_ANY, META, NULL},
    {"required", T_ARRAY, schema_compile_props, OP_OBJECT, DRAFT_ANY, VALIDATION, NULL},
    {"then", SCHEMA, compile_condition, OP_IF, DRAFT_ANY, APPLICATOR, NULL},
    {"title", T_STRING, NULL, 0, DRAFT_ANY, META, NULL},
    {"type", T_STRING | T_ARRAY, compile_type, 0, DRAFT_ANY, VALIDATION, NULL},
    {"unevaluatedItems", SCHEMA, compile_rest, OP_OTHER_ITEMS, DRAFT_2019_ON, UNEVALUATED, NULL},
    {"unevaluatedProperties", SCHEMA, compile_rest, OP_OTHER_PROPERTIES, DRAFT_2019_ON, UNEVALUATED,
     NULL},
    {"uniqueItems", T_BOOLEAN, compile_unique, OP_UNIQUE, DRAFT_ANY, VALIDATION, NULL},
    {"writeOnly", T_BOOLEAN, NULL, 0, DRAFT_ANY, META, NULL},
};
enum { KEYWORDS = sizeof keywords / sizeof *keywords };

static const keyword *find_keyword(ah_json_token key)
{
    for (size_t i = 0; i < KEYWORDS; i++)
        if (ah_json_token_is(key, keywords[i].name))
            return &keywords[i];
    return NULL;
}

uint32_t schema_keyword_named(ah_slice name)
{
    for (uint32_t i = 0; i < KEYWORDS; i++)
        if (ah_slice_is(name, keywords[i].name))
            return i;
    return NONE;
}

/* True if it is a keyword of the current dialect. */
static bool is_spoken(const compiler *c, const keyword *k)
{
    return k->drafts & c->dialect.draft && k->vocabulary & c->dialect.vocabularies;
}

ah_slice schema_beside(const compiler *c, const clause *q, const char *name)
{
    uint32_t i = schema_keyword_named(ah_slice_of(name));

    return is_spoken(c, &keywords[i]) ? ah_json_member(q->schema, name) : (ah_slice){NULL, 0};
}

static ah_status refuse_unknown(compiler *c, ah_slice schema, ah_slice name)
{
    ah_near near = {.to = name};
    ah_buf *b = schema_refusal(c, schema.p, name);

    for (size_t i = 0; i < KEYWORDS; i++)
        if (keywords[i].drafts & c->dialect.draft)
            ah_near_offer(&near, ah_slice_of(keywords[i].name));
    ah_buf_str(b, "is not supported");
    schema_put_near(b, &near);
    if (!near.best.p)
        ah_buf_str(b, "; the names of members stand in 'properties'");
    return schema_refused(c);
}

/* Refuses a keyword that only other dialects have. */
static ah_status refuse_of_others(compiler *c, const clause *q)
{
    static const unsigned drafts[] = {DRAFT_2020, DRAFT_2019, DRAFT_7};
    const keyword *k = q->keyword;
    ah_buf *b = schema_refusal(c, q->schema.p, ah_slice_of(k->name));
    size_t n = 0;

    ah_buf_str(b, "is of ");
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        if (k->drafts & drafts[i])
            ah_buf_fmt(b, "%s%s", n++ ? " and " : "", schema_draft_name(drafts[i]));
    if (k->drafts)
        ah_buf_str(b, ", which \"$schema\" does not name");
    else
        ah_buf_str(b, k->name[0] == 'i' ? "draft-04" : "OpenAPI");
    if (k->instead)
        ah_buf_fmt(b, "; say %s", k->instead);
    ah_buf_str(b, ", found ");
    schema_put_found(b, q->value);
    return schema_refused(c);
}

static ah_status compile_clause(compiler *c, const clause *q, ah_json_kind kind)
{
    const keyword *k = q->keyword;
    ah_buf *b;

    if (k->shape & schema_type_of_kind(kind))
        return k->compile ? k->compile(c, q) : AH_OK;
    b = schema_refusal(c, q->schema.p, ah_slice_of(k->name));
    ah_buf_str(b, "must be ");
    schema_put_types(b, k->shape);
    ah_buf_str(b, ", found ");
    schema_put_found(b, q->value);
    return schema_refused(c);
}

static bool is_extension(ah_json_token key)
{
    return key.raw.n > 2 && key.raw.p[0] == 'x' && key.raw.p[1] == '-';
}

/* In draft-07 a $ref ignores the keywords beside it; references may still lead to them. */
static bool is_silenced(bool beside_ref, const keyword *k)
{
    return beside_ref && k->compile && k->compile != compile_ref && k->compile != compile_defs;
}

/* Names that begin with "x-" are extensions for people, and notes of other drafts are ignored as
 * well. */
static ah_status compile_unspoken(compiler *c, const clause *q, ah_json_token key)
{
    const keyword *k = q->keyword;

    if (c->s->any_keywords || is_extension(key) || (k && k->drafts && !k->compile))
        return AH_OK;
    return k ? refuse_of_others(c, q) : refuse_unknown(c, q->schema, key.raw);
}

static ah_status compile_clauses(compiler *c, uint32_t i, ah_slice text, bool beside_ref)
{
    ah_json_reader r = ah_json_read(text);
    ah_json_token key = ah_json_next(&r);
    ah_status st = AH_OK;

    while (st == AH_OK && (key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_json_token t = ah_json_next(&r);
        clause q = {.node = i, .keyword = find_keyword(key), .schema = text};

        q.value = ah_json_skip(&r, t);
        if (!q.keyword || !(q.keyword->drafts & c->dialect.draft))
            st = compile_unspoken(c, &q, key);
        else if (is_spoken(c, q.keyword) && !is_silenced(beside_ref, q.keyword))
            st = compile_clause(c, &q, t.kind);
    }
    return st;
}

/* True if several schemas in place declare the members together; false if a single one, such as
 * an anyOf or a $ref, declares all of them. */
static bool is_composed(const ah_schema *s, const node *n)
{
    size_t in_place = 0, named = 0;

    for (uint32_t o = n->first; o != NONE; o = op_at(s, o)->next) {
        const op *p = op_at(s, o);

        if (p->code == OP_REF || p->code == OP_DYNAMIC_REF || p->code == OP_ANY_OF ||
            p->code == OP_ONE_OF)
            in_place++;
        else if (p->code == OP_ALL_OF)
            in_place += p->list.n;
        else if (p->code == OP_IF || p->code == OP_DEPEND_SCHEMAS)
            in_place += 2;
        else if (p->code == OP_OBJECT && (p->named || p->rest != NONE))
            named++;
    }
    return in_place > 1 || (in_place && named);
}

/* An $id begins a resource; in draft-07 a fragment alone is an anchor. */
static ah_status compile_id(compiler *c, uint32_t i, ah_slice text, bool beside_ref)
{
    ah_slice id = ah_json_member(text, "$id"), name;
    ah_json_reader r = ah_json_read(id);

    if (!id.p || ah_json_kind_of(id) != AH_JSON_STRING || beside_ref)
        return AH_OK;
    if (!schema_name_of(c, ah_json_next(&r), &name))
        return ah_err_nomem(c->err);
    if (c->dialect.draft == DRAFT_7 && name.n > 1 && name.p[0] == '#')
        return schema_add_anchor(c, i, "$id", (ah_slice){name.p + 1, name.n - 1}, false);
    if (name.n > 1 && memchr(name.p, '#', name.n - 1))
        return schema_refuse(c, text.p, "$id", id, "must have no fragment; use $anchor");
    return schema_open_resource(c, i, text, name, resource_at(c->s, c->resource)->uri);
}

static ah_status compile_object(compiler *c, uint32_t i, ah_slice text)
{
    uint32_t outer = c->resource;
    dialect around = c->dialect;
    ah_status st = schema_choose_dialect(c, text);
    bool beside_ref = c->dialect.draft == DRAFT_7 && ah_json_member(text, "$ref").p;

    if (st == AH_OK)
        st = compile_id(c, i, text, beside_ref);
    if (st == AH_OK) {
        node_at(c->s, i)->resource = c->resource;
        st = compile_clauses(c, i, text, beside_ref);
    }
    if (st == AH_OK)
        node_at(c->s, i)->composed = is_composed(c->s, node_at(c->s, i));
    c->resource = outer;
    c->dialect = around;
    return st;
}

static ah_status compile_node(compiler *c, origin from, ah_slice text, uint32_t *out)
{
    ah_json_kind kind = ah_json_kind_of(text);
    uint32_t i = schema_extend(c->s->mem, &c->s->nodes, 1, sizeof(node));
    ah_status st = AH_OK;

    if (i == NONE || schema_extend(c->s->mem, &c->origins, 1, sizeof(origin)) == NONE)
        return ah_err_nomem(c->err);
    ((origin *)c->origins.at)[i] = from;
    if (c->depth == SCHEMA_DEPTH)
        return schema_refuse(c, text.p, NULL, text, "is more than 64 schemas deep");
    *node_at(c->s, i) = (node){.text = text,
                               .types = T_ANY,
                               .accepts = T_ANY,
                               .first = NONE,
                               .last = NONE,
                               .resource = c->resource};
    c->depth++;
    if (kind == AH_JSON_OBJECT)
        st = compile_object(c, i, text);
    else if (kind == AH_JSON_FALSE)
        st = schema_op_of(c, i, OP_FALSE) == NONE ? ah_err_nomem(c->err) : AH_OK;
    else if (kind != AH_JSON_TRUE)
        st = schema_refuse(c, text.p, NULL, text, "must be a schema: an object or a boolean");
    c->depth--;
    if (st == AH_OK)
        *out = i;
    return st;
}

static origin origin_of(const clause *q, uint32_t item, ah_slice name)
{
    return (origin){q->node, (uint32_t)(q->keyword - keywords), item, name};
}

ah_status schema_compile_value(compiler *c, const clause *q, uint32_t *out)
{
    return compile_node(c, origin_of(q, NONE, (ah_slice){NULL, 0}), q->value, out);
}

ah_status schema_compile_member(compiler *c, const clause *q, ah_slice name, ah_slice text,
                                uint32_t *out)
{
    return compile_node(c, origin_of(q, NONE, name), text, out);
}

ah_status schema_compile_item(compiler *c, const clause *q, uint32_t i, ah_slice text,
                              uint32_t *out)
{
    return compile_node(c, origin_of(q, i, (ah_slice){NULL, 0}), text, out);
}

/* A document without $schema has the dialect of the schema that it was given with. */
ah_status schema_compile_document(compiler *c, uint32_t i)
{
    ah_schema *s = c->s;
    uint32_t first = (uint32_t)s->nodes.n, root;
    ah_slice text = ah_text_slice(document_at(s, i)->text);
    ah_status st;

    c->document = i;
    c->dialect = c->of_root;
    document_at(s, i)->nodes.first = first;
    st = schema_open_resource(c, first, text, document_at(s, i)->uri, (ah_slice)AH_LIT(""));
    if (st == AH_OK && i == 0 && (st = schema_choose_dialect(c, text)) == AH_OK)
        c->of_root = c->dialect;
    if (st == AH_OK)
        st = compile_node(c, (origin){.parent = NONE}, text, &root);
    document_at(s, i)->nodes.n = (uint32_t)s->nodes.n - first;
    return st;
}
