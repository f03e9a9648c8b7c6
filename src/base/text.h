/* Immutable, reference-counted text: arguments, results, schemas, entries. One thread at a time
 * uses a host, so the counts are plain integers. Callers: its floor, schema, state, io. */
#ifndef AH_BASE_TEXT_H
#define AH_BASE_TEXT_H

#include "base/buf.h"

typedef struct ah_text {
    const ah_mem *mem;
    size_t refs;
    size_t len;
    char data[]; /* with a NUL after len, for printing only */
} ah_text;

ah_text *ah_text_new(const ah_mem *mem, ah_slice s); /* NULL: out of memory */
ah_text *ah_text_ref(ah_text *t);                    /* NULL returns NULL */
void ah_text_unref(ah_text *t);                      /* NULL does nothing */

/* Copies the buffer's bytes to a text. *out is untouched on failure. */
ah_status ah_text_from_buf(const ah_buf *b, const char *what, ah_text **out, ah_err *err);

/* Replaces *slot with t, which it takes, and drops the reference to the old text. */
void ah_text_set(ah_text **slot, ah_text *t);

static inline ah_slice ah_text_slice(const ah_text *t)
{
    return t ? (ah_slice){t->data, t->len} : (ah_slice){NULL, 0};
}

#endif
