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
