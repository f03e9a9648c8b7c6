/* One walk for all targets; see rewrite.h. The recursion follows the schema. */
#include "schema/rewrite.h"

#include "schema/key_index.h"

enum { MAX_LEVELS = 65 /* more than a compiled schema has */ };

/* A schema being rewritten: its members are written one by one. */
typedef struct rewriting {
    const ah_rewrite_target *target;
    ah_buf *out, told; /* described: as members of JSON */
    ah_slice schema;
    size_t n;     /* number of members written */
    int level;    /* number of schemas around it */
    bool or_null; /* its type also accepts null */
} rewriting;

static void put_schema(const rewriting *around, ah_slice schema, bool or_null);

static void put_key(rewriting *w, ah_slice raw)
{
    ah_buf_fmt(w->out, w->n++ ? ",\"%.*s\":" : "\"%.*s\":", AH_FMT(raw));
}

/* -- rows ------------------------------------------------------------------------------------- */

static bool is_of(const ah_rewrite_row *row, ah_json_token key, ah_slice value)
{
    ah_json_kind kind = ah_json_kind_of(value);

    return ah_slice_among(key.raw, row->keywords) && (!row->if_it || row->if_it(value)) &&
           (row->how != AH_REWRITE_LIST || kind == AH_JSON_ARRAY) &&
           (row->how < AH_REWRITE_MAP || kind == AH_JSON_OBJECT);
}

static const ah_rewrite_row *row_of(const ah_rewrite_row *row, ah_json_token key, ah_slice value)
{
    while (row->keywords && !is_of(row, key, value))
        row++;
    return row;
}

bool ah_rewrite_each(ah_rewrite_how how, ah_slice value, ah_rewrite_visit *visit, void *ud)
{
    ah_json_reader r = ah_json_read(value);
    ah_json_token t = {.kind = AH_JSON_END};
    bool on = true;

    if (how == AH_REWRITE_SCHEMA)
        return visit(ud, t, value);
    ah_json_next(&r);
    for (t = ah_json_next(&r); on && t.kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_OBJECT_END;
         t = ah_json_next(&r))
        on = visit(ud, t, ah_json_skip(&r, t.kind == AH_JSON_KEY ? ah_json_next(&r) : t));
    return on;
}

/* -- null in place of absent ------------------------------------------------------------------ */

static bool takes_null(ah_slice schema)
{
    ah_slice type = ah_json_member(schema, "type");
    ah_json_reader r = ah_json_read(ah_json_member(schema, "anyOf"));
    ah_json_token t = ah_json_next(&r);
    bool null = type.p &&
                (ah_json_string_is(type, "null") || ah_json_has_string(type, ah_slice_of("null")));

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT && !null; t = ah_json_next(&r))
        null = takes_null(ah_json_skip(&r, t));
    return null;
}

/* True if `type` can become a list with null. */
static bool is_plain(ah_slice schema)
{
    ah_slice type = ah_json_member(schema, "type");

    return type.p && !ah_json_member(schema, "enum").p && !ah_json_member(schema, "const").p &&
           !ah_json_string_is(type, "object") && !ah_json_string_is(type, "array");
}

static void put_type(const rewriting *w, ah_slice type)
{
    if (!w->or_null)
        ah_buf_put(w->out, type);
    else if (ah_json_kind_of(type) == AH_JSON_ARRAY)
        ah_buf_fmt(w->out, "%.*s,\"null\"]", (int)(type.n - 1), type.p);
    else
        ah_buf_fmt(w->out, "[%.*s,\"null\"]", AH_FMT(type));
}

/* -- schemas within --------------------------------------------------------------------------- */

/* The names in `required`; each lookup takes time in the name's length. */
typedef struct within {
    const rewriting *w;
    bool members;
    schema_index required;
    size_t n;
} within;

static bool note_required(within *in, ah_slice required)
{
    ah_json_reader r = ah_json_read(required);
    ah_json_token t = ah_json_next(&r);
    bool ok = true;

    for (t = ah_json_next(&r); ok && t.kind == AH_JSON_STRING; t = ah_json_next(&r)) {
        schema_key key = {.text = t.raw};

        if (schema_index_find(&in->required, key) == UINT32_MAX)
            ok = schema_index_put(in->w->out->mem, &in->required, key, 0);
    }
    if (!ok)
        in->w->out->status = AH_NOMEM;
    return ok;
}

