/* Keeps the beginning and the end of a stream of any length, in two buffers of fixed limits that
 * it owns. Callers: lua. */
#ifndef AH_BASE_ENDS_H
#define AH_BASE_ENDS_H

#include "base/buf.h"

typedef struct ah_ends {
    ah_buf head, tail;
    size_t tail_bytes;
    int64_t bytes; /* length of the whole stream */
} ah_ends;

void ah_ends_init(ah_ends *e, const ah_mem *mem, size_t head_bytes, size_t tail_bytes);
void ah_ends_clear(ah_ends *e);
/* After a failure, as of a buffer, it keeps nothing more, and ah_ends_whole returns false. */
void ah_ends_put(ah_ends *e, ah_slice s);
bool ah_ends_whole(const ah_ends *e);
/* Valid until the next ah_ends_put. */
ah_slice ah_ends_head(const ah_ends *e);
ah_slice ah_ends_tail(const ah_ends *e);
/* Appends both as UTF-8, with a line between them that states how much is left out. */
void ah_ends_print(const ah_ends *e, ah_buf *out);

#endif
