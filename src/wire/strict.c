/* Lowering into the strict subset; see strict.h. What this does not know is left as it is, and
 * the subset's judge then refuses the whole. The recursion follows the schema, which is at most 64
 * deep once it was compiled (schema/schema.h). */
#include "wire/strict.h"

#include "wire/dialect.h"

/* A schema on its way, and what is to come of it. */
typedef struct lowering {
    ah_strict_rules rules;
    bool null_too; /* it may be null in place of absent */
} lowering;

static void put_schema(lowering l, ah_slice schema, ah_buf *out);

static bool among(ah_json_token key, const char *const *words)
{
    for (; *words; words++)
        if (ah_json_token_is(key, *words))
            return true;
    return false;
}

/* Rules that only narrow what fits: they can be told in words. */
static bool only_narrows(ah_json_token key)
{
    static const char *const words[] = {
        "minimum",       "maximum",         "exclusiveMinimum",  "exclusiveMaximum", "multipleOf",
        "minLength",     "maxLength",       "pattern",           "format",           "minItems",
        "maxItems",      "uniqueItems",     "contains",          "minContains",      "maxContains",
        "minProperties", "maxProperties",   "dependentRequired", "propertyNames",    "not",
        "default",       "contentEncoding", "contentMediaType",  "examples",         NULL};

    return among(key, words);
}

/* -- null ---------------------------------------------------------------------------------- */

static bool takes_null(ah_slice schema)
{
    ah_slice type = ah_json_member(schema, "type");
    ah_json_reader r = ah_json_read(ah_json_member(schema, "anyOf"));
    ah_json_token t = ah_json_next(&r);
    bool null =
        type.p && (ah_json_string_is(type, "null") || ah_strict_holds(type, ah_slice_of("null")));

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT && !null; t = ah_json_next(&r))
        null = takes_null(ah_json_skip(&r, t));
    return null;
}

/* True if `type` can become a list with null in it. */
static bool is_plain(ah_slice schema)
{
    ah_slice type = ah_json_member(schema, "type");

    return type.p && !ah_json_member(schema, "enum").p && !ah_json_member(schema, "const").p &&
           !ah_json_string_is(type, "object") && !ah_json_string_is(type, "array");
}

static void put_type(ah_slice type, bool null_too, ah_buf *out)
{
    if (!null_too)
        ah_buf_put(out, type);
    else if (ah_json_kind_of(type) == AH_JSON_ARRAY)
        ah_buf_fmt(out, "%.*s,\"null\"]", (int)(type.n - 1), type.p);
    else
        ah_buf_fmt(out, "[%.*s,\"null\"]", AH_FMT(type));
}

/* -- members ------------------------------------------------------------------------------- */

/* Schemas by name. `required` is NULL where they are definitions. */
static void put_map(lowering l, ah_slice map, const ah_slice *required, ah_buf *out)
{
    ah_json_reader r = ah_json_read(map);
    ah_json_token key = ah_json_next(&r);
    size_t n = 0;

    ah_buf_char(out, '{');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_buf_fmt(out, n++ ? ",\"%.*s\":" : "\"%.*s\":", AH_FMT(key.raw));
        l.null_too = required && l.rules == AH_STRICT_OPENAI && !ah_strict_holds(*required, key.raw);
        put_schema(l, ah_json_skip(&r, ah_json_next(&r)), out);
    }
    ah_buf_char(out, '}');
}

static void put_list(lowering l, ah_slice list, ah_buf *out)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    ah_buf_char(out, '[');
    for (t = ah_json_next(&r); t.kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_END;
         t = ah_json_next(&r)) {
        ah_buf_str(out, n++ ? "," : "");
        put_schema(l, ah_json_skip(&r, t), out);
    }
    ah_buf_char(out, ']');
}

/* The author's list, then the members that were not in it. */
static void put_required(ah_slice required, ah_slice properties, ah_buf *out)
{
    bool given = ah_json_kind_of(required) == AH_JSON_ARRAY && required.n > 2;
    ah_json_reader r = ah_json_read(properties);
    ah_json_token key = ah_json_next(&r);
    size_t n = given;

    ah_buf_add(out, given ? required.p : "[", given ? required.n - 1 : 1);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        if (!ah_strict_holds(required, key.raw))
            ah_buf_fmt(out, n++ ? ",\"%.*s\"" : "\"%.*s\"", AH_FMT(key.raw));
        ah_json_skip(&r, ah_json_next(&r));
    }
    ah_buf_char(out, ']');
}

