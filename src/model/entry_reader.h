/* Reads entries of a transcript from JSON that may come from a file or a store. Each is checked
 * against the shape of its kind, so that later code can rely on its members. A reader owns the
 * shapes, which are compiled when first needed. Callers: its floor, journal. */
#ifndef AH_MODEL_ENTRY_READER_H
#define AH_MODEL_ENTRY_READER_H

#include "model/transcript.h"
#include "schema/schema.h"

typedef struct ah_entry_reader {
    const ah_mem *mem;
    ah_schema *shape[AH_ENTRY_KINDS]; /* NULL: not needed so far */
    ah_faults faults;
} ah_entry_reader;

void ah_entry_reader_init(ah_entry_reader *r, const ah_mem *mem);
void ah_entry_reader_clear(ah_entry_reader *r);
/* Reads an entry from checked JSON; *out owns its text. An entry of an unknown kind, of a later
 * version, gives AH_OK, AH_ENTRY_KINDS and no text. Fails with AH_USAGE and an error that begins
 * with "entry <at>". */
ah_status ah_entry_read(ah_entry_reader *r, ah_slice json, size_t at, ah_entry *out, ah_err *err);

#endif
