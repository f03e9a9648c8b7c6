/* The engine: what the host's thread calls. Appends are passed to the connection's thread, and
 * waits for the search index to that of searches; all else is carried out at once, under the lock
 * of the connection. Readers are called without the lock: rows are copied in pages, so a reader may
 * use the store. */
#include "io/stores.h"

#include "io/store_sqlite_index.h"

#ifdef AH_WITH_SQLITE

#include "base/buf.h"

enum {
    FIRST_PAGE = 16 << 10, /* a reader may want the first records only */
    PAGE = 256 << 10,
    MAX_KEY = 1024,
    MAX_LABEL = 1 << 20
};

static ah_sqlite_handle *handle_of(ah_store *s)
{
    return (ah_sqlite_handle *)s;
}

/* In a forked child neither the locks nor the thread are there. */
static bool is_forked(const ah_sqlite_handle *h)
{
    return h->core->pid != getpid();
}

/* Locks the connection; the caller calls leave. */
static ah_status enter(ah_sqlite_handle *h, ah_err *err)
{
    if (is_forked(h))
        return ah_err_set(err, AH_STORE,
                          "the store %s was opened before a fork: open it in the child anew",
                          h->core->file.path);
    pthread_mutex_lock(&h->core->database);
    return AH_OK;
}

static void leave(ah_sqlite_handle *h)
{
    pthread_mutex_unlock(&h->core->database);
}

static ah_status check_name(ah_slice stream, ah_err *err)
{
    if (stream.n > 0 && stream.n <= AH_STORE_MAX_STREAM)
        return AH_OK;
    return ah_err_set(err, AH_USAGE, "the name of a stream has %zu bytes, it must have 1 to %d",
                      stream.n, AH_STORE_MAX_STREAM);
}

/* -- appends ---------------------------------------------------------------------------------- */

static void sq_append(ah_store *s, ah_store_append *a)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_sqlite_core *c = h->core;
    bool idle;

    a->engine = h;
    a->outcome = NULL;
    a->next = NULL;
    if (is_forked(h)) { /* poll sees that it is */
        *h->done_end = a;
        h->done_end = &a->next;
        return;
    }
    if (a->alone && ah_sqlite_append_now(h, a))
        return;
    pthread_mutex_lock(&c->queue);
    *c->end = a;
    c->end = &a->next;
    h->outstanding++;
    idle = c->idle;
    c->idle = false;
    pthread_mutex_unlock(&c->queue);
    if (idle)
        pthread_cond_signal(&c->work);
}

static void finish(const ah_sqlite_handle *h, ah_store_append *a, bool forked)
{
    ah_err err, *outcome = a->outcome;

    if (forked) {
        ah_err_set(&err, AH_STORE, "the store %s was opened before a fork", h->core->file.path);
    } else if (!outcome) {
        ah_err_clear(&err);
    } else {
        err = *outcome;
        ah_sqlite_free_outcome(outcome);
    }
    a->done(a, &err);
}

static void sq_poll(ah_store *s)
{
    ah_sqlite_handle *h = handle_of(s);
    bool forked = is_forked(h);
    ah_store_append *list;

    if (!forked)
        pthread_mutex_lock(&h->core->queue);
    list = h->done;
    h->done = NULL;
    h->done_end = &h->done;
    if (!forked)
        pthread_mutex_unlock(&h->core->queue);
    while (list) {
        ah_store_append *a = list;

        list = a->next;
        finish(h, a, forked);
    }
}

static void sq_wait(ah_store *s)
{
    ah_sqlite_handle *h = handle_of(s);

    if (is_forked(h))
        return;
    pthread_mutex_lock(&h->core->queue);
    while (!h->done && h->outstanding)
        pthread_cond_wait(&h->core->done, &h->core->queue);
    pthread_mutex_unlock(&h->core->queue);
}

/* Waits until no append is outstanding, and the thread has no use for the handle. */
static void wait_for_all(ah_sqlite_handle *h)
{
    pthread_mutex_lock(&h->core->queue);
    while (h->outstanding || h->waking)
        pthread_cond_wait(&h->core->done, &h->core->queue);
    pthread_mutex_unlock(&h->core->queue);
}

/* -- holders ---------------------------------------------------------------------------------- */