/* Unknown members are refused of every object that names some; an empty one may stand for
 * anything. */
static void close_object(lowering l, ah_telling *t, ah_slice schema, ah_slice properties)
{
    if (ah_json_kind_of(properties) != AH_JSON_OBJECT)
        return;
    if (l.rules == AH_STRICT_OPENAI) {
        ah_telling_key(t, ah_slice_of("required"));
        put_required(ah_json_member(schema, "required"), properties, t->out);
    }
    if (properties.n > 2 && !ah_json_member(schema, "additionalProperties").p) {
        ah_telling_key(t, ah_slice_of("additionalProperties"));
        ah_buf_str(t->out, "false");
    }
}

/* A list of values says what type they are; providers want that said. */
static void put_type_of_values(ah_telling *t, ah_slice schema)
{
    ah_slice list = ah_json_member(schema, "enum");
    ah_json_reader r = ah_json_read(list.p ? list : ah_json_member(schema, "const"));
    ah_json_token v = ah_json_next(&r);
    ah_json_kind kind;

    if (list.p)
        v = ah_json_next(&r);
    kind = v.kind;
    while (list.p && v.kind == kind)
        v = ah_json_next(&r);
    if ((kind != AH_JSON_STRING && kind != AH_JSON_NUMBER) || (list.p && v.kind != AH_JSON_ARRAY_END) ||
        ah_json_member(schema, "type").p)
        return;
    ah_telling_key(t, ah_slice_of("type"));
    ah_buf_str(t->out, kind == AH_JSON_STRING ? "\"string\"" : "\"number\"");
}

/* True if it is one of those that close_object or put_schema write, or nothing to the provider. */
static bool is_elsewhere(lowering l, ah_slice schema, ah_json_token key)
{
    static const char *const words[] = {"$schema", "$comment", "description", NULL};

    return among(key, words) || (ah_json_token_is(key, "required") && l.rules == AH_STRICT_OPENAI &&
                                 ah_json_member(schema, "properties").p);
}

static void put_value(lowering l, ah_slice schema, ah_json_token key, ah_slice value, ah_buf *out)
{
    ah_slice required = ah_json_member(schema, "required");
    lowering inner = {.rules = l.rules};

    if (ah_json_token_is(key, "properties"))
        put_map(inner, value, &required, out);
    else if (ah_json_token_is(key, "$defs"))
        put_map(inner, value, NULL, out);
    else if (ah_json_token_is(key, "items"))
        put_schema(inner, value, out);
    else if (ah_json_token_is(key, "anyOf"))
        put_list(inner, value, out);
    else if (ah_json_token_is(key, "type"))
        put_type(value, l.null_too, out);
    else
        ah_buf_put(out, value);
}

/* Beside a reference nothing may stand: it moves into an anyOf of its own. */
static void put_reference(ah_telling *t, ah_slice ref, bool alone)
{
    ah_telling_key(t, ah_slice_of(alone ? "$ref" : "anyOf"));
    ah_buf_fmt(t->out, alone ? "%.*s" : "[{\"$ref\":%.*s}]", AH_FMT(ref));
}

static void put_members(lowering l, ah_slice schema, ah_telling *t)
{
    bool alone = ah_dialect_members(schema) == 1 || ah_json_member(schema, "anyOf").p;
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);

    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (is_elsewhere(l, schema, key))
            continue;
        if (only_narrows(key)) {
            ah_telling_tell(t, key, value);
        } else if (ah_json_token_is(key, "$ref")) {
            put_reference(t, value, alone);
        } else {
            ah_telling_key(t, key.raw);
            put_value(l, schema, key, value, t->out);
        }
    }
    put_type_of_values(t, schema);
    close_object(l, t, schema, ah_json_member(schema, "properties"));
}

