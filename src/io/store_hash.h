/* The chain of hashes of a stream: each record's hash covers the one before it, so an edited, a
 * missing or an exchanged record is found. It covers the hash of each body, not the body, so that
 * bodies can be erased where their hash is kept.
 *
 *   hash = SHA-256(hash of the record before (32 bytes; zero for the first one), number, time
 *                  (8 bytes each, the highest first), length of kind (1 byte), kind,
 *                  SHA-256(said), SHA-256(kept) if there is one)
 *
 * Callers: its floor. */
#ifndef AH_IO_STORE_HASH_H
#define AH_IO_STORE_HASH_H

#include "base/sha256.h"
#include "base/store.h"

/* Replaces the hash of the record before by that of this one. */
void ah_store_hash_on(unsigned char hash[AH_SHA256_BYTES], const ah_store_record *r);

#endif
