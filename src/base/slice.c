/* Comparing, finding, trimming and hashing, and a cut of UTF-8 that leaves no half character.
 * Nothing here allocates. */
#define _GNU_SOURCE /* memmem */
#include "base/slice.h"

int ah_slice_cmp(ah_slice a, ah_slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;

    if (c)
        return c;
    return (a.n > b.n) - (a.n < b.n);
}

const char *ah_slice_find(ah_slice in, ah_slice what)
{
    if (!in.p || what.n > in.n)
        return NULL;
    return memmem(in.p, in.n, what.p, what.n);
}

ah_slice ah_slice_trim(ah_slice s)
{
    while (s.n && ah_is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && ah_is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

uint64_t ah_slice_hash(ah_slice s)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return h;
}

size_t ah_utf8_cut(const char *p, size_t n)
{
    size_t back = n;

    while (back > 0 && n - back < 4) {
        unsigned char c = (unsigned char)p[back - 1];
        size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        back--;
        if (c < 0x80)
            return n;
        if (c >= 0xc0)
            return back + need <= n ? n : back;
    }
    return n;
}
