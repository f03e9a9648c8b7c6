/* The compiler: one function for each keyword, called in the order of the canonical text,
 * which is that of the keys. Nodes come out in the order of the text, too; references to
 * others are noted down and led to their nodes later (schema_link.c). Keywords of members,
 * patterns and formats are in schema_members.c.
 *
 * A new keyword is a line in `keywords` with the function that compiles it and, where it
 * is a rule of its own, an op code with a line in `checks` (schema_check.c). */
#include "base/near.h"
#include "model/schema_clause.h"

static void put_near(ah_buf *b, const ah_near *near)
{
    if (!near->best.p)
        return;
    ah_buf_str(b, "; did you mean '");
    schema_put_found(b, near->best);
    ah_buf_str(b, "'?");
}

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
    put_near(b, &near);
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
    if (c->s->values.n == first)
        return schema_refuse_clause(c, q, "must list at least one value");
    op_at(c->s, o)->list = (range){first, (uint32_t)c->s->values.n - first};
    return AH_OK;
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
    if ((st = schema_compile_node(c, q->value, &rest)) == AH_OK)
        op_at(c->s, o)->rest = rest;
    return st;
}

/* Rules with one schema: additionalProperties, not, propertyNames, ... */
static ah_status compile_rest(compiler *c, const clause *q)
{
    if (q->keyword->code == OP_OTHER_ITEMS || q->keyword->code == OP_OTHER_PROPERTIES)
        node_at(c->s, q->node)->others = true;
    return set_rest(c, q, q->keyword->code);
}

static ah_status compile_contains(compiler *c, const clause *q)
{
    ah_status st = set_rest(c, q, OP_CONTAINS);

    if (st == AH_OK && !ah_json_member(q->schema, "minContains").p)
        op_at(c->s, schema_find_op(c->s, q->node, OP_CONTAINS))->min = 1;
    return st;
}

/* A list of schemas into links of the op. */
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
        ah_status st = schema_compile_node(c, ah_json_skip(&r, ah_json_next(&r)), &branch);

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

/* A list of schemas only in draft-07, as prefixItems is otherwise. */
static ah_status compile_items(compiler *c, const clause *q)
{
    if (ah_json_kind_of(q->value) != AH_JSON_ARRAY)
        return set_rest(c, q, OP_ARRAY);
    if (!c->draft7)
        return schema_refuse_clause(c, q, "must be a boolean or an object (a list is prefixItems)");
    return ah_json_kind_of(q->value) == AH_JSON_ARRAY && schema_count_children(q->value) == 0
               ? AH_OK
               : compile_list(c, q, OP_ARRAY);
}

static ah_status compile_unused(compiler *c, const clause *q)
{
    uint32_t unused;

    return schema_compile_node(c, q->value, &unused);
}

static ah_status compile_additional_items(compiler *c, const clause *q)
{
    if (!c->draft7)
        return schema_refuse_clause(c, q, "is of draft-07, which \"$schema\" does not name; say items");
    if (ah_json_kind_of(ah_json_member(q->schema, "items")) == AH_JSON_ARRAY)
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
    ah_status st = schema_compile_node(c, q->value, &n);

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
    ah_status st = AH_OK;
    uint32_t unused;

    ah_json_next(&r);
    while (st == AH_OK && ah_json_next(&r).kind == AH_JSON_KEY)
        st = schema_compile_node(c, ah_json_skip(&r, ah_json_next(&r)), &unused);
    return st;
}

static ah_status add_anchor(compiler *c, uint32_t i, ah_slice name, bool dynamic)
{
    uint32_t a = schema_extend(c->s->mem, &c->s->anchors, 1, sizeof(anchor));

    if (a == NONE)
        return ah_err_nomem(c->err);
    *anchor_at(c->s, a) = (anchor){c->resource, name, i, dynamic};
    return AH_OK;
}

static bool is_anchor(ah_slice name)
{
    bool ok = name.n && (name.p[0] == '_' || ((name.p[0] | 32) >= 'a' && (name.p[0] | 32) <= 'z'));

    for (size_t i = 0; i < name.n && ok; i++)
        ok = strchr("-._0123456789", name.p[i]) || ((name.p[i] | 32) >= 'a' && (name.p[i] | 32) <= 'z');
    return ok;
}

