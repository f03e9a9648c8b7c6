/* The tables of a store. A new file gets them in one transaction before its log is a WAL, so that
 * the first page of the file itself always says what it is. `meta` has the format; user_version is
 * the least format that a reader must know, so an older agenthost refuses what it cannot read and
 * works with what it can. */
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FORMAT = 1 };

/* A record's id is the stream's times 2^32 plus its number. `hash`: io/store_hash.h. An append
 * changes no row of a stream, which saves a page. Messages that were taken stay as keys.
 * `said_cuts`, `kept_cuts`: io/store_cut.h. `users` of a blob: how many cuts of all records name
 * it, as a float. SQLite stores the integer 1 in less space than 2, so a second user would move the
 * body, and write all of its pages anew. Its `body` is null when it is erased. */
static const struct {
    const char *name, *text;
} objects[] = {
    {"blobs", "CREATE TABLE blobs(hash BLOB NOT NULL UNIQUE, users NOT NULL, body BLOB)"},
    {"checkpoints", "CREATE INDEX checkpoints ON records(id) WHERE kind = 'checkpoint'"},
    {"inbox", "CREATE TABLE inbox(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, key TEXT NOT "
              "NULL, kind TEXT NOT NULL, body TEXT NOT NULL, time INTEGER NOT NULL, taken INTEGER "
              "NOT NULL, UNIQUE(stream, key))"},
    {"inbox_open", "CREATE INDEX inbox_open ON inbox(stream, id) WHERE taken = 0"},
    {"meta", "CREATE TABLE meta(format INTEGER NOT NULL, written_by TEXT NOT NULL, readable_from "
             "INTEGER NOT NULL)"},
    {"records", "CREATE TABLE records(id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT "
                "NULL, hash BLOB NOT NULL, said_cuts BLOB, kept_cuts BLOB, said TEXT NOT NULL, "
                "kept BLOB)"},
    {"streams",
     "CREATE TABLE streams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, fence "
     "INTEGER NOT NULL, label TEXT, pid INTEGER, since INTEGER, machine TEXT, boot TEXT)"}};

enum { N_OBJECTS = sizeof objects / sizeof *objects };

/* Tables before their indexes. */
static const int in_order[N_OBJECTS] = {0, 2, 4, 5, 6, 1, 3};

static bool carry_out(ah_sqlite_core *c, const char *text)
{
    return c->lib.exec(c->db, text, NULL, NULL, NULL) == SQLITE_OK;
}

/* Sets *out to the number that a statement gives. */
static bool ask_number(ah_sqlite_core *c, const char *text, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    bool ok =
        c->lib.prepare_v2(c->db, text, -1, &s, NULL) == SQLITE_OK && c->lib.step(s) == SQLITE_ROW;

    if (ok)
        *out = c->lib.column_int64(s, 0);
    c->lib.finalize(s);
    return ok;
}

/* -- a new file */

static bool make_tables(ah_sqlite_core *c)
{
    char text[160];
    bool ok = true;

    for (int i = 0; ok && i < N_OBJECTS; i++)
        ok = carry_out(c, objects[in_order[i]].text);
    snprintf(text, sizeof text,
             "INSERT INTO meta VALUES(%d, '" AH_VERSION "', %d);"
             "PRAGMA application_id = %d; PRAGMA user_version = %d",
             FORMAT, AH_STORE_FILE_FORMAT, AH_STORE_FILE_ID, AH_STORE_FILE_FORMAT);
    return ok && carry_out(c, text);
}

/* Another process may do the same at this time: the one that comes second finds the tables. */
static bool make_store(ah_sqlite_core *c)
{
    int64_t n = 0;
    bool ok = carry_out(c, "BEGIN EXCLUSIVE") &&
              ask_number(c, "SELECT count(*) FROM sqlite_master", &n) &&
              (n > 0 || make_tables(c)) && carry_out(c, "COMMIT");

    if (!ok && !c->lib.get_autocommit(c->db))
        carry_out(c, "ROLLBACK");
    return ok;
}

/* -- the tables of an old one */

static ah_status no_store(ah_sqlite_core *c, const char *what, ah_err *err)
{
    return ah_err_set(err, AH_STORE,
                      "the store %s cannot be used: its tables are not those that agenthost made "
                      "(%s); use a copy of it",
                      c->file.path, what);
}

static bool is_object(ah_sqlite_core *c, sqlite3_stmt *s, int at)
{
    const char *text = c->lib.column_blob(s, 1);
    size_t n = (size_t)c->lib.column_bytes(s, 1);

    return at < N_OBJECTS && text && n == strlen(objects[at].text) &&
           memcmp(text, objects[at].text, n) == 0;
}

