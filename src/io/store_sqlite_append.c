/* Appends. Small ones that come alone are carried out on the thread that begins them. All others
 * are for the thread of the connection: all that are outstanding when it wakes go into one
 * transaction. A refused one is undone alone; an error of the disk fails all of the transaction.
 * Checkpoints of the log come after `done`, and the search index in a time without appends. What
 * searches wait for is indexed on a thread of its own, so that no append waits for it. */
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "io/crash_point.h"
#include "io/store_sqlite_index.h"

enum {
    CHECKPOINT_FRAMES = 1000, /* pages of the log, 4 MiB */
    MAX_NOW = 64 << 10,       /* bytes of records that are written without the thread */
    IDLE_NS = 500000000,      /* without appends, before the search index is written */
    PAUSE_NS = 1000000,       /* after a part, for others that want the lock of the index */
    SECOND_NS = 1000000000
};

/* The clock of ah_sqlite_core.work. */
#ifdef __APPLE__
#define WAIT_CLOCK CLOCK_REALTIME
#else
#define WAIT_CLOCK CLOCK_MONOTONIC
#endif

/* Used where an error has no memory. */
static const ah_err no_memory = {.status = AH_NOMEM, .message = "out of memory"};

void ah_sqlite_free_outcome(ah_err *outcome)
{
    if (outcome != &no_memory)
        free(outcome);
}

static ah_sqlite_handle *handle_of(const ah_store_append *a)
{
    return a->engine;
}

static bool wants_sync(const ah_store_append *a)
{
    ah_store_sync sync = handle_of(a)->sync;

    return sync == AH_SYNC_FULL || (sync == AH_SYNC_EFFECTS && a->sync);
}

void ah_sqlite_fail(ah_store_append *a, const ah_err *err)
{
    ah_err *copy = malloc(sizeof *copy);

    if (copy)
        *copy = *err;
    a->outcome = copy ? copy : (void *)(uintptr_t)&no_memory;
}

/* -- one append ------------------------------------------------------------------------------- */

/* A stream as an append finds it. */
typedef struct stream {
    int64_t id, fence;
    ah_sqlite_tail *tail; /* that of its holder in this process, or `spare` */
    ah_sqlite_tail spare;
} stream;

static ah_status find_row(ah_sqlite_core *c, ah_slice name, stream *out, ah_err *err)
{
    int rc;

    ah_sqlite_text(c, AH_SQLITE_FIND, 1, name);
    if ((rc = ah_sqlite_step(c, AH_SQLITE_FIND)) == SQLITE_ROW) {
        out->id = ah_sqlite_column(c, AH_SQLITE_FIND, 0);
        out->fence = ah_sqlite_column(c, AH_SQLITE_FIND, 1);
    }
    ah_sqlite_reset(c, AH_SQLITE_FIND);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? AH_OK : ah_sqlite_fails(c, "read", err);
}

ah_status ah_sqlite_read_tail(ah_sqlite_core *c, int64_t id, ah_sqlite_tail *out, ah_err *err)
{
    ah_slice hash;
    int rc;

    *out = (ah_sqlite_tail){0};
    ah_sqlite_int(c, AH_SQLITE_TAIL, 1, AH_SQLITE_ROW(id, 0));
    ah_sqlite_int(c, AH_SQLITE_TAIL, 2, AH_SQLITE_ROW(id, AH_SQLITE_MAX_NUMBER));
    if ((rc = ah_sqlite_step(c, AH_SQLITE_TAIL)) == SQLITE_ROW) {
        out->last = ah_sqlite_column(c, AH_SQLITE_TAIL, 0) & AH_SQLITE_MAX_NUMBER;
        hash = ah_sqlite_column_text(c, AH_SQLITE_TAIL, 1);
        if (hash.n == sizeof out->hash)
            memcpy(out->hash, hash.p, hash.n);
    }
    out->known = rc == SQLITE_ROW || rc == SQLITE_DONE;
    ah_sqlite_reset(c, AH_SQLITE_TAIL);
    return out->known ? AH_OK : ah_sqlite_fails(c, "read", err);
}

