/* Keepers. Records are copied into one buffer as they are put. A job of the host appends what was
 * collected; while that append is outstanding, further records are collected for the next one. A
 * failure breaks the keeper: what it has is dropped, and all flushes fail from then on.
 *
 * Keepers that are bound are in a ring; an append of one takes what all of the ring have collected,
 * and dissolves the ring. If one of them breaks, all do: their records belong together.
 *
 * A flush waits for the number of records that were put before it. Flushes are completed by the
 * job, never by an engine's `done`, which may be called while code of a script waits for another
 * stream. */
#include "host/open_store.h"
#include "run/run.h"

enum {
    FIXED = 4,        /* flushes that wait without memory of their own: calls side by side */
    MAX_DEFERRED = 4, /* rounds of jobs that records wait for others, if no flush waits */
    MAX_COLLECTED = 1 << 30,
    CHECKPOINT_TURNS = 64,
    CHECKPOINT_BYTES = 1 << 20,
    CHECKPOINT_SHARE = 4
};

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A flush that waits for the first `need` records of the keeper. */
typedef struct waiter {
    ah_run *run; /* NULL: forgotten */
    ah_call *call;
    uint64_t need;
    uint32_t id;
} waiter;

/* Records for one append. Until it begins, their slices have only lengths, and the bytes grow. */
typedef struct part {
    ah_store_record *record;
    size_t n, cap;
    ah_buf bytes; /* said and kept of each */
    ah_slice *taken;
    size_t n_taken, cap_taken;
    uint64_t end; /* number of records put up to its last one */
    bool sync;
} part;

struct ah_keeper {
    ah_open_store *store; /* referenced */
    ah_keeper *next, **link;
    ah_text *stream;
    ah_stream_kind kind;
    ah_keeper *mate;  /* the next one of the ring; itself: it is bound to none */
    ah_keeper *along; /* the next one of the append at work; NULL: it is the last one */
    int64_t fence;
    int64_t last; /* number of the last record that is appended */
    int64_t time; /* of the last record that was put */
    part in, out; /* collected; being appended */
    ah_store_batch batch;
    ah_store_batch *batches; /* `batch`, or memory of its own: of the append at work */
    ah_store_append append;
    ah_job job;
    uint64_t puts, appended; /* numbers of records, since it was opened */
    waiter fixed[FIXED];
    waiter *waiter; /* `fixed`, or memory of its own */
    size_t first, n, cap;
    bool outstanding, lost; /* lost: another keeper of this process holds the stream */
    int deferred;
    ah_status broken;
    ah_text *why;        /* NULL: lack of memory, or not broken */
    unsigned completing; /* how many are completing flushes; the last one frees a closed keeper */
    bool closed;
    size_t turns, bytes, checkpoint; /* since the last checkpoint, and its size */
};

/* -- parts ----------------------------------------------------------------------------------- */

static void clear_part(const ah_mem *mem, part *p)
{
    for (size_t i = 0; i < p->n_taken; i++)
        ah_free(mem, (char *)(uintptr_t)p->taken[i].p);
    ah_free(mem, p->taken);
    ah_free(mem, p->record);
    (void)ah_buf_ok(&p->bytes);
    ah_buf_clear(&p->bytes);
    *p = (part){0};
    ah_buf_init(&p->bytes, mem, MAX_COLLECTED);
}

static bool add_record(const ah_mem *mem, part *p, const ah_store_record *r)
{
    ah_store_record *list = ah_grow(mem, p->record, &p->cap, p->n + 1, sizeof *list);

    if (!list)
        return false;
    p->record = list;
    ah_buf_put(&p->bytes, r->said);
    if (r->kept.p)
        ah_buf_put(&p->bytes, r->kept);
    if (!ah_buf_ok(&p->bytes))
        return false;
    p->record[p->n++] = *r;
    return true;
}

static void set_slices(part *p)
{
    const char *at = p->bytes.data;

    for (size_t i = 0; i < p->n; i++) {
        ah_store_record *r = &p->record[i];

        r->said.p = at;
        at += r->said.n;
        if (r->kept.p)
            r->kept.p = at;
        at += r->kept.n;
    }
}

