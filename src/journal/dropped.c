/* The fold checks each record before its members are read. All is listed; what an earlier rewind
 * has dropped is left out at the end, since a later rewind may have brought it back. */
#include "journal/dropped.h"

#include <stdlib.h>

#include "journal/fold_members.h"

ah_status ah_dropped_init(ah_dropped *d, const ah_mem *mem, int64_t after, ah_err *err)
{
    *d = (ah_dropped){.after = after};
    return ah_fold_init(&d->fold, mem, err);
}

static void clear_list(const ah_mem *mem, ah_dropped_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        ah_text_unref(l->item[i].json);
    ah_free(mem, l->item);
}

void ah_dropped_clear(ah_dropped *d)
{
    const ah_mem *mem = d->fold.mem;

    if (!mem)
        return;
    clear_list(mem, &d->items);
    clear_list(mem, &d->stays);
    ah_free(mem, d->rewind);
    ah_fold_clear(&d->fold);
    *d = (ah_dropped){0};
}

static ah_status add_rewind(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_dropped_rewind *list =
        ah_grow(d->fold.mem, d->rewind, &d->cap_rewinds, d->rewinds + 1, sizeof *list);

    if (!list)
        return ah_err_nomem(err);
    d->rewind = list;
    list[d->rewinds++] =
        (ah_dropped_rewind){r->number, ah_member_count(ah_json_member(r->said, "to"))};
    return AH_OK;
}

bool ah_dropped_counts(const ah_dropped *d, int64_t number)
{
    int64_t end = INT64_MAX; /* this one and later ones are decided */

    for (size_t i = d->rewinds; i > 0 && number < end; i--) {
        const ah_dropped_rewind *r = &d->rewind[i - 1];

        if (number > r->number)
            return true;
        if (r->number < end)
            end = r->to + 1;
    }
    return number < end;
}

/* Adds the item in b, an object without its end. */
static ah_status add_item(const ah_dropped *d, ah_dropped_list *l, int64_t number, ah_buf *b,
                          ah_err *err)
{
    ah_dropped_item *list = ah_grow(d->fold.mem, l->item, &l->cap, l->n + 1, sizeof *list);
    ah_text *json = NULL;
    ah_status st = AH_OK;

    ah_buf_char(b, '}');
    if (list)
        l->item = list;
    if (!list)
        st = ah_err_nomem(err);
    else
        st = ah_text_from_buf(b, "what is dropped", &json, err);
    if (st == AH_OK)
        list[l->n++] = (ah_dropped_item){number, json};
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
    return add_item(d, &d->items, r->number, &b, err);
}

static ah_status add_step(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_buf b;

    begin_item(d, "step", d->turns + 1, &b);
    put_member(&b, r->said, "step");
    put_member(&b, r->said, "what");
    return add_item(d, &d->items, r->number, &b, err);
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
        st = add_item(d, &d->items, r->number, &b, err);
    }
    return st;
}

/* Returns the text of a message, as JSON; .p NULL: it begins with something else. */
static ah_slice text_of(const ah_entry *e)
{
    ah_items parts = ah_items_of(ah_json_member(ah_text_slice(e->json), "content"));

    return ah_items_next(&parts) ? ah_json_member(parts.value, "text") : (ah_slice){NULL, 0};
}

/* True if there is a message of a user among the entries since the last turn. *text: its text, as
 * JSON; .p NULL: it begins with an image. */
static bool find_question(const ah_dropped *d, ah_slice *text)
{
    const ah_transcript *t = d->fold.transcript;
    size_t i = d->seen;

    *text = (ah_slice){NULL, 0};
    while (i < t->n && t->entry[i].kind != AH_ENTRY_USER)
        i++;
    if (i < t->n)
        *text = text_of(&t->entry[i]);
    return i < t->n;
}

/* Returns why an entity of a record cannot come back; NULL: it can. */
static const char *why_stays(ah_slice entity)
{
    if (!ah_json_member(entity, "state").p)
        return "it has no state that is recorded";
    if (ah_slice_is(ah_json_member(entity, "find"), "false"))
        return "its class has no `find`: it comes back only if a handler enlists it";
    return NULL;
}

