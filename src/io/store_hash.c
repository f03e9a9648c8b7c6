/* Hashes records. */
#include "io/store_hash.h"

static unsigned char *put_number(unsigned char *p, int64_t v)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        *p++ = (unsigned char)((uint64_t)v >> shift);
    return p;
}

void ah_store_hash_bytes(ah_slice bytes, unsigned char out[AH_SHA256_BYTES])
{
    ah_sha256 s;

    ah_sha256_begin(&s);
    ah_sha256_add(&s, bytes);
    ah_sha256_end(&s, out);
}

void ah_store_hash_text(const ah_store_text *t, unsigned char out[AH_SHA256_BYTES])
{
    unsigned char length[8];
    ah_sha256 s;

    if (ah_store_text_erased(t)) {
        memcpy(out, t->cuts.p, AH_SHA256_BYTES);
        return;
    }
    put_number(length, (int64_t)t->cuts.n);
    ah_sha256_begin(&s);
    ah_sha256_add(&s, (ah_slice){(const char *)length, sizeof length});
    ah_sha256_add(&s, t->cuts);
    ah_sha256_add(&s, t->rest);
    ah_sha256_end(&s, out);
}

void ah_store_hash_on(unsigned char hash[AH_SHA256_BYTES], const ah_store_row *r)
{
    unsigned char head[8 + 8 + 1], *p = put_number(put_number(head, r->number), r->time);
    unsigned char texts[2 * AH_SHA256_BYTES];
    size_t n = AH_SHA256_BYTES;
    ah_sha256 s;

    *p = (unsigned char)r->kind.n;
    ah_store_hash_text(&r->said, texts);
    if (r->kept.rest.p) {
        ah_store_hash_text(&r->kept, texts + n);
        n += AH_SHA256_BYTES;
    }
    ah_sha256_begin(&s);
    ah_sha256_add(&s, (ah_slice){(const char *)hash, AH_SHA256_BYTES});
    ah_sha256_add(&s, (ah_slice){(const char *)head, sizeof head});
    ah_sha256_add(&s, r->kind);
    ah_sha256_add(&s, (ah_slice){(const char *)texts, n});
    ah_sha256_end(&s, hash);
}

ah_status ah_store_hash_whole(const ah_mem *mem, ah_slice text, unsigned char out[AH_SHA256_BYTES],
                              ah_err *err)
{
    unsigned char hash[AH_SHA256_BYTES];
    ah_slice left = text, blob;
    const char *from = text.p;
    ah_buf rest, cuts;
    bool ok;

    ah_buf_init(&rest, mem, SIZE_MAX);
    ah_buf_init(&cuts, mem, SIZE_MAX);
    while (ah_store_cut_find(&left, &blob)) {
        ah_buf_add(&rest, from, (size_t)(blob.p - from));
        ah_store_hash_bytes(blob, hash);
        ah_store_cut_put(&cuts, &(ah_store_cut){rest.len, blob.n, {(char *)hash, sizeof hash}});
        from = left.p;
    }
    ah_buf_put(&rest, left);
    if ((ok = ah_buf_ok(&rest) && ah_buf_ok(&cuts)))
        ah_store_hash_text(&(ah_store_text){ah_buf_slice(&rest), ah_buf_slice(&cuts)}, out);
    ah_buf_clear(&rest);
    ah_buf_clear(&cuts);
    return ok ? AH_OK : ah_err_nomem(err);
}