/* -- failure --------------------------------------------------------------------------------- */

static const ah_mem *mem_of(const ah_keeper *k)
{
    return k->store->host->mem;
}

static void break_one(ah_keeper *k, ah_status status, const char *message)
{
    if (k->broken != AH_OK)
        return;
    k->broken = status;
    k->why = status == AH_NOMEM ? NULL : ah_text_new(mem_of(k), ah_slice_of(message));
    clear_part(mem_of(k), &k->in);
    if (k->first < k->n)
        ah_job_post(k->store->host, &k->job);
}

static void break_keeper(ah_keeper *k, ah_status status, const char *message)
{
    ah_keeper *m = k, *next;

    do {
        next = m->mate;
        m->mate = m;
        break_one(m, status, message);
        m = next;
    } while (m != k);
}

ah_status ah_keeper_state(const ah_keeper *k, ah_err *err)
{
    if (k->broken == AH_OK)
        return AH_OK;
    if (k->broken == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, k->broken, "records of \"%s\" were not written: %s (open the %s anew)",
                      k->stream->data, k->why ? k->why->data : "the store failed",
                      ah_stream_kind_name(k->kind));
}

/* -- appending ------------------------------------------------------------------------------- */

static bool has_records(const ah_keeper *k)
{
    return k->in.n || k->in.n_taken;
}

/* True if an append of the ring must wait for one at work. */
static bool is_outstanding(const ah_keeper *k)
{
    const ah_keeper *m = k;

    do {
        if (m->outstanding)
            return true;
        m = m->mate;
    } while (m != k);
    return false;
}

static void end_append(ah_keeper *k, const ah_err *err)
{
    k->outstanding = false;
    k->along = NULL;
    if (err->status == AH_OK) {
        k->last += (int64_t)k->out.n;
        k->appended = k->out.end;
    }
    clear_part(mem_of(k), &k->out);
    if (err->status != AH_OK)
        break_keeper(k, err->status == AH_NOMEM ? AH_NOMEM : AH_STORE, err->message);
    if (k->first < k->n || k->in.n)
        ah_job_post(k->store->host, &k->job);
}

static void appended(ah_store_append *a, const ah_err *err)
{
    ah_keeper *k = FROM(a, ah_keeper, append), *next;

    ah_open_store_appended(k->store);
    if (k->batches != &k->batch)
        ah_free(mem_of(k), k->batches);
    k->batches = NULL;
    for (; k; k = next) {
        next = k->along;
        end_append(k, err);
    }
}

/* Moves what was collected to the append, and describes it. */
static void take_collected(ah_keeper *k, ah_store_batch *batch)
{
    k->out = k->in;
    k->out.end = k->puts;
    k->in = (part){0};
    clear_part(mem_of(k), &k->in);
    set_slices(&k->out);
    *batch = (ah_store_batch){.stream = ah_text_slice(k->stream),
                              .after = k->last,
                              .fence = k->fence,
                              .record = k->out.record,
                              .n = k->out.n,
                              .taken = k->out.taken,
                              .n_taken = k->out.n_taken};
    k->outstanding = true;
    k->deferred = 0;
}

/* Makes room for the batches of the ring. False: out of memory. */
static bool make_batches(ah_keeper *k)
{
    size_t n = 1;

    for (const ah_keeper *m = k->mate; m != k; m = m->mate)
        n++;
    k->batches = n == 1 ? &k->batch : ah_alloc(mem_of(k), n * sizeof *k->batches);
    return k->batches;
}