static ah_status find_stream(ah_sqlite_core *c, const ah_store_batch *b, stream *out, ah_err *err)
{
    ah_status st;

    *out = (stream){.tail = NULL};
    if ((st = find_row(c, b->stream, out, err)) != AH_OK)
        return st;
    if (out->id && out->fence == b->fence)
        out->tail = ah_sqlite_tail_of(c, out->id, out->fence);
    if (!out->tail)
        out->tail = &out->spare;
    return out->id && !out->tail->known ? ah_sqlite_read_tail(c, out->id, out->tail, err) : AH_OK;
}

/* The streams of an append that failed are read anew. */
static void forget_tails(const ah_store_append *a)
{
    for (size_t i = 0; i < a->n; i++)
        ah_sqlite_forget(handle_of(a), a->batch[i].stream);
}

static ah_status insert(ah_sqlite_cutter *k, const stream *s, const ah_store_record *given,
                        ah_err *err)
{
    const ah_sqlite_statement S = AH_SQLITE_INSERT;
    ah_sqlite_core *c = k->core;
    ah_sqlite_tail *tail = s->tail;
    ah_store_row r;
    ah_status st = ah_sqlite_cut(k, given, &r, err);

    if (st != AH_OK)
        return st;
    r.number = ++tail->last;
    ah_store_hash_on(tail->hash, &r);
    ah_sqlite_int(c, S, 1, AH_SQLITE_ROW(s->id, r.number));
    ah_sqlite_int(c, S, 2, r.time);
    ah_sqlite_text(c, S, 3, r.kind);
    ah_sqlite_blob(c, S, 4, (ah_slice){(const char *)tail->hash, sizeof tail->hash});
    ah_sqlite_blob(c, S, 5, r.said.cuts);
    ah_sqlite_blob(c, S, 6, r.kept.cuts);
    ah_sqlite_text(c, S, 7, r.said.rest.p ? r.said.rest : ah_slice_of(""));
    ah_sqlite_text(c, S, 8, r.kept.rest);
    return ah_sqlite_run(c, S) ? AH_OK : ah_sqlite_fails(c, "written", err);
}

static bool take_messages(ah_sqlite_core *c, const stream *s, const ah_store_batch *b)
{
    bool ok = true;

    for (size_t i = 0; ok && i < b->n_taken; i++) {
        ah_sqlite_int(c, AH_SQLITE_TAKE, 1, s->id);
        ah_sqlite_text(c, AH_SQLITE_TAKE, 2, b->taken[i]);
        ok = ah_sqlite_run(c, AH_SQLITE_TAKE);
    }
    return ok;
}

static ah_status check_records(const ah_store_batch *b, const stream *s, ah_err *err)
{
    if (b->n > (size_t)(AH_SQLITE_MAX_NUMBER - s->tail->last))
        return ah_err_set(err, AH_STORE, "the stream \"%.*s\" is full: it has %lld records",
                          AH_FMT(b->stream), (long long)s->tail->last);
    for (size_t i = 0; i < b->n; i++) {
        const ah_store_record *r = &b->record[i];

        if (r->kind.n > UINT8_MAX || r->said.n > AH_STORE_MAX_RECORD ||
            r->kept.n > AH_STORE_MAX_RECORD)
            return ah_err_set(err, AH_STORE,
                              "a record of %zu and %zu bytes is too long: %d of each are the most",
                              r->said.n, r->kept.n, AH_STORE_MAX_RECORD);
    }
    return AH_OK;
}

/* Says why a batch does not fit its stream. */
static ah_status check_batch(const ah_store_batch *b, const stream *s, ah_err *err)
{
    if (s->id == 0)
        return ah_err_set(err, AH_STORE, "there is no stream \"%.*s\" in the store",
                          AH_FMT(b->stream));
    if (b->fence != s->fence)
        return ah_err_set(err, AH_STORE, "another process has taken over the stream \"%.*s\"",
                          AH_FMT(b->stream));
    if (b->after != s->tail->last)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" has %lld records, the append expected %lld",
                          AH_FMT(b->stream), (long long)s->tail->last, (long long)b->after);
    return check_records(b, s, err);
}

