/* Holders of streams. A holder has a lock of the kernel on a byte of "<path>-locks", which ends
 * with the process, and stays while it is stopped. The byte is that of the stream and its fence, so
 * a process that takes a stream over has a lock of its own, and the old one is of no effect. Locks
 * of open files (OFD) do not conflict within a process: a list does that. Where the system has
 * none, the process in the stream's row is looked for. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct ah_sqlite_held {
    ah_sqlite_held *next;
    const ah_sqlite_handle *owner;
    int64_t id, fence;
    int64_t indexed; /* number of the last record that the search index has, if known */
    ah_sqlite_tail tail;
    size_t n;
    char name[]; /* of the stream */
};

/* The holder that the row of a stream names. */
typedef struct holder {
    int64_t id, fence, pid, since;
    char machine[80], boot[40];
} holder;

/* -- this process ----------------------------------------------------------------------------- */

static void read_boot(char out[40])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    out[0] = '\0';
    if (!f)
        return;
    if (fgets(out, 40, f))
        out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

static int64_t wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static holder this_process(int64_t id, int64_t fence)
{
    holder h = {.id = id, .fence = fence, .pid = getpid(), .since = wall_ms()};

    if (gethostname(h.machine, sizeof h.machine - 1) != 0)
        h.machine[0] = '\0';
    read_boot(h.boot);
    return h;
}

/* -- locks ------------------------------------------------------------------------------------ */

#ifdef F_OFD_SETLK

enum { FENCE_BITS = 20 };

static int lock_call(const ah_sqlite_core *c, int command, short type, int64_t id, int64_t fence,
                     short *found)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    int rc;

    l.l_start = (off_t)(((uint64_t)id << FENCE_BITS) | ((uint64_t)fence & ((1 << FENCE_BITS) - 1)));
    while ((rc = fcntl(c->locks, command, &l)) != 0 && errno == EINTR)
        ;
    if (found)
        *found = l.l_type;
    return rc;
}

/* True if another process has the lock of this holder. */
static bool is_alive(const ah_sqlite_core *c, const holder *h)
{
    short found = F_UNLCK;

    return lock_call(c, F_OFD_GETLK, F_WRLCK, h->id, h->fence, &found) != 0 || found != F_UNLCK;
}

static bool set_lock(ah_sqlite_core *c, int64_t id, int64_t fence)
{
    return lock_call(c, F_OFD_SETLK, F_WRLCK, id, fence, NULL) == 0;
}

static void end_lock(ah_sqlite_core *c, int64_t id, int64_t fence)
{
    lock_call(c, F_OFD_SETLK, F_UNLCK, id, fence, NULL);
}

#else

static bool is_alive(const ah_sqlite_core *c, const holder *h)
{
    holder me = this_process(0, 0);

    (void)c;
    return h->pid > 0 && h->pid != me.pid && strcmp(h->boot, me.boot) == 0 &&
           (kill((pid_t)h->pid, 0) == 0 || errno == EPERM);
}

static bool set_lock(ah_sqlite_core *c, int64_t id, int64_t fence)
{
    (void)c, (void)id, (void)fence;
    return true;
}

/* The row must not name a process that goes on without the stream. */
static void end_lock(ah_sqlite_core *c, int64_t id, int64_t fence)
{
    char text[120];

    snprintf(text, sizeof text, "UPDATE streams SET pid = 0 WHERE id = %lld AND fence = %lld",
             (long long)id, (long long)fence);
    c->lib.exec(c->db, text, NULL, NULL, NULL);
}

#endif

/* -- the list of this process ----------------------------------------------------------------- */

static ah_sqlite_held **bucket_of(ah_sqlite_core *c, int64_t id)
{
    return &c->held[id % AH_SQLITE_BUCKETS];
}

