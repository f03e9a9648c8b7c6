/* The compiler for members and texts: patterns and formats, properties with their requirements,
 * and dependencies between members. Tables of names are sorted, for a binary search. */
#include <stdlib.h>

#include "schema/clause.h"

/* Patterns */

/* Returns the index of the pattern, or NONE with *st set. */
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

    bool asserted = c->dialect.vocabularies & VOCABULARY_ASSERTION;

    if (!c->s->formats && !asserted)
        return AH_OK;
    if (!schema_clause_text(c, q, &text))
        return ah_err_nomem(c->err);
    if ((format = schema_find_format(text)) == NONE)
        return asserted ? schema_refuse_clause(c, q, "cannot be asserted, as $schema requires")
                        : AH_OK;
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
            (st = schema_compile_member(c, q, name, text, &to)) != AH_OK)
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

/* Names that are required without a declaration may appear twice. */
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
    ah_json_reader r = ah_json_read(properties);
    ah_json_token key = ah_json_next(&r);

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice name, text = ah_json_skip(&r, ah_json_next(&r));
        uint32_t n;
        ah_status st;

        if (!schema_name_of(c, key, &name))
            return ah_err_nomem(c->err);
        if ((st = schema_compile_member(c, q, name, text, &n)) != AH_OK)
            return st;
        *prop_at(c->s, props->first + props->n++) = (prop){.name = name, .node = n};
    }
    sort_props(c->s, *props);
    return AH_OK;
}

static ah_status compile_required(compiler *c, const clause *q, ah_slice required, range *props)
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
        return schema_refuse(c, q->schema.p, "required", required, "must hold names of properties");
    sort_props(c->s, *props);
    *props = drop_doubles(c->s, *props);
    return AH_OK;
}

/* properties and required share a table, so the first of them compiles both. The table's room is
 * reserved before the members' schemas need theirs. */
ah_status schema_compile_props(compiler *c, const clause *q)
{
    ah_schema *s = c->s;
    ah_slice properties = schema_beside(c, q, "properties");
    ah_slice required = schema_beside(c, q, "required");
    bool named = properties.p != NULL;
    range props = {0};
    uint32_t o;
    ah_status st;

    if (named && q->value.p != properties.p)
        return AH_OK;
    if (!named)
        properties = (ah_slice)AH_LIT("{}");
    if (ah_json_kind_of(required) != AH_JSON_ARRAY)
        required = (ah_slice)AH_LIT("[]"); /* missing, or refused later */
    o = schema_op_of(c, q->node, OP_OBJECT);
    props.first = schema_extend(s->mem, &s->props,
                                schema_count_children(properties) + schema_count_children(required),
                                sizeof(prop));
    if (o == NONE || props.first == NONE)
        return ah_err_nomem(c->err);
    if ((st = compile_members(c, q, properties, &props)) != AH_OK ||
        (st = compile_required(c, q, required, &props)) != AH_OK)
        return st;
    op_at(s, o)->named |= named;
    op_at(s, o)->list = props;
    return AH_OK;
}

/* Dependencies: a member that requires other members, or one whose presence applies a schema. Each
 * of these two kinds is one op. */

/* True for a list of names. In dependentSchemas a list is refused as a schema. */
static bool is_list(const clause *q, ah_json_kind kind)
{
    return kind == AH_JSON_ARRAY && q->keyword->code != OP_DEPEND_SCHEMAS;
}

static size_t count_dependencies(const clause *q, bool lists)
{
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token key = ah_json_next(&r);
    size_t n = 0;

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice text = ah_json_skip(&r, ah_json_next(&r));
        bool list = is_list(q, ah_json_kind_of(text));

        if (list == lists)
            n += list ? 1 + schema_count_children(text) : 1;
    }
    return n;
}

/* Lists a member, marked `required`, then the names that it needs. */
static ah_status list_needed(compiler *c, const clause *q, uint32_t i)
{
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token key = ah_json_next(&r), t;

    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_json_reader inside;
        ah_slice list;

        t = ah_json_next(&r);
        inside = r;
        list = ah_json_skip(&r, t);
        if (!is_list(q, t.kind))
            continue;
        prop_at(c->s, i)->required = true;
        if (!schema_name_of(c, key, &prop_at(c->s, i++)->name))
            return ah_err_nomem(c->err);
        while ((t = ah_json_next(&inside)).kind == AH_JSON_STRING)
            if (!schema_name_of(c, t, &prop_at(c->s, i++)->name))
                return ah_err_nomem(c->err);
        if (t.kind != AH_JSON_ARRAY_END)
            return schema_refuse(c, q->schema.p, q->keyword->name, list,
                                 "must hold names of properties");
    }
    return AH_OK;
}

