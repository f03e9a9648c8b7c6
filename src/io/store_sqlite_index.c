/* The index: its file, and how records come into it and out of it. */
#include "io/store_sqlite_index.h"

#ifdef AH_WITH_SQLITE

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "io/store_said.h"

enum {
    INDEX_ID = 0x61686a32, /* application_id: "ahj2" */
    INDEX_FORMAT = 1,
    NEEDED_VERSION = 3027000, /* of SQLite, for remove_diacritics 2 */
    PART = 64 << 10,          /* bytes of rows that are read at once, while appends wait */
    IDLE_PART = 64 << 10,     /* bytes of texts in a transaction of the thread */
    SEARCH_PART = 4 << 20,    /* bytes of texts in a transaction of a search */
    WAIT_PART = 1 << 20,      /* bytes of records in one of the thread for which a search waits */
    TIME_UNIT = 16            /* ms, for the numbers of texts */
};

/* -- statements ------------------------------------------------------------------------------- */

int ah_sqlite_index_step(ah_sqlite_index *x, ah_sqlite_index_statement s)
{
    return x->core->lib.step(x->statement[s]);
}

void ah_sqlite_index_reset(ah_sqlite_index *x, ah_sqlite_index_statement s)
{
    x->core->lib.reset(x->statement[s]);
}

void ah_sqlite_index_int(ah_sqlite_index *x, ah_sqlite_index_statement s, int at, int64_t v)
{
    x->core->lib.bind_int64(x->statement[s], at, v);
}

int64_t ah_sqlite_index_number(ah_sqlite_index *x, ah_sqlite_index_statement s, int at)
{
    return x->core->lib.column_int64(x->statement[s], at);
}

ah_slice ah_sqlite_index_text(ah_sqlite_index *x, ah_sqlite_index_statement s, int at)
{
    const ah_sqlite *lib = &x->core->lib;
    const char *p = lib->column_blob(x->statement[s], at);

    if (lib->column_type(x->statement[s], at) == SQLITE_NULL)
        return (ah_slice){NULL, 0};
    return (ah_slice){p ? p : "", (size_t)lib->column_bytes(x->statement[s], at)};
}

static bool run(ah_sqlite_index *x, ah_sqlite_index_statement s)
{
    int rc = ah_sqlite_index_step(x, s);

    ah_sqlite_index_reset(x, s);
    return rc == SQLITE_DONE;
}

static bool carry_out(ah_sqlite_index *x, const char *text)
{
    return x->core->lib.exec(x->db, text, NULL, NULL, NULL) == SQLITE_OK;
}

ah_status ah_sqlite_index_fails(ah_sqlite_index *x, ah_err *err)
{
    int code = x->core->lib.extended_errcode(x->db);
    const char *text = x->core->lib.errmsg(x->db);

    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return ah_err_nomem(err);
    case SQLITE_BUSY:
        return ah_err_set(err, AH_STORE,
                          "another process has been building the search index %s for %d s: try "
                          "again later",
                          x->path, AH_SQLITE_BUSY_MS / 1000);
    case SQLITE_FULL:
        return ah_err_set(err, AH_STORE, "the search index %s cannot be written: the disk is full",
                          x->path);
    default:
        return ah_err_set(err, AH_STORE,
                          "the search index %s cannot be used: %s (code %d); it is made anew if it "
                          "is removed",
                          x->path, text, code);
    }
}

static ah_status source_fails(const ah_sqlite_index *x, ah_err *err)
{
    return ah_sqlite_fails(x->core, "read", err);
}

/* -- the file --------------------------------------------------------------------------------- */

static const char streams_table[] =
    "CREATE TABLE streams(id INTEGER PRIMARY KEY, last INTEGER NOT NULL, hash BLOB NOT NULL)";
static const char entries_table[] =
    "CREATE TABLE entries(id INTEGER PRIMARY KEY, record INTEGER NOT NULL, entry INTEGER NOT NULL)";

enum { TABLE_TEXT = 120 };

