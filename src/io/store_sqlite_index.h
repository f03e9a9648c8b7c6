/* The index of a store for the search: the file "<path>-search", whose content follows from the
 * records, so it may be removed at any time. It is apart from the store because it is only open
 * while it is written or searched: its tables take time and memory to open, and its pages are not
 * those that appends wait for.
 *
 *   streams         how far a stream is indexed: number and hash of the last record
 *   entries         which entry of which record a text is of
 *   words_0 to 15   FTS5 without contents, each for the streams with this remainder of their ids
 *
 * A text has a number in its table that follows from the time of its record, in units of 16 ms, or
 * is the next free one: so the newest are found first, and adjacent numbers take little space. Its
 * id in `entries` is this number and the table, in 4 bits.
 *
 * FTS5 cannot forget single texts so that no page has their words, but a whole table: if records
 * are not there any more, or are others, their table is emptied, and filled again from the records
 * that are left. Records are read only under the index's write lock: words that come into it are
 * words of records that are there.
 * Callers: its floor. */
#ifndef AH_IO_STORE_SQLITE_INDEX_H
#define AH_IO_STORE_SQLITE_INDEX_H

#include "base/buf.h"
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

/* The table of a stream has the last bits of its id. */
enum {
    AH_SQLITE_TABLES = 16,
    AH_SQLITE_TABLE_BITS = 4,
    AH_SQLITE_INDEX_PATH = AH_STORE_FILE_PATH + 16
};

#define AH_SQLITE_INDEX_STATEMENTS(X)                                                              \
    X(INDEX_BEGIN, "BEGIN IMMEDIATE")                                                              \
    X(INDEX_COMMIT, "COMMIT")                                                                      \
    X(INDEX_ROLLBACK, "ROLLBACK")                                                                  \
    X(PROGRESS, "SELECT last, hash FROM streams WHERE id = ?1")                                    \
    X(SET_PROGRESS, "INSERT OR REPLACE INTO streams(id, last, hash) VALUES(?1, ?2, ?3)")           \
    X(INDEXED, "SELECT id, last, hash FROM streams ORDER BY id")                                   \
    X(FORGET_STREAMS, "DELETE FROM streams WHERE id & 15 = ?1")                                    \
    X(FORGET_ENTRIES, "DELETE FROM entries WHERE id & 15 = ?1")                                    \
    X(ADD_ENTRY, "INSERT OR IGNORE INTO entries(id, record, entry) VALUES(?1, ?2, ?3)")            \
    X(ENTRY, "SELECT record, entry FROM entries WHERE id = ?1")

/* Of the store's own connection. */
#define AH_SQLITE_SOURCE_STATEMENTS(X)                                                             \
    X(HASH_OF, "SELECT hash FROM records WHERE id = ?1")                                           \
    X(ROWS, "SELECT id, time, kind, hash, said, said_cuts FROM records "                           \
            "WHERE id BETWEEN ?1 AND ?2 ORDER BY id")                                              \
    X(STREAMS, "SELECT s.id, r.id, r.hash FROM streams AS s JOIN records AS r ON r.id = "          \
               "(SELECT max(id) FROM records WHERE id BETWEEN s.id << 32 "                         \
               "AND (s.id << 32) + 4294967295) WHERE instr(s.name, '/') = 0 ORDER BY s.id")        \
    X(STREAM_OF, "SELECT name, label FROM streams WHERE id = ?1")

#define AH_SQLITE_NUMBER(id, text) AH_SQLITE_##id,
typedef enum ah_sqlite_index_statement {
    AH_SQLITE_INDEX_STATEMENTS(AH_SQLITE_NUMBER) AH_SQLITE_INDEX_N,
    AH_SQLITE_INDEX_LAST = AH_SQLITE_INDEX_N - 1,
    AH_SQLITE_SOURCE_STATEMENTS(AH_SQLITE_NUMBER) AH_SQLITE_INDEX_ALL
} ah_sqlite_index_statement;
#undef AH_SQLITE_NUMBER

/* An open index. In the memory of the caller, which holds ah_sqlite_core.index. */
typedef struct ah_sqlite_index {
    ah_sqlite_core *core;
    char path[AH_SQLITE_INDEX_PATH];
    sqlite3 *db;
    sqlite3_stmt *statement[AH_SQLITE_INDEX_ALL];
    sqlite3_stmt *add; /* adds a text to the table `table` */
    int table;
    bool begun;
    size_t pending;            /* bytes of texts in the transaction */
    size_t read, most;         /* bytes of records; most: of a part; 0: all */
    ah_buf said, row;          /* texts for the index; a record */
    ah_buf behind, suspicious; /* streams to be indexed; those that may not be what was indexed */
    /* The last texts of each table have these numbers, one behind the other. */
    struct {
        int64_t from, next;
    } numbers[AH_SQLITE_TABLES];
} ah_sqlite_index;

/* Opens the index, and makes it if it is missing. wait_ms: for other processes. AH_USAGE: SQLite
 * has no FTS5. The caller calls ah_sqlite_index_close in any case. */
ah_status ah_sqlite_index_open(ah_sqlite_index *x, ah_sqlite_core *c, int wait_ms, ah_err *err);
void ah_sqlite_index_close(ah_sqlite_index *x);
/* Brings all of the store into the index. */
ah_status ah_sqlite_index_all(ah_sqlite_index *x, ah_err *err);
/* Brings the next part of the store into the index, in a transaction of its own. *more: there may
 * be others. Expects no lock. */
ah_status ah_sqlite_index_next(ah_sqlite_core *c, bool *more, ah_err *err);

/* Removes the words of records that are not in the store any more: when it returns, no file has
 * them. The table of their stream is filled again by the next search. Expects no lock: `index` and
 * `database` are taken. */
ah_status ah_sqlite_index_clean(ah_sqlite_core *c, ah_err *err);

/* Brings streams that this process has appended to into the index, a part at a time. Returns true
 * if there are more. Expects no lock. */
bool ah_sqlite_index_some(ah_sqlite_core *c);

/* -- store_sqlite_search.c */

/* See ah_store_vt.search. Expects no lock. */
ah_status ah_sqlite_search(ah_sqlite_core *c, const ah_store_search *q, ah_err *err);

/* -- store_sqlite_rank.c */

/* Adds the function agenthost_rank(words_N, weight of the first term, ...) to the connection of the
 * index: BM25 with these weights, as the tables of the index know only their own texts. */
bool ah_sqlite_add_rank(ah_sqlite_index *x);

/* -- statements of both connections; those of the store expect `database` */

int ah_sqlite_index_step(ah_sqlite_index *x, ah_sqlite_index_statement s);
void ah_sqlite_index_reset(ah_sqlite_index *x, ah_sqlite_index_statement s);
void ah_sqlite_index_int(ah_sqlite_index *x, ah_sqlite_index_statement s, int at, int64_t v);
int64_t ah_sqlite_index_number(ah_sqlite_index *x, ah_sqlite_index_statement s, int at);
/* Valid until the next step. .p NULL: null */
ah_slice ah_sqlite_index_text(ah_sqlite_index *x, ah_sqlite_index_statement s, int at);
/* Sets *err to the last error of the index. */
ah_status ah_sqlite_index_fails(ah_sqlite_index *x, ah_err *err);

#endif

#endif
