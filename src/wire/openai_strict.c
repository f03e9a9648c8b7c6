/* A schema is walked as text; what is not surely supported does not fit, since a request
 * with a schema that strict refuses fails as a whole. */
#include "wire/openai_strict.h"

enum { MAX_LEVELS = 10 };

static bool fits(ah_slice schema, int level);

/* All members of an object are schemas that fit. */
static bool all_members_fit(ah_slice object, int level)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token key = ah_json_next(&r);
    bool ok = key.kind == AH_JSON_OBJECT;

    for (key = ah_json_next(&r); ok && key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        ok = fits(ah_json_skip(&r, ah_json_next(&r)), level);
    return ok;
}

static bool all_items_fit(ah_slice array, int level)
{
    ah_json_reader r = ah_json_read(array);
    ah_json_token t = ah_json_next(&r);
    bool ok = t.kind == AH_JSON_ARRAY;

    for (t = ah_json_next(&r); ok && t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        ok = fits(ah_json_skip(&r, t), level);
    return ok && t.kind == AH_JSON_ARRAY_END;
}

static bool holds(ah_slice array, ah_json_token name)
{
    ah_json_reader r = ah_json_read(array);
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_ARRAY)
        return false;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r))
        if (ah_slice_eq(t.raw, name.raw))
            return true;
    return false;
}

/* Requires all it names and allows no others. */
static bool is_closed(ah_slice schema)
{
    ah_slice required = ah_json_member(schema, "required");
    ah_json_reader r = ah_json_read(ah_json_member(schema, "properties"));
    ah_json_token key = ah_json_next(&r);

    if (ah_json_kind_of(ah_json_member(schema, "additionalProperties")) != AH_JSON_FALSE ||
        key.kind != AH_JSON_OBJECT)
        return false;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        if (!holds(required, key))
            return false;
        ah_json_skip(&r, ah_json_next(&r));
    }
    return true;
}

static bool keyword_fits(ah_json_token key, ah_slice value, int level)
{
    static const char *const plain[] = {"type",     "description",          "title", "enum", "const",
                                        "required", "additionalProperties", "$ref",  NULL};

    for (const char *const *k = plain; *k; k++)
        if (ah_json_token_is(key, *k))
            return true;
    if (ah_json_token_is(key, "properties") || ah_json_token_is(key, "$defs"))
        return all_members_fit(value, level + 1);
    if (ah_json_token_is(key, "items"))
        return fits(value, level + 1);
    return ah_json_token_is(key, "anyOf") && level > 0 && all_items_fit(value, level + 1);
}

static bool fits(ah_slice schema, int level)
{
    ah_slice type = ah_json_member(schema, "type");
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);
    bool ok = key.kind == AH_JSON_OBJECT && level < MAX_LEVELS;

    for (key = ah_json_next(&r); ok && key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        ok = keyword_fits(key, ah_json_skip(&r, ah_json_next(&r)), level);
    if (ok && type.p && ah_json_string_is(type, "object"))
        ok = is_closed(schema);
    return ok &&
           (ah_json_kind_of(type) != AH_JSON_ARRAY || !ah_slice_find(type, ah_slice_of("\"object\"")));
}

bool ah_openai_fits_strict(ah_slice schema)
{
    return fits(schema, 0);
}