/* k has records, and nothing of its ring is outstanding. */
static void begin_append(ah_keeper *k)
{
    ah_keeper *m = k, *next, **last = &k->along;
    bool sync = k->store->sync == AH_SYNC_FULL;
    size_t n = 0;

    if (!make_batches(k)) {
        break_keeper(k, AH_NOMEM, "");
        return;
    }
    do {
        next = m->mate;
        m->mate = m;
        if (has_records(m)) {
            take_collected(m, &k->batches[n++]);
            sync = sync || m->out.sync;
            if (m != k) {
                *last = m;
                last = &m->along;
            }
        }
        m = next;
    } while (m != k);
    k->append = (ah_store_append){.batch = k->batches,
                                  .n = n,
                                  .sync = sync,
                                  .alone = !k->store->host->first,
                                  .done = appended};
    ah_open_store_append(k->store, &k->append);
}

static bool in_ring(const ah_keeper *k, const ah_keeper *other)
{
    const ah_keeper *m = k;

    while (m != other && m->mate != k)
        m = m->mate;
    return m == other;
}

void ah_keeper_bind(ah_keeper *k, ah_keeper *with)
{
    ah_keeper *mate = k->mate;

    if (k->store != with->store || in_ring(k, with))
        return;
    if (with->broken != AH_OK) {
        break_keeper(k, with->broken, with->why ? with->why->data : "");
        return;
    }
    if (!has_records(with))
        return;
    k->mate = with->mate;
    with->mate = mate;
    if (k->broken != AH_OK)
        break_keeper(with, k->broken, k->why ? k->why->data : "");
}

/* Other jobs that are due may put records that belong into the same append. */
static bool wants_others(ah_keeper *k)
{
    return k->first == k->n && k->store->host->first && k->deferred++ < MAX_DEFERRED;
}

/* Returns the next flush that is done, and takes it out of the list. */
static bool next_done(ah_keeper *k, waiter *out)
{
    while (k->first < k->n) {
        *out = k->waiter[k->first];
        if (out->run && k->broken == AH_OK && out->need > k->appended)
            return false;
        k->first++;
        if (out->run)
            return true;
    }
    return false;
}

static void empty_waiters(ah_keeper *k)
{
    if (k->first < k->n)
        return;
    if (k->waiter != k->fixed)
        ah_free(mem_of(k), k->waiter);
    k->waiter = k->fixed;
    k->cap = FIXED;
    k->first = k->n = 0;
}

/* The run may close the keeper, or run jobs, this one included. */
static void complete_flushes(ah_keeper *k)
{
    const ah_mem *mem = mem_of(k);
    waiter w;
    ah_err err;

    k->completing++;
    while (!k->closed && next_done(k, &w)) {
        ah_err_clear(&err);
        ah_keeper_state(k, &err);
        ah_run_recorded(w.run, w.call, w.id, &err);
    }
    k->completing--;
    if (!k->closed)
        empty_waiters(k);
    else if (k->completing == 0)
        ah_free(mem, k);
}

static void work(ah_job *job)
{
    ah_keeper *k = FROM(job, ah_keeper, job);

    if (k->in.n && !is_outstanding(k)) {
        if (wants_others(k)) {
            ah_job_post(k->store->host, job);
            return;
        }
        begin_append(k);
    }
    complete_flushes(k);
}

ah_status ah_keeper_settle(ah_keeper *k, ah_err *err)
{
    while (k->outstanding || has_records(k))
        if (is_outstanding(k))
            ah_open_store_wait(k->store);
        else
            begin_append(k);
    return ah_keeper_state(k, err);
}

/* -- the sink -------------------------------------------------------------------------------- */

static void note_size(ah_keeper *k, ah_record_kind kind, size_t bytes)
{
    if (kind == AH_RECORD_CHECKPOINT) {
        k->turns = k->bytes = 0;
        k->checkpoint = bytes;
        return;
    }
    k->turns += kind == AH_RECORD_TURN || k->kind != AH_STREAM_CONVERSATION;
    k->bytes += bytes;
}

/* The clock of the machine may be set back; times of a stream never go back. */
static int64_t next_time(ah_keeper *k)
{
    int64_t now = ah_host_wall(k->store->host);

    if (now > k->time)
        k->time = now;
    return k->time;
}

