/* See given_store.h. Appends that have begun are in a list of their host, under its lock, since any
 * thread may end them; all else is the host's thread's. */
#include "host/given_store.h"

#include "base/json.h"

typedef struct given {
    ah_store store;
    ah_host *host;
    ah_store_engine engine;
    ah_store_append *unbegun; /* those for which there was no memory */
} given;

/* An append that has begun, in one block with its batches, records and keys. */
struct ah_given_append {
    ah_engine_append shown;
    given *of;
    ah_store_append *append;
    struct ah_given_append *next;
    bool ended;
    ah_status status;
    char why[AH_MAX_MESSAGE];
};
typedef struct ah_given_append begun;

static given *given_of(ah_store *s)
{
    return (given *)(void *)s;
}

static ah_span span(ah_slice s)
{
    return (ah_span){s.p, s.n};
}

static ah_slice slice(ah_span s)
{
    return (ah_slice){s.p, s.p ? s.n : 0};
}

/* True if the bytes are there, and not more than `most`. */
static bool is_within(ah_span s, size_t least, size_t most)
{
    return s.p && s.n >= least && s.n <= most;
}

static ah_status broken(ah_err *err, const char *what)
{
    return ah_err_set(err, AH_STORE, "the program's engine of the store is wrong: %s", what);
}

static const char *text_of(const char *why)
{
    return why && *why && ah_utf8_valid(ah_slice_of(why)) ? why
                                                          : "the program's engine gives no reason";
}

/* Sets what a function of the engine has returned. `may`: a status that it may return beside
 * AH_STORE and AH_NOMEM; AH_OK: none. */
static ah_status failed(ah_err *err, ah_status st, ah_status may, const char *why)
{
    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, st == may ? st : AH_STORE, "%s", text_of(why));
}

/* -- beginning an append ----------------------------------------------------------------------- */

static void show_batch(const ah_store_batch *b, ah_engine_batch *out, ah_engine_record **records,
                       ah_span **keys)
{
    *out = (ah_engine_batch){.stream = span(b->stream),
                             .after = b->after,
                             .fence = b->fence,
                             .records = *records,
                             .n_records = b->n,
                             .taken = *keys,
                             .n_taken = b->n_taken};
    for (size_t i = 0; i < b->n; i++)
        *(*records)++ = (ah_engine_record){.number = b->after + 1 + (int64_t)i,
                                           .time = b->record[i].time,
                                           .kind = span(b->record[i].kind),
                                           .said = span(b->record[i].said),
                                           .kept = span(b->record[i].kept)};
    for (size_t i = 0; i < b->n_taken; i++)
        *(*keys)++ = span(b->taken[i]);
}

/* NULL: no memory. */
static begun *new_begun(given *g, ah_store_append *a)
{
    size_t n_records = 0, n_keys = 0;
    ah_engine_batch *batch;
    ah_engine_record *records;
    ah_span *keys;
    begun *b;

    for (size_t i = 0; i < a->n; i++) {
        n_records += a->batch[i].n;
        n_keys += a->batch[i].n_taken;
    }
    b = ah_alloc(g->host->mem, sizeof *b + a->n * sizeof *batch + n_records * sizeof *records +
                                   n_keys * sizeof *keys);
    if (!b)
        return NULL;
    batch = (ah_engine_batch *)(void *)(b + 1);
    records = (ah_engine_record *)(void *)(batch + a->n);
    keys = (ah_span *)(void *)(records + n_records);
    for (size_t i = 0; i < a->n; i++)
        show_batch(&a->batch[i], &batch[i], &records, &keys);
    b->of = g;
    b->append = a;
    b->shown = (ah_engine_append){.batches = batch, .n_batches = a->n, .sync = a->sync};
    return b;
}

static void enlist(ah_host *h, begun *b)
{
    begun **end = &h->given.first;

    pthread_mutex_lock(&h->given.lock);
    while (*end)
        end = &(*end)->next;
    *end = b;
    b->shown.id = ++h->given.last;
    pthread_mutex_unlock(&h->given.lock);
}

static void append(ah_store *s, ah_store_append *a)
{
    given *g = given_of(s);
    begun *b = new_begun(g, a);

    if (!b) {
        a->next = g->unbegun;
        g->unbegun = a;
        s->wake(s->wake_ud);
        return;
    }
    enlist(g->host, b);
    ah_host_call_out(g->host, true);
    g->engine.append(g->engine.ud, g->host, &b->shown);
    ah_host_came_back(g->host, true);
}

/* -- ending it --------------------------------------------------------------------------------- */