/* Makes pairs of sorted names: a member, and one that it needs. */
static void pair_needed(ah_schema *s, range listed, range sorted, uint32_t to)
{
    uint32_t from = 0, *links = s->links.at;

    for (uint32_t i = sorted.first; i < sorted.first + sorted.n; i++)
        prop_at(s, i)->required = false; /* the mark is only for the list */
    for (uint32_t i = listed.first; i < listed.first + listed.n; i++) {
        uint32_t p = schema_find_prop(s, sorted, prop_at(s, i)->name) - sorted.first;

        if (prop_at(s, i)->required) {
            from = p;
            continue;
        }
        links[to++] = from;
        links[to++] = p;
    }
}

static ah_status depend_on_names(compiler *c, const clause *q)
{
    ah_schema *s = c->s;
    uint32_t n = (uint32_t)count_dependencies(q, true), members = 0;
    uint32_t o = n ? schema_new_op(c, q->node, OP_DEPEND_NAMES) : NONE;
    range sorted = {schema_extend(s->mem, &s->props, n, sizeof(prop)), n};
    range listed = {schema_extend(s->mem, &s->props, n, sizeof(prop)), n};
    range pairs = {0};
    ah_status st;

    if (!n)
        return AH_OK;
    if (o == NONE || sorted.first == NONE || listed.first == NONE)
        return ah_err_nomem(c->err);
    if ((st = list_needed(c, q, listed.first)) != AH_OK)
        return st;
    memcpy(prop_at(s, sorted.first), prop_at(s, listed.first), n * sizeof(prop));
    sort_props(s, sorted);
    sorted = drop_doubles(s, sorted);
    for (uint32_t i = listed.first; i < listed.first + n; i++)
        members += prop_at(s, i)->required;
    pairs.n = n - members;
    if ((pairs.first = schema_extend(s->mem, &s->links, 2 * (size_t)pairs.n, sizeof(uint32_t))) ==
        NONE)
        return ah_err_nomem(c->err);
    pair_needed(s, listed, sorted, pairs.first);
    s->props.n -= n;
    op_at(s, o)->list = sorted;
    op_at(s, o)->patterns = pairs;
    return AH_OK;
}

static ah_status depend_on_schemas(compiler *c, const clause *q)
{
    ah_schema *s = c->s;
    uint32_t n = (uint32_t)count_dependencies(q, false);
    uint32_t o = n ? schema_new_op(c, q->node, OP_DEPEND_SCHEMAS) : NONE;
    range props = {schema_extend(s->mem, &s->props, n, sizeof(prop)), 0};
    range nodes = {schema_extend(s->mem, &s->links, n, sizeof(uint32_t)), n};
    ah_json_reader r = ah_json_read(q->value);
    ah_json_token key = ah_json_next(&r);

    if (!n)
        return AH_OK;
    if (o == NONE || props.first == NONE || nodes.first == NONE)
        return ah_err_nomem(c->err);
    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice name, text = ah_json_skip(&r, ah_json_next(&r));
        uint32_t to;
        ah_status st;

        if (is_list(q, ah_json_kind_of(text)))
            continue;
        if (!schema_name_of(c, key, &name))
            return ah_err_nomem(c->err);
        if ((st = schema_compile_member(c, q, name, text, &to)) != AH_OK)
            return st;
        *prop_at(s, props.first + props.n++) = (prop){.name = name, .node = to};
    }
    sort_props(s, props);
    for (uint32_t i = 0; i < n; i++)
        ((uint32_t *)s->links.at)[nodes.first + i] = prop_at(s, props.first + i)->node;
    op_at(s, o)->list = props;
    op_at(s, o)->patterns = nodes;
    return AH_OK;
}

/* dependentRequired contains lists, dependentSchemas schemas, dependencies both. */
ah_status schema_compile_dependencies(compiler *c, const clause *q)
{
    ah_status st;

    if (q->keyword->code == OP_DEPEND_NAMES && count_dependencies(q, false))
        return schema_refuse_clause(c, q, "must hold lists of names");
    st = depend_on_names(c, q);
    return st == AH_OK ? depend_on_schemas(c, q) : st;
}