static ah_status sq_hold(ah_store *s, ah_slice stream, bool take, int64_t *fence, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st = check_name(stream, err);

    if (st != AH_OK || (st = enter(h, err)) != AH_OK)
        return st;
    st = ah_sqlite_hold(h, stream, take, fence, err);
    leave(h);
    return st;
}

static void sq_release(ah_store *s, ah_slice stream)
{
    ah_sqlite_handle *h = handle_of(s);

    if (enter(h, NULL) != AH_OK)
        return;
    ah_sqlite_release(h, stream);
    leave(h);
}

/* -- rows ------------------------------------------------------------------------------------- */

/* A copied row: three numbers and three texts, whose bytes follow it. */
enum { COLUMNS = 3 };
typedef struct row {
    int64_t number[COLUMNS];
    size_t n[COLUMNS];
    bool null[COLUMNS];
    bool erased; /* the last text is the hash of one */
} row;

typedef struct row_view {
    int64_t number[COLUMNS];
    ah_slice text[COLUMNS];
    ah_slice hash; /* of the last text, which is erased; .p NULL: it is not */
} row_view;

/* Returns a text column; those of records but for the kind have cuts in the columns behind. */
static ah_store_text text_of(ah_sqlite_core *c, ah_sqlite_statement s, int i)
{
    ah_store_text t = {.rest = ah_sqlite_column_text(c, s, COLUMNS + i)};

    if (s == AH_SQLITE_READ && i > 0)
        t.cuts = ah_sqlite_column_text(c, s, 2 * COLUMNS + i - 1);
    return t;
}

/* Appends a text. Of what is kept and erased it is the hash. */
static ah_status copy_text(ah_sqlite_core *c, const row *r, const ah_store_text *t, ah_buf *out,
                           ah_err *err)
{
    if (!r->erased)
        return ah_sqlite_join(c, r->number[0] & AH_SQLITE_MAX_NUMBER, t, out, err);
    ah_buf_put(out, t->cuts);
    return AH_OK;
}

static ah_status copy_row(ah_sqlite_core *c, ah_sqlite_statement s, ah_buf *out, ah_err *err)
{
    size_t at = out->len, from;
    ah_status st = AH_OK;
    row r = {0};

    ah_buf_add(out, &r, sizeof r);
    for (int i = 0; st == AH_OK && i < COLUMNS; i++) {
        ah_store_text t = text_of(c, s, i);

        from = out->len;
        r.number[i] = ah_sqlite_column(c, s, i);
        r.erased = i == COLUMNS - 1 && ah_store_text_erased(&t);
        r.null[i] = t.rest.p == NULL || r.erased;
        st = copy_text(c, &r, &t, out, err);
        r.n[i] = out->len - from;
    }
    if (!ah_buf_ok(out))
        st = ah_err_nomem(err);
    if (st == AH_OK)
        memcpy(out->data + at, &r, sizeof r);
    return st;
}

/* Takes the next copied row. */
static bool next_row(ah_slice *rest, row_view *out)
{
    const char *p;
    row r;

    if (rest->n == 0)
        return false;
    memcpy(&r, rest->p, sizeof r);
    p = rest->p + sizeof r;
    for (int i = 0; i < COLUMNS; i++) {
        out->number[i] = r.number[i];
        out->text[i] = (ah_slice){r.null[i] ? NULL : p, r.n[i]};
        p += r.n[i];
    }
    out->hash = (ah_slice){NULL, 0};
    if (r.erased)
        out->hash = (ah_slice){p - AH_SHA256_BYTES, AH_SHA256_BYTES};
    rest->n -= (size_t)(p - rest->p);
    rest->p = p;
    return true;
}

/* Copies rows until the page is full, or before a damaged one, with which the next page begins.
 * *more: there may be others. The statement is bound. */
static ah_status copy_rows(ah_sqlite_handle *h, ah_sqlite_statement s, ah_buf *out, size_t most,
                           bool *more, ah_err *err)
{
    ah_sqlite_core *c = h->core;
    ah_status st = AH_OK;
    size_t whole = 0;
    int rc = SQLITE_ROW;

    while (st == AH_OK && out->len < most && (rc = ah_sqlite_step(c, s)) == SQLITE_ROW) {
        whole = out->len;
        st = copy_row(c, s, out, err);
    }
    *more = rc == SQLITE_ROW;
    if (st == AH_STORE && whole > 0) {
        ah_buf_reset(out, whole);
        st = AH_OK;
    }
    if (st == AH_OK && rc != SQLITE_ROW && rc != SQLITE_DONE)
        st = ah_sqlite_fails(c, "read", err);
    ah_sqlite_reset(c, s);
    return st;
}