static bool is_required(const within *in, ah_json_token name)
{
    return schema_index_find(&in->required, (schema_key){.text = name.raw}) != UINT32_MAX;
}

static bool put_one(void *ud, ah_json_token key, ah_slice schema)
{
    within *in = ud;
    ah_buf *out = in->w->out;

    ah_buf_str(out, in->n++ ? "," : "");
    if (key.kind == AH_JSON_KEY)
        ah_buf_fmt(out, "\"%.*s\":", AH_FMT(key.raw));
    put_schema(in->w, schema, in->members && !is_required(in, key));
    return ah_buf_ok(out);
}

static void put_within(const rewriting *w, ah_rewrite_how how, ah_slice value)
{
    within in = {.w = w, .members = how == AH_REWRITE_MEMBERS && w->target->all_required};
    const char *ends = how == AH_REWRITE_SCHEMA ? "" : how == AH_REWRITE_LIST ? "[]" : "{}";

    if (in.members && !note_required(&in, ah_json_member(w->schema, "required")))
        return;
    ah_buf_add(w->out, ends, *ends ? 1 : 0);
    ah_rewrite_each(how, value, put_one, &in);
    ah_buf_str(w->out, *ends ? ends + 1 : "");
    schema_index_clear(w->out->mem, &in.required);
}

static bool add_name(void *ud, ah_json_token name, ah_slice schema)
{
    within *in = ud;

    (void)schema;
    if (!is_required(in, name))
        ah_buf_fmt(in->w->out, in->n++ ? ",\"%.*s\"" : "\"%.*s\"", AH_FMT(name.raw));
    return true;
}

/* Puts the author's list, then the members that were not in it. */
static void put_required(const rewriting *w, ah_slice properties)
{
    ah_slice required = ah_json_member(w->schema, "required");
    bool given = ah_json_kind_of(required) == AH_JSON_ARRAY && required.n > 2;
    within in = {.w = w, .n = given};

    if (!note_required(&in, required))
        return;
    ah_buf_add(w->out, given ? required.p : "[", given ? required.n - 1 : 1);
    ah_rewrite_each(AH_REWRITE_MAP, properties, add_name, &in);
    ah_buf_char(w->out, ']');
    schema_index_clear(w->out->mem, &in.required);
}

/* -- members ---------------------------------------------------------------------------------- */

static void tell(rewriting *w, ah_json_token key, ah_slice value)
{
    ah_buf_fmt(&w->told, w->told.len ? ",\"%.*s\":" : "\"%.*s\":", AH_FMT(key.raw));
    ah_buf_put(&w->told, value);
}

/* An anyOf of the author stays as it is. */
static void put_reference(rewriting *w, ah_slice ref)
{
    bool alone = ah_json_has_one(w->schema) || ah_json_member(w->schema, "anyOf").p;

    put_key(w, ah_slice_of(alone ? "$ref" : "anyOf"));
    ah_buf_fmt(w->out, alone ? "%.*s" : "[{\"$ref\":%.*s}]", AH_FMT(ref));
}

static void put_value(rewriting *w, ah_rewrite_how how, ah_slice value)
{
    if (how >= AH_REWRITE_SCHEMA)
        put_within(w, how, value);
    else if (how == AH_REWRITE_TYPE)
        put_type(w, value);
    else
        ah_buf_fmt(w->out, how == AH_REWRITE_ALONE ? "[%.*s]" : "%.*s", AH_FMT(value));
}

static void put_member(rewriting *w, ah_json_token key, ah_slice value)
{
    const ah_rewrite_row *row = row_of(w->target->rows, key, value);
    bool again = w->target->all_required && ah_json_token_is(key, "required") &&
                 ah_json_member(w->schema, "properties").p; /* it is written anew */
    bool taken = row->as && ah_json_member(w->schema, row->as).p;

    if (row->how == AH_REWRITE_DROP || again || ah_json_token_is(key, "description"))
        return;
    if (row->how == AH_REWRITE_TELL || taken) {
        tell(w, key, value);
    } else if (row->how == AH_REWRITE_REFERENCE) {
        put_reference(w, value);
    } else {
        put_key(w, row->as ? ah_slice_of(row->as) : key.raw);
        put_value(w, row->how, value);
    }
}

