/* Members of records by the table, and the walk through lists and objects. */
#include "journal/fold_members.h"

enum { NEEDED = true, ABSENT = false };

#define ROW(K, name, type, need) {#name, AH_MEMBER_##type, need},
#define ROWS(id, name, need)                                                                       \
    static const ah_member members_##id[] = {AH_MEMBERS_##id(ROW, id){NULL, AH_MEMBER_ANY, false}};
AH_RECORD_LIST(ROWS)
#undef ROWS
#undef ROW

#define FITS(id, name, need)                                                                       \
    _Static_assert((int)AH_AT_##id##_END <= AH_MEMBERS_MAX, "readers have room for them");
AH_RECORD_LIST(FITS)
#undef FITS

static const ah_member *const by_kind[AH_RECORD_KINDS] = {
#define MEMBERS(id, name, need) [AH_RECORD_##id] = members_##id,
    AH_RECORD_LIST(MEMBERS)
#undef MEMBERS
};

const ah_member *ah_members_of(ah_record_kind kind)
{
    return by_kind[kind];
}

const char *ah_member_type_name(ah_member_type type)
{
    static const char *const names[] = {
        [AH_MEMBER_ANY] = "any",       [AH_MEMBER_COUNT] = "integer",
        [AH_MEMBER_STRING] = "string", [AH_MEMBER_BOOLEAN] = "boolean",
        [AH_MEMBER_OBJECT] = "object", [AH_MEMBER_LIST] = "list",
    };

    return names[type];
}

int64_t ah_member_count(ah_slice value)
{
    ah_json_num n;

    return value.p && ah_json_number(value, &n) && n.is_int ? n.i : 0;
}

static bool is_count(ah_slice value)
{
    ah_json_num n;

    return ah_json_number(value, &n) && n.is_int && n.i >= 0 && n.i <= AH_COUNT_MAX;
}

static bool fits(ah_slice value, ah_member_type type)
{
    ah_json_kind kind = ah_json_kind_of(value);

    switch (type) {
    case AH_MEMBER_COUNT:
        return kind == AH_JSON_NUMBER && is_count(value);
    case AH_MEMBER_STRING:
        return kind == AH_JSON_STRING;
    case AH_MEMBER_BOOLEAN:
        return kind == AH_JSON_TRUE || kind == AH_JSON_FALSE;
    case AH_MEMBER_OBJECT:
        return kind == AH_JSON_OBJECT;
    case AH_MEMBER_LIST:
        return kind == AH_JSON_ARRAY;
    default:
        return true;
    }
}

static ah_status check_member(const ah_member *m, ah_slice value, ah_err *err)
{
    if (!value.p && m->needed)
        return ah_err_set(err, AH_STORE, "its member `%s` is missing", m->name);
    if (!value.p || fits(value, m->type))
        return AH_OK;
    return ah_err_set(err, AH_STORE,
                      m->type == AH_MEMBER_COUNT
                          ? "its member `%s` must be an integer from 0 to 2^53"
                          : "its member `%s` must be of the type %s",
                      m->name, ah_member_type_name(m->type));
}

ah_status ah_members_read(ah_slice json, const ah_member *members, ah_slice *value, ah_err *err)
{
    ah_json_slot want[AH_MEMBERS_MAX] = {{0}};
    ah_status st = AH_OK;
    size_t n = 0;

    for (; members[n].name; n++)
        want[n] = (ah_json_slot){members[n].name, &value[n]};
    if (!ah_json_members(json, want, n))
        return ah_err_set(err, AH_STORE, "an object is expected where there is another value");
    for (size_t i = 0; i < n && st == AH_OK; i++)
        st = check_member(&members[i], value[i], err);
    return st;
}

ah_status ah_member_text(const ah_mem *mem, ah_slice value, ah_text **out, ah_err *err)
{
    ah_slice raw = ah_json_inside(value);
    ah_status st;
    ah_buf b;

    if (!memchr(raw.p, '\\', raw.n))
        return (*out = ah_text_new(mem, raw)) ? AH_OK : ah_err_nomem(err);
    ah_buf_init(&b, mem, AH_STORE_MAX_RECORD);
    ah_json_unescape(raw, &b);
    st = ah_text_from_buf(&b, "a string of it", out, err);
    ah_buf_clear(&b);
    return st;
}

/* The slow way, for texts with escapes. */
static bool is_written(ah_slice value, ah_slice text, ah_buf *b)
{
    ah_json_put_string(b, text);
    return ah_buf_ok(b) && ah_slice_eq(ah_buf_slice(b), value);
}

ah_status ah_member_expect(const ah_mem *mem, ah_slice value, ah_slice text, const char *what,
                           ah_err *err)
{
    ah_buf b;
    bool is;

    ah_buf_init(&b, mem, AH_STORE_MAX_RECORD);
    if (memchr(value.p, '\\', value.n))
        is = is_written(value, text, &b);
    else
        is = ah_slice_eq(ah_json_inside(value), text);
    if (!ah_buf_ok(&b) && b.status == AH_NOMEM)
        ah_err_nomem(err);
    else if (!is)
        ah_err_set(err, AH_STORE, "its %s is not that of the call", what);
    is = is && ah_buf_ok(&b);
    ah_buf_clear(&b);
    return is ? AH_OK : err->status;
}

ah_items ah_items_of(ah_slice json)
{
    ah_items it = {.r = ah_json_read(json)};
    ah_json_kind kind = ah_json_next(&it.r).kind;

    if (kind != AH_JSON_ARRAY && kind != AH_JSON_OBJECT)
        it.r.p = it.r.end;
    return it;
}

bool ah_items_next(ah_items *it)
{
    ah_json_token t = ah_json_next(&it->r);

    it->key = (ah_slice){NULL, 0};
    if (t.kind == AH_JSON_KEY) {
        it->key = ah_json_skip(&it->r, t);
        t = ah_json_next(&it->r);
    }
    if (t.kind == AH_JSON_END || t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_OBJECT_END)
        return false;
    it->value = ah_json_skip(&it->r, t);
    return true;
}