static void put(void *ud, ah_record_kind kind, ah_slice said, ah_slice kept)
{
    ah_keeper *k = ud;
    ah_store_record r = {.kind = ah_slice_of(ah_record_name(kind)), .said = said, .kept = kept};
    ah_err err;

    if (k->broken != AH_OK)
        return;
    if (said.n > AH_STORE_MAX_RECORD || kept.n > AH_STORE_MAX_RECORD) {
        ah_err_set(&err, AH_STORE, "a record '%s' has %zu bytes, %d are the most",
                   ah_record_name(kind), said.n > kept.n ? said.n : kept.n, AH_STORE_MAX_RECORD);
        break_keeper(k, err.status, err.message);
        return;
    }
    r.time = next_time(k);
    if (!add_record(mem_of(k), &k->in, &r)) {
        bool full = k->in.bytes.status == AH_BUDGET;

        break_keeper(k, full ? AH_STORE : AH_NOMEM, "more than 1 GiB of records waits for it");
        return;
    }
    k->puts++;
    note_size(k, kind, said.n + kept.n);
    ah_job_post(k->store->host, &k->job);
}

/* Returns a place at the end of the list; without memory the keeper breaks, and the place is that
 * of the last one, whose run fails by the others. */
static waiter *new_waiter(ah_keeper *k)
{
    waiter *list;

    if (k->n < k->cap)
        return &k->waiter[k->n++];
    list = ah_grow(mem_of(k), k->waiter == k->fixed ? NULL : k->waiter, &k->cap, k->n + 1,
                   sizeof *list);
    if (!list) {
        break_keeper(k, AH_NOMEM, "");
        return &k->waiter[k->n - 1];
    }
    if (k->waiter == k->fixed)
        memcpy(list, k->fixed, sizeof k->fixed);
    k->waiter = list;
    return &list[k->n++];
}

static void flush(void *ud, ah_run *run, ah_call *call, uint32_t id, bool effect)
{
    ah_keeper *k = ud;

    if (effect && k->store->sync == AH_SYNC_EFFECTS)
        k->in.sync = true;
    *new_waiter(k) = (waiter){.run = run, .call = call, .need = k->puts, .id = id};
    ah_job_post(k->store->host, &k->job);
}

static void forget(void *ud, ah_run *run, ah_call *call)
{
    ah_keeper *k = ud;

    for (size_t i = k->first; i < k->n; i++)
        if (k->waiter[i].run == run && (!call || k->waiter[i].call == call))
            k->waiter[i].run = NULL;
}

ah_record_sink ah_keeper_sink(ah_keeper *k)
{
    return (ah_record_sink){.put = put, .flush = flush, .forget = forget, .ud = k};
}

ah_status ah_keeper_take(ah_keeper *k, ah_slice key, ah_err *err)
{
    part *p = &k->in;
    ah_slice *list;
    char *copy;

    if (k->broken != AH_OK)
        return ah_keeper_state(k, err);
    list = ah_grow(mem_of(k), p->taken, &p->cap_taken, p->n_taken + 1, sizeof *list);
    if (!list)
        return ah_err_nomem(err);
    p->taken = list;
    if (!(copy = ah_resize(mem_of(k), NULL, key.n + 1)))
        return ah_err_nomem(err);
    memcpy(copy, key.p, key.n);
    list[p->n_taken++] = (ah_slice){copy, key.n};
    return AH_OK;
}

static bool has_taken(const part *p, ah_slice key)
{
    size_t i = 0;

    while (i < p->n_taken && !ah_slice_eq(p->taken[i], key))
        i++;
    return i < p->n_taken;
}

bool ah_keeper_has_taken(const ah_keeper *k, ah_slice key)
{
    return has_taken(&k->in, key) || (k->outstanding && has_taken(&k->out, key));
}

ah_status ah_keeper_label(ah_keeper *k, ah_slice label, ah_err *err)
{
    ah_store *engine = k->store->engine;

    if (k->broken != AH_OK)
        return ah_keeper_state(k, err);
    k->store->changed = true;
    return engine->vt->label(engine, ah_text_slice(k->stream), label, err);
}

