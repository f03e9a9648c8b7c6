/* See store_look.h. A store's file may hold anything: labels and records are checked before they
 * become a part of the list. */
#include "host/store_look.h"

#include "base/json.h"
#include "host/store_asks.h"
#include "model/record.h"

enum {
    MAX_LABEL = 1 << 20,               /* bytes of a label that is read */
    MOST_FIRST = 64,                   /* records in which the first question is looked for */
    MAX_TITLE = 120,                   /* bytes */
    MAX_DEPTH = AH_JSON_MAX_DEPTH - 2, /* of a value of a record: it is in an object in a list */
    ENOUGH = 256 << 10                 /* bytes of records after which a page ends */
};

static ah_status checked(const ah_mem *mem, ah_slice text)
{
    ah_status st = ah_json_check(mem, text, AH_JSON_MAX_DEPTH, NULL);

    return st == AH_OK && ah_json_kind_of(text) != AH_JSON_OBJECT ? AH_TOOL_VALIDATION : st;
}

/* -- the list ------------------------------------------------------------------------------------
 */

typedef struct item {
    ah_text *name, *label; /* label: checked; NULL: none */
    int64_t last, time;
    size_t messages;
} item;

/* The streams of a list; they are read after it, as an engine may allow one reading at a time. */
typedef struct items {
    const ah_mem *mem;
    const ah_conversations_query *q;
    item *item;
    size_t n, cap;
} items;

static void clear_items(items *a)
{
    for (size_t i = 0; i < a->n; i++) {
        ah_text_unref(a->item[i].name);
        ah_text_unref(a->item[i].label);
    }
    ah_free(a->mem, a->item);
}

/* Appends the member if it is a string. */
static void put_string(ah_buf *out, ah_slice object, const char *name)
{
    ah_slice value = object.p ? ah_json_member(object, name) : object;

    if (ah_json_kind_of(value) == AH_JSON_STRING)
        ah_json_add(out, name, value);
}

/* True if the member is this text, or every text is allowed. */
static bool is_asked(const ah_mem *mem, ah_slice label, const char *name, ah_slice text)
{
    ah_buf value;
    bool same;

    if (!text.p)
        return true;
    if (!label.p)
        return false;
    ah_buf_init(&value, mem, MAX_LABEL);
    same = ah_json_string(ah_json_member(label, name), &value) &&
           ah_slice_eq(ah_buf_slice(&value), text);
    ah_buf_clear(&value);
    return same;
}

/* Returns the label of a stream, or .p NULL if it is not sound. */
static ah_slice sound_label(const ah_mem *mem, ah_slice label)
{
    bool sound = label.p && label.n <= MAX_LABEL && checked(mem, label) == AH_OK;

    return sound ? label : (ah_slice){NULL, 0};
}

bool ah_label_is_of(const ah_mem *mem, ah_slice label, ah_slice folder)
{
    return is_asked(mem, sound_label(mem, label), "folder", folder);
}

/* Appends the ids of the asks, or returns false if there are none. */
static bool put_waiting(ah_buf *out, ah_slice label)
{
    ah_slice list = label.p ? ah_json_member(label, "waiting") : label;
    ah_json_reader r;
    ah_json_token t;
    size_t n = 0;

    if (!list.p || ah_json_kind_of(list) != AH_JSON_ARRAY)
        return false;
    r = ah_json_read(list);
    ah_json_next(&r);
    while ((t = ah_json_next(&r)).kind == AH_JSON_STRING)
        ah_buf_fmt(out, "%s\"%.*s\"", n++ ? "," : "", AH_FMT(t.raw));
    return n > 0;
}

static bool is_wanted(const items *a, ah_slice label)
{
    const ah_conversations_query *q = a->q;
    bool waits = true;
    ah_buf ids;

    if (q->waiting) {
        ah_buf_init(&ids, a->mem, MAX_LABEL);
        waits = put_waiting(&ids, label);
        ah_buf_clear(&ids);
    }
    return waits && is_asked(a->mem, label, "folder", q->folder) &&
           is_asked(a->mem, label, "state", q->state);
}

