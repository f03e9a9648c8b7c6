/* Removing, erasing, measuring and verifying streams, one after the other, under the lock of the
 * connection. What rows had stays in free places of pages, where SQLite may have copies that
 * secure_delete does not know, so only writing the file anew removes it: that is ah_sqlite_purge.
 */
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

#include <stdio.h>
#include <sys/stat.h>

enum { LARGE_FILE = 64 << 20 }; /* a larger one is not written anew in memory */

/* -- rows ------------------------------------------------------------------------------------- */

/* A row with the hash that is stored in it. */
typedef struct raw {
    ah_store_row row;
    int64_t id;
    ah_slice hash;
} raw;

static ah_status bind_rows(ah_sqlite_core *c, int64_t id, int64_t below, ah_err *err)
{
    ah_status st = ah_sqlite_prepare_keep(c, err);
    int64_t last = below > AH_SQLITE_MAX_NUMBER ? AH_SQLITE_MAX_NUMBER : below - 1;

    if (st != AH_OK)
        return st;
    ah_sqlite_int(c, AH_SQLITE_RAW, 1, AH_SQLITE_ROW(id, 0));
    ah_sqlite_int(c, AH_SQLITE_RAW, 2, AH_SQLITE_ROW(id, last));
    return AH_OK;
}

/* Takes the next row; its slices are valid until the next call. */
static bool next_row(ah_sqlite_core *c, int *rc, raw *out)
{
    const ah_sqlite_statement S = AH_SQLITE_RAW;

    if ((*rc = ah_sqlite_step(c, S)) != SQLITE_ROW)
        return false;
    out->id = ah_sqlite_column(c, S, 0);
    out->hash = ah_sqlite_column_text(c, S, 3);
    out->row =
        (ah_store_row){.number = out->id & AH_SQLITE_MAX_NUMBER,
                       .time = ah_sqlite_column(c, S, 1),
                       .kind = ah_sqlite_column_text(c, S, 2),
                       .said = {ah_sqlite_column_text(c, S, 4), ah_sqlite_column_text(c, S, 6)},
                       .kept = {ah_sqlite_column_text(c, S, 5), ah_sqlite_column_text(c, S, 7)}};
    return true;
}

/* Ends the reading of rows, with the status so far. */
static ah_status end_rows(ah_sqlite_core *c, int rc, ah_status st, ah_err *err)
{
    if (st == AH_OK && rc != SQLITE_DONE)
        st = ah_sqlite_fails(c, "read", err);
    ah_sqlite_reset(c, AH_SQLITE_RAW);
    return st;
}

/* -- removing and erasing --------------------------------------------------------------------- */

/* Takes a text off the users of its blobs. */
static ah_status leave_blobs(ah_sqlite_core *c, const ah_store_text *t, ah_err *err)
{
    ah_slice cuts = t->cuts;
    ah_store_cut cut;
    bool ok = true;

    if (ah_store_text_erased(t))
        return AH_OK;
    while (ok && ah_store_cut_next(&cuts, &cut)) {
        ah_sqlite_blob(c, AH_SQLITE_DROP_BLOB, 1, cut.hash);
        ok = ah_sqlite_run(c, AH_SQLITE_DROP_BLOB);
        if (ok && c->lib.changes(c->db) == 0) {
            ah_sqlite_blob(c, AH_SQLITE_LEAVE_BLOB, 1, cut.hash);
            ok = ah_sqlite_run(c, AH_SQLITE_LEAVE_BLOB);
        }
    }
    return ok ? AH_OK : ah_sqlite_fails(c, "written", err);
}

static ah_status leave_all_blobs(ah_sqlite_core *c, int64_t id, ah_err *err)
{
    ah_status st = bind_rows(c, id, INT64_MAX, err);
    int rc = SQLITE_ROW;
    raw r;

    if (st != AH_OK)
        return st;
    while (st == AH_OK && next_row(c, &rc, &r))
        if ((st = leave_blobs(c, &r.row.said, err)) == AH_OK)
            st = leave_blobs(c, &r.row.kept, err);
    return end_rows(c, rc, st, err);
}

static bool drop_rows(ah_sqlite_core *c, int64_t id)
{
    ah_sqlite_int(c, AH_SQLITE_DROP_RECORDS, 1, AH_SQLITE_ROW(id, 0));
    ah_sqlite_int(c, AH_SQLITE_DROP_RECORDS, 2, AH_SQLITE_ROW(id, AH_SQLITE_MAX_NUMBER));
    ah_sqlite_int(c, AH_SQLITE_DROP_INBOX, 1, id);
    ah_sqlite_int(c, AH_SQLITE_DROP_STREAM, 1, id);
    return ah_sqlite_run(c, AH_SQLITE_DROP_RECORDS) && ah_sqlite_run(c, AH_SQLITE_DROP_INBOX) &&
           ah_sqlite_run(c, AH_SQLITE_DROP_STREAM);
}