/* Returns the id of a stream in *out; 0: there is none. */
static ah_status find_id(ah_sqlite_core *c, ah_slice stream, int64_t *out, ah_err *err)
{
    int rc;

    *out = 0;
    ah_sqlite_text(c, AH_SQLITE_FIND, 1, stream);
    if ((rc = ah_sqlite_step(c, AH_SQLITE_FIND)) == SQLITE_ROW)
        *out = ah_sqlite_column(c, AH_SQLITE_FIND, 0);
    ah_sqlite_reset(c, AH_SQLITE_FIND);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? AH_OK : ah_sqlite_fails(c, "read", err);
}

/* -- records ---------------------------------------------------------------------------------- */

/* Binds the rows of a stream from a number on. False: the stream has none. */
static bool bind_range(ah_sqlite_core *c, ah_sqlite_statement s, int64_t id, int64_t from)
{
    if (id == 0 || from > AH_SQLITE_MAX_NUMBER)
        return false;
    ah_sqlite_int(c, s, 1, AH_SQLITE_ROW(id, from > 0 ? from : 0));
    ah_sqlite_int(c, s, 2, AH_SQLITE_ROW(id, AH_SQLITE_MAX_NUMBER));
    return true;
}

static ah_status copy_records(ah_sqlite_handle *h, ah_slice stream, int64_t from, size_t page,
                              ah_buf *out, bool *more, ah_err *err)
{
    int64_t id;
    ah_status st = enter(h, err);

    *more = false;
    if (st != AH_OK)
        return st;
    st = find_id(h->core, stream, &id, err);
    if (st == AH_OK && bind_range(h->core, AH_SQLITE_READ, id, from))
        st = copy_rows(h, AH_SQLITE_READ, out, page, more, err);
    leave(h);
    return st;
}

/* Calls the reader for each row of a page; *from is then the number behind it. */
static ah_status give_records(ah_slice rows, int64_t *from, ah_store_record_fn fn, void *ud,
                              ah_err *err)
{
    row_view v;
    ah_status st = AH_OK;

    while (st == AH_OK && next_row(&rows, &v)) {
        ah_store_record r = {.number = v.number[0] & AH_SQLITE_MAX_NUMBER,
                             .time = v.number[1],
                             .kind = v.text[0],
                             .said = v.text[1],
                             .kept = v.text[2],
                             .kept_hash = v.hash};

        *from = r.number + 1;
        st = fn(ud, &r, err);
    }
    return st;
}

static ah_status sq_read(ah_store *s, ah_slice stream, int64_t from, ah_store_record_fn fn,
                         void *ud, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st = AH_OK;
    bool more = true;
    ah_buf rows;

    ah_buf_init(&rows, &h->mem, SIZE_MAX);
    for (size_t page = FIRST_PAGE; st == AH_OK && more; page = PAGE) {
        ah_buf_reset(&rows, 0);
        if ((st = copy_records(h, stream, from, page, &rows, &more, err)) == AH_OK)
            st = give_records(ah_buf_slice(&rows), &from, fn, ud, err);
    }
    ah_buf_clear(&rows);
    return st;
}

