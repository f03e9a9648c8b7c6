/* The texts of prints are equal if the requests are; only if they are not, the first difference is
 * looked for. A checkpoint in the middle of a stream is left out, since it only repeats, but for
 * that of a fork or a rewind. */
#include "journal/rebuild.h"

#include "journal/fold_members.h"
#include "journal/json_place.h"

enum { MAX_BODY = 256 << 20, MAX_PRINT = 64 << 20, MAX_POINTER = 4 << 10, MAX_VALUE = 400 };

ah_status ah_rebuild_init(ah_rebuild *r, const ah_mem *mem, ah_err *err)
{
    *r = (ah_rebuild){.mem = mem, .secrets = {.mem = mem}};
    ah_buf_init(&r->was_head, mem, MAX_BODY);
    ah_buf_init(&r->was_body, mem, MAX_BODY);
    ah_buf_init(&r->difference.pointer, mem, MAX_POINTER);
    ah_buf_init(&r->difference.recorded, mem, SIZE_MAX);
    ah_buf_init(&r->difference.rebuilt, mem, SIZE_MAX);
    return ah_fold_init(&r->fold, mem, err);
}

void ah_rebuild_clear(ah_rebuild *r)
{
    ah_wire_clear(&r->wire);
    ah_adapter_unref(r->adapter);
    ah_text_unref(r->head);
    ah_buf_clear(&r->was_head);
    ah_buf_clear(&r->was_body);
    ah_buf_clear(&r->difference.pointer);
    ah_buf_clear(&r->difference.recorded);
    ah_buf_clear(&r->difference.rebuilt);
    ah_fold_clear(&r->fold);
    ah_secrets_clear(&r->secrets);
}

/* -- the recorded bytes ------------------------------------------------------------------------ */

static void take_bytes(ah_rebuild *r, const ah_store_record *record, bool anew)
{
    ah_slice head = ah_json_member(record->kept, "head");
    ah_items it = ah_items_of(ah_json_member(record->kept, "segments"));

    r->kept = record->kept.p && (anew || r->kept);
    if (!r->kept)
        return;
    if (anew)
        ah_buf_reset(&r->was_body, 0);
    if (head.p) {
        ah_buf_reset(&r->was_head, 0);
        ah_json_string(head, &r->was_head);
    }
    while (ah_items_next(&it))
        ah_json_string(it.value, &r->was_body);
    r->kept = ah_buf_ok(&r->was_head);
    r->kept = ah_buf_ok(&r->was_body) && r->kept;
}

/* Appends the recorded body of the request, as it went out, with the tail of `kept`. */
static void put_recorded(const ah_rebuild *r, ah_slice kept, ah_buf *out)
{
    ah_slice head = ah_buf_slice(&r->was_head), body = ah_buf_slice(&r->was_body);

    if (body.n && head.n && head.p[head.n - 1] == '[')
        body = (ah_slice){body.p + 1, body.n - 1};
    ah_buf_put(out, head);
    ah_buf_put(out, body);
    ah_json_string(ah_json_member(kept, "tail"), out);
}

static void put_value(ah_buf *out, ah_slice value)
{
    if (value.p)
        ah_buf_put_most(out, value, MAX_VALUE);
}

static bool is_json(const ah_rebuild *r, const ah_buf *b)
{
    return ah_buf_ok(b) && ah_json_check(r->mem, ah_buf_slice(b), AH_JSON_MAX_DEPTH, NULL) == AH_OK;
}

/* Names the place of the difference, if the recorded bytes are kept. */
static void place(ah_rebuild *r, const ah_store_record *record)
{
    ah_rebuild_difference *d = &r->difference;
    ah_slice part[3], a = {NULL, 0}, b = {NULL, 0};
    size_t n = ah_wire_body(&r->wire, part);
    ah_buf was, now;
    bool both;

    if (!r->kept)
        return;
    ah_buf_init(&was, r->mem, MAX_BODY);
    ah_buf_init(&now, r->mem, MAX_BODY);
    put_recorded(r, record->kept, &was);
    for (size_t i = 0; i < n; i++)
        ah_buf_put(&now, part[i]);
    both = is_json(r, &was);
    both = is_json(r, &now) && both;
    if (both && ah_json_place(ah_buf_slice(&was), ah_buf_slice(&now), &d->pointer, &a, &b)) {
        put_value(&d->recorded, a);
        put_value(&d->rebuilt, b);
    }
    ah_buf_clear(&was);
    ah_buf_clear(&now);
}

/* -- the difference ---------------------------------------------------------------------------- */

static ah_status differs(ah_rebuild *r, const ah_store_record *record, const char *in,
                         int64_t entry)
{
    ah_rebuild_difference *d = &r->difference;

    d->record = record->number;
    d->request = r->requests;
    d->in = in;
    d->entry = entry;
    return AH_CANCELLED;
}