/* Called with the lock. */
static void end(begun *b, ah_status st, const char *why)
{
    bool known = st == AH_OK || st == AH_CONFLICT || st == AH_NOMEM;

    b->status = known ? st : AH_STORE;
    if (st != AH_OK)
        ah_print(b->why, sizeof b->why, "%s", text_of(why));
    b->ended = true;
}

/* The store is woken under the lock, without which its close cannot see that the append has
 * ended. */
ah_status ah_given_store_appended(ah_host *h, uint64_t append, ah_status st, const char *message)
{
    begun *b;

    pthread_mutex_lock(&h->given.lock);
    b = h->given.first;
    while (b && (b->shown.id != append || b->ended))
        b = b->next;
    if (b) {
        end(b, st, message);
        b->of->store.wake(b->of->store.wake_ud);
        pthread_cond_broadcast(&h->given.news);
    }
    pthread_mutex_unlock(&h->given.lock);
    return b ? AH_OK : AH_USAGE;
}

/* Returns the first append of the store that has ended, taken out of the list; NULL: none. */
static begun *take_ended(given *g)
{
    ah_host *h = g->host;
    begun **at = &h->given.first, *b;

    pthread_mutex_lock(&h->given.lock);
    while (*at && ((*at)->of != g || !(*at)->ended))
        at = &(*at)->next;
    b = *at;
    if (b)
        *at = b->next;
    pthread_mutex_unlock(&h->given.lock);
    return b;
}

static void poll_given(ah_store *s)
{
    given *g = given_of(s);
    ah_err err;
    begun *b;

    while (g->unbegun) {
        ah_store_append *a = g->unbegun;

        g->unbegun = a->next;
        ah_err_nomem(&err);
        a->done(a, &err);
    }
    while ((b = take_ended(g))) {
        ah_store_append *a = b->append;

        ah_err_clear(&err);
        if (b->status != AH_OK)
            failed(&err, b->status, b->status, b->why);
        ah_free(g->host->mem, b);
        a->done(a, &err);
    }
}

typedef struct counts {
    size_t ended, outstanding;
} counts;

/* Called with the lock. */
static counts count(const given *g)
{
    counts c = {0};

    for (const begun *b = g->host->given.first; b; b = b->next)
        if (b->of == g) {
            c.ended += b->ended;
            c.outstanding += !b->ended;
        }
    return c;
}

static counts count_locked(const given *g)
{
    counts c;

    pthread_mutex_lock(&g->host->given.lock);
    c = count(g);
    pthread_mutex_unlock(&g->host->given.lock);
    return c;
}

static void fail_outstanding(const given *g)
{
    pthread_mutex_lock(&g->host->given.lock);
    if (count(g).ended == 0)
        for (begun *b = g->host->given.first; b; b = b->next)
            if (b->of == g)
                end(b, AH_STORE,
                    "the program's engine of the store is wrong: its `wait` has ended "
                    "no append");
    pthread_mutex_unlock(&g->host->given.lock);
}

static void wait_given(ah_store *s)
{
    given *g = given_of(s);
    ah_host *h = g->host;
    counts c = count_locked(g);

    if (g->unbegun || c.ended || !c.outstanding)
        return;
    if (g->engine.wait) {
        ah_host_call_out(h, true);
        g->engine.wait(g->engine.ud, h);
        ah_host_came_back(h, true);
        fail_outstanding(g);
        return;
    }
    pthread_mutex_lock(&h->given.lock);
    while (count(g).ended == 0)
        pthread_cond_wait(&h->given.news, &h->given.lock);
    pthread_mutex_unlock(&h->given.lock);
}

/* -- holding ----------------------------------------------------------------------------------- */

static ah_status hold(ah_store *s, ah_slice stream, bool take, int64_t *fence, ah_err *err)
{
    given *g = given_of(s);
    const char *why = NULL;
    int64_t got = 0;
    ah_status st;

    if (!stream.n || stream.n > AH_STORE_MAX_STREAM)
        return ah_err_set(err, AH_USAGE, "the name of a stream has %zu bytes, it must have 1 to %d",
                          stream.n, AH_STORE_MAX_STREAM);
    ah_host_call_out(g->host, true);
    st = g->engine.hold(g->engine.ud, span(stream), take, &got, &why);
    ah_host_came_back(g->host, true);
    if (st != AH_OK)
        return failed(err, st, AH_CONFLICT, why);
    if (got <= 0)
        return broken(err, "the fence of a holder is not above 0");
    *fence = got;
    return AH_OK;
}

