/* Walks a schema as text, at most MAX_LEVELS deep. */
#include "wire/strict_subset.h"

enum {
    MAX_LEVELS = 10,
    MAX_PROPERTIES = 5000,
    MAX_VALUES = 1000,
    MAX_TEXT = 120000,
    MAX_TOOLS = 20, /* this and the rest are Anthropic's limits for one request */
    MAX_OPTIONAL = 24,
    MAX_UNIONS = 16
};

typedef struct judge {
    ah_strict_rules rules;
    size_t properties, values, text;
    ah_strict_weight weight;
} judge;

/* The check of a schema within another. */
typedef struct within {
    judge *j;
    int level;
} within;

static bool fits(judge *j, ah_slice schema, int level);

static bool one_fits(void *ud, ah_json_token key, ah_slice schema)
{
    within *in = ud;

    if (key.kind == AH_JSON_KEY) {
        in->j->properties++;
        in->j->text += key.raw.n;
    }
    return fits(in->j, schema, in->level);
}

static bool count_name(void *ud, ah_json_token key, ah_slice schema)
{
    (void)key;
    (void)schema;
    return ++*(size_t *)ud <= MAX_PROPERTIES;
}

/* True if no more members are required than exist: each required name is searched among all
 * members. */
static bool is_sound(ah_slice required, ah_slice properties)
{
    size_t names = 0, members = 0;

    return (ah_json_kind_of(required) != AH_JSON_ARRAY ||
            ah_rewrite_each(AH_REWRITE_LIST, required, count_name, &names)) &&
           ah_rewrite_each(AH_REWRITE_MAP, properties, count_name, &members) && names <= members;
}

/* True if it allows only the members that it names and, under OpenAI's rules, requires them all. */
static bool is_closed(judge *j, ah_slice schema)
{
    ah_slice required = ah_json_member(schema, "required"),
             map = ah_json_member(schema, "properties");
    ah_json_reader r = ah_json_read(map);
    ah_json_token key = ah_json_next(&r);

    if (ah_json_kind_of(ah_json_member(schema, "additionalProperties")) != AH_JSON_FALSE ||
        key.kind != AH_JSON_OBJECT || !is_sound(required, map))
        return false;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        bool there = ah_json_has_string(required, key.raw);

        if (!there && j->rules == AH_STRICT_OPENAI)
            return false;
        j->weight.optional += !there;
        ah_json_skip(&r, ah_json_next(&r));
    }
    return true;
}

static bool is_scalar(ah_json_kind kind)
{
    return kind == AH_JSON_STRING || kind == AH_JSON_NUMBER || kind == AH_JSON_TRUE ||
           kind == AH_JSON_FALSE || kind == AH_JSON_NULL;
}

static bool values_fit(judge *j, ah_slice list)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_ARRAY) { /* it is `const` */
        j->text += list.n;
        return is_scalar(t.kind);
    }
    if (list.n == 2)
        return false; /* an empty enum has no valid value */
    for (t = ah_json_next(&r); is_scalar(t.kind); t = ah_json_next(&r)) {
        j->values++;
        j->text += t.raw.n;
    }
    return t.kind == AH_JSON_ARRAY_END;
}

/* Only references to the root or a definition fit, with nothing beside them. */
static bool reference_fits(const judge *j, ah_slice schema, ah_slice ref)
{
    static const char defs[] = "\"#/$defs/";
    size_t n = sizeof defs - 1;

    if (j->rules != AH_STRICT_OPENAI || !ah_json_has_one(schema))
        return false;
    return ah_json_string_is(ref, "#") ||
           (ah_slice_begins(ref, defs) && !memchr(ref.p + n, '/', ref.n - n));
}

static bool keyword_fits(judge *j, ah_slice schema, ah_slice key, ah_slice value, int level)
{
    bool map = ah_slice_is(key, "properties"), list = ah_slice_is(key, "anyOf") && level,
         defs = ah_slice_is(key, "$defs") && !level && j->rules == AH_STRICT_OPENAI;
    within in = {j, level + 1};

    if (ah_slice_among(key, " type description title required additionalProperties "))
        return true;
    if (ah_slice_among(key, " enum const "))
        return values_fit(j, value);
    if (ah_slice_is(key, "$ref"))
        return reference_fits(j, schema, value);
    j->weight.unions += list;
    if (map || defs)
        return ah_json_kind_of(value) == AH_JSON_OBJECT &&
               ah_rewrite_each(AH_REWRITE_MAP, value, one_fits, &in);
    if (list)
        return ah_json_kind_of(value) == AH_JSON_ARRAY &&
               ah_rewrite_each(AH_REWRITE_LIST, value, one_fits, &in);
    return ah_slice_is(key, "items") && fits(j, value, level + 1);
}

/* True if the type fits: it is declared, and a list of types has only scalars. */
static bool type_fits(judge *j, ah_slice schema)
{
    ah_slice type = ah_json_member(schema, "type");

    if (!type.p)
        return ah_json_member(schema, "anyOf").p || ah_json_member(schema, "$ref").p;
    if (ah_json_string_is(type, "object"))
        return is_closed(j, schema);
    if (ah_json_string_is(type, "array"))
        return ah_json_member(schema, "items").p != NULL;
    if (ah_json_kind_of(type) != AH_JSON_ARRAY)
        return true;
    j->weight.unions++;
    return !ah_slice_find(type, ah_slice_of("\"object\"")) &&
           !ah_slice_find(type, ah_slice_of("\"array\""));
}

static bool fits(judge *j, ah_slice schema, int level)
{
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);
    bool ok = key.kind == AH_JSON_OBJECT && level < MAX_LEVELS && type_fits(j, schema);

    for (key = ah_json_next(&r); ok && key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        ok = keyword_fits(j, schema, key.raw, ah_json_skip(&r, ah_json_next(&r)), level);
    return ok;
}

bool ah_strict_fits(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight)
{
    judge j = {.rules = rules};

    if (rules == AH_STRICT_NONE || !fits(&j, schema, 0) || j.properties > MAX_PROPERTIES ||
        j.values > MAX_VALUES || j.text > MAX_TEXT)
        return false;
    if (weight)
        *weight = j.weight;
    return true;
}

bool ah_strict_allows(ah_strict_rules rules, size_t tools, const ah_strict_weight *weight)
{
    return rules != AH_STRICT_ANTHROPIC ||
           (tools <= MAX_TOOLS && weight->optional <= MAX_OPTIONAL && weight->unions <= MAX_UNIONS);
}
