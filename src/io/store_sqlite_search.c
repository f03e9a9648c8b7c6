/* Searching the index: hits of its tables are merged by their ids, the newest first. The text of a
 * hit is read from its record, and FTS5 marks the words in it, in a table in memory. */
#include "io/store_sqlite_index.h"

#ifdef AH_WITH_SQLITE

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/store_query.h"
#include "io/store_said.h"

enum {
    MOST_RANKED = 10000, /* newest hits of which the best ones are first */
    MOST_COUNTED = 10000 /* texts of a word in a table, for the weight of the word */
};

typedef struct search {
    ah_sqlite_index index;
    const ah_store_search *q;
    ah_store_match match;
    sqlite3_stmt *table[AH_SQLITE_TABLES];
    int64_t head[AH_SQLITE_TABLES]; /* number of the next hit of each table; 0: none */
    sqlite3_stmt *put, *mark;
    ah_buf name, label, said, snippet;
} search;

static bool prepare(search *s, const char *text, sqlite3_stmt **out)
{
    return s->index.core->lib.prepare_v2(s->index.db, text, -1, out, NULL) == SQLITE_OK;
}

static bool bind_text(search *s, sqlite3_stmt *statement, ah_slice text)
{
    const ah_sqlite *lib = &s->index.core->lib;

    return text.n <= INT_MAX &&
           lib->bind_text(statement, 1, text.p, (int)text.n, SQLITE_STATIC) == SQLITE_OK;
}

static ah_status fails(search *s, ah_err *err)
{
    return ah_sqlite_index_fails(&s->index, err);
}

/* -- a hit ------------------------------------------------------------------------------------ */

/* Marks are made by FTS5, so they are where the index has found the words. */
static bool make_marker(search *s)
{
    return s->index.core->lib.exec(s->index.db,
                                   "CREATE VIRTUAL TABLE temp.hit USING fts5(text, "
                                   "tokenize='unicode61 remove_diacritics 2')",
                                   NULL, NULL, NULL) == SQLITE_OK &&
           prepare(s, "INSERT OR REPLACE INTO temp.hit(rowid, text) VALUES(1, ?1)", &s->put) &&
           prepare(s,
                   "SELECT snippet(hit, 0, char(2), char(3), '...', 24) FROM temp.hit "
                   "WHERE hit MATCH ?1",
                   &s->mark);
}

static ah_status mark(search *s, ah_slice text, ah_err *err)
{
    const ah_sqlite *lib = &s->index.core->lib;
    bool ok = bind_text(s, s->put, text) && lib->step(s->put) == SQLITE_DONE;

    lib->reset(s->put);
    ah_buf_reset(&s->snippet, 0);
    if (ok && bind_text(s, s->mark, ah_buf_slice(&s->match.text)) &&
        lib->step(s->mark) == SQLITE_ROW)
        ah_buf_add(&s->snippet, lib->column_blob(s->mark, 0),
                   (size_t)lib->column_bytes(s->mark, 0));
    lib->reset(s->mark);
    if (!ah_buf_ok(&s->snippet))
        return ah_err_nomem(err);
    return ok ? AH_OK : fails(s, err);
}

typedef struct wanted {
    search *s;
    size_t entry;
    const char *role; /* of the entry; NULL: it was not found */
} wanted;

static ah_status take_text(void *ud, const ah_store_said *said, ah_err *err)
{
    wanted *w = ud;

    if (said->entry != w->entry)
        return AH_OK;
    w->role = said->role;
    return mark(w->s, said->text, err);
}

/* Sets *id to the record and *entry to the entry of a text; 0: it has gone. */
static ah_status find_entry(search *s, int64_t text, int64_t *id, size_t *entry, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_ENTRY;
    int rc;

    *id = 0;
    ah_sqlite_index_int(&s->index, S, 1, text);
    if ((rc = ah_sqlite_index_step(&s->index, S)) == SQLITE_ROW) {
        *id = ah_sqlite_index_number(&s->index, S, 0);
        *entry = (size_t)ah_sqlite_index_number(&s->index, S, 1);
    }
    ah_sqlite_index_reset(&s->index, S);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? AH_OK : fails(s, err);
}

