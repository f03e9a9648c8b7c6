/* Texts of records as they are stored. Each string of JSON in a text that has more than
 * AH_STORE_CUT_LONGEST bytes is cut out, and stands once in the store as a *blob*, by its hash,
 * whatever number of records have it. What is left of the text is its *rest*; its *cuts* say what
 * was cut out where. The text is put together from both, byte for byte. Nothing depends on the
 * text being JSON: of another text, some other ranges are cut out, or none.
 *
 * Cuts are a list of AH_STORE_CUT_BYTES each, in the order of the text: offset in the rest before
 * which the blob stands (4 bytes, the highest first), length of the blob (4 bytes), its SHA-256.
 *
 * Both can be erased, and verifying the chain of hashes (io/store_hash.h) needs neither: of an
 * erased blob the cuts have the hash; an erased text has an empty rest, and in the place of its
 * cuts its own hash (32 bytes, which no list of cuts has). A record that is deleted, or whose text
 * is erased, takes its cuts off the users of their blobs; a blob without users is deleted.
 * Callers: its floor. */
#ifndef AH_IO_STORE_CUT_H
#define AH_IO_STORE_CUT_H

#include "base/buf.h"
#include "base/sha256.h"

enum { AH_STORE_CUT_LONGEST = 4096, AH_STORE_CUT_BYTES = 4 + 4 + AH_SHA256_BYTES };

typedef struct ah_store_text {
    ah_slice rest; /* .p NULL: there is no text */
    ah_slice cuts; /* .n 0: none, the rest is the text */
} ah_store_text;

static inline bool ah_store_text_erased(const ah_store_text *t)
{
    return t->cuts.n == AH_SHA256_BYTES;
}

/* Finds the first string of more than AH_STORE_CUT_LONGEST bytes, with its quotes, and moves *text
 * behind it. False: there is none. */
bool ah_store_cut_find(ah_slice *text, ah_slice *found);

typedef struct ah_store_cut {
    size_t at, n; /* offset in the rest, length of the blob */
    ah_slice hash;
} ah_store_cut;

void ah_store_cut_put(ah_buf *cuts, const ah_store_cut *cut);
/* Takes the next of the cuts. False: they are at their end, or `*cuts` is no list of cuts and has
 * bytes left. */
bool ah_store_cut_next(ah_slice *cuts, ah_store_cut *out);

#endif