int64_t ah_keeper_last(const ah_keeper *k)
{
    return k->last;
}

int64_t ah_keeper_number(const ah_keeper *k)
{
    return k->last + (int64_t)(k->puts - k->appended);
}

ah_slice ah_keeper_stream(const ah_keeper *k)
{
    return ah_text_slice(k->stream);
}

ah_open_store *ah_keeper_store(const ah_keeper *k)
{
    return k->store;
}

bool ah_keeper_wants_checkpoint(const ah_keeper *k)
{
    return k->broken == AH_OK && (k->turns >= CHECKPOINT_TURNS || k->bytes >= CHECKPOINT_BYTES) &&
           k->bytes / CHECKPOINT_SHARE >= k->checkpoint;
}

/* -- opening and closing --------------------------------------------------------------------- */

typedef struct reading {
    ah_keeper *k;
    ah_fold *fold;
} reading;

static ah_status take_record(void *ud, const ah_store_record *r, ah_err *err)
{
    const reading *of = ud;
    ah_keeper *k = of->k;

    k->last = r->number;
    if (r->time > k->time)
        k->time = r->time;
    note_size(k, ah_record_kind_of(r->kind), r->said.n + r->kept.n);
    return ah_fold_add(of->fold, r, err);
}

static ah_status read_stream(ah_keeper *k, ah_fold *fold, ah_err *err)
{
    ah_store *engine = k->store->engine;
    ah_slice stream = ah_text_slice(k->stream);
    reading of = {k, fold};
    int64_t from = 0;
    ah_status st = engine->vt->find_last(
        engine, stream, ah_slice_of(ah_record_name(AH_RECORD_CHECKPOINT)), &from, err);

    return st == AH_OK ? engine->vt->read(engine, stream, from ? from : 1, take_record, &of, err)
                       : st;
}

/* Puts the first record of a stream; the fold gets it, too. */
static ah_status begin_stream(ah_keeper *k, ah_slice members, ah_fold *fold, ah_err *err)
{
    ah_store_record r = {
        .number = 1, .kind = ah_slice_of(ah_record_name(AH_RECORD_OPENED)), .kept = {NULL, 0}};
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, mem_of(k), AH_STORE_MAX_RECORD);
    ah_fold_print_opened(k->kind, members, &b);
    st = ah_buf_ok(&b) ? AH_OK : ah_buf_error(&b, "the record 'opened'", err);
    if (st == AH_OK) {
        put(k, AH_RECORD_OPENED, ah_buf_slice(&b), r.kept);
        st = ah_keeper_state(k, err);
    }
    if (st == AH_OK) {
        r.time = k->time;
        r.said = ah_buf_slice(&b);
        st = ah_fold_add(fold, &r, err);
    }
    ah_buf_clear(&b);
    return st;
}

/* Fails if an unfinished turn needs what was erased. */
static ah_status check_erased(const ah_fold *f, ah_err *err)
{
    if (!f->erased)
        return AH_OK;
    return ah_err_set(err, AH_STORE,
                      "the stream cannot be opened: what record %lld kept was erased, and its turn "
                      "has not ended",
                      (long long)f->erased);
}

static ah_status fill(ah_keeper *k, ah_slice members, ah_fold *fold, ah_err *err)
{
    ah_status st = ah_fold_init(fold, mem_of(k), err);

    if (st != AH_OK)
        return st;
    fold->stream = k->kind;
    fold->given = k->store->given;
    st = read_stream(k, fold, err);
    if (st == AH_OK)
        st = check_erased(fold, err);
    if (st == AH_OK && !k->last)
        st = begin_stream(k, members, fold, err);
    if (st != AH_OK)
        ah_fold_clear(fold);
    return st;
}

static ah_keeper *find_keeper(const ah_open_store *s, ah_slice stream)
{
    ah_keeper *k = s->keepers;

    while (k && (k->lost || !ah_slice_eq(ah_text_slice(k->stream), stream)))
        k = k->next;
    return k;
}