static void copy(ah_buf *out, ah_slice text)
{
    ah_buf_reset(out, 0);
    ah_buf_put(out, text);
}

/* Reads name and label of the stream. *found: it is there. */
static ah_status read_stream(search *s, int64_t id, ah_store_hit *out, bool *found, ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_STREAM_OF;
    ah_sqlite_index *x = &s->index;
    ah_slice label;
    int rc;

    pthread_mutex_lock(&x->core->database);
    ah_sqlite_index_int(x, S, 1, id >> AH_SQLITE_NUMBER_BITS);
    rc = ah_sqlite_index_step(x, S);
    if ((*found = rc == SQLITE_ROW)) {
        copy(&s->name, ah_sqlite_index_text(x, S, 0));
        label = ah_sqlite_index_text(x, S, 1);
        copy(&s->label, label);
        *out = (ah_store_hit){.number = id & AH_SQLITE_MAX_NUMBER};
        if (ah_buf_ok(&s->name))
            out->stream = ah_buf_slice(&s->name);
        if (ah_buf_ok(&s->label) && label.p)
            out->label = ah_buf_slice(&s->label);
    }
    ah_sqlite_index_reset(x, S);
    pthread_mutex_unlock(&x->core->database);
    if (!ah_buf_ok(&s->name) || !ah_buf_ok(&s->label))
        return ah_err_nomem(err);
    return *found || rc == SQLITE_DONE ? AH_OK : ah_sqlite_fails(x->core, "read", err);
}

/* Reads kind, time and said of a record into the buffers. *found: it is there, and sound. */
static ah_status read_record(search *s, int64_t id, ah_buf *kind, int64_t *time, bool *found,
                             ah_err *err)
{
    const ah_sqlite_index_statement S = AH_SQLITE_ROWS;
    ah_sqlite_index *x = &s->index;
    ah_store_text text;
    ah_status st = AH_OK;

    pthread_mutex_lock(&x->core->database);
    ah_sqlite_index_int(x, S, 1, id);
    ah_sqlite_index_int(x, S, 2, id);
    if ((*found = ah_sqlite_index_step(x, S) == SQLITE_ROW)) {
        *time = ah_sqlite_index_number(x, S, 1);
        copy(kind, ah_sqlite_index_text(x, S, 2));
        text = (ah_store_text){ah_sqlite_index_text(x, S, 4), ah_sqlite_index_text(x, S, 5)};
        ah_buf_reset(&s->said, 0);
        st = ah_sqlite_join(x->core, id & AH_SQLITE_MAX_NUMBER, &text, &s->said, err);
    }
    ah_sqlite_index_reset(x, S);
    pthread_mutex_unlock(&x->core->database);
    if (!ah_buf_ok(kind) || !ah_buf_ok(&s->said))
        return ah_err_nomem(err);
    *found = *found && st == AH_OK;
    return st == AH_STORE ? AH_OK : st; /* a damaged record has no hits */
}

/* Gives the entry of a record. */
static ah_status give_entry(search *s, int64_t id, size_t entry, ah_store_hit *hit, ah_err *err)
{
    wanted w = {.s = s, .entry = entry};
    bool found;
    ah_status st;
    ah_buf kind;

    ah_buf_init(&kind, &ah_mem_libc, SIZE_MAX);
    st = read_record(s, id, &kind, &hit->time, &found, err);
    if (st == AH_OK && found)
        st = ah_store_say(ah_buf_slice(&kind), ah_buf_slice(&s->said), take_text, &w, err);
    ah_buf_clear(&kind);
    if (st != AH_OK || !w.role)
        return st;
    hit->role = ah_slice_of(w.role);
    hit->snippet = ah_buf_slice(&s->snippet);
    return s->q->found(s->q->ud, hit, err);
}