/* Expects a transaction. */
static ah_status remove_stream(ah_sqlite_core *c, ah_slice stream, ah_err *err)
{
    int64_t id;
    ah_status st = ah_sqlite_check_free(c, stream, &id, err);

    if (st != AH_OK)
        return st;
    if (id == 0)
        return ah_err_set(err, AH_USAGE, "there is no stream \"%.*s\" in the store",
                          AH_FMT(stream));
    if ((st = leave_all_blobs(c, id, err)) != AH_OK)
        return st;
    return drop_rows(c, id) ? AH_OK : ah_sqlite_fails(c, "written", err);
}

/* Ends a transaction with the status of what was done in it. */
static ah_status end(ah_sqlite_core *c, ah_status st, ah_err *err)
{
    if (st == AH_OK && !ah_sqlite_commit(c, false))
        st = ah_sqlite_fails(c, "written", err);
    if (st != AH_OK)
        ah_sqlite_rollback(c, false);
    return st;
}

ah_status ah_sqlite_remove(ah_sqlite_core *c, ah_slice stream, ah_err *err)
{
    if (!ah_sqlite_begin(c, false))
        return ah_sqlite_fails(c, "written", err);
    return end(c, remove_stream(c, stream, err), err);
}

/* The row is changed last, since its slices end with that. */
static ah_status erase_kept(ah_sqlite_core *c, const raw *r, ah_err *err)
{
    unsigned char hash[AH_SHA256_BYTES];
    ah_status st = leave_blobs(c, &r->row.kept, err);

    if (st != AH_OK)
        return st;
    ah_store_hash_text(&r->row.kept, hash);
    ah_sqlite_int(c, AH_SQLITE_ERASE, 1, r->id);
    ah_sqlite_blob(c, AH_SQLITE_ERASE, 2, (ah_slice){(const char *)hash, sizeof hash});
    return ah_sqlite_run(c, AH_SQLITE_ERASE) ? AH_OK : ah_sqlite_fails(c, "written", err);
}

ah_status ah_sqlite_erase(ah_sqlite_core *c, int64_t id, int64_t below, int64_t older, int64_t *n,
                          ah_err *err)
{
    int rc = SQLITE_ROW;
    ah_status st;
    raw r;

    if (!ah_sqlite_begin(c, false))
        return ah_sqlite_fails(c, "written", err);
    if ((st = bind_rows(c, id, below, err)) == AH_OK) {
        while (st == AH_OK && next_row(c, &rc, &r)) {
            if (!r.row.kept.rest.p || ah_store_text_erased(&r.row.kept) || r.row.time >= older)
                continue;
            st = erase_kept(c, &r, err);
            ++*n;
        }
        st = end_rows(c, rc, st, err);
    }
    return end(c, st, err);
}

/* -- writing anew ------------------------------------------------------------------------------ */

static int64_t bytes_of(const ah_sqlite_core *c, const char *ending)
{
    char name[AH_STORE_FILE_PATH + 16];
    struct stat s;

    snprintf(name, sizeof name, "%s%s", c->file.path, ending);
    return stat(name, &s) == 0 ? (int64_t)s.st_size : 0;
}

