/* Immutable, reference-counted text: arguments, results, schemas, entries.
 * One host is used by one thread at a time, so counts are plain integers. */
#ifndef AH_BASE_TEXT_H
#define AH_BASE_TEXT_H

#include "base/buf.h"

typedef struct ah_text {
    const ah_mem *mem;
    size_t refs;
    size_t len;
    char data[]; /* NUL-terminated beyond len, for printing only */
} ah_text;

ah_text *ah_text_new(const ah_mem *mem, ah_slice s); /* NULL when out of memory */
ah_text *ah_text_ref(ah_text *t);                    /* NULL gives NULL */
void ah_text_unref(ah_text *t);                      /* NULL is fine */

/* The buffer's bytes as a text; the buffer keeps its own. *out is untouched on failure. */
ah_status ah_text_from_buf(const ah_buf *b, const char *what, ah_text **out, ah_err *err);

/* Replaces *slot by t (taken) and lets go of what was there. */
void ah_text_set(ah_text **slot, ah_text *t);

static inline ah_slice ah_text_slice(const ah_text *t)
{
    return t ? (ah_slice){t->data, t->len} : (ah_slice){NULL, 0};
}

#endif