/* A record that has gone from the store meanwhile is left out. */
static ah_status give(search *s, int64_t text, ah_err *err)
{
    ah_store_hit hit;
    bool found;
    size_t entry;
    int64_t id;
    ah_status st = find_entry(s, text, &id, &entry, err);

    if (st != AH_OK || id == 0)
        return st;
    st = read_stream(s, id, &hit, &found, err);
    if (st != AH_OK || !found || (s->q->wants && !s->q->wants(s->q->ud, hit.stream, hit.label)))
        return st;
    return give_entry(s, id, entry, &hit, err);
}

/* -- the tables ------------------------------------------------------------------------------- */

static bool advance(search *s, int table)
{
    const ah_sqlite *lib = &s->index.core->lib;
    int rc = lib->step(s->table[table]);

    s->head[table] = rc == SQLITE_ROW ? lib->column_int64(s->table[table], 0) : 0;
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

/* Returns the table with the newest hit; -1: there are no more. */
static int newest(const search *s)
{
    int best = -1;

    for (int i = 0; i < AH_SQLITE_TABLES; i++)
        if (s->head[i] && (best < 0 || s->head[i] > s->head[best]))
            best = i;
    return best;
}

/* Returns the id of the next hit of a table. */
static int64_t text_id(const search *s, int table)
{
    return (int64_t)((uint64_t)s->head[table] << AH_SQLITE_TABLE_BITS) | table;
}

/* Begins to search all tables. `more`: of the result of each row. */
static ah_status open_tables(search *s, const char *more, ah_err *err)
{
    enum { MAX_TEXT = 200 };
    char text[MAX_TEXT + (AH_STORE_QUERY_TERMS * 32)];

    for (int i = 0; i < AH_SQLITE_TABLES; i++) {
        snprintf(text, sizeof text, "SELECT rowid");
        if (more)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     ", agenthost_rank(words_%d%s)", i, more);
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 " FROM words_%d WHERE words_%d MATCH ?1 ORDER BY rowid DESC", i, i);
        if (!prepare(s, text, &s->table[i]) ||
            !bind_text(s, s->table[i], ah_buf_slice(&s->match.text)) || !advance(s, i))
            return fails(s, err);
    }
    return AH_OK;
}

static ah_status give_newest(search *s, ah_err *err)
{
    ah_status st = open_tables(s, NULL, err);
    int table;

    while (st == AH_OK && (table = newest(s)) >= 0)
        if ((st = give(s, text_id(s, table), err)) == AH_OK && !advance(s, table))
            st = fails(s, err);
    return st;
}

/* -- the best ones ---------------------------------------------------------------------------- */

typedef struct ranked {
    int64_t id;
    double rank;
} ranked;

/* The higher rank first, then the newer one. */
static int compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? 1 : -1;
    return x->id < y->id ? 1 : x->id > y->id ? -1 : 0;
}

/* Adds how many texts have the term, at most MOST_COUNTED of each table. */
static bool count_term(search *s, ah_slice term, double *n)
{
    const ah_sqlite *lib = &s->index.core->lib;
    char text[160];
    bool ok = true;

    for (int i = 0; ok && i < AH_SQLITE_TABLES; i++) {
        sqlite3_stmt *count = NULL;

        snprintf(text, sizeof text,
                 "SELECT count(*) FROM (SELECT 1 FROM words_%d WHERE words_%d MATCH ?1 LIMIT %d)",
                 i, i, MOST_COUNTED);
        ok =
            prepare(s, text, &count) && bind_text(s, count, term) && lib->step(count) == SQLITE_ROW;
        *n += ok ? (double)lib->column_int64(count, 0) : 0;
        lib->finalize(count);
    }
    return ok;
}

static bool count_texts(search *s, double *n)
{
    const ah_sqlite *lib = &s->index.core->lib;
    sqlite3_stmt *count = NULL;
    bool ok = prepare(s, "SELECT count(*) FROM entries", &count) && lib->step(count) == SQLITE_ROW;

    *n = ok ? (double)lib->column_int64(count, 0) : 0;
    lib->finalize(count);
    return ok;
}

