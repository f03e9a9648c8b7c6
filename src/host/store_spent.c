/* See store_spent.h. A store's file may hold anything: labels and records are checked. */
#include "host/store_spent.h"

#include "base/json.h"
#include "host/open_store.h"
#include "model/record.h"

enum { MAX_LABEL = 1 << 20 /* bytes of a label that is read */ };

/* A stream, and the use that its label has. */
typedef struct item {
    ah_text *name, *folder; /* folder: a JSON string; NULL: none */
    ah_spent spent;
    int64_t to;         /* the record up to which `spent` counts; 0: none */
    int64_t last, time; /* of the last record */
} item;

/* The streams of a list; they are read after it, as an engine may allow one reading at a time. */
typedef struct items {
    const ah_mem *mem;
    ah_slice only; /* the one stream that is wanted; .p NULL: all */
    item *item;
    size_t n, cap;
} items;

static void clear_items(items *a)
{
    for (size_t i = 0; i < a->n; i++) {
        ah_text_unref(a->item[i].name);
        ah_text_unref(a->item[i].folder);
    }
    ah_free(a->mem, a->item);
}

/* -- labels ------------------------------------------------------------------------------------ */

void ah_label_put_spent(const ah_spent *s, int64_t number, ah_buf *label)
{
    ah_json_add_name(label, "spent");
    ah_spent_print(s, label);
    ah_json_add_int(label, "spent_to", number);
}

static bool is_sound(const ah_mem *mem, ah_slice label)
{
    return label.p && label.n <= MAX_LABEL &&
           ah_json_check(mem, label, AH_JSON_MAX_DEPTH, NULL) == AH_OK &&
           ah_json_kind_of(label) == AH_JSON_OBJECT;
}

static bool read_label(const ah_mem *mem, ah_slice label, item *out)
{
    ah_slice folder = ah_json_member(label, "folder"), to = ah_json_member(label, "spent_to");
    ah_json_num n;

    if (ah_json_kind_of(to) == AH_JSON_NUMBER && ah_json_number(to, &n) && n.is_int && n.i > 0) {
        out->to = n.i;
        ah_spent_read(ah_json_member(label, "spent"), &out->spent);
    }
    if (ah_json_kind_of(folder) != AH_JSON_STRING)
        return true;
    return (out->folder = ah_text_new(mem, folder)) != NULL;
}

static ah_status add_item(void *ud, const ah_store_stream *s, ah_err *err)
{
    items *a = ud;
    item *list;

    if (a->only.p && !ah_slice_eq(s->name, a->only))
        return AH_OK;
    if (!(list = ah_grow(a->mem, a->item, &a->cap, a->n + 1, sizeof *list)))
        return ah_err_nomem(err);
    a->item = list;
    list += a->n;
    *list = (item){.last = s->last, .time = s->time};
    if (!(list->name = ah_text_new(a->mem, s->name)))
        return ah_err_nomem(err);
    a->n++;
    return !is_sound(a->mem, s->label) || read_label(a->mem, s->label, list) ? AH_OK
                                                                             : ah_err_nomem(err);
}

/* -- records ----------------------------------------------------------------------------------- */

typedef struct adding {
    const ah_mem *mem;
    ah_spent *sum;
} adding;

static ah_status add_record(void *ud, const ah_store_record *r, ah_err *err)
{
    const adding *a = ud;
    ah_record_kind kind = ah_record_kind_of(r->kind);

    if (kind != AH_RECORD_ANSWER && kind != AH_RECORD_RUN_ENDED)
        return AH_OK;
    if (ah_json_check(a->mem, r->said, AH_JSON_MAX_DEPTH, NULL) != AH_OK ||
        ah_json_kind_of(r->said) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_STORE, "record %lld is damaged", (long long)r->number);
    ah_spent_add_record(a->sum, kind == AH_RECORD_ANSWER, r->said, r->time);
    return AH_OK;
}

