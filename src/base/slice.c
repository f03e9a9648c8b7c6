/* Compares, finds, trims and hashes slices, and cuts UTF-8 between characters. Nothing here
 * allocates. */
#define _GNU_SOURCE /* memmem */
#include "base/slice.h"

#include <strings.h>

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

ah_slice ah_slice_line(ah_slice *rest)
{
    const char *nl = memchr(rest->p, '\n', rest->n);
    ah_slice line = {rest->p, nl ? (size_t)(nl - rest->p) : rest->n};
    size_t past = line.n + (nl != NULL);

    *rest = (ah_slice){rest->p + past, rest->n - past};
    return line;
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

bool ah_slice_is_word(ah_slice a, const char *word)
{
    return a.n == strlen(word) && strncasecmp(a.p, word, a.n) == 0;
}

uint64_t ah_slice_hash_on(uint64_t before, ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        before = (before ^ (unsigned char)s.p[i]) * 1099511628211u;
    return before;
}

uint64_t ah_slice_hash(ah_slice s)
{
    return ah_slice_hash_on(AH_HASH_BEGIN, s);
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

/* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. */
static bool is_turn(unsigned char b, unsigned char c)
{
    return (b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xa8 && c <= 0xae))) ||
           (b == 0x81 && c >= 0xa6 && c <= 0xa9);
}

size_t ah_control_len(ah_slice text)
{
    const unsigned char *p = (const unsigned char *)text.p;

    if (!text.n)
        return 0;
    if (*p < 0x20 || *p == 0x7f)
        return 1;
    if (text.n >= 2 &&
        ((*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) || (*p == 0xd8 && p[1] == 0x9c)))
        return 2;
    return text.n >= 3 && *p == 0xe2 && is_turn(p[1], p[2]) ? 3 : 0;
}

size_t ah_flatten(char *p, size_t n)
{
    size_t to = 0;

    for (size_t i = 0, k; i < n; i += k) {
        size_t control = ah_control_len((ah_slice){p + i, n - i});

        k = control ? control : 1;
        p[to++] = control ? ' ' : p[i];
    }
    return to;
}

bool ah_slice_among(ah_slice s, const char *words)
{
    ah_slice in = ah_slice_of(words);
    const char *found;

    if (!s.n || memchr(s.p, ' ', s.n))
        return false;
    while ((found = ah_slice_find(in, s))) {
        if (found[-1] == ' ' && found[s.n] == ' ')
            return true;
        in = (ah_slice){found + 1, (size_t)(in.p + in.n - found - 1)};
    }
    return false;
}