/* Returns the place of a stream's entry, or of the end of its list. */
static ah_sqlite_held **find_link(ah_sqlite_core *c, int64_t id)
{
    ah_sqlite_held **link = bucket_of(c, id);

    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

static void drop(ah_sqlite_core *c, ah_sqlite_held **link)
{
    ah_sqlite_held *x = *link;

    end_lock(c, x->id, x->fence);
    *link = x->next;
    free(x);
}

static bool is_own(const ah_sqlite_held *x, const ah_sqlite_handle *h, ah_slice stream)
{
    return x->owner == h && ah_slice_eq((ah_slice){x->name, x->n}, stream);
}

/* Returns the entry, or NULL. */
static ah_sqlite_held *find_own(const ah_sqlite_handle *h, ah_slice stream)
{
    for (int i = 0; i < AH_SQLITE_BUCKETS; i++)
        for (ah_sqlite_held *x = h->core->held[i]; x; x = x->next)
            if (is_own(x, h, stream))
                return x;
    return NULL;
}

int64_t ah_sqlite_find_held(const ah_sqlite_handle *h, ah_slice stream, int64_t *fence)
{
    const ah_sqlite_held *x = find_own(h, stream);

    *fence = x ? x->fence : 0;
    return x ? x->id : 0;
}

ah_sqlite_tail *ah_sqlite_tail_of(ah_sqlite_core *c, int64_t id, int64_t fence)
{
    ah_sqlite_held *x = *find_link(c, id);

    return x && x->fence == fence ? &x->tail : NULL;
}

bool ah_sqlite_find_changed(const ah_sqlite_core *c, int64_t *id, int64_t *last)
{
    for (size_t i = 0; i < AH_SQLITE_BUCKETS; i++)
        for (const ah_sqlite_held *x = c->held[i]; x; x = x->next)
            if (x->tail.known && x->tail.last > x->indexed && !memchr(x->name, '/', x->n)) {
                *id = x->id;
                *last = x->tail.last;
                return true;
            }
    return false;
}

void ah_sqlite_set_indexed(ah_sqlite_core *c, int64_t id, int64_t last)
{
    ah_sqlite_held *x = *find_link(c, id);

    if (x)
        x->indexed = last;
}

void ah_sqlite_forget(const ah_sqlite_handle *h, ah_slice stream)
{
    ah_sqlite_held *x = find_own(h, stream);

    if (x)
        x->tail.known = false;
}

void ah_sqlite_release(ah_sqlite_handle *h, ah_slice stream)
{
    const ah_sqlite_held *x = find_own(h, stream);

    if (x)
        drop(h->core, find_link(h->core, x->id));
}

void ah_sqlite_release_all(ah_sqlite_handle *h)
{
    for (int i = 0; i < AH_SQLITE_BUCKETS; i++) {
        ah_sqlite_held **link = &h->core->held[i];

        while (*link)
            if ((*link)->owner == h)
                drop(h->core, link);
            else
                link = &(*link)->next;
    }
}

/* -- holding ---------------------------------------------------------------------------------- */

static void copy_text(ah_slice text, char *out, size_t size)
{
    size_t n = text.n < size ? text.n : size - 1;

    if (text.p)
        memcpy(out, text.p, n);
    out[text.p ? n : 0] = '\0';
}

/* Reads the row of a stream. *out has the id 0 if there is none. */
static ah_status read_holder(ah_sqlite_core *c, ah_slice stream, holder *out, ah_err *err)
{
    const ah_sqlite_statement S = AH_SQLITE_HOLDER;
    int rc;

    *out = (holder){.id = 0};
    ah_sqlite_text(c, S, 1, stream);
    if ((rc = ah_sqlite_step(c, S)) == SQLITE_ROW) {
        *out = (holder){.id = ah_sqlite_column(c, S, 0),
                        .fence = ah_sqlite_column(c, S, 1),
                        .pid = ah_sqlite_column(c, S, 2),
                        .since = ah_sqlite_column(c, S, 3)};
        copy_text(ah_sqlite_column_text(c, S, 4), out->machine, sizeof out->machine);
        copy_text(ah_sqlite_column_text(c, S, 5), out->boot, sizeof out->boot);
    }
    ah_sqlite_reset(c, S);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? AH_OK : ah_sqlite_fails(c, "read", err);
}

/* Makes the stream if it is missing, and reads its row. Expects a transaction. */
static ah_status find_holder(ah_sqlite_core *c, ah_slice stream, holder *out, ah_err *err)
{
    ah_status st;

    ah_sqlite_text(c, AH_SQLITE_ADD, 1, stream);
    if (!ah_sqlite_run(c, AH_SQLITE_ADD))
        return ah_sqlite_fails(c, "written", err);
    if ((st = read_holder(c, stream, out, err)) != AH_OK)
        return st;
    if (out->id < 1 || out->id > AH_SQLITE_MAX_STREAM)
        return ah_err_set(err, AH_STORE, "the store %s is full: it has 2^31 streams", c->file.path);
    return AH_OK;
}

static ah_status is_held(ah_slice stream, const holder *x, ah_err *err)
{
    char since[40] = "";
    time_t at = (time_t)(x->since / 1000);
    struct tm t;

    if (gmtime_r(&at, &t))
        strftime(since, sizeof since, " since %Y-%m-%d %H:%M:%S UTC", &t);
    return ah_err_set(
        err, AH_CONFLICT,
        "the stream \"%.*s\" is held by process %lld%s%s%s: end that process, or take "
        "the stream over (agenthost resume --take)",
        AH_FMT(stream), (long long)x->pid, x->machine[0] ? " on " : "", x->machine, since);
}

/* Fails if the stream is held. An entry of this process that another one took over is dropped. */
static ah_status check_holder(ah_sqlite_core *c, ah_slice stream, const holder *x, bool take,
                              ah_err *err)
{
    ah_sqlite_held **link = find_link(c, x->id);

    if (*link && ((*link)->fence != x->fence || take))
        drop(c, link);
    else if (*link)
        return ah_err_set(err, AH_CONFLICT,
                          "the stream \"%.*s\" is held by this process (%ld) already",
                          AH_FMT(stream), (long)getpid());
    return !take && x->fence > 0 && is_alive(c, x) ? is_held(stream, x, err) : AH_OK;
}

ah_status ah_sqlite_check_free(ah_sqlite_core *c, ah_slice stream, int64_t *id, ah_err *err)
{
    holder x;
    ah_status st = read_holder(c, stream, &x, err);

    *id = x.id;
    return st == AH_OK && x.id ? check_holder(c, stream, &x, false, err) : st;
}

static bool write_holder(ah_sqlite_core *c, const holder *x)
{
    const ah_sqlite_statement S = AH_SQLITE_HOLD;

    ah_sqlite_int(c, S, 1, x->id);
    ah_sqlite_int(c, S, 2, x->fence);
    ah_sqlite_int(c, S, 3, x->pid);
    ah_sqlite_int(c, S, 4, x->since);
    ah_sqlite_text(c, S, 5, ah_slice_of(x->machine));
    ah_sqlite_text(c, S, 6, ah_slice_of(x->boot));
    return ah_sqlite_run(c, S);
}

/* Locks and writes within the transaction that checked: two processes cannot both pass. */
static ah_status become_holder(ah_sqlite_core *c, ah_slice stream, bool take, holder *x,
                               ah_err *err)
{
    holder before;
    ah_status st;

    if ((st = find_holder(c, stream, &before, err)) != AH_OK ||
        (st = check_holder(c, stream, &before, take, err)) != AH_OK)
        return st;
    *x = this_process(before.id, before.fence + 1);
    if (!set_lock(c, x->id, x->fence))
        return ah_err_set(err, AH_STORE, "the store %s cannot lock a stream: %s", c->file.path,
                          strerror(errno));
    if (write_holder(c, x) && ah_sqlite_commit(c, false))
        return AH_OK;
    ah_sqlite_fails(c, "written", err);
    end_lock(c, x->id, x->fence);
    return AH_STORE;
}

ah_status ah_sqlite_hold(ah_sqlite_handle *h, ah_slice stream, bool take, int64_t *fence,
                         ah_err *err)
{
    ah_sqlite_core *c = h->core;
    ah_sqlite_held *x = malloc(sizeof *x + stream.n);
    holder now;
    ah_status st;

    if (!x)
        return ah_err_nomem(err);
    if (!ah_sqlite_begin(c, false))
        st = ah_sqlite_fails(c, "written", err);
    else
        st = become_holder(c, stream, take, &now, err);
    if (st != AH_OK) {
        ah_sqlite_rollback(c, false);
        free(x);
        return st;
    }
    *x = (ah_sqlite_held){.owner = h, .id = now.id, .fence = now.fence, .n = stream.n};
    memcpy(x->name, stream.p, stream.n);
    x->next = *bucket_of(c, x->id);
    *bucket_of(c, x->id) = x;
    *fence = now.fence;
    return AH_OK;
}

#endif
