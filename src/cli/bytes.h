/* A growing text with a maximum size, which owns its memory. After a failure (no memory, or too
 * long) nothing more is added. Callers: its floor. */
#ifndef AH_CLI_BYTES_H
#define AH_CLI_BYTES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ah_bytes {
    char *data; /* NULL: nothing was added yet */
    size_t len, room, max;
    bool failed;
} ah_bytes;

void ah_bytes_init(ah_bytes *b, size_t max);
void ah_bytes_clear(ah_bytes *b);
void ah_bytes_add(ah_bytes *b, const void *p, size_t n);
void ah_bytes_str(ah_bytes *b, const char *s);
void ah_bytes_char(ah_bytes *b, char c);

static inline bool ah_bytes_ok(const ah_bytes *b)
{
    return !b->failed;
}

#endif