static ah_status add_entities(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_items it = ah_items_of(ah_json_member(r->said, "entities"));
    ah_status st = AH_OK;
    ah_buf b;

    while (st == AH_OK && ah_items_next(&it)) {
        const char *why = why_stays(it.value);

        if (!why)
            continue;
        ah_buf_init(&b, d->fold.mem, AH_STORE_MAX_RECORD);
        ah_buf_str(&b, "{\"kind\":\"entity\"");
        put_member(&b, it.value, "class");
        put_member(&b, it.value, "id");
        ah_buf_fmt(&b, ",\"why\":\"%s\"", why);
        st = add_item(d, &d->stays, r->number, &b, err);
    }
    return st;
}

static ah_status add_turn(ah_dropped *d, const ah_store_record *r, ah_err *err)
{
    ah_slice question;
    ah_buf b;

    begin_item(d, "turn", d->turns, &b);
    (void)find_question(d, &question);
    ah_json_add(&b, "question", question);
    return add_item(d, &d->items, r->number, &b, err);
}

static ah_status add_record(ah_dropped *d, const ah_store_record *r, ah_record_kind kind,
                            ah_err *err)
{
    ah_status st = AH_OK;

    if (kind == AH_RECORD_SETTLED || kind == AH_RECORD_TURN || kind == AH_RECORD_SESSION)
        st = add_entities(d, r, err);
    if (st != AH_OK)
        return st;
    switch (kind) {
    case AH_RECORD_REWOUND:
        return add_rewind(d, r, err);
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
    if (kind == AH_RECORD_TURN || kind == AH_RECORD_CHECKPOINT || r->number == d->after)
        d->seen = d->fold.transcript->n;
    return st;
}

/* Adds an item of the turn that is not complete. */
static ah_status add_open(ah_dropped *d, const char *kind, ah_slice id, ah_slice question,
                          ah_err *err)
{
    ah_buf b;

    begin_item(d, kind, d->turns + 1, &b);
    ah_json_add(&b, "id", id);
    ah_json_add(&b, "question", question);
    return add_item(d, &d->items, d->fold.last, &b, err);
}

static int compare(const void *a, const void *b)
{
    const ah_dropped_item *x = a, *y = b;

    return ah_slice_cmp(ah_text_slice(x->json), ah_text_slice(y->json));
}

ah_status ah_dropped_end(ah_dropped *d, ah_err *err)
{
    const ah_fold *f = &d->fold;
    ah_slice question;
    ah_status st = AH_OK;

    if (d->stays.n)
        qsort(d->stays.item, d->stays.n, sizeof *d->stays.item, compare);
    if (find_question(d, &question))
        st = add_open(d, "question", (ah_slice){NULL, 0}, question, err);
    for (size_t i = 0; i < f->n_asks && st == AH_OK; i++) {
        ah_slice ask = ah_text_slice(f->ask[i].ask);

        if (ah_fold_is_open(f, &f->ask[i]))
            st = add_open(d, "ask", ah_json_member(ask, "ask"), ah_json_member(ask, "question"),
                          err);
    }
    return st;
}

/* -- the lists ----------------------------------------------------------------------------------
 */

ah_status ah_dropped_print(const ah_dropped *d, int64_t to, ah_buf *out, ah_err *err)
{
    size_t n = 0;

    ah_buf_fmt(out, "{\"to\":%lld,\"turns\":%lld,\"dropped\":[", (long long)to,
               (long long)d->turns);
    for (size_t i = 0; i < d->items.n; i++) {
        if (!ah_dropped_counts(d, d->items.item[i].number))
            continue;
        ah_buf_str(out, n++ ? "," : "");
        ah_buf_put(out, ah_text_slice(d->items.item[i].json));
    }
    ah_buf_char(out, ']');
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "what is dropped", err);
}

void ah_dropped_print_stays(const ah_dropped *d, size_t *n, ah_buf *out)
{
    ah_slice last = {NULL, 0};

    for (size_t i = 0; i < d->stays.n; i++) {
        ah_slice json = ah_text_slice(d->stays.item[i].json);

        if (!ah_dropped_counts(d, d->stays.item[i].number) || ah_slice_eq(json, last))
            continue;
        ah_buf_str(out, (*n)++ ? "," : "");
        ah_buf_put(out, json);
        last = json;
    }
}
