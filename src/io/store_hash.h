/* The chain of hashes of a stream: each record's hash covers the one before it, so an edited, a
 * missing or an exchanged record is found. It covers the hashes of the texts and of the blobs that
 * were cut out of them (io/store_cut.h), so that both can be erased where their hashes are kept.
 *
 *   hash = SHA-256(hash of the record before (32 bytes; zero for the first one), number, time
 *                  (8 bytes each, the highest first), length of kind (1 byte), kind,
 *                  hash of said, hash of kept if there is one)
 *   hash of a text = SHA-256(length of its cuts (8 bytes, the highest first), cuts, rest)
 *
 * Callers: its floor, host. */
#ifndef AH_IO_STORE_HASH_H
#define AH_IO_STORE_HASH_H

#include "io/store_cut.h"

/* A record as it is stored. */
typedef struct ah_store_row {
    int64_t number, time;
    ah_slice kind;
    ah_store_text said, kept;
} ah_store_row;

/* Replaces the hash of the record before by that of this one. Texts may be erased. */
void ah_store_hash_on(unsigned char hash[AH_SHA256_BYTES], const ah_store_row *r);

/* Hashes a text; the result takes the place of its cuts when it is erased. */
void ah_store_hash_text(const ah_store_text *t, unsigned char out[AH_SHA256_BYTES]);

/* Hashes a text that is not cut yet. Fails with AH_NOMEM. */
ah_status ah_store_hash_whole(const ah_mem *mem, ah_slice text, unsigned char out[AH_SHA256_BYTES],
                              ah_err *err);

void ah_store_hash_bytes(ah_slice bytes, unsigned char out[AH_SHA256_BYTES]);

#endif
