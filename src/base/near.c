#include "base/near.h"

enum { MAX_NAME = 64 }; /* longer names are not compared: no allocation, bounded work */

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' ? '_' : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Edits (insert, delete, change, swap of neighbours) between the folded names. */
static size_t distance(ah_slice a, ah_slice b)
{
    size_t rows[3][MAX_NAME + 1];
    size_t *before = rows[0], *prev = rows[1], *cur = rows[2], *swap;

    for (size_t j = 0; j <= b.n; j++)
        prev[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        cur[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            char x = fold(a.p[i - 1]), y = fold(b.p[j - 1]);

            cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == fold(b.p[j - 2]) && fold(a.p[i - 2]) == y &&
                before[j - 2] + 1 < cur[j])
                cur[j] = before[j - 2] + 1;
        }
        swap = before;
        before = prev;
        prev = cur;
        cur = swap;
    }
    return prev[b.n];
}

void ah_near_offer(ah_near *near, ah_slice name)
{
    size_t longer = near->to.n > name.n ? near->to.n : name.n;
    size_t d;

    if (near->to.n == 0 || name.n == 0 || longer > MAX_NAME)
        return;
    d = distance(near->to, name);
    if (d * 3 > longer || (near->best.p && d >= near->cost))
        return;
    near->best = name;
    near->cost = d;
}
