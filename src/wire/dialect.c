/* Schemas as wires want them; see dialect.h. The recursion follows the schema,
 * which is at most 64 deep once it was compiled (schema/schema.h). */
#include "wire/dialect.h"

enum {
    MAX_ARGUMENTS = 64 << 20,
    ARGUMENTS_DEPTH = AH_JSON_MAX_DEPTH - 16 /* with room for what is around them in a request */
};

/* -- schemas ---------------------------------------------------------------------------- */

static bool among(ah_json_token key, const char *const *words)
{
    for (; *words; words++)
        if (ah_json_token_is(key, *words))
            return true;
    return false;
}

/* Members or items that are schemas each. */
static void put_schemas(ah_slice list, ah_buf *out)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token open = ah_json_next(&r), t = ah_json_next(&r);
    bool map = open.kind == AH_JSON_OBJECT;
    size_t n = 0;

    ah_buf_char(out, map ? '{' : '[');
    for (; t.kind != AH_JSON_OBJECT_END && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&r)) {
        ah_buf_str(out, n++ ? "," : "");
        if (map) {
            ah_buf_fmt(out, "\"%.*s\":", AH_FMT(t.raw));
            t = ah_json_next(&r);
        }
        ah_dialect_put_schema(ah_json_skip(&r, t), out);
    }
    ah_buf_char(out, map ? '}' : ']');
}

void ah_telling_begin(ah_telling *t, ah_buf *out)
{
    *t = (ah_telling){.out = out};
    ah_buf_init(&t->told, out->mem, out->max);
    ah_buf_char(out, '{');
}

void ah_telling_key(ah_telling *t, ah_slice raw)
{
    ah_buf_fmt(t->out, t->n++ ? ",\"%.*s\":" : "\"%.*s\":", AH_FMT(raw));
}

void ah_telling_tell(ah_telling *t, ah_json_token key, ah_slice value)
{
    ah_buf_fmt(&t->told, t->told.len ? ",\"%.*s\":" : "\"%.*s\":", AH_FMT(key.raw));
    ah_buf_put(&t->told, value);
}

/* The author's description, and what could not be said otherwise. */
static void put_description(ah_telling *t, ah_slice description)
{
    ah_buf text;

    if (!description.p && !t->told.len)
        return;
    ah_buf_init(&text, t->out->mem, t->out->max);
    ah_json_string(description, &text);
    if (t->told.len)
        ah_buf_fmt(&text, "%sIt must fit {%.*s}.", text.len ? " " : "", AH_FMT(ah_buf_slice(&t->told)));
    ah_telling_key(t, ah_slice_of("description"));
    ah_json_put_string(t->out, ah_buf_slice(&text));
    if (!ah_buf_ok(&text))
        t->out->status = text.status;
    ah_buf_clear(&text);
}

void ah_telling_end(ah_telling *t, ah_slice description)
{
    put_description(t, description);
    ah_buf_char(t->out, '}');
    if (!ah_buf_ok(&t->told))
        t->out->status = t->told.status;
    ah_buf_clear(&t->told);
}

static bool is_plain(ah_slice value)
{
    ah_json_kind kind = ah_json_kind_of(value);

    return kind == AH_JSON_STRING || kind == AH_JSON_NUMBER;
}

/* Gemini's enum holds strings and numbers. */
static bool all_plain(ah_slice list)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_END;
         t = ah_json_next(&r))
        if (!is_plain(ah_json_skip(&r, t)))
            return false;
    return true;
}

/* One member of a schema, in the words of Gemini's JSON Schema (documented for
 * responseJsonSchema, the same for parameters). */
static void lower_member(ah_telling *l, ah_json_token key, ah_slice value)
{
    static const char *const plain[] = {"type",     "format",  "title",   "minItems",
                                        "maxItems", "minimum", "maximum", "required",
                                        "$ref",     "$id",     "$anchor", NULL};
    static const char *const nested[] = {"properties", "$defs", "anyOf", "oneOf", "prefixItems", NULL};
    static const char *const single[] = {"items", "additionalProperties", NULL};

    if (ah_json_token_is(key, "const") && is_plain(value)) {
        ah_telling_key(l, ah_slice_of("enum"));
        ah_buf_fmt(l->out, "[%.*s]", AH_FMT(value));
        return;
    }
    if (ah_json_token_is(key, "items") && ah_json_kind_of(value) == AH_JSON_ARRAY) {
        ah_telling_key(l, ah_slice_of("prefixItems")); /* its name before draft 2020-12 */
        put_schemas(value, l->out);
        return;
    }
    if (!among(key, plain) && !among(key, nested) && !among(key, single) &&
        !(ah_json_token_is(key, "enum") && all_plain(value))) {
        ah_telling_tell(l, key, value);
        return;
    }
    ah_telling_key(l, key.raw);
    if (among(key, nested))
        put_schemas(value, l->out);
    else if (among(key, single))
        ah_dialect_put_schema(value, l->out);
    else
        ah_buf_put(l->out, value);
}

/* Beside a reference only names with a $ may stand: it moves into an anyOf of its own. */
static void put_reference(ah_telling *l, ah_json_token key, ah_slice ref, bool alone)
{
    if (alone) {
        lower_member(l, key, ref);
        return;
    }
    ah_telling_key(l, ah_slice_of("anyOf"));
    ah_buf_fmt(l->out, "[{\"$ref\":%.*s}]", AH_FMT(ref));
}

