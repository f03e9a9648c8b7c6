/* Long strings of records: stored once by their hash with a count of users, in the transaction of
 * the record, and read again where the record is. */
#include "io/store_sqlite_core.h"

#ifdef AH_WITH_SQLITE

/* -- writing ---------------------------------------------------------------------------------- */

void ah_sqlite_cutter_init(ah_sqlite_cutter *k, ah_sqlite_core *c)
{
    k->core = c;
    k->n_hashed = 0;
    for (int i = 0; i < 2; i++) {
        ah_buf_init(&k->rest[i], &ah_mem_libc, SIZE_MAX);
        ah_buf_init(&k->cuts[i], &ah_mem_libc, SIZE_MAX);
    }
}

void ah_sqlite_cutter_clear(ah_sqlite_cutter *k)
{
    for (int i = 0; i < 2; i++) {
        ah_buf_clear(&k->rest[i]);
        ah_buf_clear(&k->cuts[i]);
    }
}

static ah_slice hash_of(ah_sqlite_cutter *k, ah_slice blob)
{
    size_t n = k->n_hashed < AH_SQLITE_HASHED ? k->n_hashed : AH_SQLITE_HASHED, at = 0;

    while (at < n && !ah_slice_eq(k->hashed[at].blob, blob))
        at++;
    if (at == n) {
        at = k->n_hashed++ % AH_SQLITE_HASHED;
        k->hashed[at].blob = blob;
        ah_store_hash_bytes(blob, k->hashed[at].hash);
    }
    return (ah_slice){(const char *)k->hashed[at].hash, AH_SHA256_BYTES};
}

static ah_status use_blob(ah_sqlite_core *c, ah_slice hash, ah_slice blob, ah_err *err)
{
    ah_sqlite_blob(c, AH_SQLITE_USE_BLOB, 1, hash);
    ah_sqlite_blob(c, AH_SQLITE_USE_BLOB, 2, blob);
    return ah_sqlite_run(c, AH_SQLITE_USE_BLOB) ? AH_OK : ah_sqlite_fails(c, "written", err);
}

/* Cuts one blob out of a text, whose part before the blob begins at `from`. */
static ah_status cut_blob(ah_sqlite_cutter *k, int at, const char *from, ah_slice blob, ah_err *err)
{
    ah_buf *rest = &k->rest[at], *cuts = &k->cuts[at];
    ah_slice hash = hash_of(k, blob);

    ah_buf_add(rest, from, (size_t)(blob.p - from));
    if (!ah_buf_ok(rest))
        return ah_err_nomem(err);
    ah_store_cut_put(cuts, &(ah_store_cut){.at = rest->len, .n = blob.n, .hash = hash});
    if (!ah_buf_ok(cuts))
        return ah_err_nomem(err);
    return use_blob(k->core, hash, blob, err);
}

/* `at`: 0 for said, 1 for kept. */
static ah_status cut_text(ah_sqlite_cutter *k, int at, ah_slice text, ah_store_text *out,
                          ah_err *err)
{
    ah_buf *rest = &k->rest[at];
    ah_slice left = text, blob;
    const char *from = text.p;
    ah_status st = AH_OK;

    ah_buf_reset(rest, 0);
    ah_buf_reset(&k->cuts[at], 0);
    while (st == AH_OK && ah_store_cut_find(&left, &blob)) {
        st = cut_blob(k, at, from, blob, err);
        from = left.p;
    }
    *out = (ah_store_text){.rest = text};
    if (st != AH_OK || from == text.p)
        return st;
    ah_buf_put(rest, left);
    if (!ah_buf_ok(rest))
        return ah_err_nomem(err);
    *out = (ah_store_text){ah_buf_slice(rest), ah_buf_slice(&k->cuts[at])};
    return AH_OK;
}

ah_status ah_sqlite_cut(ah_sqlite_cutter *k, const ah_store_record *r, ah_store_row *out,
                        ah_err *err)
{
    ah_status st;

    *out = (ah_store_row){.number = r->number, .time = r->time, .kind = r->kind};
    if ((st = cut_text(k, 0, r->said, &out->said, err)) == AH_OK)
        st = cut_text(k, 1, r->kept, &out->kept, err);
    if (!r->kept.p && r->kept_hash.n == AH_SHA256_BYTES)
        out->kept = (ah_store_text){.rest = ah_slice_of(""), .cuts = r->kept_hash};
    return st;
}

/* -- reading ---------------------------------------------------------------------------------- */

static ah_status damaged(ah_sqlite_core *c, int64_t number, const char *what, ah_err *err)
{
    return ah_err_set(err, AH_STORE,
                      "the store %s cannot be read: it is damaged (record %lld: %s); use a copy "
                      "of it",
                      c->file.path, (long long)number, what);
}

static ah_status erased(ah_sqlite_core *c, int64_t number, ah_err *err)
{
    return ah_err_set(err, AH_STORE,
                      "the store %s cannot be read at record %lld: a text of it was erased",
                      c->file.path, (long long)number);
}

static ah_status check_blob(ah_sqlite_core *c, int64_t number, const ah_store_cut *cut,
                            ah_slice body, ah_err *err)
{
    unsigned char hash[AH_SHA256_BYTES];

    if (!body.p)
        return erased(c, number, err);
    if (body.n != cut->n)
        return damaged(c, number, "a long string of it has another length", err);
    ah_store_hash_bytes(body, hash);
    if (memcmp(hash, cut->hash.p, sizeof hash) != 0)
        return damaged(c, number, "a long string of it has another hash", err);
    return AH_OK;
}

static ah_status put_blob(ah_sqlite_core *c, int64_t number, const ah_store_cut *cut, ah_buf *out,
                          ah_err *err)
{
    const ah_sqlite_statement S = AH_SQLITE_READ_BLOB;
    ah_slice body;
    ah_status st;
    int rc;

    ah_sqlite_blob(c, S, 1, cut->hash);
    rc = ah_sqlite_step(c, S);
    if (rc == SQLITE_ROW) {
        body = ah_sqlite_column_text(c, S, 0);
        if ((st = check_blob(c, number, cut, body, err)) == AH_OK)
            ah_buf_put(out, body);
    } else if (rc == SQLITE_DONE) {
        st = damaged(c, number, "a long string of it is missing", err);
    } else {
        st = ah_sqlite_fails(c, "read", err);
    }
    ah_sqlite_reset(c, S);
    return st;
}

ah_status ah_sqlite_join(ah_sqlite_core *c, int64_t number, const ah_store_text *t, ah_buf *out,
                         ah_err *err)
{
    ah_slice rest = t->rest, cuts = t->cuts;
    size_t at = 0, n = rest.n;
    ah_store_cut cut;
    ah_status st = AH_OK;

    if (ah_store_text_erased(t))
        return erased(c, number, err);
    if (!rest.p)
        return cuts.n > 0 ? damaged(c, number, "long strings of no text", err) : AH_OK;
    while (st == AH_OK && ah_store_cut_next(&cuts, &cut)) {
        if (cut.at < at || cut.at > rest.n || n > AH_STORE_MAX_RECORD ||
            cut.n > AH_STORE_MAX_RECORD - n)
            return damaged(c, number, "its long strings are out of range", err);
        ah_buf_add(out, rest.p + at, cut.at - at);
        at = cut.at;
        n += cut.n;
        st = put_blob(c, number, &cut, out, err);
    }
    if (st == AH_OK && cuts.n > 0)
        st = damaged(c, number, "its list of long strings is incomplete", err);
    if (st == AH_OK)
        ah_buf_add(out, rest.p + at, rest.n - at);
    return st;
}

#endif
