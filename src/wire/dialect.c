/* Parameters and arguments as wires want them; see dialect.h. */
#include "wire/dialect.h"

enum { MAX_ARGUMENTS = 64 << 20 };

/* -- roots ------------------------------------------------------------------------------ */

bool ah_dialect_wraps(ah_slice schema)
{
    ah_json_reader r = ah_json_read(schema);
    ah_json_token key = ah_json_next(&r);

    if (key.kind != AH_JSON_OBJECT)
        return false;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        if (ah_slice_among(key.raw, " anyOf oneOf allOf not if enum const $dynamicRef $ref "))
            return true;
        ah_json_skip(&r, ah_json_next(&r));
    }
    return false;
}

static void put_in(const ah_rewrite_target *words, ah_slice schema, ah_buf *out)
{
    if (words)
        ah_schema_rewrite(words, schema, out);
    else
        ah_buf_put(out, schema);
}

/* The root without its definitions, which stay where references expect them. */
static void put_wrapped(const ah_rewrite_target *words, ah_slice schema, ah_buf *out)
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
            ah_buf_fmt(&inner, n++ ? ",\"%.*s\":%.*s" : "\"%.*s\":%.*s", AH_FMT(key.raw),
                       AH_FMT(value));
    }
    ah_buf_char(&inner, '}');
    ah_buf_str(out, "{");
    if (defs.p) {
        ah_buf_str(out, "\"$defs\":");
        if (words && ah_json_kind_of(defs) == AH_JSON_OBJECT)
            ah_schema_rewrite_map(words, defs, out);
        else
            ah_buf_put(out, defs);
        ah_buf_char(out, ',');
    }
    if (old.p)
        ah_buf_fmt(out, "\"definitions\":%.*s,", AH_FMT(old));
    ah_buf_str(out, "\"properties\":{\"" AH_WRAPPED "\":");
    put_in(words, ah_buf_slice(&inner), out);
    ah_buf_str(out, "},\"required\":[\"" AH_WRAPPED "\"],\"type\":\"object\"}");
    if (!ah_buf_ok(&inner))
        out->status = inner.status;
    ah_buf_clear(&inner);
}

void ah_dialect_put(const ah_rewrite_target *words, ah_slice schema, ah_buf *out)
{
    if (ah_dialect_wraps(schema))
        put_wrapped(words, schema, out);
    else
        put_in(words, schema, out);
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
    if (ah_json_kind_of(inner) != AH_JSON_OBJECT || !ah_json_has_one(text))
        return;
    at = (size_t)(inner.p - arguments->data);
    n = inner.n;
    ah_buf_reset(arguments, at + n);
    ah_buf_drop(arguments, at);
}

/* Appends the arguments of an entry that came from another wire. */
static void put_judged(ah_slice arguments, ah_buf *out)
{
    ah_buf text;
    bool sound;

    ah_buf_init(&text, out->mem, MAX_ARGUMENTS);
    ah_json_string(arguments, &text);
    sound = ah_json_check(out->mem, ah_buf_slice(&text), AH_ARGUMENTS_DEPTH, NULL) == AH_OK &&
            ah_json_kind_of(ah_buf_slice(&text)) == AH_JSON_OBJECT;
    ah_buf_put(out, sound ? ah_buf_slice(&text) : ah_slice_of("{}"));
    if (text.status == AH_NOMEM)
        out->status = text.status;
    ah_buf_clear(&text);
}

void ah_dialect_put_arguments(const ah_wire *w, ah_slice name, ah_slice arguments, ah_buf *out)
{
    bool wrapped = ah_offers_wrap(&w->offers, name);

    ah_buf_str(out, wrapped ? "{\"" AH_WRAPPED "\":" : "");
    if (w->transcript->entry[w->done].objects)
        ah_json_string(arguments, out);
    else
        put_judged(arguments, out);
    ah_buf_str(out, wrapped ? "}" : "");
}

void ah_dialect_put_text(const ah_wire *w, ah_slice name, ah_slice arguments, ah_buf *out)
{
    bool wrapped = ah_offers_wrap(&w->offers, name);

    ah_buf_str(out, wrapped ? "\"{\\\"" AH_WRAPPED "\\\":" : "\"");
    if (arguments.n <= 2)
        ah_buf_str(out, "{}");
    else
        ah_buf_put(out, ah_json_inside(arguments));
    ah_buf_str(out, wrapped ? "}\"" : "\"");
}