static int64_t last_settings(const ah_transcript *t)
{
    int64_t i = (int64_t)t->n - 1;

    while (i >= 0 && t->entry[i].kind != AH_ENTRY_SETTINGS)
        i--;
    return i;
}

/* Returns the entry of the first item, [entry, hash], that is not in both lists; -1: there is none.
 * *at is its index. */
static int64_t first_item(ah_slice was, ah_slice now, size_t *at)
{
    ah_items a = ah_items_of(was), b = ah_items_of(now);
    bool more, other;

    for (*at = 0;; ++*at) {
        ah_items entry;

        more = ah_items_next(&a);
        other = ah_items_next(&b);
        if (!more && !other)
            return -1;
        if (more && other && ah_slice_eq(a.value, b.value))
            continue;
        entry = ah_items_of(other ? b.value : a.value);
        return ah_items_next(&entry) ? ah_member_count(entry.value) : -1;
    }
}

static ah_status head_differs(ah_rebuild *r, const ah_store_record *record, ah_slice now)
{
    size_t at = 0;
    int64_t entry = first_item(ah_json_member(ah_text_slice(r->head), "segments"),
                               ah_json_member(now, "segments"), &at);
    const ah_wire *w = &r->wire;
    bool system = at < w->n_head && w->segment[at].kind == AH_SEGMENT_SYSTEM;

    if (entry < 0)
        return differs(r, record, "settings", last_settings(r->fold.transcript));
    return differs(r, record, system ? "system" : "tools", entry);
}

/* Compares what the record says with `now`, the members that describe the request made again. */
static ah_status compare(ah_rebuild *r, const ah_store_record *record, const ah_slice *v,
                         ah_slice now)
{
    ah_slice head = ah_json_member(now, "head"), segments = ah_json_member(now, "segments");
    int64_t base = ah_member_count(ah_json_member(now, "base"));
    ah_slice said = v[AH_AT_REQUEST_segments];
    size_t at;
    int64_t entry;

    if (!r->head || !ah_slice_eq(ah_text_slice(r->head), head))
        return head_differs(r, record, head);
    if (ah_slice_eq(said, segments) && base == ah_member_count(v[AH_AT_REQUEST_base])) {
        r->equal++;
        return AH_OK;
    }
    entry = first_item(said, segments, &at);
    return differs(r, record, "conversation", entry);
}

/* -- one request ------------------------------------------------------------------------------- */

static ah_status take_adapter(ah_rebuild *r, ah_slice wire, ah_err *err)
{
    ah_adapter *a = NULL;
    ah_status st = ah_prints_adapter(r->mem, &r->secrets, wire, &a, err);

    if (st != AH_OK)
        return st;
    if (r->wire.mem)
        ah_wire_use(&r->wire, a, AH_BREAK_MODEL);
    else
        ah_wire_init(&r->wire, r->mem, a, r->fold.transcript);
    ah_adapter_unref(r->adapter);
    r->adapter = a;
    return AH_OK;
}

static ah_status keep_head(ah_rebuild *r, ah_slice head, ah_err *err)
{
    ah_text *text = ah_text_new(r->mem, head);

    if (!text)
        return ah_err_nomem(err);
    ah_text_set(&r->head, text);
    return AH_OK;
}

/* Lowers up to here, and appends the members that describe the request. */
static ah_status print_request(ah_rebuild *r, const ah_slice *v, ah_buf *out, ah_err *err)
{
    ah_wire *w = &r->wire;
    ah_break brk;
    size_t entry;
    ah_status st;

    if (!v[AH_AT_REQUEST_wire].p && !ah_member_count(v[AH_AT_REQUEST_base]))
        ah_wire_use(w, w->adapter, AH_BREAK_NONE); /* the body was begun anew */
    ah_prints_try(w, v[AH_AT_REQUEST_trying]);
    if ((st = ah_wire_update(w, &brk, &entry, err)) != AH_OK)
        return st;
    w->noted.begun = true;
    w->noted.heads = 0; /* the head is wanted each time */
    ah_buf_char(out, '{');
    ah_prints_put(w, out, NULL);
    ah_buf_char(out, '}');
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "a request made again", err);
}

static ah_status lower_again(ah_rebuild *r, const ah_store_record *record, const ah_slice *v,
                             ah_err *err)
{
    int64_t now = r->adapter->vt->revision, then = ah_member_count(v[AH_AT_REQUEST_revision]);
    ah_buf print;
    ah_status st;

    ah_buf_init(&print, r->mem, MAX_PRINT);
    st = print_request(r, v, &print, err);
    if (st == AH_OK && then != now) {
        if (!r->other_revision++) {
            r->revision = then;
            r->revision_now = now;
        }
    } else if (st == AH_OK) {
        take_bytes(r, record, !ah_member_count(v[AH_AT_REQUEST_base]));
        st = compare(r, record, v, ah_buf_slice(&print));
        if (st == AH_CANCELLED)
            place(r, record);
    }
    ah_buf_clear(&print);
    return st;
}

