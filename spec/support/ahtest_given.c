/* A store of an engine that a program gives, for the contract of all engines: the functions of
 * ah_store_engine over the store in memory. It ends appends inside `append`, or on a thread. */
#include "support/ahtest.h"

#include <pthread.h>
#include <stdlib.h>

#include "host/given_store.h"
#include "io/stores.h"
#include "support/ahtest_given.h"

typedef struct over_memory {
    ah_host *host;
    ah_store *inner;
    bool threaded, running;
    pthread_t thread;
    /* the append that is carried out */
    uint64_t id;
    ah_err result;
    ah_err err; /* of the last function that failed */
} over_memory;

static ah_slice slice(ah_span s)
{
    return (ah_slice){s.p, s.n};
}

static ah_span span(ah_slice s)
{
    return (ah_span){s.p, s.n};
}

static ah_status say(over_memory *m, ah_status st, const char **why)
{
    *why = m->err.message;
    return st;
}

/* -- appends --------------------------------------------------------------------------------- */

typedef struct carried {
    ah_store_append append;
    over_memory *of;
} carried;

static void done(ah_store_append *a, const ah_err *err)
{
    ((carried *)(void *)a)->of->result = *err;
}

static void *end_one(void *ud)
{
    over_memory *m = ud;

    if (ah_given_store_appended(m->host, m->id, m->result.status, m->result.message) != AH_OK)
        abort();
    return NULL;
}

static void join(over_memory *m)
{
    if (m->running)
        pthread_join(m->thread, NULL);
    m->running = false;
}

static ah_store_batch inner_batch(const ah_engine_batch *b)
{
    ah_store_record *r = calloc(b->n_records + 1, sizeof *r);
    ah_slice *taken = calloc(b->n_taken + 1, sizeof *taken);

    for (size_t i = 0; i < b->n_records; i++) {
        const ah_engine_record *e = &b->records[i];

        if (e->number != b->after + 1 + (int64_t)i)
            abort();
        r[i] = (ah_store_record){.time = e->time,
                                 .kind = slice(e->kind),
                                 .said = slice(e->said),
                                 .kept = slice(e->kept)};
    }
    for (size_t i = 0; i < b->n_taken; i++)
        taken[i] = slice(b->taken[i]);
    return (ah_store_batch){.stream = slice(b->stream),
                            .after = b->after,
                            .fence = b->fence,
                            .record = r,
                            .n = b->n_records,
                            .taken = taken,
                            .n_taken = b->n_taken};
}

static void append(void *ud, ah_host *host, const ah_engine_append *a)
{
    over_memory *m = ud;
    ah_store_batch *batch = calloc(a->n_batches + 1, sizeof *batch);
    carried c = {.of = m};

    join(m);
    m->host = host;
    m->id = a->id;
    for (size_t i = 0; i < a->n_batches; i++)
        batch[i] = inner_batch(&a->batches[i]);
    c.append = (ah_store_append){.batch = batch, .n = a->n_batches, .done = done};
    m->inner->vt->append(m->inner, &c.append);
    m->inner->vt->poll(m->inner);
    for (size_t i = 0; i < a->n_batches; i++) {
        free((void *)(uintptr_t)batch[i].record);
        free((void *)(uintptr_t)batch[i].taken);
    }
    free(batch);
    if (m->threaded)
        m->running = pthread_create(&m->thread, NULL, end_one, m) == 0;
    if (!m->running)
        end_one(m);
}

/* -- the others ------------------------------------------------------------------------------ */

static ah_status hold(void *ud, ah_span stream, bool take, int64_t *fence, const char **why)
{
    over_memory *m = ud;

    return say(m, m->inner->vt->hold(m->inner, slice(stream), take, fence, &m->err), why);
}

static void release(void *ud, ah_span stream)
{
    over_memory *m = ud;

    m->inner->vt->release(m->inner, slice(stream));
}

typedef struct rows {
    ah_engine_record_fn record;
    ah_engine_stream_fn stream;
    ah_engine_message_fn message;
    void *to;
} rows;

static ah_status on_record(void *ud, const ah_store_record *r, ah_err *err)
{
    const rows *to = ud;
    ah_engine_record e = {.number = r->number,
                          .time = r->time,
                          .kind = span(r->kind),
                          .said = span(r->said),
                          .kept = span(r->kept)};

    (void)err;
    return to->record(to->to, &e);
}

static ah_status read_records(void *ud, ah_span stream, int64_t from, ah_engine_record_fn each,
                              void *to, const char **why)
{
    over_memory *m = ud;
    rows r = {.record = each, .to = to};

    return say(m, m->inner->vt->read(m->inner, slice(stream), from, on_record, &r, &m->err), why);
}

static ah_status on_stream(void *ud, const ah_store_stream *s, ah_err *err)
{
    const rows *to = ud;
    ah_engine_stream e = {.name = span(s->name),
                          .label = span(s->label),
                          .last = s->last,
                          .time = s->time,
                          .messages = s->messages};

    (void)err;
    return to->stream(to->to, &e);
}

static ah_status list(void *ud, ah_span prefix, ah_engine_stream_fn each, void *to,
                      const char **why)
{
    over_memory *m = ud;
    rows r = {.stream = each, .to = to};

    return say(m, m->inner->vt->list(m->inner, slice(prefix), false, on_stream, &r, &m->err), why);
}

static ah_status label(void *ud, ah_span stream, ah_span text, const char **why)
{
    over_memory *m = ud;

    return say(m, m->inner->vt->label(m->inner, slice(stream), slice(text), &m->err), why);
}

static ah_status post(void *ud, ah_span stream, const ah_engine_message *e, const char **why)
{
    over_memory *m = ud;
    ah_store_message message = {
        .key = slice(e->key), .kind = slice(e->kind), .body = slice(e->body), .time = e->time};

    return say(m, m->inner->vt->post(m->inner, slice(stream), &message, &m->err), why);
}

static ah_status on_message(void *ud, const ah_store_message *s, ah_err *err)
{
    const rows *to = ud;
    ah_engine_message e = {
        .key = span(s->key), .kind = span(s->kind), .body = span(s->body), .time = s->time};

    (void)err;
    return to->message(to->to, &e);
}

static ah_status inbox(void *ud, ah_span stream, ah_engine_message_fn each, void *to,
                       const char **why)
{
    over_memory *m = ud;
    rows r = {.message = each, .to = to};

    return say(m, m->inner->vt->inbox(m->inner, slice(stream), on_message, &r, &m->err), why);
}

static bool news(void *ud)
{
    over_memory *m = ud;

    return m->inner->vt->news(m->inner);
}

static void close_engine(void *ud)
{
    over_memory *m = ud;

    join(m);
    m->inner->vt->close(m->inner);
    free(m);
}

ah_status ahtest_given_store(bool threaded, ah_host **host, ah_store **out, ah_err *err)
{
    over_memory *m = calloc(1, sizeof *m);
    ah_store_engine engine = {.append = append,
                              .hold = hold,
                              .release = release,
                              .read = read_records,
                              .list = list,
                              .label = label,
                              .post = post,
                              .inbox = inbox,
                              .news = news,
                              .close = close_engine,
                              .ud = m};
    ah_status st;

    m->threaded = threaded;
    if ((st = ah_host_new(&ah_mem_libc, NULL, host, err)) == AH_OK &&
        (st = ah_store_memory_new(&ah_mem_libc, NULL, NULL, &m->inner, err)) == AH_OK)
        st = ah_given_store_new(*host, &engine, out, err);
    return st;
}
