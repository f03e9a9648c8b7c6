/* The store in memory: an engine without a file, for conversations that end with the program, and
 * for specs. Appends wait in a queue until poll carries them out. The store owns all streams. Keys
 * of messages stay when the messages are taken. */
#include "io/stores.h"

#include "base/index.h"
#include "base/text.h"

typedef struct row {
    struct row *next; /* while an append is prepared */
    int64_t time;
    size_t kind_n, said_n, kept_n;
    bool has_kept, erased; /* erased: data has the hash of what was kept in its place */
    char data[];           /* kind, said, kept */
} row;

typedef struct message {
    int64_t time;
    ah_text *key, *kind, *body; /* kind, body NULL: taken */
} message;

typedef struct stream {
    struct stream *newer, *older; /* by the last change */
    ah_text *name, *label;
    row **row;
    size_t n, cap;
    message *message;
    size_t n_messages, cap_messages, waiting;
    ah_index keys; /* of messages */
    int64_t fence;
    bool held;
} stream;

typedef struct memory {
    ah_store store;
    const ah_mem *mem;
    stream **stream;
    size_t n, cap;
    ah_index names;
    stream *newest;
    ah_store_append *first, **last;
    bool news;
} memory;

/* -- streams --------------------------------------------------------------------------------- */

static ah_slice stream_name(const void *owner, size_t at)
{
    return ah_text_slice(((const memory *)owner)->stream[at]->name);
}

static ah_slice message_key(const void *owner, size_t at)
{
    return ah_text_slice(((const stream *)owner)->message[at].key);
}

static stream *find(const memory *m, ah_slice name)
{
    uint32_t at = ah_index_find(&m->names, name);

    return at == AH_INDEX_NONE ? NULL : m->stream[at];
}

static void free_stream(memory *m, stream *s)
{
    for (size_t i = 0; i < s->n; i++)
        ah_free(m->mem, s->row[i]);
    for (size_t i = 0; i < s->n_messages; i++) {
        ah_text_unref(s->message[i].key);
        ah_text_unref(s->message[i].kind);
        ah_text_unref(s->message[i].body);
    }
    ah_index_clear(&s->keys);
    ah_free(m->mem, s->row);
    ah_free(m->mem, s->message);
    ah_text_unref(s->name);
    ah_text_unref(s->label);
    ah_free(m->mem, s);
}

static void leave_order(memory *m, stream *s)
{
    if (m->newest == s)
        m->newest = s->older;
    if (s->newer)
        s->newer->older = s->older;
    if (s->older)
        s->older->newer = s->newer;
    s->newer = s->older = NULL;
}

static void become_newest(memory *m, stream *s)
{
    leave_order(m, s);
    s->older = m->newest;
    if (m->newest)
        m->newest->newer = s;
    m->newest = s;
}

static stream *new_stream(memory *m, ah_slice name)
{
    stream **list = ah_grow(m->mem, m->stream, &m->cap, m->n + 1, sizeof(stream *)), *s;

    if (!list)
        return NULL;
    m->stream = list;
    if (!ah_index_reserve(&m->names, 1, m->n) || !(s = ah_alloc(m->mem, sizeof *s)))
        return NULL;
    s->name = ah_text_new(m->mem, name);
    if (!s->name) {
        ah_free(m->mem, s);
        return NULL;
    }
    s->keys = (ah_index){.mem = m->mem, .name = message_key, .owner = s};
    m->stream[m->n] = s;
    ah_index_put(&m->names, ah_text_slice(s->name), m->n++);
    return s;
}

static ah_status hold(ah_store *store, ah_slice name, bool take, int64_t *fence, ah_err *err)
{
    memory *m = (memory *)(void *)store;
    stream *s = find(m, name);

    if (!name.n || name.n > AH_STORE_MAX_STREAM)
        return ah_err_set(err, AH_USAGE, "the name of a stream has %zu bytes, it must have 1 to %d",
                          name.n, AH_STORE_MAX_STREAM);
    if (!s && !(s = new_stream(m, name)))
        return ah_err_nomem(err);
    if (s->held && !take)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" is held by this process: close it there first",
                          AH_FMT(name));
    s->held = true;
    *fence = ++s->fence;
    return AH_OK;
}