/* A request whose adapter is not known, or whose beginning lies before the stream's first record,
 * cannot be made again. */
static bool is_recorded(const ah_rebuild *r, const ah_slice *v)
{
    return v[AH_AT_REQUEST_revision].p && v[AH_AT_REQUEST_segments].p &&
           (v[AH_AT_REQUEST_wire].p || r->wire.mem);
}

static ah_status take_request(ah_rebuild *r, const ah_store_record *record, ah_err *err)
{
    ah_slice v[AH_MEMBERS_MAX];
    ah_status st = ah_members_read(record->said, ah_members_of(AH_RECORD_REQUEST), v, err);

    r->requests++;
    if (st == AH_OK && ah_member_count(v[AH_AT_REQUEST_entries]) != (int64_t)r->fold.transcript->n)
        return differs(r, record, "entries", (int64_t)r->fold.transcript->n);
    if (st == AH_OK && !is_recorded(r, v)) {
        r->not_recorded++;
        return AH_OK;
    }
    if (st == AH_OK && v[AH_AT_REQUEST_wire].p)
        st = take_adapter(r, v[AH_AT_REQUEST_wire], err);
    if (st == AH_OK && v[AH_AT_REQUEST_head].p)
        st = keep_head(r, v[AH_AT_REQUEST_head], err);
    return st == AH_OK ? lower_again(r, record, v, err) : st;
}

static ah_status name_request(const ah_store_record *record, ah_err *err)
{
    char why[sizeof err->message];

    memcpy(why, err->message, sizeof why);
    return ah_err_set(err, err->status, "record %lld (request) cannot be made again: %s",
                      (long long)record->number, why);
}

/* True if a checkpoint here has nothing new: the stream does not begin with it, as that of a fork
 * does, and was not rewound. */
static bool repeats(const ah_rebuild *r)
{
    return r->fold.last > 1 && !r->fold.rewound;
}

/* The transcript is about to be another one. */
static void forget_wire(ah_rebuild *r)
{
    ah_wire_clear(&r->wire);
    ah_text_set(&r->head, NULL);
    r->kept = false;
}

ah_status ah_rebuild_add(void *rebuild, const ah_store_record *record, ah_err *err)
{
    ah_rebuild *r = rebuild;
    ah_record_kind kind = ah_record_kind_of(record->kind);
    ah_status st;

    if (kind == AH_RECORD_CHECKPOINT && repeats(r) && record->number == r->fold.last + 1) {
        r->fold.last = record->number;
        return AH_OK;
    }
    if (kind == AH_RECORD_CHECKPOINT)
        forget_wire(r);
    if ((st = ah_fold_add(&r->fold, record, err)) != AH_OK || kind != AH_RECORD_REQUEST)
        return st;
    st = take_request(r, record, err);
    return st == AH_OK || st == AH_CANCELLED || st == AH_NOMEM ? st : name_request(record, err);
}

/* -- the outcome ------------------------------------------------------------------------------- */

static void put_text(ah_buf *out, const char *name, const ah_buf *text)
{
    if (text->len && ah_buf_ok(text))
        ah_json_add_string(out, name, ah_buf_slice(text));
}

void ah_rebuild_print(const ah_rebuild *r, ah_buf *out)
{
    const ah_rebuild_difference *d = &r->difference;

    ah_buf_char(out, '{');
    ah_json_add_int(out, "requests", (int64_t)r->requests);
    ah_json_add_int(out, "equal", (int64_t)r->equal);
    ah_json_add_int(out, "other_revision", (int64_t)r->other_revision);
    ah_json_add_int(out, "not_recorded", (int64_t)r->not_recorded);
    if (r->other_revision) {
        ah_json_add_int(out, "revision", r->revision);
        ah_json_add_int(out, "revision_now", r->revision_now);
    }
    if (d->record) {
        ah_json_add_name(out, "difference");
        ah_buf_char(out, '{');
        ah_json_add_int(out, "record", d->record);
        ah_json_add_int(out, "request", (int64_t)d->request);
        ah_json_add_string(out, "in", ah_slice_of(d->in));
        if (d->entry >= 0)
            ah_json_add_int(out, "entry", d->entry);
        put_text(out, "pointer", &d->pointer);
        put_text(out, "recorded", &d->recorded);
        put_text(out, "rebuilt", &d->rebuilt);
        ah_buf_char(out, '}');
    }
    ah_buf_char(out, '}');
}