/* Checkpoints have an index. Expects the lock. */
static ah_status find_last(ah_sqlite_core *c, int64_t id, ah_slice kind, int64_t *number,
                           ah_err *err)
{
    bool checkpoint = ah_slice_is(kind, "checkpoint");
    ah_sqlite_statement s = checkpoint ? AH_SQLITE_FIND_CHECKPOINT : AH_SQLITE_FIND_LAST;
    int rc;

    if (!bind_range(c, s, id, 0))
        return AH_OK;
    if (!checkpoint)
        ah_sqlite_text(c, s, 3, kind);
    if ((rc = ah_sqlite_step(c, s)) == SQLITE_ROW)
        *number = ah_sqlite_column(c, s, 0) & AH_SQLITE_MAX_NUMBER;
    ah_sqlite_reset(c, s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? AH_OK : ah_sqlite_fails(c, "read", err);
}

static ah_status sq_find_last(ah_store *s, ah_slice stream, ah_slice kind, int64_t *number,
                              ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    int64_t id;
    ah_status st = enter(h, err);

    *number = 0;
    if (st != AH_OK)
        return st;
    if ((st = find_id(h->core, stream, &id, err)) == AH_OK)
        st = find_last(h->core, id, kind, number, err);
    leave(h);
    return st;
}

/* -- streams ---------------------------------------------------------------------------------- */

static ah_status copy_ids(ah_sqlite_handle *h, ah_slice prefix, bool labelled, ah_buf *out,
                          ah_err *err)
{
    ah_sqlite_core *c = h->core;
    ah_status st = enter(h, err);
    int64_t id;
    int rc;

    if (st != AH_OK)
        return st;
    ah_sqlite_text(c, AH_SQLITE_LIST, 1, prefix.p ? prefix : ah_slice_of(""));
    ah_sqlite_int(c, AH_SQLITE_LIST, 2, labelled);
    while ((rc = ah_sqlite_step(c, AH_SQLITE_LIST)) == SQLITE_ROW && ah_buf_ok(out)) {
        id = ah_sqlite_column(c, AH_SQLITE_LIST, 0);
        ah_buf_add(out, &id, sizeof id);
    }
    if (!ah_buf_ok(out))
        st = ah_err_nomem(err);
    else if (rc != SQLITE_DONE)
        st = ah_sqlite_fails(c, "read", err);
    ah_sqlite_reset(c, AH_SQLITE_LIST);
    leave(h);
    return st;
}

static ah_status give_stream(ah_sqlite_handle *h, int64_t id, ah_buf *rows, ah_store_stream_fn fn,
                             void *ud, ah_err *err)
{
    ah_slice rest;
    row_view v;
    bool more;
    ah_status st = enter(h, err);

    if (st != AH_OK)
        return st;
    ah_buf_reset(rows, 0);
    ah_sqlite_int(h->core, AH_SQLITE_STREAM, 1, id);
    st = copy_rows(h, AH_SQLITE_STREAM, rows, PAGE, &more, err);
    leave(h);
    if (st != AH_OK)
        return st;
    rest = ah_buf_slice(rows);
    if (!next_row(&rest, &v))
        return AH_OK; /* it was deleted meanwhile */
    return fn(ud,
              &(ah_store_stream){.name = v.text[0],
                                 .label = v.text[1],
                                 .last = v.number[0],
                                 .time = v.number[1],
                                 .messages = (size_t)v.number[2]},
              err);
}

static ah_status sq_list(ah_store *s, ah_slice prefix, bool labelled, ah_store_stream_fn fn,
                         void *ud, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st;
    ah_buf ids, rows;
    int64_t id;

    ah_buf_init(&ids, &h->mem, SIZE_MAX);
    ah_buf_init(&rows, &h->mem, SIZE_MAX);
    st = copy_ids(h, prefix, labelled, &ids, err);
    for (size_t at = 0; st == AH_OK && at < ids.len; at += sizeof id) {
        memcpy(&id, ids.data + at, sizeof id);
        st = give_stream(h, id, &rows, fn, ud, err);
    }
    ah_buf_clear(&ids);
    ah_buf_clear(&rows);
    return st;
}

/* Expects the lock. */
static ah_status set_label(ah_sqlite_handle *h, ah_slice stream, ah_slice label, ah_err *err)
{
    ah_sqlite_core *c = h->core;
    int64_t fence, id = ah_sqlite_find_held(h, stream, &fence);
    bool ok;

    ah_sqlite_int(c, AH_SQLITE_LABEL, 1, id);
    ah_sqlite_int(c, AH_SQLITE_LABEL, 2, fence);
    ah_sqlite_text(c, AH_SQLITE_LABEL, 3, label);
    ok = id == 0 || ah_sqlite_run(c, AH_SQLITE_LABEL);
    if (!ok)
        return ah_sqlite_fails(c, "written", err);
    if (id && c->lib.changes(c->db))
        return AH_OK;
    return ah_err_set(err, AH_STORE,
                      id ? "another process has taken over the stream \"%.*s\""
                         : "the stream \"%.*s\" is not held, so it cannot get a label",
                      AH_FMT(stream));
}

static ah_status sq_label(ah_store *s, ah_slice stream, ah_slice label, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st;

    if (label.n > MAX_LABEL)
        return ah_err_set(err, AH_STORE, "a label of %zu bytes is too long, %d are the most",
                          label.n, MAX_LABEL);
    if ((st = enter(h, err)) != AH_OK)
        return st;
    st = set_label(h, stream, label, err);
    leave(h);
    return st;
}

/* -- inboxes ---------------------------------------------------------------------------------- */

static ah_status check_message(const ah_store_message *m, ah_err *err)
{
    if (m->key.n == 0 || m->key.n > MAX_KEY)
        return ah_err_set(err, AH_USAGE, "the key of a message has %zu bytes, it must have 1 to %d",
                          m->key.n, MAX_KEY);
    if (m->body.n > AH_STORE_MAX_RECORD || m->kind.n > UINT8_MAX)
        return ah_err_set(err, AH_USAGE, "a message of %zu bytes is too long, %d are the most",
                          m->body.n, AH_STORE_MAX_RECORD);
    return AH_OK;
}

static bool insert_message(ah_sqlite_core *c, int64_t id, const ah_store_message *m)
{
    const ah_sqlite_statement S = AH_SQLITE_POST;

    ah_sqlite_int(c, S, 1, id);
    ah_sqlite_text(c, S, 2, m->key);
    ah_sqlite_text(c, S, 3, m->kind.p ? m->kind : ah_slice_of(""));
    ah_sqlite_text(c, S, 4, m->body.p ? m->body : ah_slice_of(""));
    ah_sqlite_int(c, S, 5, m->time);
    return ah_sqlite_run(c, S);
}

/* Expects the lock and a transaction. */
static ah_status post_message(ah_sqlite_core *c, ah_slice stream, const ah_store_message *m,
                              bool sync, ah_err *err)
{
    int64_t id;
    ah_status st = find_id(c, stream, &id, err);

    if (st != AH_OK)
        return st;
    if (id == 0)
        return ah_err_set(err, AH_USAGE, "there is no stream \"%.*s\" in the store %s",
                          AH_FMT(stream), c->file.path);
    if (!insert_message(c, id, m))
        return ah_sqlite_fails(c, "written", err);
    if (c->lib.changes(c->db) == 0)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" has or had a message with the key \"%.*s\"",
                          AH_FMT(stream), AH_FMT(m->key));
    return ah_sqlite_commit(c, sync) ? AH_OK : ah_sqlite_fails(c, "written", err);
}

