/* SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for bytes in pieces. They allocate nothing
 * and cannot fail. Not for passwords, which need a slow hash. Callers: floors above. */
#ifndef AH_BASE_SHA256_H
#define AH_BASE_SHA256_H

#include "base/slice.h"

enum {
    AH_SHA256_BYTES = 32,
    AH_SHA256_BLOCK = 64,
    AH_SHA256_HEX = 64 /* hexadecimal digits */
};

typedef struct ah_sha256 {
    uint32_t state[8];
    uint64_t n; /* number of bytes so far */
    unsigned char block[AH_SHA256_BLOCK];
} ah_sha256;

void ah_sha256_begin(ah_sha256 *s);
void ah_sha256_add(ah_sha256 *s, ah_slice bytes);
/* Writes the hash of everything added. Call it once; s must then begin anew. */
void ah_sha256_end(ah_sha256 *s, unsigned char out[AH_SHA256_BYTES]);
/* Write a hash as hexadecimal digits, without a NUL. */
void ah_sha256_hex(const unsigned char hash[AH_SHA256_BYTES], char out[AH_SHA256_HEX]);
void ah_sha256_end_hex(ah_sha256 *s, char out[AH_SHA256_HEX]);

typedef struct ah_hmac {
    ah_sha256 inner, outer;
} ah_hmac;

void ah_hmac_begin(ah_hmac *h, ah_slice key);
void ah_hmac_add(ah_hmac *h, ah_slice bytes);
void ah_hmac_end(ah_hmac *h, unsigned char out[AH_SHA256_BYTES]);

#endif
