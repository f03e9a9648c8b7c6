/* Hashes records. */
#include "io/store_hash.h"

static unsigned char *put_number(unsigned char *p, int64_t v)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        *p++ = (unsigned char)((uint64_t)v >> shift);
    return p;
}

static void hash_body(ah_slice body, unsigned char out[AH_SHA256_BYTES])
{
    ah_sha256 s;

    ah_sha256_begin(&s);
    ah_sha256_add(&s, body);
    ah_sha256_end(&s, out);
}

void ah_store_hash_on(unsigned char hash[AH_SHA256_BYTES], const ah_store_record *r)
{
    unsigned char head[8 + 8 + 1], *p = put_number(put_number(head, r->number), r->time);
    unsigned char body[2 * AH_SHA256_BYTES];
    ah_sha256 s;

    *p = (unsigned char)r->kind.n;
    hash_body(r->said, body);
    if (r->kept.p)
        hash_body(r->kept, body + AH_SHA256_BYTES);
    ah_sha256_begin(&s);
    ah_sha256_add(&s, (ah_slice){(const char *)hash, AH_SHA256_BYTES});
    ah_sha256_add(&s, (ah_slice){(const char *)head, sizeof head});
    ah_sha256_add(&s, r->kind);
    ah_sha256_add(
        &s, (ah_slice){(const char *)body, r->kept.p ? sizeof body : (size_t)AH_SHA256_BYTES});
    ah_sha256_end(&s, hash);
}