static void release(ah_store *store, ah_slice name)
{
    stream *s = find((memory *)(void *)store, name);

    if (s)
        s->held = false;
}

static ah_status set_label(ah_store *store, ah_slice name, ah_slice label, ah_err *err)
{
    memory *m = (memory *)(void *)store;
    stream *s = find(m, name);
    ah_text *text = NULL;

    if (!s || !s->held)
        return ah_err_set(err, AH_STORE,
                          "the stream \"%.*s\" is not held: open it before its label is set",
                          AH_FMT(name));
    if (label.p && !(text = ah_text_new(m->mem, label)))
        return ah_err_nomem(err);
    ah_text_set(&s->label, text);
    return AH_OK;
}

/* -- appending ------------------------------------------------------------------------------- */

static void append(ah_store *store, ah_store_append *a)
{
    memory *m = (memory *)(void *)store;

    a->next = NULL;
    *m->last = a;
    m->last = &a->next;
    if (store->wake)
        store->wake(store->wake_ud);
}

static row *new_row(const memory *m, const ah_store_record *r)
{
    bool erased = !r->kept.p && r->kept_hash.n == AH_STORE_HASH;
    ah_slice kept = erased ? r->kept_hash : r->kept;
    row *w = ah_alloc(m->mem, sizeof *w + r->kind.n + r->said.n + kept.n);
    char *p;

    if (!w)
        return NULL;
    w->time = r->time;
    w->kind_n = r->kind.n;
    w->said_n = r->said.n;
    w->kept_n = kept.n;
    w->has_kept = r->kept.p != NULL;
    w->erased = erased;
    p = w->data;
    memcpy(p, r->kind.p, r->kind.n);
    memcpy(p + r->kind.n, r->said.p, r->said.n);
    if (kept.n)
        memcpy(p + r->kind.n + r->said.n, kept.p, kept.n);
    return w;
}

static ah_status check(const memory *m, const ah_store_batch *b, ah_err *err)
{
    const stream *s = find(m, b->stream);

    if (!s || !s->held || s->fence != b->fence)
        return ah_err_set(err, AH_STORE, "another holder has taken over the stream \"%.*s\"",
                          AH_FMT(b->stream));
    if ((int64_t)s->n != b->after)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" has %zu records, the append expected %lld",
                          AH_FMT(b->stream), s->n, (long long)b->after);
    return AH_OK;
}

/* Makes room for the batch, and its rows at the end of a chain, which stays the caller's. */
static ah_status prepare(memory *m, const ah_store_batch *b, row ***end, ah_err *err)
{
    stream *s = find(m, b->stream);
    row **list = s->row;

    if (b->n)
        list = ah_grow(m->mem, s->row, &s->cap, s->n + b->n, sizeof(row *));
    if (b->n && !list)
        return ah_err_nomem(err);
    s->row = list;
    for (size_t i = 0; i < b->n; i++) {
        if (!(**end = new_row(m, &b->record[i])))
            return ah_err_nomem(err);
        *end = &(**end)->next;
    }
    return AH_OK;
}

static void take_message(stream *s, ah_slice key)
{
    uint32_t at = ah_index_find(&s->keys, key);

    if (at == AH_INDEX_NONE || !s->message[at].kind)
        return;
    ah_text_set(&s->message[at].kind, NULL);
    ah_text_set(&s->message[at].body, NULL);
    s->waiting--;
}

static row *commit(memory *m, const ah_store_batch *b, row *rows)
{
    stream *s = find(m, b->stream);

    for (size_t i = 0; i < b->n; i++) {
        s->row[s->n++] = rows;
        rows = rows->next;
    }
    for (size_t i = 0; i < b->n_taken; i++)
        take_message(s, b->taken[i]);
    become_newest(m, s);
    return rows;
}

static ah_status carry_out(memory *m, const ah_store_append *a, ah_err *err)
{
    row *rows = NULL, **end = &rows;
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < a->n; i++)
        st = check(m, &a->batch[i], err);
    for (size_t i = 0; st == AH_OK && i < a->n; i++)
        st = prepare(m, &a->batch[i], &end, err);
    for (size_t i = 0; st == AH_OK && i < a->n; i++)
        rows = commit(m, &a->batch[i], rows);
    while (st != AH_OK && rows) {
        row *next = rows->next;

        ah_free(m->mem, rows);
        rows = next;
    }
    return st;
}