static ah_status sq_post(ah_store *s, ah_slice stream, const ah_store_message *m, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    bool sync = h->sync != AH_SYNC_PROCESS;
    ah_status st = check_message(m, err);

    if (st != AH_OK || (st = enter(h, err)) != AH_OK)
        return st;
    if (!ah_sqlite_begin(h->core, sync))
        st = ah_sqlite_fails(h->core, "written", err);
    else
        st = post_message(h->core, stream, m, sync, err);
    if (st == AH_OK)
        atomic_fetch_add(&h->core->posts, 1);
    else
        ah_sqlite_rollback(h->core, sync);
    leave(h);
    return st;
}

static ah_status copy_inbox(ah_sqlite_handle *h, ah_slice stream, ah_buf *out, ah_err *err)
{
    int64_t id;
    bool more;
    ah_status st = enter(h, err);

    if (st != AH_OK)
        return st;
    if ((st = find_id(h->core, stream, &id, err)) == AH_OK && id != 0) {
        ah_sqlite_int(h->core, AH_SQLITE_INBOX, 1, id);
        st = copy_rows(h, AH_SQLITE_INBOX, out, SIZE_MAX, &more, err);
    }
    leave(h);
    return st;
}

static ah_status sq_inbox(ah_store *s, ah_slice stream, ah_store_message_fn fn, void *ud,
                          ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_slice rest;
    ah_status st;
    ah_buf rows;
    row_view v;

    ah_buf_init(&rows, &h->mem, SIZE_MAX);
    if ((st = copy_inbox(h, stream, &rows, err)) == AH_OK) {
        rest = ah_buf_slice(&rows);
        while (st == AH_OK && next_row(&rest, &v))
            st =
                fn(ud,
                   &(ah_store_message){
                       .key = v.text[0], .kind = v.text[1], .body = v.text[2], .time = v.number[0]},
                   err);
    }
    ah_buf_clear(&rows);
    return st;
}

/* Returns the number that changes with each commit of another connection; 0: unknown. */
static int64_t version_of(ah_sqlite_core *c)
{
    int64_t v = 0;

    if (ah_sqlite_step(c, AH_SQLITE_VERSION) == SQLITE_ROW)
        v = ah_sqlite_column(c, AH_SQLITE_VERSION, 0);
    ah_sqlite_reset(c, AH_SQLITE_VERSION);
    return v;
}

