/* Connections: opened once a process and file, counted, and closed with their last handle. */
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREAD_STACK = 1 << 20 };

/* The connections of this process. The one variable of the library that changes: hosts do not know
 * each other, and two connections of a process to one file would each need a thread. */
static struct {
    pthread_mutex_t lock;
    ah_sqlite_core *first;
} table = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* -- statements ------------------------------------------------------------------------------- */

bool ah_sqlite_run(ah_sqlite_core *c, ah_sqlite_statement s)
{
    int rc = c->lib.step(c->statement[s]);

    ah_sqlite_reset(c, s);
    return rc == SQLITE_DONE;
}

int ah_sqlite_step(ah_sqlite_core *c, ah_sqlite_statement s)
{
    return c->lib.step(c->statement[s]);
}

void ah_sqlite_reset(ah_sqlite_core *c, ah_sqlite_statement s)
{
    c->lib.reset(c->statement[s]);
}

void ah_sqlite_int(ah_sqlite_core *c, ah_sqlite_statement s, int at, int64_t v)
{
    c->lib.bind_int64(c->statement[s], at, v);
}

void ah_sqlite_text(ah_sqlite_core *c, ah_sqlite_statement s, int at, ah_slice v)
{
    if (!v.p)
        c->lib.bind_null(c->statement[s], at);
    else if (v.n > INT_MAX)
        c->lib.bind_null(c->statement[s], at); /* callers have limits far below */
    else
        c->lib.bind_text(c->statement[s], at, v.p, (int)v.n, SQLITE_STATIC);
}

void ah_sqlite_blob(ah_sqlite_core *c, ah_sqlite_statement s, int at, ah_slice v)
{
    if (v.n == 0 || v.n > INT_MAX)
        c->lib.bind_null(c->statement[s], at); /* callers have limits far below */
    else
        c->lib.bind_blob(c->statement[s], at, v.p, (int)v.n, SQLITE_STATIC);
}

int64_t ah_sqlite_column(ah_sqlite_core *c, ah_sqlite_statement s, int at)
{
    return c->lib.column_int64(c->statement[s], at);
}

ah_slice ah_sqlite_column_text(ah_sqlite_core *c, ah_sqlite_statement s, int at)
{
    sqlite3_stmt *row = c->statement[s];
    const char *p = c->lib.column_blob(row, at);

    if (c->lib.column_type(row, at) == SQLITE_NULL)
        return (ah_slice){NULL, 0};
    return (ah_slice){p ? p : "", (size_t)c->lib.column_bytes(row, at)};
}

/* -- transactions ----------------------------------------------------------------------------- */

/* Cannot be changed within a transaction. */
static bool set_sync(ah_sqlite_core *c, bool sync)
{
    return c->lib.exec(c->db, sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
                       NULL, NULL, NULL) == SQLITE_OK;
}

bool ah_sqlite_begin(ah_sqlite_core *c, bool sync)
{
    if (sync && !set_sync(c, true))
        return false;
    return ah_sqlite_run(c, AH_SQLITE_BEGIN);
}

bool ah_sqlite_commit(ah_sqlite_core *c, bool sync)
{
    bool ok = ah_sqlite_run(c, AH_SQLITE_COMMIT);

    if (ok && sync)
        set_sync(c, false); /* it can only stay safer than asked for */
    return ok;
}

void ah_sqlite_rollback(ah_sqlite_core *c, bool sync)
{
    if (!c->lib.get_autocommit(c->db)) /* an error of the disk may have ended it */
        ah_sqlite_run(c, AH_SQLITE_ROLLBACK);
    if (sync)
        set_sync(c, false);
}

ah_status ah_sqlite_fails(ah_sqlite_core *c, const char *what, ah_err *err)
{
    int code = c->lib.extended_errcode(c->db), system = c->lib.system_errno(c->db);
    const char *text = c->lib.errmsg(c->db), *path = c->file.path;

    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return ah_err_nomem(err);
    case SQLITE_FULL:
        return ah_err_set(err, AH_STORE,
                          "the store %s cannot be %s: the disk is full; make room, then open it "
                          "anew",
                          path, what);
    case SQLITE_IOERR:
        return ah_err_set(err, AH_STORE,
                          "the store %s cannot be %s: an error of input or output (%s, code %d)",
                          path, what, system ? strerror(system) : text, code);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ah_err_set(err, AH_STORE,
                          "the store %s cannot be %s: it is damaged (%s); use a copy of it", path,
                          what, text);
    case SQLITE_BUSY:
        return ah_err_set(err, AH_STORE,
                          "the store %s cannot be %s: another process has been writing for %d s",
                          path, what, AH_SQLITE_BUSY_MS / 1000);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return ah_err_set(err, AH_STORE,
                          "the store %s cannot be %s: no right to write it, its folder or the "
                          "files beside it (%s)",
                          path, what, system ? strerror(system) : text);
    default:
        return ah_err_set(err, AH_STORE, "the store %s cannot be %s: %s (code %d)", path, what,
                          text, code);
    }
}

/* -- a connection ----------------------------------------------------------------------------- */

static int count_frames(void *core, sqlite3 *db, const char *name, int frames)
{
    (void)db, (void)name;
    ((ah_sqlite_core *)core)->frames = frames;
    return SQLITE_OK;
}

