/* A rank of texts: BM25, as FTS5 has it, but with weights of words that are given. FTS5's own
 * bm25() counts the texts of one table, and the index has 16. */
#include "io/store_sqlite_index.h"

#ifdef AH_WITH_SQLITE

#include "io/store_query.h"

/* The functions of the library for `rank`, which has no other way to them. */
typedef struct ranking {
    void (*result_double)(sqlite3_context *, double);
    double (*value_double)(sqlite3_value *);
} ranking;

static double length_of(const Fts5ExtensionApi *api, Fts5Context *fts)
{
    sqlite3_int64 rows = 0, tokens = 0;
    int n = 0;

    api->xRowCount(fts, &rows);
    api->xColumnTotalSize(fts, -1, &tokens);
    api->xColumnSize(fts, -1, &n);
    return tokens > 0 && rows > 0 ? (double)n * (double)rows / (double)tokens : 1;
}

static void rank(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *out, int n,
                 sqlite3_value **weight)
{
    static const double K1 = 1.2, B = 0.75;
    const ranking *r = api->xUserData(fts);
    double often[AH_STORE_QUERY_TERMS] = {0}, sum = 0, length = length_of(api, fts);
    int found = 0, phrase, column, offset;

    api->xInstCount(fts, &found);
    for (int i = 0; i < found; i++)
        if (api->xInst(fts, i, &phrase, &column, &offset) == SQLITE_OK &&
            phrase < AH_STORE_QUERY_TERMS)
            often[phrase]++;
    for (int i = 0; i < n && i < AH_STORE_QUERY_TERMS; i++)
        sum += r->value_double(weight[i]) * often[i] * (K1 + 1) /
               (often[i] + K1 * (1 - B + B * length));
    r->result_double(out, sum);
}

static void free_ranking(void *r)
{
    ah_free(&ah_mem_libc, r);
}

bool ah_sqlite_add_rank(ah_sqlite_index *x)
{
    const ah_sqlite *lib = &x->core->lib;
    ranking *r = ah_alloc(&ah_mem_libc, sizeof *r);
    sqlite3_stmt *s = NULL;
    fts5_api *api = NULL;
    int rc;

    if (!r)
        return false;
    *r = (ranking){lib->result_double, lib->value_double};
    rc = lib->prepare_v2(x->db, "SELECT fts5(?1)", -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = lib->bind_pointer(s, 1, (void *)&api, "fts5_api_ptr", NULL);
    if (rc == SQLITE_OK)
        lib->step(s);
    lib->finalize(s);
    if (!api) {
        free_ranking(r);
        return false;
    }
    return api->xCreateFunction(api, "agenthost_rank", r, rank, free_ranking) == SQLITE_OK;
}

#endif