static ah_keeper *new_keeper(ah_open_store *s, const ah_stream_name *stream)
{
    ah_keeper *k = ah_alloc(s->host->mem, sizeof *k);

    if (!k)
        return NULL;
    k->stream = ah_text_new(s->host->mem, stream->name);
    if (!k->stream) {
        ah_free(s->host->mem, k);
        return NULL;
    }
    k->store = ah_open_store_ref(s);
    k->kind = stream->kind;
    k->mate = k;
    k->waiter = k->fixed;
    k->cap = FIXED;
    k->job.fn = work;
    clear_part(s->host->mem, &k->in);
    clear_part(s->host->mem, &k->out);
    k->next = s->keepers;
    k->link = &s->keepers;
    if (k->next)
        k->next->link = &k->next;
    s->keepers = k;
    return k;
}

static void free_keeper(ah_keeper *k)
{
    ah_open_store *s = k->store;
    ah_keeper *before = k;

    while (before->mate != k)
        before = before->mate;
    before->mate = k->mate;
    ah_job_cancel(&k->job);
    *k->link = k->next;
    if (k->next)
        k->next->link = k->link;
    clear_part(s->host->mem, &k->in);
    k->first = k->n;
    empty_waiters(k);
    ah_text_unref(k->stream);
    ah_text_unref(k->why);
    k->closed = true;
    if (k->completing == 0)
        ah_free(s->host->mem, k);
    ah_open_store_unref(s);
}

static void release(const ah_keeper *k)
{
    ah_store *engine = k->store->engine;

    if (k->fence && !k->lost)
        engine->vt->release(engine, ah_text_slice(k->stream));
}

static ah_status in_use(const ah_keeper *k, ah_err *err)
{
    const char *kind = ah_stream_kind_name(k->kind);

    if (k->kind == AH_STREAM_CONVERSATION)
        return ah_err_set(
            err, AH_CONFLICT,
            "the conversation \"%s\" is open in this program: use that agent, or close it "
            "first",
            k->stream->data);
    return ah_err_set(err, AH_CONFLICT,
                      "\"%s\" is open in this program: use that %s in place of another one with "
                      "its name",
                      k->stream->data, kind);
}

static ah_status hold(ah_keeper *k, ah_keeper *other, bool take, ah_err *err)
{
    ah_store *engine = k->store->engine;
    ah_status st;

    if (other && !take)
        return in_use(k, err);
    if (other)
        ah_keeper_settle(other, NULL);
    st = engine->vt->hold(engine, ah_text_slice(k->stream), take, &k->fence, err);
    if (st == AH_OK && other) {
        other->lost = true;
        break_keeper(other, AH_STORE, "another agent of this program has taken it");
    }
    return st;
}

ah_status ah_keeper_open(ah_open_store *s, const ah_stream_name *stream, bool take, ah_fold *fold,
                         ah_keeper **out, ah_err *err)
{
    ah_keeper *other = find_keeper(s, stream->name), *k;
    ah_status st;

    if (!stream->name.n || stream->name.n > AH_STORE_MAX_STREAM)
        return ah_err_set(err, AH_USAGE, "the id of a conversation has 1 to %d bytes, not %zu",
                          AH_STORE_MAX_STREAM, stream->name.n);
    if (!(k = new_keeper(s, stream)))
        return ah_err_nomem(err);
    st = hold(k, other, take, err);
    if (st == AH_OK)
        st = fill(k, stream->opened, fold, err);
    if (st != AH_OK) {
        release(k);
        free_keeper(k);
        return st;
    }
    *out = k;
    return AH_OK;
}

ah_status ah_keeper_read(ah_keeper *k, ah_fold *fold, ah_err *err)
{
    ah_status st = ah_keeper_settle(k, err);

    return st == AH_OK ? fill(k, (ah_slice){NULL, 0}, fold, err) : st;
}

void ah_keeper_close(ah_keeper *k)
{
    if (!k)
        return;
    ah_keeper_settle(k, NULL);
    release(k);
    free_keeper(k);
}