static ah_status connect(ah_sqlite_core *c, bool create, ah_err *err)
{
    const char *path = c->file.path;
    char name[AH_STORE_FILE_PATH + 2];
    ah_status st;

    /* Never ":memory:", "file:" or an empty name, which have a meaning. */
    snprintf(name, sizeof name, "%s%s", path[0] == '/' ? "" : "./", path);
    if (c->lib.open_v2(name, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return c->db ? ah_sqlite_fails(c, "opened", err) : ah_err_nomem(err);
    c->lib.busy_timeout(c->db, AH_SQLITE_BUSY_MS);
    /* 120 KiB that speed up the compiling of statements, which ends with the opening. */
    c->lib.db_config(c->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0);
    if (c->lib.db_readonly(c->db, "main") == 1)
        return ah_err_set(err, AH_STORE, "the store %s cannot be opened: no right to write it",
                          path);
    if ((st = ah_sqlite_prepare(c, create, err)) != AH_OK)
        return st;
    c->lib.wal_hook(c->db, count_frames, c);
    return AH_OK;
}

static void disconnect(ah_sqlite_core *c)
{
    for (int i = 0; i < AH_SQLITE_ALL; i++)
        if (c->statement[i])
            c->lib.finalize(c->statement[i]);
    if (c->db)
        c->lib.close(c->db);
    if (c->locks >= 0)
        close(c->locks);
}

/* Signals are for the program's own threads. */
static ah_status start_thread(ah_sqlite_core *c, void *(*fn)(void *core), pthread_t *out,
                              ah_err *err)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int failed = pthread_attr_init(&attr);

    if (failed)
        return ah_err_nomem(err);
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(out, &attr, fn, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed ? ah_err_set(err, AH_STORE, "no thread for the store %s: %s", c->file.path,
                               strerror(failed))
                  : AH_OK;
}

ah_status ah_sqlite_start_indexer(ah_sqlite_core *c, ah_err *err)
{
    ah_status st = AH_OK;

    if (!c->indexes)
        st = start_thread(c, ah_sqlite_indexer, &c->indexer, err);
    c->indexes = st == AH_OK;
    return st;
}

static void free_core(ah_sqlite_core *c)
{
    disconnect(c);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->searches);
    pthread_mutex_destroy(&c->queue);
    pthread_mutex_destroy(&c->database);
    pthread_mutex_destroy(&c->index);
    free(c);
}

/* The thread waits for it with a limit, by a clock that is never set. */
static void init_work(pthread_cond_t *work)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
#ifndef __APPLE__
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(work, &attr);
    pthread_condattr_destroy(&attr);
}

static ah_status new_core(const ah_sqlite *lib, const ah_store_file *file, bool create,
                          ah_sqlite_core **out, ah_err *err)
{
    ah_sqlite_core *c = calloc(1, sizeof *c);
    ah_status st = AH_OK;

    if (!c)
        return ah_err_nomem(err);
    *c = (ah_sqlite_core){.refs = 1, .pid = getpid(), .lib = *lib, .file = *file, .locks = -1};
    c->end = &c->first;
    c->search_end = &c->search;
    pthread_mutex_init(&c->queue, NULL);
    pthread_mutex_init(&c->database, NULL);
    pthread_mutex_init(&c->index, NULL);
    init_work(&c->work);
    pthread_cond_init(&c->done, NULL);
    pthread_cond_init(&c->searches, NULL);
    if (!file->made)
        st = ah_store_file_check(file, create, err);
    if (st == AH_OK)
        st = connect(c, create, err);
    if (st == AH_OK && (c->locks = ah_store_file_locks(file->path, err)) < 0)
        st = AH_STORE;
    if (st == AH_OK)
        st = start_thread(c, ah_sqlite_thread, &c->thread, err);
    if (st == AH_OK)
        *out = c;
    else
        free_core(c);
    return st;
}

/* Expects the table's lock. */
static ah_sqlite_core *find_core(const ah_store_file *file)
{
    ah_sqlite_core *c = table.first;

    while (c &&
           (c->file.device != file->device || c->file.inode != file->inode || c->pid != getpid()))
        c = c->next;
    return c;
}

ah_status ah_sqlite_core_open(ah_slice path, bool create, bool force, ah_sqlite_core **out,
                              ah_err *err)
{
    ah_store_file file;
    ah_sqlite lib;
    ah_status st = ah_sqlite_load(&lib, err);

    if (st != AH_OK)
        return st;
    pthread_mutex_lock(&table.lock);
    st = ah_store_file_find(path, create, force, &file, err);
    if (st == AH_OK && (*out = find_core(&file)) != NULL) {
        (*out)->refs++;
    } else if (st == AH_OK && (st = new_core(&lib, &file, create, out, err)) == AH_OK) {
        (*out)->next = table.first;
        table.first = *out;
    }
    pthread_mutex_unlock(&table.lock);
    return st;
}

static void stop_threads(ah_sqlite_core *c)
{
    pthread_mutex_lock(&c->queue);
    c->stop = true;
    pthread_cond_signal(&c->work);
    pthread_cond_signal(&c->searches);
    pthread_mutex_unlock(&c->queue);
    pthread_join(c->thread, NULL);
    if (c->indexes)
        pthread_join(c->indexer, NULL);
}

/* The table stays locked until the file is closed: a later opening checks its first bytes by a
 * descriptor, whose end would end the locks of this connection. */
void ah_sqlite_core_close(ah_sqlite_core *c)
{
    ah_sqlite_core **link = &table.first;

    pthread_mutex_lock(&table.lock);
    if (--c->refs == 0) {
        while (*link != c)
            link = &(*link)->next;
        *link = c->next;
        stop_threads(c);
        free_core(c);
    }
    pthread_mutex_unlock(&table.lock);
}

#endif