static void put_schema(lowering l, ah_slice schema, ah_buf *out)
{
    bool null_too = l.null_too && !takes_null(schema), around = null_too && !is_plain(schema);
    ah_telling t;

    if (ah_json_kind_of(schema) != AH_JSON_OBJECT) { /* true and false are schemas, too */
        ah_buf_put(out, schema);
        return;
    }
    l.null_too = null_too && !around;
    ah_buf_str(out, around ? "{\"anyOf\":[" : "");
    ah_telling_begin(&t, out);
    put_members(l, schema, &t);
    ah_telling_end(&t, ah_json_member(schema, "description"));
    ah_buf_str(out, around ? ",{\"type\":\"null\"}]}" : "");
}

bool ah_strict_put(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight, ah_buf *out)
{
    size_t at = out->len;

    put_schema((lowering){.rules = rules}, schema, out);
    if (!ah_buf_ok(out))
        return false;
    if (ah_strict_fits(rules, (ah_slice){out->data + at, out->len - at}, weight))
        return true;
    ah_buf_reset(out, at);
    return false;
}

/* -- tools of a request ---------------------------------------------------------------------- */

static bool is_asked(const ah_lowered *w, ah_slice spec, bool *on)
{
    ah_slice v = ah_json_member(spec, "strict");

    if (!v.p)
        v = w->settings.options.strict;
    *on = ah_json_kind_of(v) == AH_JSON_TRUE;
    return v.p != NULL;
}

bool ah_strict_asked(const ah_lowered *w)
{
    bool on = false;

    if (ah_lowered_strict(w) == AH_STRICT_NONE)
        return false;
    for (size_t i = 0; i < w->offers.n && !on; i++)
        is_asked(w, w->offers.tool[i].spec, &on);
    return on;
}

/* The parameters as strict ones. Roots that are wrapped are not: the wrapping is a way around them. */
static bool put_alone(ah_strict_rules rules, ah_slice parameters, ah_strict_weight *weight, ah_buf *out)
{
    return parameters.p && !ah_dialect_wraps(parameters) &&
           ah_strict_put(rules, parameters, weight, out);
}

/* Weighs a tool that is asked to be strict, once. False: it is not strict. */
static bool weigh(const ah_lowered *w, ah_offered *t, ah_buf *out)
{
    ah_buf b;

    if (!t->weighed) {
        ah_buf_init(&b, out->mem, out->max);
        t->strict =
            put_alone(ah_lowered_strict(w), ah_json_member(t->spec, "parameters"), &t->weight, &b);
        t->weighed = ah_buf_ok(&b);
        if (!ah_buf_ok(&b))
            out->status = b.status;
        ah_buf_clear(&b);
    }
    return t->strict;
}

/* True if there is room for the tool beside those that came before it. */
static bool has_room(const ah_lowered *w, ah_slice spec, ah_buf *out)
{
    const ah_offered *last = ah_offers_find(&w->offers, ah_json_member(spec, "name"));
    ah_strict_weight sum = {0, 0};
    size_t tools = 0;
    bool on, fits = false;

    if (!last)
        return false;
    for (ah_offered *t = w->offers.tool; t <= last; t++) {
        ah_strict_weight with;

        if (!ah_strict_allows(ah_lowered_strict(w), tools + 1, &sum))
            return false; /* for any tool */
        if (!is_asked(w, t->spec, &on) || !on || !weigh(w, t, out))
            continue;
        with = (ah_strict_weight){sum.optional + t->weight.optional, sum.unions + t->weight.unions};
        if (ah_strict_allows(ah_lowered_strict(w), tools + 1, &with)) {
            fits = t == last;
            tools++;
            sum = with;
        }
    }
    return fits;
}

ah_strictness ah_strict_put_parameters(const ah_lowered *w, ah_slice spec, ah_buf *out)
{
    ah_strict_rules rules = ah_lowered_strict(w);
    ah_slice given = ah_json_member(spec, "parameters");
    ah_slice parameters = given.p ? given : ah_slice_of("{\"properties\":{},\"type\":\"object\"}");
    bool on, asked = is_asked(w, spec, &on) && rules != AH_STRICT_NONE;

    if (asked && on && (rules != AH_STRICT_ANTHROPIC || has_room(w, spec, out)) &&
        put_alone(rules, parameters, NULL, out))
        return AH_STRICT_ON;
    ah_dialect_put(AH_SCHEMA_PLAIN, parameters, out);
    return asked ? AH_STRICT_OFF : AH_STRICT_UNASKED;
}
