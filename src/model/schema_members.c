/* The compiler's part for members and texts: patterns and formats, properties with what is
 * required, and what depends on a member. Tables of names are sorted, so that a member is
 * found by its name in the logarithm of their number. */
#include <stdlib.h>

#include "model/schema_clause.h"

/* Patterns */

/* Index of the pattern, or NONE with *st set. */
static uint32_t add_pattern(compiler *c, const clause *q, ah_slice text, ah_status *st)
{
    uint32_t i = schema_extend(c->s->mem, &c->s->patterns, 1, sizeof(ah_pattern *));
    ah_pattern *p = NULL;
    ah_buf why, *b;

    ah_buf_init(&why, c->s->mem, 256);
    *st = i == NONE ? AH_NOMEM : ah_pattern_new(c->s->mem, text, 0, &p, &why);
    if (*st == AH_OK) {
        ((ah_pattern **)c->s->patterns.at)[i] = p;
    } else if (*st == AH_NOMEM) {
        ah_err_nomem(c->err);
    } else {
        b = schema_refusal(c, q->schema.p, ah_slice_of(q->keyword->name));
        ah_buf_cut_short(&why);
        ah_buf_str(b, "cannot be used: ");
        ah_buf_put(b, ah_buf_slice(&why));
        ah_buf_str(b, ", in ");
        schema_put_found(b, text);
        *st = schema_refused(c);
    }
    ah_buf_clear(&why);
    return *st == AH_OK ? i : NONE;
}

ah_status schema_compile_pattern(compiler *c, const clause *q)
{
    uint32_t o = schema_op_of(c, q->node, OP_PATTERN), p;
    ah_status st;
    ah_slice text;

    if (o == NONE || !schema_clause_text(c, q, &text))
        return ah_err_nomem(c->err);
    if ((p = add_pattern(c, q, text, &st)) == NONE)
        return st;
    op_at(c->s, o)->rest = p;
    op_at(c->s, o)->literal = text;
    return AH_OK;
}

ah_status schema_compile_format(compiler *c, const clause *q)
{
    uint32_t format, o;
    ah_slice text;

    if (!c->s->formats)
        return AH_OK;
    if (!schema_clause_text(c, q, &text))
        return ah_err_nomem(c->err);
    if ((format = schema_find_format(text)) == NONE)
        return AH_OK;
    if ((o = schema_op_of(c, q->node, OP_FORMAT)) == NONE)
        return ah_err_nomem(c->err);
    op_at(c->s, o)->rest = format;
    return AH_OK;
}

ah_status schema_compile_pattern_properties(compiler *c, const clause *q)
{
    ah_schema *s = c->s;
    size_t n = schema_count_children(q->value), i = 0;
    uint32_t o = schema_op_of(c, q->node, OP_OBJECT);
    uint32_t first = schema_extend(s->mem, &s->links, 2 * n, sizeof(uint32_t));
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token key = ah_json_next(&r);

    if (o == NONE || first == NONE)
        return ah_err_nomem(c->err);
    for (; (key = ah_json_next(&r)).kind == AH_JSON_KEY; i++) {
        ah_slice name, text = ah_json_skip(&r, ah_json_next(&r));
        uint32_t p, to;
        ah_status st;

        if (!schema_name_of(c, key, &name))
            return ah_err_nomem(c->err);
        if ((p = add_pattern(c, q, name, &st)) == NONE ||
            (st = schema_compile_node(c, text, &to)) != AH_OK)
            return st;
        ((uint32_t *)s->links.at)[first + 2 * i] = p;
        ((uint32_t *)s->links.at)[first + 2 * i + 1] = to;
    }
    op_at(s, o)->patterns = (range){first, (uint32_t)n};
    op_at(s, o)->named = true;
    return AH_OK;
}

/* Members */

static int compare_props(const void *a, const void *b)
{
    return ah_slice_cmp(((const prop *)a)->name, ((const prop *)b)->name);
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

static ah_status compile_members(compiler *c, ah_slice properties, range *props)
{
    ah_json_reader r = ah_json_read(properties);
    ah_json_token key = ah_json_next(&r);

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice name, text = ah_json_skip(&r, ah_json_next(&r));
        uint32_t n;
        ah_status st;

        if (!schema_name_of(c, key, &name))
            return ah_err_nomem(c->err);
        if ((st = schema_compile_node(c, text, &n)) != AH_OK)
            return st;
        *prop_at(c->s, props->first + props->n++) = (prop){.name = name, .node = n};
    }
    sort_props(c->s, *props);
    return AH_OK;
}

