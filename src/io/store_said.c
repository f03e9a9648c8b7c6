/* Finds entries in records, and texts in entries. */
#include "io/store_said.h"

#include "base/json.h"

/* -- texts ------------------------------------------------------------------------------------ */

/* Returns the length of the escape at p. Both halves of a surrogate pair are one. */
static size_t escape_len(const char *p)
{
    if (p[1] != 'u')
        return 2;
    return (p[2] == 'd' || p[2] == 'D') && strchr("89abAB", p[3]) ? 12 : 6;
}

/* Returns the beginning of the raw text of a string, at most n bytes of it. */
static ah_slice head_of(ah_slice raw, size_t n)
{
    size_t at = 0;

    if (raw.n <= n)
        return raw;
    n = ah_utf8_cut(raw.p, n);
    while (at < n) {
        size_t step = raw.p[at] == '\\' ? escape_len(raw.p + at) : 1;

        if (step > n - at)
            break;
        at += step;
    }
    return (ah_slice){raw.p, at};
}

static size_t room_of(const ah_buf *out)
{
    return out->len < AH_STORE_SAID_MOST ? AH_STORE_SAID_MOST - out->len : 0;
}

/* Appends the text of a string. */
static void put_text(ah_buf *out, ah_slice string)
{
    if (!string.p || ah_json_kind_of(string) != AH_JSON_STRING)
        return;
    if (out->len > 0)
        ah_buf_char(out, ' ');
    ah_json_unescape(head_of(ah_json_inside(string), room_of(out)), out);
}

/* Appends arguments, which are JSON in a string: without the escapes of that JSON, so that words
 * are words. `whole`: the text of the string. */
static void put_arguments(ah_buf *out, ah_slice whole)
{
    ah_buf_str(out, out->len ? " " : "");
    if (ah_json_check(out->mem, whole, AH_JSON_MAX_DEPTH, NULL) == AH_OK)
        ah_json_unescape(head_of(whole, room_of(out)), out);
    else
        ah_buf_add(out, whole.p,
                   whole.n > room_of(out) ? ah_utf8_cut(whole.p, room_of(out)) : whole.n);
}

/* -- entries ---------------------------------------------------------------------------------- */

/* Takes the next object of a list whose bracket was read; items of another kind are passed. */
static bool next_object(ah_json_reader *r, ah_slice *out)
{
    ah_json_token t;

    while ((t = ah_json_next(r)).kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_END) {
        *out = ah_json_skip(r, t);
        if (t.kind == AH_JSON_OBJECT)
            return true;
    }
    return false;
}

/* Begins to read a list. False: it is none. */
static bool read_list(ah_slice list, ah_json_reader *r)
{
    if (!list.p || ah_json_kind_of(list) != AH_JSON_ARRAY)
        return false;
    *r = ah_json_read(list);
    ah_json_next(r);
    return true;
}

static void put_content(ah_buf *out, ah_slice content)
{
    ah_json_reader r;
    ah_slice part;

    if (read_list(content, &r))
        while (room_of(out) && next_object(&r, &part))
            put_text(out, ah_json_member(part, "text"));
    else
        put_text(out, content);
}

/* False: out of memory. `text` is for arguments. */
static bool put_calls(ah_buf *out, ah_buf *text, ah_slice calls)
{
    ah_json_reader r;
    ah_slice call, arguments;

    if (!read_list(calls, &r))
        return true;
    while (room_of(out) && next_object(&r, &call)) {
        put_text(out, ah_json_member(call, "name"));
        arguments = ah_json_member(call, "arguments");
        ah_buf_reset(text, 0);
        if (!arguments.p || !ah_json_string(arguments, text))
            continue;
        if (!ah_buf_ok(text))
            return false;
        put_arguments(out, ah_buf_slice(text));
    }
    return true;
}

static const struct {
    const char *type, *role;
} roles[] = {
    {"user", "user"}, {"assistant", "assistant"}, {"tool_result", "tool"}, {"note", "note"}};

static const char *role_of(ah_slice entry)
{
    ah_slice type = ah_json_member(entry, "type");

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (ah_json_string_is(type, roles[i].type))
            return roles[i].role;
    return NULL;
}

/* A record that is being given. */
typedef struct saying {
    ah_store_said_fn fn;
    void *ud;
    size_t entry;
    ah_buf text, arguments;
} saying;

static ah_status say_entry(saying *s, ah_slice entry, ah_err *err)
{
    ah_store_said said = {.entry = s->entry++, .role = role_of(entry)};
    ah_buf *out = &s->text;

    if (!said.role)
        return AH_OK;
    ah_buf_reset(out, 0);
    put_content(out, ah_json_member(entry, "content"));
    put_text(out, ah_json_member(entry, "text"));
    if (!put_calls(out, &s->arguments, ah_json_member(entry, "tool_calls")) || !ah_buf_ok(out))
        return ah_err_nomem(err);
    if (out->len == 0)
        return AH_OK;
    said.text = (ah_slice){out->data, ah_flatten(out->data, out->len)};
    return s->fn(s->ud, &said, err);
}

/* Gives an entry, or a list of entries. */
static ah_status say_member(saying *s, ah_slice value, ah_err *err)
{
    ah_status st = AH_OK;
    ah_json_reader r;
    ah_slice entry;

    if (value.p && ah_json_kind_of(value) == AH_JSON_OBJECT)
        return say_entry(s, value, err);
    if (read_list(value, &r))
        while (st == AH_OK && next_object(&r, &entry))
            st = say_entry(s, entry, err);
    return st;
}

/* -- records ---------------------------------------------------------------------------------- */

/* The members of each kind that have entries. */
static const struct {
    const char *kind, *member[2];
} kinds[] = {{"entries", {"entries"}},
             {"answer", {"entry"}},
             {"queued", {"entry"}},
             {"turn", {"staged"}},
             {"settled", {"result", "staged"}},
             {"apply_failed", {"result"}},
             {"checkpoint", {"transcript"}}};

enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t kind_of(ah_slice kind)
{
    size_t i = 0;

    while (i < KINDS && !ah_slice_is(kind, kinds[i].kind))
        i++;
    return i;
}

bool ah_store_may_say(ah_slice kind, int64_t number)
{
    return kind_of(kind) < KINDS && (number <= 2 || !ah_slice_is(kind, "checkpoint"));
}

ah_status ah_store_say(ah_slice kind, ah_slice said, ah_store_said_fn fn, void *ud, ah_err *err)
{
    size_t k = kind_of(kind);
    saying s = {.fn = fn, .ud = ud};
    ah_status st = AH_OK;

    if (k == KINDS || ah_json_check(&ah_mem_libc, said, AH_JSON_MAX_DEPTH, NULL) != AH_OK)
        return AH_OK;
    ah_buf_init(&s.text, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&s.arguments, &ah_mem_libc, SIZE_MAX);
    for (int i = 0; st == AH_OK && i < 2 && kinds[k].member[i]; i++) {
        ah_slice value = ah_json_member(said, kinds[k].member[i]);

        if (ah_slice_is(kind, "checkpoint"))
            value = value.p ? ah_json_member(value, "entries") : value;
        st = say_member(&s, value, err);
    }
    ah_buf_clear(&s.text);
    ah_buf_clear(&s.arguments);
    return st;
}