static void poll_memory(ah_store *store)
{
    memory *m = (memory *)(void *)store;

    while (m->first) {
        ah_store_append *a = m->first;
        ah_err err;

        m->first = a->next;
        if (!m->first)
            m->last = &m->first;
        ah_err_clear(&err);
        carry_out(m, a, &err);
        a->done(a, &err);
    }
}

static void wait_memory(ah_store *store)
{
    (void)store;
}

/* -- reading --------------------------------------------------------------------------------- */

static ah_slice kind_of(const row *w)
{
    return (ah_slice){w->data, w->kind_n};
}

static ah_store_record record_of(const row *w, size_t at)
{
    const char *said = w->data + w->kind_n, *kept = said + w->said_n;

    return (ah_store_record){.number = (int64_t)at + 1,
                             .time = w->time,
                             .kind = kind_of(w),
                             .said = {said, w->said_n},
                             .kept = {w->has_kept ? kept : NULL, w->has_kept ? w->kept_n : 0},
                             .kept_hash = {w->erased ? kept : NULL, w->erased ? w->kept_n : 0}};
}

static ah_status read_memory(ah_store *store, ah_slice name, int64_t from, ah_store_record_fn fn,
                             void *ud, ah_err *err)
{
    const stream *s = find((memory *)(void *)store, name);
    ah_status st = AH_OK;

    for (size_t i = from > 1 ? (size_t)from - 1 : 0; s && st == AH_OK && i < s->n; i++) {
        ah_store_record r = record_of(s->row[i], i);

        st = fn(ud, &r, err);
    }
    return st;
}

static ah_status find_last(ah_store *store, ah_slice name, ah_slice kind, int64_t *number,
                           ah_err *err)
{
    const stream *s = find((memory *)(void *)store, name);
    size_t i = s ? s->n : 0;

    (void)err;
    while (i && !ah_slice_eq(kind_of(s->row[i - 1]), kind))
        i--;
    *number = (int64_t)i;
    return AH_OK;
}

static ah_status list(ah_store *store, ah_slice prefix, bool labelled, ah_store_stream_fn fn,
                      void *ud, ah_err *err)
{
    const memory *m = (const memory *)(const void *)store;
    ah_status st = AH_OK;

    for (const stream *s = m->newest; s && st == AH_OK; s = s->older) {
        ah_slice name = ah_text_slice(s->name);
        ah_store_stream shown = {.name = name,
                                 .label = ah_text_slice(s->label),
                                 .last = (int64_t)s->n,
                                 .time = s->n ? s->row[s->n - 1]->time : 0,
                                 .messages = s->waiting};

        if (s->n && name.n >= prefix.n && ah_slice_eq((ah_slice){name.p, prefix.n}, prefix) &&
            (s->label || !labelled))
            st = fn(ud, &shown, err);
    }
    return st;
}

/* -- the inbox ------------------------------------------------------------------------------- */

static bool copy_message(const memory *m, const ah_store_message *from, message *out)
{
    *out = (message){.time = from->time, .key = ah_text_new(m->mem, from->key)};
    out->kind = ah_text_new(m->mem, from->kind);
    out->body = ah_text_new(m->mem, from->body);
    if (out->key && out->kind && out->body)
        return true;
    ah_text_unref(out->key);
    ah_text_unref(out->kind);
    ah_text_unref(out->body);
    return false;
}

static ah_status post(ah_store *store, ah_slice name, const ah_store_message *from, ah_err *err)
{
    memory *m = (memory *)(void *)store;
    stream *s = find(m, name);
    message *room, one;

    if (!s)
        return ah_err_set(err, AH_USAGE, "there is no stream \"%.*s\" in the store", AH_FMT(name));
    if (ah_index_find(&s->keys, from->key) != AH_INDEX_NONE)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" has or had a message with the key \"%.*s\"",
                          AH_FMT(name), AH_FMT(from->key));
    room = ah_grow(m->mem, s->message, &s->cap_messages, s->n_messages + 1, sizeof *room);
    if (!room)
        return ah_err_nomem(err);
    s->message = room;
    if (!ah_index_reserve(&s->keys, 1, s->n_messages) || !copy_message(m, from, &one))
        return ah_err_nomem(err);
    s->message[s->n_messages] = one;
    ah_index_put(&s->keys, ah_text_slice(one.key), s->n_messages++);
    s->waiting++;
    m->news = true;
    return AH_OK;
}