static bool in_properties(const clause *q)
{
    return q->keyword->code == OP_OBJECT;
}

static ah_status compile_names(compiler *c, const clause *q, ah_slice required, range *props)
{
    range declared = *props;
    ah_json_reader r = ah_json_read(required);
    ah_json_token t = ah_json_next(&r);

    while ((t = ah_json_next(&r)).kind == AH_JSON_STRING) {
        ah_slice name;
        uint32_t i;

        if (!schema_name_of(c, t, &name))
            return ah_err_nomem(c->err);
        if ((i = schema_find_prop(c->s, declared, name)) == NONE) {
            i = props->first + props->n++;
            *prop_at(c->s, i) = (prop){.name = name, .node = NONE};
        }
        prop_at(c->s, i)->required = true;
    }
    if (t.kind != AH_JSON_ARRAY_END)
        return schema_refuse(c, q->schema.p, in_properties(q) ? "required" : q->keyword->name, required,
                             "must hold names of properties");
    sort_props(c->s, *props);
    *props = drop_doubles(c->s, *props);
    return AH_OK;
}

/* properties and required share a table, so the first of them does the work of
 * both. Its room is taken before the members' schemas take theirs. */
ah_status schema_compile_props(compiler *c, const clause *q)
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
    o = schema_op_of(c, q->node, OP_OBJECT);
    props.first =
        schema_extend(s->mem, &s->props,
                      schema_count_children(properties) + schema_count_children(required), sizeof(prop));
    if (o == NONE || props.first == NONE)
        return ah_err_nomem(c->err);
    if ((st = compile_members(c, properties, &props)) != AH_OK ||
        (st = compile_names(c, q, required, &props)) != AH_OK)
        return st;
    op_at(s, o)->named |= named;
    op_at(s, o)->list = props;
    return AH_OK;
}

/* Dependencies: one op for each property that others depend on. */

static ah_status depend_on_names(compiler *c, const clause *q, ah_slice name, ah_slice names)
{
    ah_schema *s = c->s;
    size_t n = schema_count_children(names);
    range props = {.first = schema_extend(s->mem, &s->props, n, sizeof(prop))};
    uint32_t o = schema_new_op(c, q->node, OP_DEPEND_NAMES);
    clause inner = *q;
    ah_status st;

    if (o == NONE || props.first == NONE)
        return ah_err_nomem(c->err);
    inner.value = names;
    if ((st = compile_names(c, &inner, names, &props)) != AH_OK)
        return st;
    op_at(s, o)->literal = name;
    op_at(s, o)->list = props;
    return AH_OK;
}

static ah_status depend_on_schema(compiler *c, const clause *q, ah_slice name, ah_slice schema)
{
    uint32_t o = schema_new_op(c, q->node, OP_DEPEND_SCHEMA), n;
    ah_status st = schema_compile_node(c, schema, &n);

    if (o == NONE)
        return ah_err_nomem(c->err);
    if (st != AH_OK)
        return st;
    op_at(c->s, o)->literal = name;
    op_at(c->s, o)->rest = n;
    return AH_OK;
}

/* dependentRequired holds lists, dependentSchemas schemas, draft-07's dependencies both. */
ah_status schema_compile_dependencies(compiler *c, const clause *q)
{
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token key = ah_json_next(&r);
    op_code code = q->keyword->code;
    ah_status st = AH_OK;

    while (st == AH_OK && (key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice name, text = ah_json_skip(&r, ah_json_next(&r));
        bool list = ah_json_kind_of(text) == AH_JSON_ARRAY;

        if (!schema_name_of(c, key, &name))
            return ah_err_nomem(c->err);
        if (code == OP_DEPEND_NAMES && !list)
            return schema_refuse_clause(c, q, "must hold lists of names");
        st = list && code != OP_DEPEND_SCHEMA ? depend_on_names(c, q, name, text)
                                              : depend_on_schema(c, q, name, text);
    }
    return st;
}