/* A commit under way is not waited for: what came with it is seen by the next call. */
static bool sq_news(ah_store *s)
{
    ah_sqlite_handle *h = handle_of(s);
    unsigned posts = atomic_load(&h->core->posts);
    int64_t version = h->version;
    bool news;

    if (is_forked(h))
        return false;
    if (pthread_mutex_trylock(&h->core->database) == 0) {
        version = version_of(h->core);
        leave(h);
    }
    news = version != h->version || posts != h->posts;
    h->version = version;
    h->posts = posts;
    return news;
}

/* -- keeping ---------------------------------------------------------------------------------- */

static ah_status sq_remove(ah_store *s, ah_slice stream, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st = enter(h, err);

    if (st != AH_OK)
        return st;
    st = ah_sqlite_remove(h->core, stream, err);
    leave(h);
    return st;
}

static ah_status sq_purge(ah_store *s, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st = enter(h, err);

    if (st != AH_OK)
        return st;
    st = ah_sqlite_purge(h->core, err);
    leave(h);
    return st == AH_OK ? ah_sqlite_index_clean(h->core, err) : st;
}

/* Locks the connection, unless there is an error, and finds the stream. */
static ah_status enter_stream(ah_sqlite_handle *h, ah_slice stream, int64_t *id, ah_err *err)
{
    ah_status st = enter(h, err);

    if (st == AH_OK && (st = find_id(h->core, stream, id, err)) != AH_OK)
        leave(h);
    return st;
}

static ah_status sq_erase(ah_store *s, ah_slice stream, int64_t below, int64_t older, int64_t *n,
                          ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    int64_t id;
    ah_status st = enter_stream(h, stream, &id, err);

    *n = 0;
    if (st != AH_OK)
        return st;
    if (id != 0)
        st = ah_sqlite_erase(h->core, id, below, older, n, err);
    leave(h);
    return st;
}

static ah_status sq_measure(ah_store *s, ah_slice stream, ah_store_size *out, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    int64_t id = 0;
    ah_status st = stream.p ? enter_stream(h, stream, &id, err) : enter(h, err);

    *out = (ah_store_size){0};
    if (st != AH_OK)
        return st;
    if (!stream.p)
        st = ah_sqlite_measure_all(h->core, out, err);
    else if (id != 0)
        st = ah_sqlite_measure(h->core, id, out, err);
    leave(h);
    return st;
}

static ah_status sq_head(ah_store *s, ah_slice stream, int64_t *number,
                         unsigned char hash[AH_STORE_HASH], ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_sqlite_tail tail = {.last = 0};
    int64_t id;
    ah_status st = enter_stream(h, stream, &id, err);

    if (st != AH_OK)
        return st;
    if (id != 0)
        st = ah_sqlite_read_tail(h->core, id, &tail, err);
    *number = tail.last;
    memcpy(hash, tail.hash, sizeof tail.hash);
    leave(h);
    return st;
}

static ah_status sq_verify(ah_store *s, ah_slice stream, ah_store_audit *audit, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    int64_t id;
    ah_status st = enter_stream(h, stream, &id, err);

    if (st != AH_OK)
        return st;
    st = id ? ah_sqlite_verify(h->core, id, audit, err)
            : ah_err_set(err, AH_USAGE, "there is no stream \"%.*s\" in the store", AH_FMT(stream));
    leave(h);
    return st;
}

/* -- search ----------------------------------------------------------------------------------- */

/* False: it has failed. Expects `queue`. */
static bool begin_wait(ah_sqlite_core *c, ah_store_append *a)
{
    ah_err err;

    if (ah_sqlite_start_indexer(c, &err) != AH_OK) {
        ah_sqlite_fail(a, &err);
        return false;
    }
    *c->search_end = a;
    c->search_end = &a->next;
    pthread_cond_signal(&c->searches);
    return true;
}

static void sq_prepare(ah_store *s, ah_store_append *a)
{
    ah_sqlite_handle *h = handle_of(s);
    bool forked = is_forked(h), waits; /* of a forked one, poll sees that it is */

    a->engine = h;
    a->outcome = NULL;
    a->next = NULL;
    if (!forked)
        pthread_mutex_lock(&h->core->queue);
    waits = !forked && begin_wait(h->core, a);
    if (!waits) {
        *h->done_end = a;
        h->done_end = &a->next;
    }
    if (!forked)
        pthread_mutex_unlock(&h->core->queue);
    if (!waits && h->store.wake)
        h->store.wake(h->store.wake_ud);
}

