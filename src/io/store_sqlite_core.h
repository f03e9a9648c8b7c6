/* The connection of a process to one file, shared by the handles of its hosts, and its thread,
 * which carries out the appends that may wait for the disk, for another process or for each other;
 * the others are carried out where they begin, which saves two wake-ups. The thread is C only: it
 * calls neither Lua nor a host's allocator (which may be for one thread) but malloc, and of a host
 * only `wake`. It reads records in the memory of the caller, which keeps them until `done`. A
 * second thread, which the first search starts, writes the search index for the searches that wait.
 *
 * Two locks: `queue` guards what the thread and the handles pass to each other, and is held
 * briefly; `database` guards the connection, and is held while the disk is used. `queue` is never
 * held while `database` is taken. The search index has a connection and a lock of its own.
 * Callers: its floor. */
#ifndef AH_IO_STORE_SQLITE_CORE_H
#define AH_IO_STORE_SQLITE_CORE_H

#include "io/store_sqlite_lib.h"

#ifdef AH_WITH_SQLITE

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/store.h"
#include "io/store_file.h"
#include "io/store_hash.h"

/* Records of a stream are rows with adjacent numbers, so that one tree finds and holds them. */
enum { AH_SQLITE_NUMBER_BITS = 32 };
enum { AH_SQLITE_BUCKETS = 64 };
enum { AH_SQLITE_BUSY_MS = 5000 }; /* a writer of another process is waited for */
#define AH_SQLITE_MAX_NUMBER INT64_C(0xffffffff)
#define AH_SQLITE_MAX_STREAM INT64_C(0x7fffffff)
#define AH_SQLITE_ROW(stream, number)                                                              \
    ((int64_t)((uint64_t)(stream) << AH_SQLITE_NUMBER_BITS) + (number))