static ah_status compile_anchor(compiler *c, const clause *q)
{
    ah_slice name;

    if (!schema_clause_text(c, q, &name))
        return ah_err_nomem(c->err);
    if (!is_anchor(name))
        return schema_refuse_clause(c, q, "must be a name of letters, digits, '-', '_' and '.'");
    return add_anchor(c, q->node, name, q->keyword->name[1] == 'd');
}

static ah_status compile_ref(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, q->keyword->code);
    uint32_t r = schema_extend(c->s->mem, &c->refs, 1, sizeof(reference));

    if (o == NONE || r == NONE)
        return ah_err_nomem(c->err);
    ((reference *)c->refs.at)[r] = (reference){o, q->node, q->value};
    return AH_OK;
}

/* Other dialects would be half-checked. What draft-04 and 06 say otherwise than 07, and
 * 2019-09 than 2020-12, is refused where it stands. */
static ah_status compile_dialect(compiler *c, const clause *q)
{
    static const char *const known[] = {"draft/2020-12/schema", "draft-07/schema",
                                        "draft/2019-09/schema", "draft-06/schema",
                                        "draft-04/schema",      "json-schema.org/schema"};
    ah_slice name;

    if (!schema_clause_text(c, q, &name))
        return ah_err_nomem(c->err);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ah_slice_find(name, ah_slice_of(known[i])))
            return AH_OK;
    for (size_t i = 1; i < c->s->documents.n; i++)
        if (ah_slice_eq(name, document_at(c->s, i)->uri))
            return AH_OK;
    return schema_refuse_clause(c, q, "names no known dialect (draft 2020-12 or draft-07)");
}

static ah_status refuse_id(compiler *c, const clause *q)
{
    return schema_refuse_clause(c, q, "is of draft-04; say $id");
}

static ah_status refuse_nullable(compiler *c, const clause *q)
{
    return schema_refuse_clause(c, q, "is of OpenAPI; say null among the types");
}

static ah_status refuse_recursive(compiler *c, const clause *q)
{
    return schema_refuse_clause(c, q, "is of draft 2019-09; say $dynamicRef");
}

#define SCHEMA (T_BOOLEAN | T_OBJECT)