/* Removes it from a list that ends at *end. False: it is not there. */
static bool take_out(ah_store_append **first, ah_store_append ***end, const ah_store_append *a)
{
    while (*first && *first != a)
        first = &(*first)->next;
    if (!*first)
        return false;
    *first = a->next;
    if (!a->next)
        *end = first;
    return true;
}

static void sq_leave(ah_store *s, ah_store_append *a)
{
    ah_sqlite_handle *h = handle_of(s);
    bool forked = is_forked(h);

    if (!forked)
        pthread_mutex_lock(&h->core->queue);
    if (!take_out(&h->done, &h->done_end, a) && !forked)
        take_out(&h->core->search, &h->core->search_end, a);
    if (!forked)
        pthread_mutex_unlock(&h->core->queue);
    if (a->outcome)
        ah_sqlite_free_outcome(a->outcome);
}

static ah_status sq_search(ah_store *s, const ah_store_search *q, ah_err *err)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_status st = enter(h, err); /* a forked child may not */

    if (st != AH_OK)
        return st;
    leave(h);
    wait_for_all(h);
    return ah_sqlite_search(h->core, q, err);
}

/* -- opening ---------------------------------------------------------------------------------- */

static void sq_close(ah_store *s)
{
    ah_sqlite_handle *h = handle_of(s);
    ah_mem mem = h->mem;

    if (!is_forked(h))
        wait_for_all(h);
    sq_poll(s);
    if (enter(h, NULL) == AH_OK) {
        ah_sqlite_release_all(h);
        leave(h);
        ah_sqlite_core_close(h->core);
    }
    ah_free(&mem, h);
}

static const ah_store_vt engine = {
    .append = sq_append,
    .poll = sq_poll,
    .wait = sq_wait,
    .hold = sq_hold,
    .release = sq_release,
    .read = sq_read,
    .find_last = sq_find_last,
    .list = sq_list,
    .label = sq_label,
    .post = sq_post,
    .inbox = sq_inbox,
    .news = sq_news,
    .remove = sq_remove,
    .purge = sq_purge,
    .erase = sq_erase,
    .measure = sq_measure,
    .verify = sq_verify,
    .head = sq_head,
    .close = sq_close,
    .search = sq_search,
    .prepare = sq_prepare,
    .leave = sq_leave,
};

ah_status ah_store_sqlite_open(const ah_mem *mem, ah_slice path, ah_store_sync sync, bool create,
                               bool force, void (*wake)(void *ud), void *wake_ud, ah_store **out,
                               ah_err *err)
{
    ah_sqlite_handle *h = ah_alloc(mem, sizeof *h);
    ah_status st;

    if (!h)
        return ah_err_nomem(err);
    *h = (ah_sqlite_handle){.store = {&engine, wake, wake_ud}, .mem = *mem, .sync = sync};
    h->done_end = &h->done;
    if ((st = ah_sqlite_core_open(path, create, force, &h->core, err)) != AH_OK) {
        ah_free(mem, h);
        return st;
    }
    sq_news(&h->store);
    *out = &h->store;
    return AH_OK;
}

bool ah_store_sqlite_available(void)
{
    ah_sqlite lib;

    return ah_sqlite_load(&lib, NULL) == AH_OK;
}

const char *ah_store_sqlite_version(void)
{
    ah_sqlite lib;

    return ah_sqlite_load(&lib, NULL) == AH_OK ? lib.libversion() : "none";
}

#else

ah_status ah_store_sqlite_open(const ah_mem *mem, ah_slice path, ah_store_sync sync, bool create,
                               bool force, void (*wake)(void *ud), void *wake_ud, ah_store **out,
                               ah_err *err)
{
    (void)mem, (void)path, (void)sync, (void)create, (void)force, (void)wake, (void)wake_ud;
    (void)out;
    return ah_err_set(err, AH_STORE,
                      "SQLite is not in this build, so there are no stores in files: build "
                      "agenthost where it is (Debian: apt-get install libsqlite3-dev)");
}

bool ah_store_sqlite_available(void)
{
    return false;
}

const char *ah_store_sqlite_version(void)
{
    return "none";
}

#endif