static void words_table(int table, char out[TABLE_TEXT])
{
    snprintf(out, TABLE_TEXT,
             "CREATE VIRTUAL TABLE words_%d USING fts5(text, content='', "
             "tokenize='unicode61 remove_diacritics 2')",
             table);
}

static bool make_tables(ah_sqlite_index *x)
{
    char text[TABLE_TEXT];
    bool ok = carry_out(x, streams_table) && carry_out(x, entries_table);

    for (int i = 0; ok && i < AH_SQLITE_TABLES; i++) {
        words_table(i, text);
        ok = carry_out(x, text);
    }
    snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d", INDEX_ID,
             INDEX_FORMAT);
    return ok && carry_out(x, text);
}

/* Sets *out to the number that a statement gives. */
static bool ask_number(ah_sqlite_index *x, const char *text, int64_t *out)
{
    const ah_sqlite *lib = &x->core->lib;
    sqlite3_stmt *s = NULL;
    bool ok = lib->prepare_v2(x->db, text, -1, &s, NULL) == SQLITE_OK && lib->step(s) == SQLITE_ROW;

    if (ok)
        *out = lib->column_int64(s, 0);
    lib->finalize(s);
    return ok;
}

/* Another process may do the same at this time. */
static bool make_index(ah_sqlite_index *x)
{
    int64_t n = 0;
    bool ok = carry_out(x, "BEGIN EXCLUSIVE") &&
              ask_number(x, "SELECT count(*) FROM sqlite_master", &n) &&
              (n > 0 || make_tables(x)) && carry_out(x, "COMMIT");

    if (!ok && !x->core->lib.get_autocommit(x->db))
        carry_out(x, "ROLLBACK");
    return ok;
}

/* True if the object is one of ours, or a table of FTS5, which makes them from ours. */
static bool is_object(ah_slice type, ah_slice name, ah_slice text)
{
    char words[TABLE_TEXT];
    int table = -1, end = 0;
    char number[8] = "";

    if (!ah_slice_is(type, "table"))
        return false;
    if (ah_slice_is(text, streams_table) || ah_slice_is(text, entries_table))
        return true;
    if (!ah_slice_begins(name, "words_") || name.n > sizeof number + 12)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)(name.n - 6), name.p + 6);
    if (sscanf(number, "%d%n", &table, &end) != 1 || table < 0 || table >= AH_SQLITE_TABLES)
        return false;
    words_table(table, words);
    return number[end] == '_' || ah_slice_is(text, words);
}

static ah_slice column(const ah_sqlite *lib, sqlite3_stmt *s, int at)
{
    const char *p = lib->column_blob(s, at);

    return (ah_slice){p ? p : "", (size_t)lib->column_bytes(s, at)};
}

/* Compares all tables, views and triggers, as the statements would obey edited ones. */
static bool check_index(ah_sqlite_index *x)
{
    const ah_sqlite *lib = &x->core->lib;
    int64_t id = 0, format = 0;
    sqlite3_stmt *s = NULL;
    int rc;

    if (!ask_number(x, "PRAGMA application_id", &id) ||
        !ask_number(x, "PRAGMA user_version", &format) || id != INDEX_ID || format != INDEX_FORMAT)
        return false;
    rc = lib->prepare_v2(x->db, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL",
                         -1, &s, NULL);
    while (rc == SQLITE_OK && (rc = lib->step(s)) == SQLITE_ROW &&
           is_object(column(lib, s, 0), column(lib, s, 1), column(lib, s, 2)))
        rc = SQLITE_OK;
    lib->finalize(s);
    return rc == SQLITE_DONE;
}

