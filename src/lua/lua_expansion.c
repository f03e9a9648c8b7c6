/* Reads the object by raw access, without running code of a script, since any code may have made
 * it. */
#include "lua/lua_expansion.h"

#include "lua/lua_host.h"
#include "lua/lua_state.h"
#include "lua/lua_value.h"

enum { MAX_ASKED = 1 << 20, MAX_KEY = 4096 /* bytes of a section's path */ };

/* Appends the raw field of the table at idx as JSON; false: the field is absent. */
static bool put_field(lua_State *L, int idx, const char *name, ah_buf *out, ah_status *st,
                      ah_err *err)
{
    bool there;

    lua_pushstring(L, name);
    there = lua_rawget(L, idx) != LUA_TNIL;
    if (there)
        *st = ah_lua_to_json(L, -1, out->mem, out, err);
    lua_pop(L, 1);
    return there && *st == AH_OK;
}

static ah_status refuse(ah_err *err)
{
    return ah_err_set(
        err, AH_TOOL_VALIDATION,
        "visibility_expansion_required: requested_overrides must be "
        "{ [\"section.key\"] = \"full\" or \"summary\" }, and section_keys a list of keys");
}

static ah_status check_overrides(ah_slice overrides, ah_err *err)
{
    ah_json_reader r = ah_json_read(overrides);
    ah_json_token key = ah_json_next(&r);

    if (key.kind != AH_JSON_OBJECT)
        return refuse(err);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (!key.raw.n || key.raw.n > MAX_KEY ||
            !(ah_json_string_is(value, "full") || ah_json_string_is(value, "summary")))
            return refuse(err);
    }
    return AH_OK;
}

static ah_status check_keys(ah_slice keys, ah_err *err)
{
    ah_json_reader r = ah_json_read(keys);
    ah_json_token t = ah_json_next(&r);

    if (t.kind == AH_JSON_ARRAY)
        for (t = ah_json_next(&r); t.kind == AH_JSON_STRING && t.raw.n && t.raw.n <= MAX_KEY;)
            t = ah_json_next(&r);
    return t.kind == AH_JSON_ARRAY_END ? AH_OK : refuse(err);
}

/* Sections that are named without a visibility are requested in full. */
static void put_full(ah_slice keys, ah_buf *out)
{
    ah_json_reader r = ah_json_read(keys);
    ah_json_token t = ah_json_next(&r);

    ah_buf_char(out, '{');
    t = ah_json_next(&r);
    for (size_t n = 0; t.kind == AH_JSON_STRING; n++, t = ah_json_next(&r))
        ah_buf_fmt(out, "%s\"%.*s\":\"full\"", n ? "," : "", AH_FMT(t.raw));
    ah_buf_char(out, '}');
}

static void put_keys(ah_slice overrides, ah_buf *out)
{
    ah_json_reader r = ah_json_read(overrides);
    ah_json_token key = ah_json_next(&r);
    size_t n = 0;

    ah_buf_char(out, '[');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_json_skip(&r, ah_json_next(&r));
        ah_buf_fmt(out, "%s\"%.*s\"", n++ ? "," : "", AH_FMT(key.raw));
    }
    ah_buf_char(out, ']');
}

/* The three fields as JSON. */
typedef struct fields {
    ah_buf *overrides, *keys, *reason;
    bool has_overrides, has_keys, has_reason;
} fields;

static ah_status put_expansion(const fields *f, ah_buf *out, ah_err *err)
{
    ah_slice overrides = ah_buf_slice(f->overrides), keys = ah_buf_slice(f->keys);
    ah_status st = f->has_overrides ? check_overrides(overrides, err) : AH_OK;

    if (st == AH_OK && f->has_keys)
        st = check_keys(keys, err);
    if (st != AH_OK || !(f->has_overrides || f->has_keys))
        return st;
    ah_buf_char(out, '{');
    if (f->has_reason)
        ah_buf_fmt(out, "\"reason\":%.*s,", AH_FMT(ah_buf_slice(f->reason)));
    ah_buf_str(out, "\"requested_overrides\":");
    if (f->has_overrides)
        ah_buf_put(out, overrides);
    else
        put_full(keys, out);
    ah_buf_str(out, ",\"section_keys\":");
    if (f->has_keys)
        ah_buf_put(out, keys);
    else
        put_keys(overrides, out);
    ah_buf_char(out, '}');
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "requested_overrides", err);
}

/* True if the table is empty, as a list or as an object. */
static bool is_empty(const ah_buf *b)
{
    return ah_slice_is(ah_buf_slice(b), "{}") || ah_slice_is(ah_buf_slice(b), "[]");
}

typedef struct reading {
    ah_buf *out;
    ah_status st;
    ah_err *err;
} reading;

/* (reading, object) */
static int read_object(lua_State *L)
{
    reading *r = lua_touserdata(L, 1);
    fields f = {ah_lua_push_buf(L, MAX_ASKED),
                ah_lua_push_buf(L, MAX_ASKED),
                ah_lua_push_buf(L, MAX_ASKED),
                false,
                false,
                false};

    f.has_reason = put_field(L, 2, "reason", f.reason, &r->st, r->err) && f.reason->data[0] == '"';
    r->st = AH_OK; /* a reason that is not a text is left out */
    f.has_overrides = put_field(L, 2, "requested_overrides", f.overrides, &r->st, r->err) &&
                      !is_empty(f.overrides);
    if (r->st == AH_OK)
        f.has_keys = put_field(L, 2, "section_keys", f.keys, &r->st, r->err) && !is_empty(f.keys);
    if (r->st == AH_OK)
        r->st = put_expansion(&f, r->out, r->err);
    return 0;
}

ah_status ah_lua_expansion(lua_State *L, lua_State *from, ah_buf *out, ah_err *err)
{
    reading r = {out, AH_OK, err};
    ah_status st;

    if (lua_gettop(from) < 1 || !lua_istable(from, -1))
        return AH_OK;
    if (!lua_checkstack(from, 1))
        return ah_err_nomem(err);
    lua_pushcfunction(L, read_object);
    lua_pushlightuserdata(L, &r);
    lua_pushvalue(from, -1);
    lua_xmove(from, L, 1);
    st = ah_lua_call(ah_lua_of(L), L, 2, 0, err);
    return st == AH_OK ? r.st : st;
}
