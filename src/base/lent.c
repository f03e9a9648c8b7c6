/* The copies behind lent.h, in builds with AH_LENT only. Each thread has its own: lent bytes do
 * not leave their thread. */
#include "base/lent.h"

#ifdef AH_LENT

#include <stdio.h>
#include <stdlib.h>

typedef struct lent {
    struct lent *next;
    char bytes[];
} lent;

static _Thread_local lent *first;

static char *copy_to(char *to, ah_slice bytes)
{
    memcpy(to, bytes.p, bytes.n);
    to[bytes.n] = '\0';
    return to;
}

/* Without memory the bytes themselves are lent. */
ah_slice ah_lend(ah_slice bytes)
{
    lent *l = bytes.p ? malloc(sizeof *l + bytes.n + 1) : NULL;

    if (!l)
        return bytes;
    l->next = first;
    first = l;
    return (ah_slice){copy_to(l->bytes, bytes), bytes.n};
}

void ah_calling_out(void)
{
    while (first) {
        lent *l = first;

        first = l->next;
        free(l);
    }
}

ah_slice ah_pin(ah_slice bytes)
{
    char *p = bytes.p ? malloc(bytes.n + 1) : NULL;

    return p ? (ah_slice){copy_to(p, bytes), bytes.n} : bytes;
}

void ah_unpin(ah_slice pinned, ah_slice bytes)
{
    if (pinned.p == bytes.p)
        return;
    if (memcmp(pinned.p, bytes.p, bytes.n) != 0) {
        fputs("lent: pinned bytes were changed while they were in use\n", stderr);
        abort();
    }
    free((char *)(uintptr_t)pinned.p);
}

#else

typedef int ah_lent_is_not_built; /* ISO C requires a declaration in each file */

#endif