/* Applies to objects with members; an empty object schema may accept any. */
static void put_closing(rewriting *w)
{
    ah_slice properties = ah_json_member(w->schema, "properties");

    if (ah_json_kind_of(properties) != AH_JSON_OBJECT)
        return;
    if (w->target->all_required) {
        put_key(w, ah_slice_of("required"));
        put_required(w, properties);
    }
    if (w->target->closed && properties.n > 2 &&
        !ah_json_member(w->schema, "additionalProperties").p) {
        put_key(w, ah_slice_of("additionalProperties"));
        ah_buf_str(w->out, "false");
    }
}

/* Returns the kind of all values of enum or const; AH_JSON_END: several kinds, or no values. */
static ah_json_kind kind_of_values(ah_slice schema)
{
    ah_slice list = ah_json_member(schema, "enum");
    ah_json_reader r = ah_json_read(list.p ? list : ah_json_member(schema, "const"));
    ah_json_token v = ah_json_next(&r);
    ah_json_kind kind;

    if (!list.p)
        return v.kind;
    v = ah_json_next(&r);
    for (kind = v.kind; v.kind == kind && kind != AH_JSON_END;)
        v = ah_json_next(&r);
    return v.kind == AH_JSON_ARRAY_END ? kind : AH_JSON_END;
}

static void put_type_of_values(rewriting *w)
{
    ah_json_kind kind = kind_of_values(w->schema);

    if ((kind != AH_JSON_STRING && kind != AH_JSON_NUMBER) || ah_json_member(w->schema, "type").p)
        return;
    put_key(w, ah_slice_of("type"));
    ah_buf_str(w->out, kind == AH_JSON_STRING ? "\"string\"" : "\"number\"");
}

/* Puts the author's description, and the described keywords. */
static void put_description(rewriting *w)
{
    ah_slice description = ah_json_member(w->schema, "description");
    ah_buf text;

    if (!description.p && !w->told.len)
        return;
    ah_buf_init(&text, w->out->mem, w->out->max);
    ah_json_string(description, &text);
    if (w->told.len)
        ah_buf_fmt(&text, "%sIt must fit {%.*s}.", text.len ? " " : "",
                   AH_FMT(ah_buf_slice(&w->told)));
    put_key(w, ah_slice_of("description"));
    ah_json_put_string(w->out, ah_buf_slice(&text));
    if (!ah_buf_ok(&text))
        w->out->status = text.status;
    ah_buf_clear(&text);
}

static void put_members(rewriting *w)
{
    ah_json_reader r = ah_json_read(w->schema);
    ah_json_token key = ah_json_next(&r);

    ah_buf_init(&w->told, w->out->mem, w->out->max);
    ah_buf_char(w->out, '{');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        put_member(w, key, ah_json_skip(&r, ah_json_next(&r)));
    if (w->target->typed)
        put_type_of_values(w);
    put_closing(w);
    put_description(w);
    ah_buf_char(w->out, '}');
    if (!ah_buf_ok(&w->told))
        w->out->status = w->told.status;
    ah_buf_clear(&w->told);
}

static void put_schema(const rewriting *around, ah_slice schema, bool or_null)
{
    rewriting w = {
        .target = around->target, .out = around->out, .schema = schema, .level = around->level + 1};
    bool null_beside;

    if (ah_json_kind_of(schema) != AH_JSON_OBJECT || w.level > MAX_LEVELS) {
        ah_buf_put(w.out, schema); /* true and false are schemas, too */
        return;
    }
    or_null = or_null && !takes_null(schema);
    null_beside = or_null && !is_plain(schema);
    w.or_null = or_null && !null_beside;
    ah_buf_str(w.out, null_beside ? "{\"anyOf\":[" : "");
    put_members(&w);
    ah_buf_str(w.out, null_beside ? ",{\"type\":\"null\"}]}" : "");
}

void ah_schema_rewrite(const ah_rewrite_target *target, ah_slice schema, ah_buf *out)
{
    put_schema(&(rewriting){.target = target, .out = out}, schema, false);
}

void ah_schema_rewrite_map(const ah_rewrite_target *target, ah_slice map, ah_buf *out)
{
    put_within(&(rewriting){.target = target, .out = out}, AH_REWRITE_MAP, map);
}