static void release(ah_store *s, ah_slice stream)
{
    given *g = given_of(s);

    ah_host_call_out(g->host, true);
    g->engine.release(g->engine.ud, span(stream));
    ah_host_came_back(g->host, true);
}

static ah_status set_label(ah_store *s, ah_slice stream, ah_slice label, ah_err *err)
{
    given *g = given_of(s);
    const char *why = NULL;
    ah_status st;

    ah_host_call_out(g->host, true);
    st = g->engine.label(g->engine.ud, span(stream), span(label), &why);
    ah_host_came_back(g->host, true);
    return st == AH_OK ? AH_OK : failed(err, st, AH_STORE, why);
}

/* -- reading ----------------------------------------------------------------------------------- */

/* A reading. The first failure counts, whatever the engine does afterwards. */
typedef struct reading {
    ah_status st;
    ah_err *err;
    void *ud;
    union {
        ah_store_record_fn record;
        ah_store_stream_fn stream;
        ah_store_message_fn message;
    } fn;
    int64_t next;    /* number of the record that must come */
    ah_slice prefix; /* of all streams */
    bool labelled;
} reading;

/* Returns the result of a reading for which the engine has returned `st`. */
static ah_status read_to_end(const reading *r, ah_status st, const char *why)
{
    if (r->st != AH_OK || st == AH_OK)
        return r->st;
    return failed(r->err, st, AH_STORE, why);
}

static ah_status on_record(void *to, const ah_engine_record *e)
{
    reading *r = to;
    ah_store_record record;

    if (r->st != AH_OK)
        return r->st;
    if (e->number != r->next)
        return r->st = ah_err_set(r->err, AH_STORE,
                                  "the program's engine of the store is wrong: record %lld came "
                                  "where %lld was expected",
                                  (long long)e->number, (long long)r->next);
    if (!is_within(e->kind, 1, AH_STORE_MAX_STREAM) ||
        !is_within(e->said, 0, AH_STORE_MAX_RECORD) ||
        (e->kept.p && e->kept.n > AH_STORE_MAX_RECORD))
        return r->st = broken(r->err, "a record has no kind, no text, or too many bytes");
    record = (ah_store_record){.number = r->next++,
                               .time = e->time,
                               .kind = slice(e->kind),
                               .said = slice(e->said),
                               .kept = slice(e->kept)};
    return r->st = r->fn.record(r->ud, &record, r->err);
}

static ah_status read_given(ah_store *s, ah_slice stream, int64_t from, ah_store_record_fn fn,
                            void *ud, ah_err *err)
{
    given *g = given_of(s);
    reading r = {.err = err, .ud = ud, .fn.record = fn, .next = from > 1 ? from : 1};
    const char *why = NULL;
    ah_status st;

    ah_host_call_out(g->host, true);
    st = g->engine.read(g->engine.ud, span(stream), r.next, on_record, &r, &why);
    ah_host_came_back(g->host, true);
    return read_to_end(&r, st, why);
}

typedef struct last_of {
    ah_slice kind;
    int64_t number;
} last_of;

static ah_status note_last(void *ud, const ah_store_record *r, ah_err *err)
{
    last_of *last = ud;

    (void)err;
    if (ah_slice_eq(r->kind, last->kind))
        last->number = r->number;
    return AH_OK;
}

static ah_status find_last(ah_store *s, ah_slice stream, ah_slice kind, int64_t *number,
                           ah_err *err)
{
    given *g = given_of(s);
    last_of last = {.kind = kind};
    const char *why = NULL;
    ah_status st;

    if (g->engine.find_last) {
        ah_host_call_out(g->host, true);
        st = g->engine.find_last(g->engine.ud, span(stream), span(kind), &last.number, &why);
        ah_host_came_back(g->host, true);
        if (st != AH_OK)
            return failed(err, st, AH_STORE, why);
    } else if ((st = read_given(s, stream, 1, note_last, &last, err)) != AH_OK) {
        return st;
    }
    if (last.number < 0)
        return broken(err, "the number of a record is below 0");
    *number = last.number;
    return AH_OK;
}

static bool begins_with(ah_span name, ah_slice prefix)
{
    return name.n >= prefix.n && ah_slice_eq((ah_slice){name.p, prefix.n}, prefix);
}