/* *refused: it failed without an error of the database. */
static ah_status append_batch(ah_sqlite_cutter *k, const ah_store_batch *b, bool *refused,
                              ah_err *err)
{
    stream s;
    ah_status st = find_stream(k->core, b, &s, err);

    if (st != AH_OK)
        return st;
    if ((st = check_batch(b, &s, err)) != AH_OK) {
        *refused = true;
        return st;
    }
    for (size_t i = 0; st == AH_OK && i < b->n; i++)
        st = insert(k, &s, &b->record[i], err);
    if (st == AH_OK && !take_messages(k->core, &s, b))
        st = ah_sqlite_fails(k->core, "written", err);
    return st;
}

/* Carries out one append; a refused one is undone and gets its error. `among`: others are in the
 * transaction. Fails if the whole transaction does. */
static ah_status append_one(ah_sqlite_cutter *k, ah_store_append *a, bool among, ah_err *err)
{
    ah_sqlite_core *c = k->core;
    bool refused = false, ok;
    ah_status st = AH_OK;

    if (among && !ah_sqlite_run(c, AH_SQLITE_SAVE))
        return ah_sqlite_fails(c, "written", err);
    for (size_t i = 0; st == AH_OK && i < a->n; i++)
        st = append_batch(k, &a->batch[i], &refused, err);
    if (st != AH_OK && !refused)
        return st;
    if (st != AH_OK)
        ah_sqlite_fail(a, err);
    if (!among)
        return st;
    ok = (st == AH_OK || ah_sqlite_run(c, AH_SQLITE_UNDO)) && ah_sqlite_run(c, AH_SQLITE_KEEP);
    if (st != AH_OK)
        forget_tails(a);
    return ok ? AH_OK : ah_sqlite_fails(c, "written", err);
}

/* -- a transaction ---------------------------------------------------------------------------- */

static void pass_points(const ah_store_append *list)
{
    for (; list; list = list->next)
        ah_crash_point("append");
}

/* A file that was moved or removed takes no writes: no later process would find them. */
static ah_status begin(ah_sqlite_core *c, bool sync, ah_err *err)
{
    if (!ah_store_file_is_there(&c->file))
        return ah_err_set(err, AH_STORE,
                          "the store %s was removed, moved or replaced while it was open: put it "
                          "back, then open it anew",
                          c->file.path);
    return ah_sqlite_begin(c, sync) ? AH_OK : ah_sqlite_fails(c, "written", err);
}

/* `begun`: the transaction is. */
static void write_group(ah_sqlite_core *c, ah_store_append *list, bool sync, bool begun)
{
    bool among = list->next != NULL;
    ah_sqlite_cutter k;
    ah_err err;
    ah_status st = begun ? AH_OK : begin(c, sync, &err);

    ah_sqlite_cutter_init(&k, c);
    for (ah_store_append *a = list; st == AH_OK && a; a = a->next)
        st = append_one(&k, a, among, &err);
    ah_sqlite_cutter_clear(&k);
    if (st == AH_OK && !ah_sqlite_commit(c, sync))
        st = ah_sqlite_fails(c, "written", &err);
    if (st == AH_OK)
        return;
    ah_sqlite_rollback(c, sync);
    for (ah_store_append *a = list; a; a = a->next) {
        if (!a->outcome)
            ah_sqlite_fail(a, &err);
        forget_tails(a);
    }
}

static void carry_out(ah_sqlite_core *c, ah_store_append *list)
{
    bool sync = false;

    for (const ah_store_append *a = list; a; a = a->next)
        sync = sync || wants_sync(a);
    pass_points(list);
    pthread_mutex_lock(&c->database);
    write_group(c, list, sync, false);
    pthread_mutex_unlock(&c->database);
    pass_points(list);
}