static ah_status inbox(ah_store *store, ah_slice name, ah_store_message_fn fn, void *ud,
                       ah_err *err)
{
    const stream *s = find((memory *)(void *)store, name);
    ah_status st = AH_OK;

    for (size_t i = 0; s && st == AH_OK && i < s->n_messages; i++) {
        const message *at = &s->message[i];
        ah_store_message shown = {.key = ah_text_slice(at->key),
                                  .kind = ah_text_slice(at->kind),
                                  .body = ah_text_slice(at->body),
                                  .time = at->time};

        if (at->kind)
            st = fn(ud, &shown, err);
    }
    return st;
}

static bool news(ah_store *store)
{
    memory *m = (memory *)(void *)store;
    bool any = m->news;

    m->news = false;
    return any;
}

/* -- keeping --------------------------------------------------------------------------------- */

/* The last stream takes the place of the removed one. */
static ah_status remove_stream(ah_store *store, ah_slice name, ah_err *err)
{
    memory *m = (memory *)(void *)store;
    uint32_t at = ah_index_find(&m->names, name);
    stream *s;

    if (at == AH_INDEX_NONE)
        return ah_err_set(err, AH_USAGE, "there is no stream \"%.*s\" in the store", AH_FMT(name));
    s = m->stream[at];
    if (s->held)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" is held by this process: close it there first",
                          AH_FMT(name));
    m->stream[at] = m->stream[--m->n];
    ah_index_refill(&m->names, m->n);
    leave_order(m, s);
    free_stream(m, s);
    return AH_OK;
}

static ah_status purge(ah_store *store, ah_err *err)
{
    (void)store, (void)err;
    return AH_OK;
}

static void add_size(const stream *s, ah_store_size *out)
{
    out->records += (int64_t)s->n;
    for (size_t i = 0; i < s->n; i++) {
        out->bytes += (int64_t)(s->row[i]->said_n + s->row[i]->kept_n);
        out->erased += s->row[i]->erased;
    }
    if (s->n)
        out->oldest = s->row[0]->time;
}

static ah_status measure(ah_store *store, ah_slice name, ah_store_size *out, ah_err *err)
{
    const stream *s = name.p ? find((memory *)(void *)store, name) : NULL;

    (void)err;
    *out = (ah_store_size){0};
    if (s)
        add_size(s, out);
    return AH_OK;
}

/* -- opening and closing --------------------------------------------------------------------- */

static void close_memory(ah_store *store)
{
    memory *m = (memory *)(void *)store;

    poll_memory(store);
    for (size_t i = 0; i < m->n; i++)
        free_stream(m, m->stream[i]);
    ah_index_clear(&m->names);
    ah_free(m->mem, m->stream);
    ah_free(m->mem, m);
}

static const ah_store_vt memory_vt = {.append = append,
                                      .poll = poll_memory,
                                      .wait = wait_memory,
                                      .hold = hold,
                                      .release = release,
                                      .read = read_memory,
                                      .find_last = find_last,
                                      .list = list,
                                      .label = set_label,
                                      .post = post,
                                      .inbox = inbox,
                                      .news = news,
                                      .remove = remove_stream,
                                      .purge = purge,
                                      .measure = measure,
                                      .close = close_memory};

ah_status ah_store_memory_new(const ah_mem *mem, void (*wake)(void *), void *wake_ud,
                              ah_store **out, ah_err *err)
{
    memory *m = ah_alloc(mem, sizeof *m);

    if (!m)
        return ah_err_nomem(err);
    m->store = (ah_store){.vt = &memory_vt, .wake = wake, .wake_ud = wake_ud};
    m->mem = mem;
    m->names = (ah_index){.mem = mem, .name = stream_name, .owner = m};
    m->last = &m->first;
    *out = &m->store;
    return AH_OK;
}