/* Compares all tables, indexes, views and triggers, as the statements would obey edited ones. */
static ah_status check_objects(ah_sqlite_core *c, ah_err *err)
{
    sqlite3_stmt *s = NULL;
    int n = 0, rc = c->lib.prepare_v2(c->db,
                                      "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL "
                                      "ORDER BY name",
                                      -1, &s, NULL);

    while (rc == SQLITE_OK && (rc = c->lib.step(s)) == SQLITE_ROW && is_object(c, s, n))
        n++, rc = SQLITE_OK;
    c->lib.finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return ah_sqlite_fails(c, "read", err);
    if (rc == SQLITE_ROW)
        return no_store(c, "one is changed, or there is another", err);
    return n == N_OBJECTS ? AH_OK : no_store(c, "one is missing", err);
}

static ah_status check_store(ah_sqlite_core *c, ah_err *err)
{
    int64_t id = 0, least = 0, format = 0;

    if (!ask_number(c, "PRAGMA application_id", &id) ||
        !ask_number(c, "PRAGMA user_version", &least))
        return ah_sqlite_fails(c, "read", err);
    if (id != AH_STORE_FILE_ID || least > AH_STORE_FILE_FORMAT)
        return no_store(c, "another program or a newer agenthost changes them", err);
    if (!ask_number(c, "SELECT format FROM meta", &format))
        return no_store(c, c->lib.errmsg(c->db), err);
    return format <= FORMAT ? check_objects(c, err) : AH_OK;
}

static ah_status prepare_statements(ah_sqlite_core *c, int from, int to, ah_err *err)
{
#define TEXT(id, text) text,
    static const char *const texts[] = {AH_SQLITE_STATEMENTS(TEXT) AH_SQLITE_STATEMENTS_KEEP(TEXT)};
#undef TEXT

    for (int i = from; i < to; i++)
        if (!c->statement[i] &&
            c->lib.prepare_v2(c->db, texts[i], -1, &c->statement[i], NULL) != SQLITE_OK)
            return no_store(c, c->lib.errmsg(c->db), err);
    return AH_OK;
}

ah_status ah_sqlite_prepare_keep(ah_sqlite_core *c, ah_err *err)
{
    return prepare_statements(c, AH_SQLITE_N, AH_SQLITE_ALL, err);
}

/* Asks for a WAL, and returns the code; *wal: there is one now. */
static int ask_wal(ah_sqlite_core *c, bool *wal)
{
    sqlite3_stmt *s = NULL;
    const char *mode = NULL;
    int rc = c->lib.prepare_v2(c->db, "PRAGMA journal_mode = WAL", -1, &s, NULL);

    if (rc == SQLITE_OK && (rc = c->lib.step(s)) == SQLITE_ROW)
        mode = c->lib.column_blob(s, 0);
    *wal = mode && c->lib.column_bytes(s, 0) == 3 && memcmp(mode, "wal", 3) == 0;
    c->lib.finalize(s);
    return rc & 0xff;
}

/* Fails where the file cannot have a WAL. While other processes open a new file, SQLite does not
 * wait for them here, so we do. */
static ah_status use_wal(ah_sqlite_core *c, ah_err *err)
{
    enum { TRIES = 500, PAUSE_NS = 10000000 };
    bool wal = false;
    int rc = SQLITE_BUSY;

    for (int i = 0; i < TRIES && rc == SQLITE_BUSY; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        rc = ask_wal(c, &wal);
    }
    if (rc == SQLITE_ROW && !wal)
        return ah_err_set(err, AH_STORE,
                          "the store %s cannot be opened: its filesystem has no shared memory "
                          "(SQLite's WAL); choose a folder on a disk of this machine",
                          c->file.path);
    return wal ? AH_OK : ah_sqlite_fails(c, "opened", err);
}

ah_status ah_sqlite_prepare(ah_sqlite_core *c, bool create, ah_err *err)
{
    int64_t n = 0;
    ah_status st;

    /* 256 KiB of pages; what a file says is not trusted. */
    if (!carry_out(c, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                      "PRAGMA cache_size = -256; PRAGMA temp_store = MEMORY") ||
        !ask_number(c, "SELECT count(*) FROM sqlite_master", &n) ||
        (n == 0 && create && !make_store(c)))
        return ah_sqlite_fails(c, "opened", err);
    if ((st = check_store(c, err)) != AH_OK || (st = use_wal(c, err)) != AH_OK)
        return st;
    if (!carry_out(c, "PRAGMA synchronous = NORMAL"))
        return ah_sqlite_fails(c, "opened", err);
    return prepare_statements(c, 0, AH_SQLITE_N, err);
}

#endif
