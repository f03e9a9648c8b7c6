/* See the header. */
#include "cli/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_ROOM = 256 };

void ah_bytes_init(ah_bytes *b, size_t max)
{
    *b = (ah_bytes){.max = max};
}

void ah_bytes_clear(ah_bytes *b)
{
    free(b->data);
    *b = (ah_bytes){.max = b->max};
}

/* Reserves n more bytes; false if that is impossible. */
static bool reserve(ah_bytes *b, size_t n)
{
    size_t room = b->room ? b->room : LEAST_ROOM;
    char *data;

    if (b->failed || n > b->max - b->len)
        return false;
    if (n <= b->room - b->len)
        return true;
    while (room < b->len + n)
        room *= 2;
    if (!(data = realloc(b->data, room)))
        return false;
    b->data = data;
    b->room = room;
    return true;
}

void ah_bytes_add(ah_bytes *b, const void *p, size_t n)
{
    if (!n)
        return;
    if (!reserve(b, n)) {
        b->failed = true;
        return;
    }
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

void ah_bytes_str(ah_bytes *b, const char *s)
{
    ah_bytes_add(b, s, strlen(s));
}

void ah_bytes_char(ah_bytes *b, char c)
{
    ah_bytes_add(b, &c, 1);
}