static ah_status add_item(void *ud, const ah_store_stream *s, ah_err *err)
{
    items *a = ud;
    ah_slice label = sound_label(a->mem, s->label);
    item *list;

    if (!is_wanted(a, label))
        return AH_OK;
    if (a->n == a->q->limit)
        return AH_CANCELLED;
    if (!(list = ah_grow(a->mem, a->item, &a->cap, a->n + 1, sizeof *list)))
        return ah_err_nomem(err);
    a->item = list;
    list += a->n++;
    *list = (item){.name = ah_text_new(a->mem, s->name),
                   .label = label.p ? ah_text_new(a->mem, label) : NULL,
                   .last = s->last,
                   .time = s->time,
                   .messages = s->messages};
    return list->name && (list->label || !label.p) ? AH_OK : ah_err_nomem(err);
}

/* -- what the first records say ------------------------------------------------------------------
 */

typedef struct beginning {
    const ah_mem *mem;
    ah_buf title, script; /* JSON strings; empty: not found */
} beginning;

/* Appends the first words of a text as a JSON string, in one line. */
static void put_words(const ah_mem *mem, ah_slice string, ah_buf *out)
{
    char words[MAX_TITLE + 1];
    size_t n = 0;
    ah_buf text;

    ah_buf_init(&text, mem, AH_STORE_MAX_RECORD);
    ah_json_string(string, &text);
    for (size_t i = 0; i < text.len && n < sizeof words; i++) {
        char c = (unsigned char)text.data[i] <= ' ' ? ' ' : text.data[i];

        if (c != ' ' || (n > 0 && words[n - 1] != ' '))
            words[n++] = c;
    }
    if (!ah_buf_ok(&text))
        out->status = text.status;
    ah_buf_clear(&text);
    if (n > MAX_TITLE)
        n = ah_utf8_cut(words, MAX_TITLE);
    while (n > 0 && words[n - 1] == ' ')
        n--;
    if (n > 0)
        ah_json_put_string(out, (ah_slice){words, n});
}

/* Takes the next item of an array whose bracket was read. */
static bool next_item(ah_json_reader *r, ah_slice *out)
{
    ah_json_token t = ah_json_next(r);

    if (t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_END)
        return false;
    *out = ah_json_skip(r, t);
    return true;
}

/* Puts the first text of a message's content. */
static void put_content(beginning *b, ah_slice content)
{
    ah_json_reader r;
    ah_slice part;

    if (!content.p || ah_json_kind_of(content) != AH_JSON_ARRAY)
        return;
    r = ah_json_read(content);
    ah_json_next(&r);
    while (b->title.len == 0 && next_item(&r, &part))
        if (ah_json_kind_of(part) == AH_JSON_OBJECT &&
            ah_json_string_is(ah_json_member(part, "type"), "text"))
            put_words(b->mem, ah_json_member(part, "text"), &b->title);
}

/* Looks for the first message of the user in a list of entries. */
static void find_question(beginning *b, ah_slice entries)
{
    ah_json_reader r;
    ah_slice entry;

    if (!entries.p || ah_json_kind_of(entries) != AH_JSON_ARRAY)
        return;
    r = ah_json_read(entries);
    ah_json_next(&r);
    while (b->title.len == 0 && next_item(&r, &entry))
        if (ah_json_kind_of(entry) == AH_JSON_OBJECT &&
            ah_json_string_is(ah_json_member(entry, "type"), "user"))
            put_content(b, ah_json_member(entry, "content"));
}

