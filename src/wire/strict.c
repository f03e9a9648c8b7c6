/* Rewrites schemas into the strict subset; see strict.h. Keywords missing in the table are kept,
 * and the subset's check then refuses the schema. */
#include "wire/strict.h"

#include "wire/dialect.h"

/* Rules that only narrow what fits may be described in words instead. */
static const ah_rewrite_row rows[] = {
    {AH_REWRITE_DROP, " $schema $comment ", NULL, NULL},
    {AH_REWRITE_MEMBERS, " properties ", NULL, NULL},
    {AH_REWRITE_MAP, " $defs ", NULL, NULL},
    {AH_REWRITE_LIST, " anyOf ", NULL, NULL},
    {AH_REWRITE_SCHEMA, " items ", NULL, NULL},
    {AH_REWRITE_TYPE, " type ", NULL, NULL},
    {AH_REWRITE_REFERENCE, " $ref ", NULL, NULL},
    {AH_REWRITE_TELL,
     " minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern "
     "format "
     "minItems maxItems uniqueItems contains minContains maxContains minProperties maxProperties "
     "dependentRequired propertyNames not default contentEncoding contentMediaType examples ",
     NULL, NULL},
    {AH_REWRITE_KEEP, NULL, NULL, NULL},
};

bool ah_strict_put(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight, ah_buf *out)
{
    const ah_rewrite_target target = {
        .rows = rows, .all_required = rules == AH_STRICT_OPENAI, .closed = true, .typed = true};
    size_t at = out->len;

    ah_schema_rewrite(&target, schema, out);
    if (!ah_buf_ok(out))
        return false;
    if (ah_strict_fits(rules, (ah_slice){out->data + at, out->len - at}, weight))
        return true;
    ah_buf_reset(out, at);
    return false;
}

/* -- tools of a request ---------------------------------------------------------------------- */

static bool is_asked(const ah_wire *w, ah_slice spec, bool *on)
{
    ah_slice v = ah_json_member(spec, "strict");

    if (!v.p)
        v = w->settings.options.strict;
    *on = ah_json_kind_of(v) == AH_JSON_TRUE;
    return v.p != NULL;
}

bool ah_strict_asked(const ah_wire *w)
{
    bool on = false;

    if (ah_wire_strict(w) == AH_STRICT_NONE)
        return false;
    for (size_t i = 0; i < w->offers.n && !on; i++)
        is_asked(w, w->offers.tool[i].spec, &on);
    return on;
}

/* Appends the parameters in strict form. A wrapped root is never strict. */
static bool put_alone(ah_strict_rules rules, ah_slice parameters, ah_strict_weight *weight,
                      ah_buf *out)
{
    return parameters.p && !ah_dialect_wraps(parameters) &&
           ah_strict_put(rules, parameters, weight, out);
}

/* Weighs a tool that asks to be strict, once. False: it is not strict. */
static bool weigh(const ah_wire *w, ah_offer *t, ah_buf *out)
{
    ah_buf b;

    if (!t->weighed) {
        ah_buf_init(&b, out->mem, out->max);
        t->strict =
            put_alone(ah_wire_strict(w), ah_json_member(t->spec, "parameters"), &t->weight, &b);
        t->weighed = ah_buf_ok(&b);
        if (!ah_buf_ok(&b))
            out->status = b.status;
        ah_buf_clear(&b);
    }
    return t->strict;
}

/* True if there is room for the tool beside those before it. */
static bool has_room(const ah_wire *w, ah_slice spec, ah_buf *out)
{
    const ah_offer *last = ah_offers_find(&w->offers, ah_json_member(spec, "name"));
    ah_strict_weight sum = {0, 0};
    size_t tools = 0;
    bool on, fits = false;

    if (!last)
        return false;
    for (ah_offer *t = w->offers.tool; t <= last; t++) {
        ah_strict_weight with;

        if (!ah_strict_allows(ah_wire_strict(w), tools + 1, &sum))
            return false; /* there is no room for any tool */
        if (!is_asked(w, t->spec, &on) || !on || !weigh(w, t, out))
            continue;
        with = (ah_strict_weight){sum.optional + t->weight.optional, sum.unions + t->weight.unions};
        if (ah_strict_allows(ah_wire_strict(w), tools + 1, &with)) {
            fits = t == last;
            tools++;
            sum = with;
        }
    }
    return fits;
}

ah_strictness ah_strict_put_parameters(const ah_wire *w, ah_slice spec, ah_buf *out)
{
    ah_strict_rules rules = ah_wire_strict(w);
    ah_slice given = ah_json_member(spec, "parameters");
    ah_slice parameters = given.p ? given : ah_slice_of("{\"properties\":{},\"type\":\"object\"}");
    bool on, asked = is_asked(w, spec, &on) && rules != AH_STRICT_NONE;

    if (asked && on && (rules != AH_STRICT_ANTHROPIC || has_room(w, spec, out)) &&
        put_alone(rules, parameters, NULL, out))
        return AH_STRICT_ON;
    ah_dialect_put(NULL, parameters, out);
    return asked ? AH_STRICT_OFF : AH_STRICT_UNASKED;
}