static const keyword keywords[] = {
    {"$anchor", T_STRING, compile_anchor, 0},
    {"$comment", T_STRING, NULL, 0},
    {"$defs", T_OBJECT, compile_defs, 0},
    {"$dynamicAnchor", T_STRING, compile_anchor, 0},
    {"$dynamicRef", T_STRING, compile_ref, OP_DYNAMIC_REF},
    {"$id", T_STRING, NULL, 0}, /* see open_resource: it comes before the others */
    {"$recursiveAnchor", T_ANY, refuse_recursive, 0},
    {"$recursiveRef", T_ANY, refuse_recursive, 0},
    {"$ref", T_STRING, compile_ref, OP_REF},
    {"$schema", T_STRING, compile_dialect, 0},
    {"$vocabulary", T_OBJECT, NULL, 0},
    {"additionalItems", SCHEMA, compile_additional_items, OP_ARRAY},
    {"additionalProperties", SCHEMA, compile_rest, OP_OBJECT},
    {"allOf", T_ARRAY, compile_branches, OP_ALL_OF},
    {"anyOf", T_ARRAY, compile_branches, OP_ANY_OF},
    {"const", T_ANY, compile_const, OP_CONST},
    {"contains", SCHEMA, compile_contains, OP_CONTAINS},
    {"contentEncoding", T_STRING, NULL, 0},
    {"contentMediaType", T_STRING, NULL, 0},
    {"contentSchema", SCHEMA, compile_unused, 0},
    {"default", T_ANY, NULL, 0}, /* see schema_link: it needs the other rules */
    {"definitions", T_OBJECT, compile_defs, 0},
    {"dependencies", T_OBJECT, schema_compile_dependencies, 0},
    {"dependentRequired", T_OBJECT, schema_compile_dependencies, OP_DEPEND_NAMES},
    {"dependentSchemas", T_OBJECT, schema_compile_dependencies, OP_DEPEND_SCHEMA},
    {"deprecated", T_BOOLEAN, NULL, 0},
    {"description", T_STRING, NULL, 0},
    {"else", SCHEMA, compile_condition, OP_IF},
    {"enum", T_ARRAY, compile_enum, OP_ENUM},
    {"examples", T_ARRAY, NULL, 0},
    {"exclusiveMaximum", T_NUMERIC, compile_bound, OP_BELOW},
    {"exclusiveMinimum", T_NUMERIC, compile_bound, OP_ABOVE},
    {"format", T_STRING, schema_compile_format, OP_FORMAT},
    {"id", T_STRING, refuse_id, 0},
    {"if", SCHEMA, compile_condition, OP_IF},
    {"items", T_BOOLEAN | T_OBJECT | T_ARRAY, compile_items, OP_ARRAY},
    {"maxContains", T_NUMERIC, compile_most, OP_CONTAINS},
    {"maxItems", T_NUMERIC, compile_most, OP_ARRAY},
    {"maxLength", T_NUMERIC, compile_most, OP_STRING},
    {"maxProperties", T_NUMERIC, compile_most, OP_OBJECT},
    {"maximum", T_NUMERIC, compile_bound, OP_MAXIMUM},
    {"minContains", T_NUMERIC, compile_least, OP_CONTAINS},
    {"minItems", T_NUMERIC, compile_least, OP_ARRAY},
    {"minLength", T_NUMERIC, compile_least, OP_STRING},
    {"minProperties", T_NUMERIC, compile_least, OP_OBJECT},
    {"minimum", T_NUMERIC, compile_bound, OP_MINIMUM},
    {"multipleOf", T_NUMERIC, compile_bound, OP_MULTIPLE},
    {"not", SCHEMA, compile_rest, OP_NOT},
    {"nullable", T_ANY, refuse_nullable, 0},
    {"oneOf", T_ARRAY, compile_branches, OP_ONE_OF},
    {"pattern", T_STRING, schema_compile_pattern, OP_PATTERN},
    {"patternProperties", T_OBJECT, schema_compile_pattern_properties, OP_OBJECT},
    {"prefixItems", T_ARRAY, compile_branches, OP_ARRAY},
    {"properties", T_OBJECT, schema_compile_props, OP_OBJECT},
    {"propertyNames", SCHEMA, compile_rest, OP_NAMES},
    {"readOnly", T_BOOLEAN, NULL, 0},
    {"required", T_ARRAY, schema_compile_props, OP_OBJECT},
    {"then", SCHEMA, compile_condition, OP_IF},
    {"title", T_STRING, NULL, 0},
    {"type", T_STRING | T_ARRAY, compile_type, 0},
    {"unevaluatedItems", SCHEMA, compile_rest, OP_OTHER_ITEMS},
    {"unevaluatedProperties", SCHEMA, compile_rest, OP_OTHER_PROPERTIES},
    {"uniqueItems", T_BOOLEAN, compile_unique, OP_UNIQUE},
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

static ah_status unknown_keyword(compiler *c, ah_slice schema, ah_slice name)
{
    ah_near near = {.to = name};
    ah_buf *b = schema_refusal(c, schema.p, name);

    for (size_t i = 0; i < KEYWORDS; i++)
        ah_near_offer(&near, ah_slice_of(keywords[i].name));
    ah_buf_str(b, "is not supported");
    put_near(b, &near);
    if (!near.best.p)
        ah_buf_str(b, "; the names of members stand in 'properties'");
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

/* Names that begin with "x-" are extensions that only people read. */
static bool is_extension(ah_json_token key)
{
    return key.raw.n > 2 && key.raw.p[0] == 'x' && key.raw.p[1] == '-';
}

/* In draft-07 a $ref stands alone; what is beside it may be referred to all the same. */
static bool is_beside_ref(const compiler *c, const clause *q)
{
    return c->draft7 && q->keyword->compile && q->keyword->compile != compile_ref &&
           q->keyword->compile != compile_defs && ah_json_member(q->schema, "$ref").p;
}

static ah_status compile_clauses(compiler *c, uint32_t i, ah_slice text)
{
    ah_json_reader r = ah_json_read(text);
    ah_json_token key = ah_json_next(&r);

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_json_token t = ah_json_next(&r);
        clause q = {.node = i, .keyword = find_keyword(key), .schema = text};
        ah_status st;

        q.value = ah_json_skip(&r, t);
        if (!q.keyword && is_extension(key))
            continue;
        if (!q.keyword)
            return unknown_keyword(c, text, key.raw);
        if (!is_beside_ref(c, &q) && (st = compile_clause(c, &q, t.kind)) != AH_OK)
            return st;
    }
    return AH_OK;
}

/* Do several schemas in place say together what members there are? Not where one alone
 * stands for all of it, as an anyOf or a $ref does. */
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
        else if (p->code == OP_IF || p->code == OP_DEPEND_SCHEMA)
            in_place += 2;
        else if (p->code == OP_OBJECT && (p->named || p->rest != NONE))
            named++;
    }
    return in_place > 1 || (in_place && named);
}