static ah_status read_first(void *ud, const ah_store_record *r, ah_err *err)
{
    beginning *b = ud;
    ah_record_kind kind = ah_record_kind_of(r->kind);
    ah_slice value;

    (void)err;
    if (r->number > MOST_FIRST)
        return AH_CANCELLED;
    if ((kind != AH_RECORD_OPENED && kind != AH_RECORD_ENTRIES && kind != AH_RECORD_CHECKPOINT) ||
        checked(b->mem, r->said) != AH_OK)
        return AH_OK;
    if (kind == AH_RECORD_OPENED) {
        value = ah_json_member(r->said, "script");
        if (value.p && ah_json_kind_of(value) == AH_JSON_STRING)
            ah_buf_put(&b->script, value);
        return AH_OK;
    }
    value = r->said;
    if (kind == AH_RECORD_CHECKPOINT)
        value = ah_json_member(value, "transcript");
    if (value.p && ah_json_kind_of(value) == AH_JSON_OBJECT)
        find_question(b, ah_json_member(value, "entries"));
    return b->title.len ? AH_CANCELLED : AH_OK;
}

/* A damaged conversation has no title, and does not hide the others. */
ah_status ah_store_put_beginning(const ah_mem *mem, ah_store *e, ah_slice stream, bool script,
                                 ah_buf *out, ah_err *err)
{
    beginning b = {.mem = mem};
    ah_status st;

    ah_buf_init(&b.title, mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&b.script, mem, AH_STORE_MAX_RECORD);
    st = e->vt->read(e, stream, 1, read_first, &b, err);
    if (b.title.len)
        ah_json_add(out, "title", ah_buf_slice(&b.title));
    if (script && b.script.len)
        ah_json_add(out, "script", ah_buf_slice(&b.script));
    if (!ah_buf_ok(&b.title) || !ah_buf_ok(&b.script))
        st = ah_err_nomem(err);
    ah_buf_clear(&b.title);
    ah_buf_clear(&b.script);
    return st == AH_NOMEM ? st : AH_OK;
}

static ah_status put_item(const ah_mem *mem, ah_store *e, const item *a, bool brief, ah_buf *out,
                          ah_err *err)
{
    ah_slice label = ah_text_slice(a->label);
    ah_status st = AH_OK;

    ah_buf_char(out, '{');
    ah_json_add_string(out, "id", ah_text_slice(a->name));
    ah_buf_fmt(out, ",\"changed\":%lld,\"number\":%lld,\"messages\":%zu", (long long)a->time,
               (long long)a->last, a->messages);
    put_string(out, label, "state");
    put_string(out, label, "folder");
    put_string(out, label, "agent");
    ah_buf_str(out, ",\"waiting\":[");
    put_waiting(out, label);
    ah_buf_char(out, ']');
    if (!brief)
        st = ah_store_put_beginning(mem, e, ah_text_slice(a->name), true, out, err);
    ah_buf_char(out, '}');
    return st;
}

ah_status ah_open_store_list(ah_host *h, ah_open_store *s, const ah_conversations_query *q,
                             ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    items a = {.mem = h->mem, .q = q};
    ah_status st =
        e->vt->list(e, q->prefix.p ? q->prefix : ah_slice_of(""), true, add_item, &a, err);

    if (st == AH_CANCELLED)
        st = AH_OK;
    ah_buf_char(out, '[');
    for (size_t i = 0; i < a.n && st == AH_OK && ah_buf_ok(out); i++) {
        ah_buf_str(out, i ? "," : "");
        st = put_item(h->mem, e, &a.item[i], q->brief, out, err);
    }
    ah_buf_char(out, ']');
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the list of conversations", err);
    clear_items(&a);
    return st;
}

/* -- records -------------------------------------------------------------------------------------
 */

typedef struct page {
    const ah_mem *mem;
    const ah_records_query *q;
    ah_buf *out;
    size_t begin; /* length of `out` before the page */
    int64_t next; /* number of the record with which the next page begins */
    bool full;
    bool any; /* the stream has records in the range */
} page;

static ah_status damaged(const ah_store_record *r, const char *what, ah_err *err)
{
    return ah_err_set(err, AH_STORE,
                      "record %lld is damaged: %s. The records before it can be read with `to`",
                      (long long)r->number, what);
}

static bool is_member(const ah_records_query *q, ah_slice name)
{
    for (size_t i = 0; i < q->members; i++)
        if (ah_slice_eq(q->member[i], name))
            return true;
    return false;
}