/* Adds the use that the records from number `from` on have. */
static ah_status add_records(const ah_mem *mem, ah_store *e, const item *it, int64_t from,
                             ah_spent *sum, ah_err *err)
{
    adding a = {mem, sum};

    return from > it->last ? AH_OK
                           : e->vt->read(e, ah_text_slice(it->name), from, add_record, &a, err);
}

static ah_status take_time(void *ud, const ah_store_record *r, ah_err *err)
{
    (void)err;
    *(int64_t *)ud = r->time;
    return AH_CANCELLED;
}

/* Sets *number to that of the first record since then, by halving. */
static ah_status find_since(ah_store *e, const item *it, int64_t since, int64_t *number,
                            ah_err *err)
{
    int64_t low = 1, high = it->last + 1;
    ah_status st = AH_CANCELLED;

    while (low < high && st == AH_CANCELLED) {
        int64_t middle = low + (high - low) / 2, time = since;

        st = e->vt->read(e, ah_text_slice(it->name), middle, take_time, &time, err);
        if (st == AH_OK) /* no record from there on */
            st = AH_CANCELLED;
        if (time < since)
            low = middle + 1;
        else
            high = middle;
    }
    *number = low;
    return st == AH_CANCELLED ? AH_OK : st;
}

/* -- sums -------------------------------------------------------------------------------------- */

/* Sets *lately to the use since then. */
static ah_status find_lately(const ah_mem *mem, ah_store *e, const item *it, int64_t since,
                             ah_spent *lately, ah_err *err)
{
    ah_status st = AH_OK;
    int64_t from;

    *lately = (ah_spent){0};
    if (it->time < since || !it->spent.since)
        return AH_OK;
    if (it->spent.since >= since) {
        *lately = it->spent;
        return AH_OK;
    }
    st = find_since(e, it, since, &from, err);
    return st == AH_OK ? add_records(mem, e, it, from, lately, err) : st;
}

/* Conversations that cannot be read do not hide the others. */
static ah_status put_item(const ah_mem *mem, ah_store *e, item *it, int64_t since, ah_buf *out,
                          ah_err *err)
{
    ah_status st = add_records(mem, e, it, it->to + 1, &it->spent, err);
    ah_spent lately = {0};

    if (st == AH_OK)
        st = find_lately(mem, e, it, since, &lately, err);
    ah_buf_char(out, '{');
    ah_json_add_string(out, "id", ah_text_slice(it->name));
    if (it->folder)
        ah_json_add(out, "folder", ah_text_slice(it->folder));
    ah_json_add_name(out, "spent");
    ah_spent_print(&it->spent, out);
    ah_json_add_name(out, "lately");
    ah_spent_print(&lately, out);
    if (st != AH_OK)
        ah_json_add(out, "damaged", ah_slice_of("true"));
    ah_buf_char(out, '}');
    return st == AH_NOMEM ? st : AH_OK;
}

ah_status ah_store_spent(const ah_mem *mem, ah_store *e, ah_slice stream, ah_spent *out,
                         ah_err *err)
{
    items a = {.mem = mem, .only = stream};
    ah_status st = e->vt->list(e, stream, false, add_item, &a, err);

    *out = (ah_spent){0};
    if (st == AH_OK && a.n > 0)
        *out = a.item[0].spent;
    if (st == AH_OK && a.n > 0)
        st = add_records(mem, e, &a.item[0], a.item[0].to + 1, out, err);
    clear_items(&a);
    return st;
}

ah_status ah_open_store_spent(ah_host *h, ah_open_store *s, int64_t since, ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    items a = {.mem = h->mem};
    ah_status st = e->vt->list(e, ah_slice_of(""), true, add_item, &a, err);

    ah_buf_char(out, '[');
    for (size_t i = 0; i < a.n && st == AH_OK && ah_buf_ok(out); i++) {
        ah_buf_str(out, i ? "," : "");
        st = put_item(h->mem, e, &a.item[i], since, out, err);
    }
    ah_buf_char(out, ']');
    clear_items(&a);
    return st == AH_OK && !ah_buf_ok(out) ? ah_buf_error(out, "the list of conversations", err)
                                          : st;
}