/* Name and text of each statement. They are prepared at opening, which also checks the tables. */
#define AH_SQLITE_STATEMENTS(X)                                                                    \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(SAVE, "SAVEPOINT one")                                                                       \
    X(KEEP, "RELEASE one")                                                                         \
    X(UNDO, "ROLLBACK TO one")                                                                     \
    X(FIND, "SELECT id, fence FROM streams WHERE name = ?1")                                       \
    X(TAIL, "SELECT id, hash FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1")    \
    X(INSERT, "INSERT INTO records(id, time, kind, hash, said_cuts, kept_cuts, said, kept) "       \
              "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                            \
    X(USE_BLOB, "INSERT INTO blobs(hash, users, body) VALUES(?1, 1.0, ?2) "                        \
                "ON CONFLICT(hash) DO UPDATE SET users = users + 1, body = excluded.body")         \
    X(TAKE, "UPDATE inbox SET taken = 1, kind = '', body = '' WHERE stream = ?1 AND key = ?2")     \
    X(ADD, "INSERT OR IGNORE INTO streams(name, fence) VALUES(?1, 0)")                             \
    X(HOLDER, "SELECT id, fence, pid, since, machine, boot FROM streams WHERE name = ?1")          \
    X(HOLD, "UPDATE streams SET fence = ?2, pid = ?3, since = ?4, machine = ?5, boot = ?6 "        \
            "WHERE id = ?1")                                                                       \
    X(LABEL, "UPDATE streams SET label = ?3 WHERE id = ?1 AND fence = ?2")                         \
    X(POST, "INSERT OR IGNORE INTO inbox(stream, key, kind, body, time, taken) "                   \
            "VALUES(?1, ?2, ?3, ?4, ?5, 0)")                                                       \
    X(READ, "SELECT id, time, 0, kind, said, kept, said_cuts, kept_cuts FROM records "             \
            "WHERE id BETWEEN ?1 AND ?2 ORDER BY id")                                              \
    X(READ_BLOB, "SELECT body FROM blobs WHERE hash = ?1")                                         \
    X(FIND_LAST, "SELECT id FROM records WHERE id BETWEEN ?1 AND ?2 AND kind = ?3 "                \
                 "ORDER BY id DESC LIMIT 1")                                                       \
    X(FIND_CHECKPOINT, "SELECT id FROM records WHERE id BETWEEN ?1 AND ?2 "                        \
                       "AND kind = 'checkpoint' ORDER BY id DESC LIMIT 1")                         \
    X(LIST,                                                                                        \
      "SELECT id, (SELECT time FROM records AS r WHERE r.id BETWEEN s.id << 32 "                   \
      "AND (s.id << 32) + 4294967295 ORDER BY r.id DESC LIMIT 1) AS changed FROM streams AS s "    \
      "WHERE name >= ?1 AND name < ?1 || CAST(x'ff' AS TEXT) "                                     \
      "AND (?2 = 0 OR label IS NOT NULL) "                                                         \
      "AND changed IS NOT NULL ORDER BY changed DESC, id DESC")                                    \
    X(STREAM, "SELECT r.id & 4294967295, r.time, "                                                 \
              "(SELECT count(*) FROM inbox WHERE stream = ?1 AND taken = 0), name, label, NULL "   \
              "FROM streams AS s JOIN records AS r ON r.id = (SELECT max(id) FROM records "        \
              "WHERE id BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295) WHERE s.id = ?1")            \
    X(INBOX, "SELECT time, 0, 0, key, kind, body FROM inbox WHERE stream = ?1 AND taken = 0 "      \
             "ORDER BY id")                                                                        \
    X(VERSION, "PRAGMA data_version")

/* Statements for keeping, which are prepared at the first use. */
#define AH_SQLITE_STATEMENTS_KEEP(X)                                                               \
    X(RAW, "SELECT id, time, kind, hash, said, kept, said_cuts, kept_cuts FROM records "           \
           "WHERE id BETWEEN ?1 AND ?2 ORDER BY id")                                               \
    X(DROP_BLOB, "DELETE FROM blobs WHERE hash = ?1 AND users <= 1")                               \
    X(LEAVE_BLOB, "UPDATE blobs SET users = users - 1 WHERE hash = ?1")                            \
    X(DROP_RECORDS, "DELETE FROM records WHERE id BETWEEN ?1 AND ?2")                              \
    X(DROP_INBOX, "DELETE FROM inbox WHERE stream = ?1")                                           \
    X(DROP_STREAM, "DELETE FROM streams WHERE id = ?1")                                            \
    X(ERASE, "UPDATE records SET kept = '', kept_cuts = ?2 WHERE id = ?1")                         \
    X(BLOBS, "SELECT count(*), ifnull(sum(length(body)), 0) FROM blobs")

#define AH_SQLITE_NUMBER(id, text) AH_SQLITE_##id,
typedef enum ah_sqlite_statement {
    AH_SQLITE_STATEMENTS(AH_SQLITE_NUMBER) AH_SQLITE_N,
    AH_SQLITE_BEFORE = AH_SQLITE_N - 1,
    AH_SQLITE_STATEMENTS_KEEP(AH_SQLITE_NUMBER) AH_SQLITE_ALL
} ah_sqlite_statement;
#undef AH_SQLITE_NUMBER

typedef struct ah_sqlite_core ah_sqlite_core;
typedef struct ah_sqlite_held ah_sqlite_held;

/* A store that one host has opened. Allocated by the host's allocator. */
typedef struct ah_sqlite_handle {
    ah_store store;
    ah_mem mem;
    ah_sqlite_core *core; /* counted */
    ah_store_sync sync;
    /* guarded by `queue` */
    ah_store_append *done, **done_end; /* carried out, for poll */
    size_t outstanding;                /* begun, and not in `done` yet */
    bool waking;                       /* the thread is about to call `wake` */
    struct ah_sqlite_handle *next;     /* among those that the thread wakes */
    /* of the host's thread */
    int64_t version; /* of the file, when `news` was called last */
    unsigned posts;
} ah_sqlite_handle;

struct ah_sqlite_core {
    ah_sqlite_core *next; /* in the table of the process */
    size_t refs;
    pid_t pid; /* a forked child must not use it */
    ah_sqlite lib;
    ah_store_file file;
    pthread_t thread;
    /* guarded by `queue` */
    pthread_mutex_t queue;
    pthread_cond_t work, done;
    ah_store_append *first, **end;
    bool idle, stop;
    bool full;                 /* the log is to be moved into the file */
    unsigned appends, indexed; /* counts; indexed: of `appends`, when the thread looked last */
    ah_store_append *search, **search_end; /* searches that wait for the index */
    pthread_cond_t searches;
    bool indexes; /* `indexer` was started */
    pthread_t indexer;
    /* Held while the search index is open; `database` may be taken meanwhile. */
    pthread_mutex_t index;
    /* guarded by `database` */
    pthread_mutex_t database;
    sqlite3 *db;
    sqlite3_stmt *statement[AH_SQLITE_ALL];
    ah_sqlite_held *held[AH_SQLITE_BUCKETS]; /* by the stream's id; store_sqlite_hold.c */
    int locks;                               /* descriptor of "<path>-locks" */
    int frames;                              /* in the log since the last checkpoint, in pages */
    atomic_uint posts;                       /* by handles of this process */
};

/* Opens the connection, or shares the one that this process has. */
ah_status ah_sqlite_core_open(ah_slice path, bool create, bool force, ah_sqlite_core **out,
                              ah_err *err);
void ah_sqlite_core_close(ah_sqlite_core *c);

/* -- for holders of `database` */

/* Makes the tables of a new file, or checks those of an old one. */
ah_status ah_sqlite_prepare(ah_sqlite_core *c, bool create, ah_err *err);
/* Prepares the statements for keeping, once. */
ah_status ah_sqlite_prepare_keep(ah_sqlite_core *c, ah_err *err);
/* Sets *err to the last error of the connection: "the store <path> cannot be <what>: ...". */
ah_status ah_sqlite_fails(ah_sqlite_core *c, const char *what, ah_err *err);
/* Carries out a statement that has no rows, and takes its values back. */
bool ah_sqlite_run(ah_sqlite_core *c, ah_sqlite_statement s);
/* Returns SQLITE_ROW or another code; the caller calls ah_sqlite_reset. */
int ah_sqlite_step(ah_sqlite_core *c, ah_sqlite_statement s);
void ah_sqlite_reset(ah_sqlite_core *c, ah_sqlite_statement s);
void ah_sqlite_int(ah_sqlite_core *c, ah_sqlite_statement s, int at, int64_t v);
/* The text is borrowed until the reset. .p NULL: null */
void ah_sqlite_text(ah_sqlite_core *c, ah_sqlite_statement s, int at, ah_slice v);
/* The bytes are borrowed until the reset. .n 0: null */
void ah_sqlite_blob(ah_sqlite_core *c, ah_sqlite_statement s, int at, ah_slice v);
int64_t ah_sqlite_column(ah_sqlite_core *c, ah_sqlite_statement s, int at);
/* Valid until the next step. .p NULL: null */
ah_slice ah_sqlite_column_text(ah_sqlite_core *c, ah_sqlite_statement s, int at);
/* Begins and ends a transaction. `sync`: its end forces the log to the disk. */
bool ah_sqlite_begin(ah_sqlite_core *c, bool sync);
bool ah_sqlite_commit(ah_sqlite_core *c, bool sync);
void ah_sqlite_rollback(ah_sqlite_core *c, bool sync);

/* Starts the thread that serves ah_sqlite_core.search, once. Expects `queue`. */
ah_status ah_sqlite_start_indexer(ah_sqlite_core *c, ah_err *err);

/* -- store_sqlite_append.c: the threads */

void *ah_sqlite_thread(void *core);
void *ah_sqlite_indexer(void *core);
/* Sets the outcome of an append that has failed. */
void ah_sqlite_fail(ah_store_append *a, const ah_err *err);
/* Carries out an append on the calling thread, if that waits for nothing and nothing of the handle
 * is outstanding. False: it is for the thread. */
bool ah_sqlite_append_now(ah_sqlite_handle *h, ah_store_append *a);
void ah_sqlite_free_outcome(ah_err *outcome); /* of an append that failed */

/* -- store_sqlite_blob.c: long strings of texts (io/store_cut.h) */

enum { AH_SQLITE_HASHED = 8 };

/* Cuts the records of a transaction, whose texts stay where they are until it has ended. */
typedef struct ah_sqlite_cutter {
    ah_sqlite_core *core;
    ah_buf rest[2], cuts[2]; /* of said and kept of the current record */
    /* The last blobs: most are in several records, and are hashed once. */
    struct {
        ah_slice blob;
        unsigned char hash[AH_SHA256_BYTES];
    } hashed[AH_SQLITE_HASHED];
    size_t n_hashed; /* counts on */
} ah_sqlite_cutter;

void ah_sqlite_cutter_init(ah_sqlite_cutter *k, ah_sqlite_core *c);
void ah_sqlite_cutter_clear(ah_sqlite_cutter *k);
/* Adds the blobs of the record, and sets *out to what the row of the record has. It is valid until
 * the next call. */
ah_status ah_sqlite_cut(ah_sqlite_cutter *k, const ah_store_record *r, ah_store_row *out,
                        ah_err *err);
/* Appends the text that record `number` has. */
ah_status ah_sqlite_join(ah_sqlite_core *c, int64_t number, const ah_store_text *t, ah_buf *out,
                         ah_err *err);

/* -- store_sqlite_hold.c */

ah_status ah_sqlite_hold(ah_sqlite_handle *h, ah_slice stream, bool take, int64_t *fence,
                         ah_err *err);
void ah_sqlite_release(ah_sqlite_handle *h, ah_slice stream);
void ah_sqlite_release_all(ah_sqlite_handle *h);
/* Returns the stream's id if this handle holds it, and its fence; 0: it does not. */
int64_t ah_sqlite_find_held(const ah_sqlite_handle *h, ah_slice stream, int64_t *fence);

/* Sets *id to that of the stream; 0: there is none. AH_CONFLICT: it is held. Expects a
 * transaction. */
ah_status ah_sqlite_check_free(ah_sqlite_core *c, ah_slice stream, int64_t *id, ah_err *err);

/* The end of a held stream. Only its holder appends, so what is known of the last append holds as
 * long as the fence does. */
typedef struct ah_sqlite_tail {
    bool known;
    int64_t last;                        /* number of the last record */
    unsigned char hash[AH_SHA256_BYTES]; /* of that record */
} ah_sqlite_tail;

/* Reads the tail from the records. */
ah_status ah_sqlite_read_tail(ah_sqlite_core *c, int64_t id, ah_sqlite_tail *out, ah_err *err);
/* Returns the tail of a stream that this process holds with this fence, or NULL. */
ah_sqlite_tail *ah_sqlite_tail_of(ah_sqlite_core *c, int64_t id, int64_t fence);
/* Finds a conversation of this process that has records behind those of ah_sqlite_set_indexed, and
 * the number of its last one. False: there is none. */
bool ah_sqlite_find_changed(const ah_sqlite_core *c, int64_t *id, int64_t *last);
/* The search index has the stream up to this record. */
void ah_sqlite_set_indexed(ah_sqlite_core *c, int64_t id, int64_t last);
/* The tail of a stream that this handle holds is not known any more. */
void ah_sqlite_forget(const ah_sqlite_handle *h, ah_slice stream);

/* -- store_sqlite_keep.c: keeping, see ah_store_vt. `id`: of a stream, which may have no records */

ah_status ah_sqlite_remove(ah_sqlite_core *c, ah_slice stream, ah_err *err);
ah_status ah_sqlite_purge(ah_sqlite_core *c, ah_err *err);
ah_status ah_sqlite_erase(ah_sqlite_core *c, int64_t id, int64_t below, int64_t older, int64_t *n,
                          ah_err *err);
ah_status ah_sqlite_measure(ah_sqlite_core *c, int64_t id, ah_store_size *out, ah_err *err);
ah_status ah_sqlite_measure_all(ah_sqlite_core *c, ah_store_size *out, ah_err *err);
ah_status ah_sqlite_verify(ah_sqlite_core *c, int64_t id, ah_store_audit *audit, ah_err *err);

#endif

#endif