/* An $id begins a resource, one that is only a fragment (draft-07) is an anchor. */
static ah_status compile_id(compiler *c, uint32_t i, ah_slice text)
{
    ah_slice id = ah_json_member(text, "$id"), name;
    ah_json_reader r = ah_json_read(id);

    if (!id.p || ah_json_kind_of(id) != AH_JSON_STRING || (c->draft7 && ah_json_member(text, "$ref").p))
        return AH_OK;
    if (!schema_name_of(c, ah_json_next(&r), &name))
        return ah_err_nomem(c->err);
    if (name.n > 1 && name.p[0] == '#')
        return add_anchor(c, i, (ah_slice){name.p + 1, name.n - 1}, false);
    if (name.n > 1 && memchr(name.p, '#', name.n - 1))
        return schema_refuse(c, text.p, "$id", id, "must have no fragment; say $anchor");
    return schema_open_resource(c, i, text, name, resource_at(c->s, c->resource)->uri);
}

static void choose_draft(compiler *c, ah_slice text)
{
    ah_slice draft = ah_json_member(text, "$schema");

    if (ah_json_kind_of(draft) == AH_JSON_STRING)
        c->draft7 = ah_slice_find(draft, (ah_slice)AH_LIT("draft-0")) != NULL;
}

static ah_status compile_object(compiler *c, uint32_t i, ah_slice text)
{
    uint32_t outer = c->resource;
    bool draft7 = c->draft7;
    ah_status st;

    choose_draft(c, text);
    if ((st = compile_id(c, i, text)) == AH_OK) {
        node_at(c->s, i)->resource = c->resource;
        st = compile_clauses(c, i, text);
    }
    if (st == AH_OK) {
        node_at(c->s, i)->fallback = ah_json_member(text, "default");
        node_at(c->s, i)->composed = is_composed(c->s, node_at(c->s, i));
    }
    c->resource = outer;
    c->draft7 = draft7;
    return st;
}

ah_status schema_compile_node(compiler *c, ah_slice text, uint32_t *out)
{
    ah_json_kind kind = ah_json_kind_of(text);
    uint32_t i = schema_extend(c->s->mem, &c->s->nodes, 1, sizeof(node));
    ah_status st = AH_OK;

    if (i == NONE)
        return ah_err_nomem(c->err);
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

ah_status schema_compile_document(compiler *c, uint32_t i)
{
    ah_schema *s = c->s;
    document *d = document_at(s, i);
    ah_slice text = ah_text_slice(d->text);
    uint32_t root;
    ah_status st;

    d->nodes.first = (uint32_t)s->nodes.n;
    c->draft7 = false;
    if ((st = schema_open_resource(c, d->nodes.first, text, d->uri, (ah_slice)AH_LIT(""))) == AH_OK)
        st = schema_compile_node(c, text, &root);
    d->nodes.n = (uint32_t)s->nodes.n - d->nodes.first;
    return st;
}