static ah_status prepare(ah_sqlite_index *x, ah_err *err)
{
#define TEXT(id, text) text,
    static const char *const texts[] = {AH_SQLITE_INDEX_STATEMENTS(TEXT)
                                            AH_SQLITE_SOURCE_STATEMENTS(TEXT)};
#undef TEXT
    const ah_sqlite *lib = &x->core->lib;
    ah_status st = AH_OK;

    for (int i = 0; i < AH_SQLITE_INDEX_N; i++)
        if (lib->prepare_v2(x->db, texts[i], -1, &x->statement[i], NULL) != SQLITE_OK)
            return ah_sqlite_index_fails(x, err);
    pthread_mutex_lock(&x->core->database);
    for (int i = AH_SQLITE_INDEX_N; st == AH_OK && i < AH_SQLITE_INDEX_ALL; i++)
        if (lib->prepare_v2(x->core->db, texts[i], -1, &x->statement[i], NULL) != SQLITE_OK)
            st = source_fails(x, err);
    pthread_mutex_unlock(&x->core->database);
    return st;
}

static ah_status connect(ah_sqlite_index *x, int wait_ms, ah_err *err)
{
    const ah_sqlite *lib = &x->core->lib;
    int64_t n = 0;

    if (lib->open_v2(x->path, &x->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return x->db ? ah_sqlite_index_fails(x, err) : ah_err_nomem(err);
    lib->busy_timeout(x->db, wait_ms);
    /* A file is not trusted. Pages that words have left are overwritten. */
    if (!carry_out(x, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                      "PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY;"
                      "PRAGMA secure_delete = ON; PRAGMA synchronous = NORMAL") ||
        !ask_number(x, "SELECT count(*) FROM sqlite_master", &n) || (n == 0 && !make_index(x)))
        return ah_sqlite_index_fails(x, err);
    if (!check_index(x))
        return ah_err_set(err, AH_STORE,
                          "%s is not a search index of this version of agenthost: remove it; it is "
                          "made anew",
                          x->path);
    return prepare(x, err);
}

static void set_path(const ah_sqlite_core *c, char out[AH_SQLITE_INDEX_PATH])
{
    /* Never ":memory:" or "file:", which have a meaning. */
    snprintf(out, AH_SQLITE_INDEX_PATH, "%s%s-search", c->file.path[0] == '/' ? "" : "./",
             c->file.path);
}

ah_status ah_sqlite_index_open(ah_sqlite_index *x, ah_sqlite_core *c, int wait_ms, ah_err *err)
{
    bool made;

    memset(x, 0, sizeof *x);
    x->core = c;
    x->table = -1;
    ah_buf_init(&x->said, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&x->row, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&x->behind, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&x->suspicious, &ah_mem_libc, SIZE_MAX);
    set_path(c, x->path);
    if (!c->lib.compileoption_used("ENABLE_FTS5") || c->lib.libversion_number() < NEEDED_VERSION)
        return ah_err_set(
            err, AH_USAGE, "a search needs SQLite 3.27 or later with FTS5; this is %s%s",
            c->lib.libversion(), c->lib.compileoption_used("ENABLE_FTS5") ? "" : " without FTS5");
    if (!ah_store_file_make(x->path, &made))
        return ah_err_set(err, AH_STORE, "the search index %s cannot be made: %s", x->path,
                          strerror(errno));
    return connect(x, wait_ms, err);
}

void ah_sqlite_index_close(ah_sqlite_index *x)
{
    const ah_sqlite *lib = &x->core->lib;

    if (x->begun)
        run(x, AH_SQLITE_INDEX_ROLLBACK);
    for (int i = 0; i < AH_SQLITE_INDEX_N; i++)
        lib->finalize(x->statement[i]);
    pthread_mutex_lock(&x->core->database);
    for (int i = AH_SQLITE_INDEX_N; i < AH_SQLITE_INDEX_ALL; i++)
        lib->finalize(x->statement[i]);
    pthread_mutex_unlock(&x->core->database);
    lib->finalize(x->add);
    if (x->db)
        lib->close(x->db);
    ah_buf_clear(&x->said);
    ah_buf_clear(&x->row);
    ah_buf_clear(&x->behind);
    ah_buf_clear(&x->suspicious);
}

/* -- transactions ----------------------------------------------------------------------------- */

static ah_status begin(ah_sqlite_index *x, ah_err *err)
{
    x->begun = run(x, AH_SQLITE_INDEX_BEGIN);
    x->pending = 0;
    return x->begun ? AH_OK : ah_sqlite_index_fails(x, err);
}

/* A failure leaves the transaction to ah_sqlite_index_close. */
static ah_status commit(ah_sqlite_index *x, ah_err *err)
{
    if (!run(x, AH_SQLITE_INDEX_COMMIT))
        return ah_sqlite_index_fails(x, err);
    x->begun = false;
    return AH_OK;
}

/* -- out of the index ------------------------------------------------------------------------- */

static int table_of(int64_t stream)
{
    return (int)(stream & (AH_SQLITE_TABLES - 1));
}

/* Empties the table of a stream. Expects a transaction. */
static ah_status empty_table(ah_sqlite_index *x, int64_t stream, ah_err *err)
{
    int table = table_of(stream);
    char text[80];

    snprintf(text, sizeof text, "INSERT INTO words_%d(words_%d) VALUES('delete-all')", table,
             table);
    ah_sqlite_index_int(x, AH_SQLITE_FORGET_STREAMS, 1, table);
    ah_sqlite_index_int(x, AH_SQLITE_FORGET_ENTRIES, 1, table);
    return carry_out(x, text) && run(x, AH_SQLITE_FORGET_STREAMS) &&
                   run(x, AH_SQLITE_FORGET_ENTRIES)
               ? AH_OK
               : ah_sqlite_index_fails(x, err);
}

/* A stream and its last record, in the index or in the store. */
typedef struct progress {
    int64_t stream, last; /* last: 0: not at all */
    unsigned char hash[AH_SHA256_BYTES];
} progress;

static void copy_hash(ah_slice hash, unsigned char out[AH_SHA256_BYTES])
{
    memset(out, 0, AH_SHA256_BYTES);
    if (hash.n == AH_SHA256_BYTES)
        memcpy(out, hash.p, hash.n);
}

/* *same: the store still has the record up to which the stream is indexed. */
static ah_status compare(ah_sqlite_index *x, const progress *p, bool *same, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_HASH_OF;
    ah_status st = AH_OK;
    ah_slice hash;
    int rc;

    *same = false;
    if (p->stream < 1 || p->stream > AH_SQLITE_MAX_STREAM || p->last < 1 ||
        p->last > AH_SQLITE_MAX_NUMBER)
        return AH_OK;
    pthread_mutex_lock(&x->core->database);
    ah_sqlite_index_int(x, S, 1, AH_SQLITE_ROW(p->stream, p->last));
    if ((rc = ah_sqlite_index_step(x, S)) == SQLITE_ROW) {
        hash = ah_sqlite_index_text(x, S, 0);
        *same = hash.n == sizeof p->hash && memcmp(hash.p, p->hash, hash.n) == 0;
    } else if (rc != SQLITE_DONE) {
        st = source_fails(x, err);
    }
    ah_sqlite_index_reset(x, S);
    pthread_mutex_unlock(&x->core->database);
    return st;
}

/* -- into the index --------------------------------------------------------------------------- */

/* A text that was read, before its bytes in ah_sqlite_index.said. */
typedef struct item {
    int64_t record, time;
    size_t entry, n;
} item;

typedef struct reading {
    ah_sqlite_index *x;
    int64_t record, time;
} reading;

static ah_status keep_text(void *ud, const ah_store_said *s, ah_err *err)
{
    const reading *r = ud;
    item i = {.record = r->record, .time = r->time, .entry = s->entry, .n = s->text.n};

    ah_buf_add(&r->x->said, &i, sizeof i);
    ah_buf_put(&r->x->said, s->text);
    return ah_buf_ok(&r->x->said) ? AH_OK : ah_err_nomem(err);
}

/* Keeps the texts of the row that was read, and adds its bytes to *bytes. A damaged row has none.
 */
static ah_status read_row(ah_sqlite_index *x, int64_t record, size_t *bytes, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_ROWS;
    reading r = {.x = x, .record = record, .time = ah_sqlite_index_number(x, S, 1)};
    ah_slice kind = ah_sqlite_index_text(x, S, 2);
    ah_store_text text;
    ah_status st;

    if (!ah_store_may_say(kind, record & AH_SQLITE_MAX_NUMBER))
        return AH_OK;
    text = (ah_store_text){ah_sqlite_index_text(x, S, 4), ah_sqlite_index_text(x, S, 5)};
    ah_buf_reset(&x->row, 0);
    st = ah_sqlite_join(x->core, record & AH_SQLITE_MAX_NUMBER, &text, &x->row, err);
    if (!ah_buf_ok(&x->row))
        return ah_err_nomem(err);
    if (st != AH_OK)
        return st == AH_STORE ? AH_OK : st;
    *bytes += x->row.len;
    return ah_store_say(kind, ah_buf_slice(&x->row), keep_text, &r, err);
}

/* Reads rows behind p->last, which becomes the last one that was read. */
static ah_status read_rows(ah_sqlite_index *x, progress *p, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_ROWS;
    ah_status st = AH_OK;
    int rc = SQLITE_ROW;
    size_t bytes = 0;
    int64_t record;

    ah_buf_reset(&x->said, 0);
    pthread_mutex_lock(&x->core->database);
    ah_sqlite_index_int(x, S, 1, AH_SQLITE_ROW(p->stream, p->last + 1));
    ah_sqlite_index_int(x, S, 2, AH_SQLITE_ROW(p->stream, AH_SQLITE_MAX_NUMBER));
    while (st == AH_OK && bytes < PART && (rc = ah_sqlite_index_step(x, S)) == SQLITE_ROW) {
        record = ah_sqlite_index_number(x, S, 0);
        p->last = record & AH_SQLITE_MAX_NUMBER;
        copy_hash(ah_sqlite_index_text(x, S, 3), p->hash);
        st = read_row(x, record, &bytes, err);
    }
    x->read += bytes;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        st = source_fails(x, err);
    ah_sqlite_index_reset(x, S);
    pthread_mutex_unlock(&x->core->database);
    return st;
}

/* Adds a text to `entries`, and sets *number to its number in the table. */
static bool add_entry(ah_sqlite_index *x, const item *i, int table, int64_t *number)
{
    const ah_sqlite_index_statement S = AH_SQLITE_ADD_ENTRY;
    const int64_t most = INT64_C(1) << 58;
    int64_t n = i->time < TIME_UNIT ? 1 : i->time > most ? most / TIME_UNIT : i->time / TIME_UNIT;
    bool ok = true, free = false;

    if (n >= x->numbers[table].from && n < x->numbers[table].next)
        n = x->numbers[table].next;
    else
        x->numbers[table].from = n;
    for (; ok && !free; n++) {
        ah_sqlite_index_int(x, S, 1, n << AH_SQLITE_TABLE_BITS | table);
        ah_sqlite_index_int(x, S, 2, i->record);
        ah_sqlite_index_int(x, S, 3, (int64_t)i->entry);
        ok = run(x, S);
        free = ok && x->core->lib.changes(x->db) > 0;
        *number = n;
    }
    x->numbers[table].next = n;
    return ok;
}

/* Prepares the statement that adds a text to a table. */
static bool use_table(ah_sqlite_index *x, int table)
{
    const ah_sqlite *lib = &x->core->lib;
    char text[80];

    if (x->table == table)
        return true;
    lib->finalize(x->add);
    x->add = NULL;
    snprintf(text, sizeof text, "INSERT INTO words_%d(rowid, text) VALUES(?1, ?2)", table);
    x->table = lib->prepare_v2(x->db, text, -1, &x->add, NULL) == SQLITE_OK ? table : -1;
    return x->table == table;
}

static bool add_text(ah_sqlite_index *x, const item *i, ah_slice text)
{
    const ah_sqlite *lib = &x->core->lib;
    int table = table_of(i->record >> AH_SQLITE_NUMBER_BITS), rc;
    int64_t number;

    if (!use_table(x, table) || !add_entry(x, i, table, &number))
        return false;
    lib->bind_int64(x->add, 1, number);
    lib->bind_text(x->add, 2, text.p, (int)text.n, SQLITE_STATIC);
    rc = lib->step(x->add);
    lib->reset(x->add);
    return rc == SQLITE_DONE;
}

/* Adds the texts that were read. */
static bool add_texts(ah_sqlite_index *x)
{
    ah_slice rest = ah_buf_slice(&x->said);
    bool ok = true;
    item i;

    while (ok && rest.n > 0) {
        memcpy(&i, rest.p, sizeof i);
        rest.p += sizeof i;
        ok = add_text(x, &i, (ah_slice){rest.p, i.n});
        rest.p += i.n;
        rest.n -= sizeof i + i.n;
        x->pending += i.n;
    }
    return ok;
}

static ah_status find_progress(ah_sqlite_index *x, int64_t stream, progress *out, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_PROGRESS;
    int rc;

    *out = (progress){.stream = stream};
    ah_sqlite_index_int(x, S, 1, stream);
    if ((rc = ah_sqlite_index_step(x, S)) == SQLITE_ROW) {
        out->last = ah_sqlite_index_number(x, S, 0);
        copy_hash(ah_sqlite_index_text(x, S, 1), out->hash);
    }
    ah_sqlite_index_reset(x, S);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? AH_OK : ah_sqlite_index_fails(x, err);
}

static ah_status set_progress(ah_sqlite_index *x, const progress *p, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_SET_PROGRESS;

    ah_sqlite_index_int(x, S, 1, p->stream);
    ah_sqlite_index_int(x, S, 2, p->last);
    x->core->lib.bind_blob(x->statement[S], 3, p->hash, sizeof p->hash, SQLITE_STATIC);
    return run(x, S) ? AH_OK : ah_sqlite_index_fails(x, err);
}

/* Indexes a part of what the stream has behind *p. Expects a transaction. */
static ah_status index_part(ah_sqlite_index *x, progress *p, ah_err *err)
{
    int64_t before = p->last;
    ah_status st = read_rows(x, p, err);

    if (st != AH_OK || p->last == before)
        return st;
    return add_texts(x) ? set_progress(x, p, err) : ah_sqlite_index_fails(x, err);
}

/* Begins to index a stream: finds how far it is, and empties its table if it is not the stream that
 * was indexed. */
static ah_status begin_stream(ah_sqlite_index *x, int64_t stream, progress *out, ah_err *err)
{
    bool same = true;
    ah_status st = find_progress(x, stream, out, err);

    if (st == AH_OK && out->last > 0)
        st = compare(x, out, &same, err);
    if (st != AH_OK || same)
        return st;
    out->last = 0;
    return empty_table(x, stream, err);
}

/* -- all streams ------------------------------------------------------------------------------ */

/* Lists the conversations of the store, with their last records, as if all were behind. */
static ah_status list_streams(ah_sqlite_index *x, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_STREAMS;
    ah_status st = AH_OK;
    progress p;
    int rc;

    ah_buf_reset(&x->behind, 0);
    pthread_mutex_lock(&x->core->database);
    while ((rc = ah_sqlite_index_step(x, S)) == SQLITE_ROW) {
        p = (progress){.stream = ah_sqlite_index_number(x, S, 0),
                       .last = ah_sqlite_index_number(x, S, 1) & AH_SQLITE_MAX_NUMBER};
        copy_hash(ah_sqlite_index_text(x, S, 2), p.hash);
        ah_buf_add(&x->behind, &p, sizeof p);
    }
    if (rc != SQLITE_DONE)
        st = source_fails(x, err);
    ah_sqlite_index_reset(x, S);
    pthread_mutex_unlock(&x->core->database);
    if (!ah_buf_ok(&x->behind))
        return ah_err_nomem(err);
    return st;
}

/* Returns the number of streams in a list. */
static size_t count(const ah_buf *list)
{
    return list->len / sizeof(progress);
}

static progress *stream_at(const ah_buf *list, size_t i)
{
    return (progress *)(void *)list->data + i;
}

/* Compares a stream of the index with that of the store. */
static void take_indexed(ah_sqlite_index *x, const progress *indexed, progress *there)
{
    if (there && there->last > indexed->last)
        return; /* compared when it is indexed */
    if (!there || there->last != indexed->last ||
        memcmp(there->hash, indexed->hash, sizeof there->hash) != 0)
        ah_buf_add(&x->suspicious, indexed, sizeof *indexed);
    if (there)
        there->last = 0;
}

/* Leaves in the lists what is to be done; the last record of a stream that is indexed becomes 0.
 * Both lists have the order of ids. */
static ah_status find_behind(ah_sqlite_index *x, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_INDEXED;
    ah_status st = list_streams(x, err);
    size_t at = 0, n = count(&x->behind);
    progress p;
    int rc;

    if (st != AH_OK)
        return st;
    ah_buf_reset(&x->suspicious, 0);
    while ((rc = ah_sqlite_index_step(x, S)) == SQLITE_ROW) {
        p = (progress){.stream = ah_sqlite_index_number(x, S, 0),
                       .last = ah_sqlite_index_number(x, S, 1)};
        copy_hash(ah_sqlite_index_text(x, S, 2), p.hash);
        while (at < n && stream_at(&x->behind, at)->stream < p.stream)
            at++;
        take_indexed(x, &p,
                     at < n && stream_at(&x->behind, at)->stream == p.stream
                         ? stream_at(&x->behind, at)
                         : NULL);
    }
    ah_sqlite_index_reset(x, S);
    if (!ah_buf_ok(&x->suspicious))
        return ah_err_nomem(err);
    return rc == SQLITE_DONE ? AH_OK : ah_sqlite_index_fails(x, err);
}

/* Empties the tables of streams that are not what was indexed. Expects a transaction: what was
 * found before it may be different now. */
static ah_status empty_changed(ah_sqlite_index *x, ah_err *err)
{
    ah_status st = AH_OK;
    bool same;
    progress p;

    for (size_t i = 0; st == AH_OK && i < count(&x->suspicious); i++) {
        st = find_progress(x, stream_at(&x->suspicious, i)->stream, &p, err);
        if (st != AH_OK || p.last == 0)
            continue;
        if ((st = compare(x, &p, &same, err)) == AH_OK && !same)
            st = empty_table(x, p.stream, err);
    }
    return st;
}

/* True if the index has the part that it was opened for. */
static bool has_part(const ah_sqlite_index *x)
{
    return x->most > 0 && x->read >= x->most;
}

/* Indexes a stream up to `last`. Other processes get their turn between transactions. */
static ah_status index_stream(ah_sqlite_index *x, int64_t stream, int64_t last, ah_err *err)
{
    progress p;
    ah_status st = begin_stream(x, stream, &p, err);

    while (st == AH_OK && p.last < last && !has_part(x)) {
        int64_t before = p.last;

        if ((st = index_part(x, &p, err)) != AH_OK || p.last == before)
            return st;
        if (x->pending < SEARCH_PART)
            continue;
        if ((st = commit(x, err)) == AH_OK && (st = begin(x, err)) == AH_OK)
            st = begin_stream(x, stream, &p, err);
    }
    return st;
}

/* Table by table, as each has memory for what is not committed. */
static ah_status index_streams(ah_sqlite_index *x, bool *any, ah_err *err)
{
    ah_status st = AH_OK;

    for (int table = 0; table < AH_SQLITE_TABLES; table++)
        for (size_t i = 0; st == AH_OK && i < count(&x->behind) && !has_part(x); i++) {
            const progress *p = stream_at(&x->behind, i);

            if (p->last == 0 || table_of(p->stream) != table)
                continue;
            if (!x->begun)
                st = begin(x, err);
            if (st == AH_OK)
                st = index_stream(x, p->stream, p->last, err);
            *any = true;
        }
    return st;
}

/* Finds what is to be done, and empties tables. */
static ah_status prepare_streams(ah_sqlite_index *x, ah_err *err)
{
    ah_status st = find_behind(x, err);

    if (st == AH_OK && count(&x->suspicious) > 0 && (st = begin(x, err)) == AH_OK)
        st = empty_changed(x, err);
    return st;
}

/* The streams of an emptied table are behind in the next round. */
ah_status ah_sqlite_index_all(ah_sqlite_index *x, ah_err *err)
{
    enum { ROUNDS = 4 };
    bool any = true;
    ah_status st = AH_OK;

    for (int i = 0; st == AH_OK && any && i < ROUNDS && !has_part(x); i++) {
        if ((st = prepare_streams(x, err)) == AH_OK) {
            any = x->begun;
            st = index_streams(x, &any, err);
        }
        if (st == AH_OK && x->begun)
            st = commit(x, err);
    }
    return st;
}

ah_status ah_sqlite_index_next(ah_sqlite_core *c, bool *more, ah_err *err)
{
    ah_sqlite_index x;
    ah_status st;

    pthread_mutex_lock(&c->index);
    st = ah_sqlite_index_open(&x, c, AH_SQLITE_BUSY_MS, err);
    x.most = WAIT_PART;
    if (st == AH_OK)
        st = ah_sqlite_index_all(&x, err);
    *more = has_part(&x);
    ah_sqlite_index_close(&x);
    pthread_mutex_unlock(&c->index);
    return st;
}

static bool is_there(const ah_sqlite_core *c)
{
    char path[AH_SQLITE_INDEX_PATH];

    set_path(c, path);
    return access(path, F_OK) == 0;
}

ah_status ah_sqlite_index_clean(ah_sqlite_core *c, ah_err *err)
{
    ah_sqlite_index x;
    ah_status st;

    if (!is_there(c))
        return AH_OK;
    pthread_mutex_lock(&c->index);
    st = ah_sqlite_index_open(&x, c, AH_SQLITE_BUSY_MS, err);
    if (st == AH_OK)
        st = prepare_streams(&x, err);
    if (st == AH_OK && x.begun)
        st = commit(&x, err);
    ah_sqlite_index_close(&x);
    pthread_mutex_unlock(&c->index);
    return st;
}

/* -- while nothing else is to be done --------------------------------------------------------- */

static bool find_changed(ah_sqlite_core *c, int64_t *id, int64_t *last)
{
    bool found;

    pthread_mutex_lock(&c->database);
    found = ah_sqlite_find_changed(c, id, last);
    pthread_mutex_unlock(&c->database);
    return found;
}

static void set_indexed(ah_sqlite_core *c, int64_t id, int64_t last)
{
    pthread_mutex_lock(&c->database);
    ah_sqlite_set_indexed(c, id, last);
    pthread_mutex_unlock(&c->database);
}

/* Indexes until the transaction is full. */
static ah_status index_changed(ah_sqlite_index *x, ah_err *err)
{
    ah_status st = AH_OK;
    int64_t id, last, before;
    progress p;

    while (st == AH_OK && x->pending < IDLE_PART && find_changed(x->core, &id, &last)) {
        st = begin_stream(x, id, &p, err);
        before = p.last;
        if (st == AH_OK && p.last < last)
            st = index_part(x, &p, err);
        set_indexed(x->core, id, st == AH_OK && p.last > before ? p.last : last);
    }
    return st;
}

/* Waits for nothing, as appends would wait, too: a search brings in what is missing, and says what
 * is wrong. */
bool ah_sqlite_index_some(ah_sqlite_core *c)
{
    ah_sqlite_index x;
    int64_t id, last;
    ah_err err;
    ah_status st;

    if (!find_changed(c, &id, &last) || !ah_store_file_is_there(&c->file) ||
        pthread_mutex_trylock(&c->index) != 0)
        return false;
    st = ah_sqlite_index_open(&x, c, 0, &err);
    if (st == AH_OK && (st = begin(&x, &err)) == AH_OK && (st = index_changed(&x, &err)) == AH_OK)
        st = commit(&x, &err);
    ah_sqlite_index_close(&x);
    pthread_mutex_unlock(&c->index);
    return st == AH_OK && find_changed(c, &id, &last);
}

#endif