/* Returns the weight of a term that n of all texts have: a logarithm, as in BM25. */
static int weight_of(double all, double n)
{
    double rare = 1 + (all > n ? all - n + 0.5 : 0.5) / (n + 0.5);
    int weight = 1;

    for (; rare > 1.1; rare /= 1.1)
        weight++;
    return weight;
}

/* Appends the weight of each term: the rarer, the more. A term alone needs none. */
static bool put_weights(search *s, ah_buf *out)
{
    double all = 0;
    bool ok = s->match.n == 1 || count_texts(s, &all);

    for (size_t i = 0; ok && i < s->match.n; i++) {
        double n = 0;

        ok = s->match.n == 1 || count_term(s, ah_store_match_term(&s->match, i), &n);
        ah_buf_fmt(out, ", %d", weight_of(all, n));
    }
    ah_buf_char(out, '\0');
    return ok;
}

/* Collects the newest hits with their ranks. */
static ah_status collect(search *s, ranked *list, size_t *n, ah_err *err)
{
    int table;

    while (*n < MOST_RANKED && (table = newest(s)) >= 0) {
        list[(*n)++] =
            (ranked){text_id(s, table), s->index.core->lib.column_double(s->table[table], 1)};
        if (!advance(s, table))
            return fails(s, err);
    }
    return AH_OK;
}

static ah_status give_best(search *s, ah_err *err)
{
    ranked *list = ah_alloc(&ah_mem_libc, MOST_RANKED * sizeof *list);
    size_t n = 0;
    ah_status st = AH_OK;
    ah_buf weights;

    ah_buf_init(&weights, &ah_mem_libc, SIZE_MAX);
    if (!list || !ah_sqlite_add_rank(&s->index))
        st = list ? fails(s, err) : ah_err_nomem(err);
    else if (!put_weights(s, &weights))
        st = fails(s, err);
    if (!ah_buf_ok(&weights))
        st = ah_err_nomem(err);
    if (st == AH_OK && (st = open_tables(s, weights.data, err)) == AH_OK)
        st = collect(s, list, &n, err);
    ah_buf_clear(&weights);
    if (n > 0)
        qsort(list, n, sizeof *list, compare);
    for (size_t i = 0; st == AH_OK && i < n; i++)
        st = give(s, list[i].id, err);
    ah_free(&ah_mem_libc, list);
    return st;
}

/* -- a search --------------------------------------------------------------------------------- */

static void clear(search *s)
{
    const ah_sqlite *lib = &s->index.core->lib;

    for (int i = 0; i < AH_SQLITE_TABLES; i++)
        lib->finalize(s->table[i]);
    lib->finalize(s->put);
    lib->finalize(s->mark);
    ah_sqlite_index_close(&s->index);
    ah_buf_clear(&s->name);
    ah_buf_clear(&s->label);
    ah_buf_clear(&s->said);
    ah_buf_clear(&s->snippet);
}

/* Expects the lock `index`. */
static ah_status search_index(search *s, ah_sqlite_core *c, ah_err *err)
{
    ah_status st = ah_sqlite_index_open(&s->index, c, AH_SQLITE_BUSY_MS, err);

    if (st == AH_OK)
        st = ah_sqlite_index_all(&s->index, err);
    if (st == AH_OK && !make_marker(s))
        st = fails(s, err);
    if (st == AH_OK)
        st = s->q->best ? give_best(s, err) : give_newest(s, err);
    clear(s);
    return st;
}

ah_status ah_sqlite_search(ah_sqlite_core *c, const ah_store_search *q, ah_err *err)
{
    search s = {.q = q};
    ah_status st = ah_store_match_read(q->words, &s.match, err);

    ah_buf_init(&s.name, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&s.label, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&s.said, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&s.snippet, &ah_mem_libc, SIZE_MAX);
    if (st == AH_OK) {
        pthread_mutex_lock(&c->index);
        st = search_index(&s, c, err);
        pthread_mutex_unlock(&c->index);
    }
    ah_store_match_clear(&s.match);
    return st;
}

#endif