static ah_status on_stream(void *to, const ah_engine_stream *e)
{
    reading *r = to;
    ah_store_stream stream = {.name = slice(e->name),
                              .label = slice(e->label),
                              .last = e->last,
                              .time = e->time,
                              .messages = e->messages};

    if (r->st != AH_OK || (r->labelled && !e->label.p))
        return r->st;
    if (!is_within(e->name, 1, AH_STORE_MAX_STREAM) || !begins_with(e->name, r->prefix) ||
        e->last <= 0 || !ah_utf8_valid(stream.name))
        return r->st = broken(r->err, "it lists a stream without a name, with a name that was not "
                                      "asked for, or without records");
    return r->st = r->fn.stream(r->ud, &stream, r->err);
}

static ah_status list(ah_store *s, ah_slice prefix, bool labelled, ah_store_stream_fn fn, void *ud,
                      ah_err *err)
{
    given *g = given_of(s);
    reading r = {.err = err, .ud = ud, .fn.stream = fn, .prefix = prefix, .labelled = labelled};
    const char *why = NULL;
    ah_status st;

    ah_host_call_out(g->host, true);
    st = g->engine.list(g->engine.ud, span(prefix), on_stream, &r, &why);
    ah_host_came_back(g->host, true);
    return read_to_end(&r, st, why);
}

/* -- the inbox --------------------------------------------------------------------------------- */

static ah_status post(ah_store *s, ah_slice stream, const ah_store_message *m, ah_err *err)
{
    given *g = given_of(s);
    ah_engine_message shown = {
        .key = span(m->key), .kind = span(m->kind), .body = span(m->body), .time = m->time};
    const char *why = NULL;
    ah_status st;

    ah_host_call_out(g->host, true);
    st = g->engine.post(g->engine.ud, span(stream), &shown, &why);
    ah_host_came_back(g->host, true);
    if (st == AH_OK)
        return AH_OK;
    return failed(err, st, st == AH_USAGE ? AH_USAGE : AH_CONFLICT, why);
}

static ah_status on_message(void *to, const ah_engine_message *e)
{
    reading *r = to;
    ah_store_message message = {
        .key = slice(e->key), .kind = slice(e->kind), .body = slice(e->body), .time = e->time};

    if (r->st != AH_OK)
        return r->st;
    if (!is_within(e->key, 1, AH_STORE_MAX_RECORD) || !is_within(e->kind, 1, AH_STORE_MAX_STREAM) ||
        !is_within(e->body, 0, AH_STORE_MAX_RECORD))
        return r->st = broken(r->err, "a message has no key, no kind or no body");
    return r->st = r->fn.message(r->ud, &message, r->err);
}

static ah_status inbox(ah_store *s, ah_slice stream, ah_store_message_fn fn, void *ud, ah_err *err)
{
    given *g = given_of(s);
    reading r = {.err = err, .ud = ud, .fn.message = fn};
    const char *why = NULL;
    ah_status st;

    ah_host_call_out(g->host, true);
    st = g->engine.inbox(g->engine.ud, span(stream), on_message, &r, &why);
    ah_host_came_back(g->host, true);
    return read_to_end(&r, st, why);
}

static bool news(ah_store *s)
{
    given *g = given_of(s);
    bool any = true;

    if (g->engine.news) {
        ah_host_call_out(g->host, true);
        any = g->engine.news(g->engine.ud);
        ah_host_came_back(g->host, true);
    }
    return any;
}

/* -- opening and closing ----------------------------------------------------------------------- */

static void close_given(ah_store *s)
{
    given *g = given_of(s);

    while (count_locked(g).outstanding) {
        wait_given(s);
        poll_given(s);
    }
    poll_given(s);
    if (g->engine.close) {
        ah_host_call_out(g->host, true);
        g->engine.close(g->engine.ud);
        ah_host_came_back(g->host, true);
    }
    ah_free(g->host->mem, g);
}

static const ah_store_vt given_vt = {.append = append,
                                     .poll = poll_given,
                                     .wait = wait_given,
                                     .hold = hold,
                                     .release = release,
                                     .read = read_given,
                                     .find_last = find_last,
                                     .list = list,
                                     .label = set_label,
                                     .post = post,
                                     .inbox = inbox,
                                     .news = news,
                                     .close = close_given};

void ah_given_store_own(ah_store *s, void (*close)(void *ud))
{
    given_of(s)->engine.close = close;
}

ah_status ah_given_store_new(ah_host *h, const ah_store_engine *engine, ah_store **out, ah_err *err)
{
    given *g = ah_alloc(h->mem, sizeof *g);

    if (!g)
        return ah_err_nomem(err);
    *g = (given){.store.vt = &given_vt, .host = h, .engine = *engine};
    *out = &g->store;
    return AH_OK;
}
