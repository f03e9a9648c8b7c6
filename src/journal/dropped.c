/* The fold checks each record before its members are read. What an earlier rewind has dropped is
 * taken off the list again. */
#include "journal/dropped.h"

#include "journal/fold_members.h"

ah_status ah_dropped_init(ah_dropped *d, const ah_mem *mem, int64_t after, ah_err *err)
{
    *d = (ah_dropped){.after = after};
    return ah_fold_init(&d->fold, mem, err);
}

/* Removes the items of later records. */
static void forget_after(ah_dropped *d, int64_t number)
{
    while (d->n > 0 && d->item[d->n - 1].number > number)
        ah_text_unref(d->item[--d->n].json);
}

void ah_dropped_clear(ah_dropped *d)
{
    const ah_mem *mem = d->fold.mem;

    if (!mem)
        return;
    forget_after(d, 0);
    ah_free(mem, d->item);
    ah_fold_clear(&d->fold);
    *d = (ah_dropped){0};
}

/* Adds the item in b, an object without its end. */
static ah_status add_item(ah_dropped *d, int64_t number, ah_buf *b, ah_err *err)
{
    ah_dropped_item *list = ah_grow(d->fold.mem, d->item, &d->cap, d->n + 1, sizeof *list);
    ah_status st = AH_OK;

    ah_buf_char(b, '}');
    if (list)
        d->item = list;
    if (!list)
        st = ah_err_nomem(err);
    else
        st = ah_text_from_buf(b, "what is dropped", &list[d->n].json, err);
    if (st == AH_OK)
        list[d->n++].number = number;
    ah_buf_clear(b);
    return st;
}

static void begin_item(const ah_dropped *d, const char *kind, int64_t turn, ah_buf *b)
{
    ah_buf_init(b, d->fold.mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(b, "{\"kind\":\"%s\",\"turn\":%lld", kind, (long long)turn);
}

static void put_member(ah_buf *b, ah_slice said, const char *name)
{
    ah_json_add(b, name, ah_json_member(said, name));
}

static ah_status add_call(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_buf b;

    begin_item(d, "call", d->turns + 1, &b);
    put_member(&b, r->said, "id");
    put_member(&b, r->said, "tool");
    put_member(&b, r->said, "on_lost");
    return add_item(d, r->number, &b, err);
}

static ah_status add_step(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_buf b;

    begin_item(d, "step", d->turns + 1, &b);
    put_member(&b, r->said, "step");
    put_member(&b, r->said, "what");
    return add_item(d, r->number, &b, err);
}

static ah_status add_files(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_slice files = ah_json_member(r->said, "files");
    ah_items it = ah_items_of(files.p ? files : ah_slice_of("[]"));
    ah_status st = AH_OK;
    ah_buf b;

    while (st == AH_OK && ah_items_next(&it)) {
        begin_item(d, "file", d->turns + 1, &b);
        put_member(&b, it.value, "root");
        put_member(&b, it.value, "path");
        st = add_item(d, r->number, &b, err);
    }
    return st;
}

/* Returns the text of a message, as JSON; .p NULL: it begins with something else. */
static ah_slice text_of(const ah_entry *e)
{
    ah_items parts = ah_items_of(ah_json_member(ah_text_slice(e->json), "content"));

    return ah_items_next(&parts) ? ah_json_member(parts.value, "text") : (ah_slice){NULL, 0};
}

/* Appends the question that the turn begins with: the message of a user among its entries. */
static void put_question(const ah_dropped *d, ah_buf *b)
{
    const ah_transcript *t = d->fold.transcript;

    for (size_t i = d->seen; i < t->n; i++)
        if (t->entry[i].kind == AH_ENTRY_USER) {
            ah_json_add(b, "question", text_of(&t->entry[i]));
            return;
        }
}

static ah_status add_turn(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_buf b;

    begin_item(d, "turn", d->turns, &b);
    put_question(d, &b);
    return add_item(d, r->number, &b, err);
}

static ah_status add_record(ah_dropped *d, const ah_store_record *r, ah_record_kind kind,
                            ah_err *err)
{
    switch (kind) {
    case AH_RECORD_REWOUND:
        forget_after(d, ah_member_count(ah_json_member(r->said, "to")));
        return AH_OK;
    case AH_RECORD_TURN:
        return add_turn(d, r, err);
    case AH_RECORD_CALL_STARTED:
        return add_call(d, r, err);
    case AH_RECORD_STEP_STARTED:
        return add_step(d, r, err);
    case AH_RECORD_SETTLED:
        return add_files(d, r, err);
    default:
        return AH_OK;
    }
}

ah_status ah_dropped_add(void *dropped, const ah_store_record *r, ah_err *err)
{
    ah_dropped *d = dropped;
    ah_record_kind kind = ah_record_kind_of(r->kind);
    ah_status st = ah_fold_add(&d->fold, r, err);

    d->turns += kind == AH_RECORD_TURN;
    if (st == AH_OK && r->number > d->after)
        st = add_record(d, r, kind, err);
    if (kind == AH_RECORD_TURN || kind == AH_RECORD_CHECKPOINT)
        d->seen = d->fold.transcript->n;
    return st;
}

ah_status ah_dropped_print(const ah_dropped *d, int64_t to, ah_buf *out, ah_err *err)
{
    ah_buf_fmt(out, "{\"to\":%lld,\"turns\":%lld,\"dropped\":[", (long long)to,
               (long long)d->turns);
    for (size_t i = 0; i < d->n; i++) {
        ah_buf_str(out, i ? "," : "");
        ah_buf_put(out, ah_text_slice(d->item[i].json));
    }
    ah_buf_char(out, ']');
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "what is dropped", err);
}