/* Appends an object with those of the members that are asked for. */
static void put_members(page *p, ah_slice object)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token key;
    size_t n = 0;

    ah_json_next(&r);
    ah_buf_char(p->out, '{');
    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        const char *from = key.raw.p - 1; /* its quote */
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (!is_member(p->q, key.raw))
            continue;
        ah_buf_str(p->out, n++ ? "," : "");
        ah_buf_add(p->out, from, (size_t)(value.p + value.n - from));
    }
    ah_buf_char(p->out, '}');
}

/* Appends a member with a value of the record; of_members: with the asked members of it. */
static ah_status put_value(page *p, const ah_store_record *r, const char *name, ah_slice value,
                           bool of_members, ah_err *err)
{
    ah_status st = ah_json_check(p->mem, value, MAX_DEPTH, NULL);

    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    if (st != AH_OK)
        return damaged(r, "it is not JSON, or nested too deep", err);
    ah_json_add_name(p->out, name);
    if (of_members && ah_json_kind_of(value) == AH_JSON_OBJECT)
        put_members(p, value);
    else
        ah_buf_put(p->out, value);
    return AH_OK;
}

static ah_status put_record(page *p, const ah_store_record *r, ah_err *err)
{
    ah_status st;

    if (!ah_utf8_valid(r->kind))
        return damaged(r, "its kind is not UTF-8", err);
    ah_buf_str(p->out, p->out->len > p->begin ? "," : "");
    ah_buf_fmt(p->out, "{\"number\":%lld,\"time\":%lld", (long long)r->number, (long long)r->time);
    ah_json_add_string(p->out, "kind", r->kind);
    st = put_value(p, r, "said", r->said, p->q->members > 0, err);
    if (st == AH_OK && p->q->kept && r->kept.p)
        st = put_value(p, r, "kept", r->kept, false, err);
    else if (st == AH_OK && p->q->kept && r->kept_hash.p)
        ah_buf_str(p->out, ",\"erased\":true");
    ah_buf_char(p->out, '}');
    return st;
}

static ah_status add_record(void *ud, const ah_store_record *r, ah_err *err)
{
    page *p = ud;
    ah_record_kind kind = ah_record_kind_of(r->kind);
    size_t before = p->out->len;
    ah_status st = AH_OK;

    p->next = r->number;
    if (r->number > p->q->to)
        return AH_CANCELLED;
    p->any = true;
    if (!p->q->kinds || (kind != AH_RECORD_KINDS && p->q->kinds >> kind & 1))
        st = put_record(p, r, err);
    if (!ah_buf_ok(p->out))
        return ah_buf_error(p->out, "the records", err);
    if (st != AH_OK) {
        ah_buf_reset(p->out, before);
        return st;
    }
    p->next++;
    p->full = p->out->len - p->begin >= ENOUGH;
    return p->full ? AH_CANCELLED : AH_OK;
}

static ah_status stop(void *ud, const ah_store_record *r, ah_err *err)
{
    (void)ud;
    (void)r;
    (void)err;
    return AH_CANCELLED;
}

ah_status ah_open_store_records(ah_host *h, ah_open_store *s, const ah_records_query *q,
                                ah_buf *out, int64_t *next, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    page p = {.mem = h->mem, .q = q, .out = out};
    ah_status st;

    ah_buf_char(out, '[');
    p.begin = out->len;
    st = e->vt->read(e, q->stream, q->from, add_record, &p, err);
    if (st == AH_OK && !p.any)
        st = ah_open_store_read(s, q->stream, 1, stop, NULL, err);
    if (st == AH_STORE && out->len > p.begin) { /* the next page begins with it, and fails */
        p.full = true;
        st = AH_OK;
    }
    ah_buf_char(out, ']');
    *next = p.full ? p.next : 0;
    if (st == AH_CANCELLED)
        st = AH_OK;
    return st == AH_OK && !ah_buf_ok(out) ? ah_buf_error(out, "the records", err) : st;
}