static void put_members(ah_telling *l, ah_slice schema)
{
    bool refers = ah_json_member(schema, "$ref").p && !ah_json_member(schema, "anyOf").p;
    bool only = ah_dialect_members(schema) == 1;
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);

    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (ah_json_token_is(key, "$ref"))
            put_reference(l, key, value, !refers || only);
        else if (!ah_json_token_is(key, "description"))
            lower_member(l, key, value);
    }
}

size_t ah_dialect_members(ah_slice schema)
{
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);
    size_t n = 0;

    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r), n++)
        ah_json_skip(&r, ah_json_next(&r));
    return n;
}

void ah_dialect_put_schema(ah_slice schema, ah_buf *out)
{
    ah_telling t;

    if (ah_json_kind_of(schema) != AH_JSON_OBJECT) { /* true and false are schemas, too */
        ah_buf_put(out, schema);
        return;
    }
    ah_telling_begin(&t, out);
    put_members(&t, schema);
    ah_telling_end(&t, ah_json_member(schema, "description"));
}

/* -- roots ------------------------------------------------------------------------------ */

bool ah_dialect_wraps(ah_slice schema)
{
    static const char *const refused[] = {"anyOf", "oneOf", "allOf",       "not",  "if",
                                          "enum",  "const", "$dynamicRef", "$ref", NULL};
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);

    if (key.kind != AH_JSON_OBJECT)
        return false;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        if (among(key, refused))
            return true;
        ah_json_skip(&r, ah_json_next(&r));
    }
    return false;
}

static void put_in(ah_schema_dialect d, ah_slice schema, ah_buf *out)
{
    if (d == AH_SCHEMA_GEMINI)
        ah_dialect_put_schema(schema, out);
    else
        ah_buf_put(out, schema);
}

/* The root without its definitions, which stay where references look for them. */
static void put_wrapped(ah_schema_dialect d, ah_slice schema, ah_buf *out)
{
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);
    ah_slice defs = ah_json_member(schema, "$defs"), old = ah_json_member(schema, "definitions");
    ah_buf inner;
    size_t n = 0;

    ah_buf_init(&inner, out->mem, out->max);
    ah_buf_char(&inner, '{');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (value.p != defs.p && value.p != old.p)
            ah_buf_fmt(&inner, n++ ? ",\"%.*s\":%.*s" : "\"%.*s\":%.*s", AH_FMT(key.raw), AH_FMT(value));
    }
    ah_buf_char(&inner, '}');
    ah_buf_str(out, "{");
    if (defs.p) {
        ah_buf_str(out, "\"$defs\":");
        if (d == AH_SCHEMA_GEMINI)
            put_schemas(defs, out);
        else
            ah_buf_put(out, defs);
        ah_buf_char(out, ',');
    }
    if (old.p)
        ah_buf_fmt(out, "\"definitions\":%.*s,", AH_FMT(old));
    ah_buf_str(out, "\"properties\":{\"" AH_WRAPPED "\":");
    put_in(d, ah_buf_slice(&inner), out);
    ah_buf_str(out, "},\"required\":[\"" AH_WRAPPED "\"],\"type\":\"object\"}");
    if (!ah_buf_ok(&inner))
        out->status = inner.status;
    ah_buf_clear(&inner);
}

void ah_dialect_put(ah_schema_dialect d, ah_slice schema, ah_buf *out)
{
    if (ah_dialect_wraps(schema))
        put_wrapped(d, schema, out);
    else
        put_in(d, schema, out);
}

/* -- arguments --------------------------------------------------------------------------- */

void ah_dialect_unwrap(const ah_mem *mem, ah_buf *arguments)
{
    static const ah_slice mark = AH_LIT("\"" AH_WRAPPED "\"");
    ah_slice text = ah_buf_slice(arguments), inner;
    size_t at, n;

    if (!ah_slice_find(text, mark) || ah_json_check(mem, text, AH_JSON_MAX_DEPTH, NULL) != AH_OK)
        return;
    inner = ah_json_member(text, AH_WRAPPED);
    if (ah_json_kind_of(inner) != AH_JSON_OBJECT || ah_dialect_members(text) != 1)
        return;
    at = (size_t)(inner.p - arguments->data);
    n = inner.n;
    ah_buf_reset(arguments, at + n);
    ah_buf_drop(arguments, at);
}

void ah_dialect_put_arguments(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out)
{
    bool wrapped = ah_offers_wrap(&w->offers, name), sound;
    ah_buf text;

    ah_buf_init(&text, out->mem, MAX_ARGUMENTS);
    ah_json_string(arguments, &text);
    sound = ah_json_check(out->mem, ah_buf_slice(&text), ARGUMENTS_DEPTH, NULL) == AH_OK &&
            ah_json_kind_of(ah_buf_slice(&text)) == AH_JSON_OBJECT;
    ah_buf_str(out, wrapped ? "{\"" AH_WRAPPED "\":" : "");
    ah_buf_put(out, sound ? ah_buf_slice(&text) : ah_slice_of("{}"));
    ah_buf_str(out, wrapped ? "}" : "");
    if (text.status == AH_NOMEM)
        out->status = text.status;
    ah_buf_clear(&text);
}

void ah_dialect_put_text(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out)
{
    bool wrapped = ah_offers_wrap(&w->offers, name);

    ah_buf_str(out, wrapped ? "\"{\\\"" AH_WRAPPED "\\\":" : "\"");
    if (arguments.n <= 2)
        ah_buf_str(out, "{}");
    else
        ah_buf_put(out, ah_json_inside(arguments));
    ah_buf_str(out, wrapped ? "}\"" : "\"");
}