/* Gives the appends to their handles, and returns those that are to be woken. Expects `queue`. */
static ah_sqlite_handle *give_back(ah_sqlite_core *c, ah_store_append *list)
{
    ah_sqlite_handle *sleeping = NULL;

    while (list) {
        ah_store_append *a = list;
        ah_sqlite_handle *h = handle_of(a);

        list = a->next;
        a->next = NULL;
        *h->done_end = a;
        h->done_end = &a->next;
        h->outstanding--;
        if (!h->waking && h->store.wake) {
            h->waking = true; /* keeps it open */
            h->next = sleeping;
            sleeping = h;
        }
    }
    pthread_cond_broadcast(&c->done);
    return sleeping;
}

/* Without `queue`, which the host takes as soon as it is awake. */
static void wake_all(ah_sqlite_core *c, ah_sqlite_handle *list)
{
    for (const ah_sqlite_handle *h = list; h; h = h->next)
        h->store.wake(h->store.wake_ud);
    pthread_mutex_lock(&c->queue);
    for (; list; list = list->next)
        list->waking = false;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->queue);
}

/* Moves the log into the file. A failure is none of an append: the log stays, and the next one
 * says what is wrong. */
static void checkpoint(ah_sqlite_core *c)
{
    pthread_mutex_lock(&c->database);
    if (c->frames >= CHECKPOINT_FRAMES) {
        c->frames = 0;
        c->lib.wal_checkpoint_v2(c->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    pthread_mutex_unlock(&c->database);
}

static void carry_out_all(ah_sqlite_core *c, ah_store_append *list)
{
    ah_sqlite_handle *sleeping;

    carry_out(c, list);
    pthread_mutex_lock(&c->queue);
    c->appends++;
    sleeping = give_back(c, list);
    pthread_mutex_unlock(&c->queue);
    wake_all(c, sleeping);
}

/* -- without the thread ------------------------------------------------------------------------ */

static bool is_small(const ah_store_append *a)
{
    size_t bytes = 0;

    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < a->batch[i].n && bytes <= MAX_NOW; k++)
            bytes += a->batch[i].record[k].said.n + a->batch[i].record[k].kept.n;
    return bytes <= MAX_NOW;
}

/* Begins a transaction, unless another process writes or the file is gone. */
static bool begin_now(ah_sqlite_core *c)
{
    bool begun;

    if (!ah_store_file_is_there(&c->file))
        return false;
    c->lib.busy_timeout(c->db, 0);
    begun = ah_sqlite_begin(c, false);
    c->lib.busy_timeout(c->db, AH_SQLITE_BUSY_MS);
    return begun;
}

/* A file that may not grow (RLIMIT_FSIZE) is an error of the append, as on the thread, which has
 * all signals blocked: none ends the program. */
static void write_unsignalled(ah_sqlite_core *c, ah_store_append *a)
{
    sigset_t set, before;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    write_group(c, a, false, true);
    if (a->outcome && !sigismember(&before, SIGXFSZ))
        sigtimedwait(&set, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Expects `database`. False: another process writes. */
static bool write_now(ah_sqlite_core *c, ah_store_append *a)
{
    if (!begin_now(c))
        return false;
    pass_points(a);
    write_unsignalled(c, a);
    pass_points(a);
    return true;
}

/* Hands the append to poll. Returns true if the thread is to be woken: it moves the log into the
 * file, or begins to wait for a time without appends. */
static bool give_now(ah_sqlite_handle *h, ah_store_append *a, bool full)
{
    ah_sqlite_core *c = h->core;
    bool idle;

    pthread_mutex_lock(&c->queue);
    *h->done_end = a;
    h->done_end = &a->next;
    c->full = c->full || full;
    idle = (full || c->appends == c->indexed) && c->idle;
    c->idle = c->idle && !idle;
    c->appends++;
    pthread_mutex_unlock(&c->queue);
    return idle;
}

static bool is_outstanding(ah_sqlite_handle *h)
{
    bool any;

    pthread_mutex_lock(&h->core->queue);
    any = h->outstanding > 0;
    pthread_mutex_unlock(&h->core->queue);
    return any;
}

bool ah_sqlite_append_now(ah_sqlite_handle *h, ah_store_append *a)
{
    ah_sqlite_core *c = h->core;
    bool done, full;

    if (wants_sync(a) || !is_small(a) || is_outstanding(h) ||
        pthread_mutex_trylock(&c->database) != 0)
        return false;
    done = write_now(c, a);
    full = done && c->frames >= CHECKPOINT_FRAMES;
    pthread_mutex_unlock(&c->database);
    if (!done)
        return false;
    if (give_now(h, a, full))
        pthread_cond_signal(&c->work);
    if (h->store.wake)
        h->store.wake(h->store.wake_ud);
    return true;
}

/* -- the thread -------------------------------------------------------------------------------- */

/* Waits for work, or for a time without appends; false: that has passed, and there are records for
 * the search index. Expects `queue`. */
static bool wait_for_work(ah_sqlite_core *c)
{
    unsigned before = c->appends;
    struct timespec until;

    c->idle = true;
    if (c->appends == c->indexed) {
        pthread_cond_wait(&c->work, &c->queue);
        return true;
    }
    clock_gettime(WAIT_CLOCK, &until);
    until.tv_nsec += IDLE_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    return pthread_cond_timedwait(&c->work, &c->queue, &until) == 0 || c->appends != before ||
           c->first || c->full || c->stop;
}

/* Indexes parts until there is something else to do. Expects `queue`. */
static void index_records(ah_sqlite_core *c)
{
    bool more = true;

    c->idle = false;
    c->indexed = c->appends;
    while (more && !c->first && !c->full && !c->stop) {
        pthread_mutex_unlock(&c->queue);
        more = ah_sqlite_index_some(c);
        pthread_mutex_lock(&c->queue);
    }
    if (more)
        c->indexed--;
}

void *ah_sqlite_thread(void *core)
{
    ah_sqlite_core *c = core;
    ah_store_append *list;

    pthread_mutex_lock(&c->queue);
    while (c->first || !c->stop) {
        if (!c->first && !c->full) {
            if (!wait_for_work(c))
                index_records(c);
            continue;
        }
        list = c->first;
        c->first = NULL;
        c->end = &c->first;
        c->full = false;
        pthread_mutex_unlock(&c->queue);
        if (list)
            carry_out_all(c, list);
        checkpoint(c);
        pthread_mutex_lock(&c->queue);
    }
    pthread_mutex_unlock(&c->queue);
    return NULL;
}

/* -- the thread of searches -------------------------------------------------------------------- */

/* Indexes parts while a search waits. Expects `queue`, and releases it meanwhile. */
static ah_status index_all(ah_sqlite_core *c, ah_err *err)
{
    ah_status st = AH_OK;

    for (bool more = true; st == AH_OK && more && c->search && !c->stop;) {
        pthread_mutex_unlock(&c->queue);
        st = ah_sqlite_index_next(c, &more, err);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        pthread_mutex_lock(&c->queue);
    }
    return st;
}

/* Ends the wait of all searches. Expects `queue`, which keeps their handles open. */
static void end_searches(ah_sqlite_core *c, ah_status st, const ah_err *err)
{
    ah_store_append *list = c->search;

    c->search = NULL;
    c->search_end = &c->search;
    while (list) {
        ah_store_append *a = list;
        ah_sqlite_handle *h = handle_of(a);

        list = a->next;
        a->next = NULL;
        if (st != AH_OK)
            ah_sqlite_fail(a, err);
        *h->done_end = a;
        h->done_end = &a->next;
        if (h->store.wake)
            h->store.wake(h->store.wake_ud);
    }
}

void *ah_sqlite_indexer(void *core)
{
    ah_sqlite_core *c = core;
    ah_status st;
    ah_err err;

    pthread_mutex_lock(&c->queue);
    while (!c->stop) {
        if (!c->search) {
            pthread_cond_wait(&c->searches, &c->queue);
            continue;
        }
        st = index_all(c, &err);
        end_searches(c, st, &err);
    }
    pthread_mutex_unlock(&c->queue);
    return NULL;
}

#endif