static bool write_anew(ah_sqlite_core *c)
{
    bool large = bytes_of(c, "") > LARGE_FILE, ok;

    if (large)
        c->lib.exec(c->db, "PRAGMA temp_store = FILE", NULL, NULL, NULL);
    ok = c->lib.exec(c->db, "VACUUM", NULL, NULL, NULL) == SQLITE_OK;
    if (large)
        c->lib.exec(c->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    return ok;
}

/* The log has the pages as they were, until it is empty. */
ah_status ah_sqlite_purge(ah_sqlite_core *c, ah_err *err)
{
    int rc;

    if (!ah_store_file_is_there(&c->file))
        return ah_err_set(err, AH_STORE, "the store %s was removed, moved or replaced",
                          c->file.path);
    if (!write_anew(c))
        return ah_sqlite_fails(c, "written", err);
    rc = c->lib.wal_checkpoint_v2(c->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc == SQLITE_OK) {
        c->frames = 0;
        return AH_OK;
    }
    if ((rc & 0xff) != SQLITE_BUSY)
        return ah_sqlite_fails(c, "written", err);
    return ah_err_set(err, AH_STORE,
                      "what was deleted is still in the log of the store %s, which another process "
                      "has been using for %d s: do agenthost store gc later",
                      c->file.path, AH_SQLITE_BUSY_MS / 1000);
}

/* -- measuring -------------------------------------------------------------------------------- */

static int64_t length_of(const ah_store_text *t)
{
    ah_slice cuts = t->cuts;
    int64_t n = (int64_t)t->rest.n;
    ah_store_cut cut;

    while (!ah_store_text_erased(t) && ah_store_cut_next(&cuts, &cut))
        n += (int64_t)cut.n;
    return n;
}

ah_status ah_sqlite_measure(ah_sqlite_core *c, int64_t id, ah_store_size *out, ah_err *err)
{
    ah_status st = bind_rows(c, id, INT64_MAX, err);
    int rc = SQLITE_ROW;
    raw r;

    if (st != AH_OK)
        return st;
    while (next_row(c, &rc, &r)) {
        if (out->records++ == 0)
            out->oldest = r.row.time;
        out->bytes += length_of(&r.row.said) + length_of(&r.row.kept);
        out->erased += ah_store_text_erased(&r.row.said) || ah_store_text_erased(&r.row.kept);
    }
    return end_rows(c, rc, AH_OK, err);
}

ah_status ah_sqlite_measure_all(ah_sqlite_core *c, ah_store_size *out, ah_err *err)
{
    ah_status st = ah_sqlite_prepare_keep(c, err);
    int rc;

    if (st != AH_OK)
        return st;
    if ((rc = ah_sqlite_step(c, AH_SQLITE_BLOBS)) == SQLITE_ROW) {
        out->blobs = ah_sqlite_column(c, AH_SQLITE_BLOBS, 0);
        out->blob_bytes = ah_sqlite_column(c, AH_SQLITE_BLOBS, 1);
    }
    ah_sqlite_reset(c, AH_SQLITE_BLOBS);
    out->file = bytes_of(c, "") + bytes_of(c, "-wal") + bytes_of(c, "-search");
    return rc == SQLITE_ROW ? AH_OK : ah_sqlite_fails(c, "read", err);
}

/* -- verifying -------------------------------------------------------------------------------- */

static void note(ah_store_audit *a, ah_store_fault fault, int64_t at, const char *what)
{
    if (a->fault != AH_STORE_SOUND)
        return;
    a->fault = fault;
    a->at = at;
    a->what = what;
}

/* Returns what is wrong with a blob, or NULL. Sets *erased if it is. */
static const char *check_blob(ah_sqlite_core *c, const ah_store_cut *cut, bool *erased, int *rc)
{
    const ah_sqlite_statement S = AH_SQLITE_READ_BLOB;
    unsigned char hash[AH_SHA256_BYTES];
    const char *what = NULL;
    ah_slice body;

    ah_sqlite_blob(c, S, 1, cut->hash);
    if ((*rc = ah_sqlite_step(c, S)) == SQLITE_ROW) {
        body = ah_sqlite_column_text(c, S, 0);
        ah_store_hash_bytes(body.p ? body : ah_slice_of(""), hash);
        if (!body.p)
            *erased = true;
        else if (body.n != cut->n || memcmp(hash, cut->hash.p, sizeof hash) != 0)
            what = "a long string of it was changed";
    } else if (*rc == SQLITE_DONE) {
        what = "a long string of it is missing";
    }
    ah_sqlite_reset(c, S);
    return what;
}

static ah_status check_blobs(ah_sqlite_core *c, const raw *r, const ah_store_text *t, bool *erased,
                             ah_store_audit *a, ah_err *err)
{
    ah_slice cuts = t->cuts;
    ah_store_cut cut;
    const char *what;
    int rc;

    if (ah_store_text_erased(t)) {
        *erased = true;
        return AH_OK;
    }
    while (ah_store_cut_next(&cuts, &cut)) {
        what = check_blob(c, &cut, erased, &rc);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return ah_sqlite_fails(c, "read", err);
        if (what)
            note(a, AH_STORE_CHANGED, r->row.number, what);
    }
    return AH_OK;
}

static ah_status check_row(ah_sqlite_core *c, const raw *r, ah_store_audit *a, ah_err *err)
{
    unsigned char hash[AH_SHA256_BYTES];
    bool erased = false;
    ah_status st;

    memcpy(hash, a->head, sizeof hash);
    if (r->row.number != a->last + 1)
        note(a, AH_STORE_MISSING, a->last + 1, "it is missing, and later ones are there");
    ah_store_hash_on(hash, &r->row);
    if (r->hash.n != sizeof hash || memcmp(hash, r->hash.p, sizeof hash) != 0)
        note(a, AH_STORE_CHANGED, r->row.number, "it is not what was written");
    if ((st = check_blobs(c, r, &r->row.said, &erased, a, err)) == AH_OK)
        st = check_blobs(c, r, &r->row.kept, &erased, a, err);
    a->erased += erased;
    a->last = r->row.number;
    if (r->hash.n == sizeof a->head)
        memcpy(a->head, r->hash.p, sizeof a->head);
    if (a->expected.p && ah_slice_eq(r->hash, a->expected))
        a->found = r->row.number;
    return st;
}

ah_status ah_sqlite_verify(ah_sqlite_core *c, int64_t id, ah_store_audit *a, ah_err *err)
{
    ah_status st = bind_rows(c, id, INT64_MAX, err);
    int rc = SQLITE_ROW;
    raw r;

    *a = (ah_store_audit){.expected = a->expected};
    if (st != AH_OK)
        return st;
    while (st == AH_OK && next_row(c, &rc, &r))
        st = check_row(c, &r, a, err);
    return end_rows(c, rc, st, err);
}

#endif
