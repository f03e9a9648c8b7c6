/* Two measures: mistyped letters, and words that two names share. Mistyped letters always win. */
#include "base/near.h"

enum {
    MAX_NAME = 64,             /* longer names are not compared: no allocation, bounded work */
    MAX_WORDS = MAX_NAME / 2,  /* words of a name, separators in between */
    LEAST_BEGINNING = 4,       /* letters of a word that identify it */
    WORDS_COST = MAX_NAME * 2, /* more than any number of mistyped letters */
    WHOLE = 1000               /* share of names that have all words in common */
};

static char fold(char c)
{
    return c == '-' ? '_' : ah_lower(c);
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Returns the number of edits (insert, delete, change, swap of neighbours) between the folded
 * names; if it exceeds `most`, any number above `most`. */
static size_t distance(ah_slice a, ah_slice b, size_t most)
{
    size_t least, before_least = 0;
    size_t rows[3][MAX_NAME + 1];
    size_t *before = rows[0], *prev = rows[1], *cur = rows[2], *swap;

    if (a.n > b.n + most || b.n > a.n + most)
        return most + 1;
    for (size_t j = 0; j <= b.n; j++)
        prev[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        least = cur[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            char x = fold(a.p[i - 1]), y = fold(b.p[j - 1]);

            cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == fold(b.p[j - 2]) && fold(a.p[i - 2]) == y &&
                before[j - 2] + 1 < cur[j])
                cur[j] = before[j - 2] + 1;
            least = cur[j] < least ? cur[j] : least;
        }
        if (least > most && before_least > most) /* a swap spans two rows */
            return most + 1;
        before_least = least;
        swap = before;
        before = prev;
        prev = cur;
        cur = swap;
    }
    return prev[b.n];
}

/* -- words -------------------------------------------------------------------- */

typedef struct words {
    ah_slice word[MAX_WORDS + 1];
    size_t n, letters;
} words;

static bool is_letter(char c)
{
    return ah_is_letter(c) || ah_is_digit(c) || (unsigned char)c >= 0x80;
}

/* Splits getUser_name into get, user, name. */
static void split(ah_slice name, words *out)
{
    size_t i = 0, start;

    out->n = out->letters = 0;
    while (i < name.n && out->n < MAX_WORDS) {
        for (; i < name.n && !is_letter(name.p[i]); i++)
            ;
        for (start = i; i < name.n && is_letter(name.p[i]); i++)
            if (i > start && ah_is_upper(name.p[i]) && !ah_is_upper(name.p[i - 1]))
                break;
        if (i > start)
            out->word[out->n++] = (ah_slice){name.p + start, i - start};
        out->letters += i - start;
    }
}

/* Number of letters that two words share: all if they are equal; those of the shorter if the
 * longer begins with it and it has LEAST_BEGINNING; otherwise 0. */
static size_t common(ah_slice a, ah_slice b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;

    while (i < n && fold(a.p[i]) == fold(b.p[i]))
        i++;
    return i == n && (a.n == b.n || n >= LEAST_BEGINNING) ? n : 0;
}

/* Returns the share of letters in common words, out of WHOLE. Each word counts once. */
static size_t shared(ah_slice one, ah_slice other)
{
    bool found[MAX_WORDS + 1] = {false};
    size_t letters = 0;
    words a, b;

    split(one, &a);
    split(other, &b);
    for (size_t i = 0; i < a.n; i++)
        for (size_t j = 0, n = 0; j < b.n && !n; j++) {
            n = found[j] ? 0 : common(a.word[i], b.word[j]);
            found[j] = found[j] || n;
            letters += n;
        }
    return a.letters + b.letters ? 2 * letters * WHOLE / (a.letters + b.letters) : 0;
}

/* -- the search ----------------------------------------------------------------- */

/* Returns the cost of reading `name` as the searched one; SIZE_MAX: not near. */
static size_t cost_of(const ah_near *near, ah_slice name)
{
    size_t longer = near->to.n > name.n ? near->to.n : name.n;
    size_t d = distance(near->to, name, longer / 3), share;

    if (d * 3 <= longer)
        return d;
    share = near->words ? shared(near->to, name) : 0;
    return share * 2 >= WHOLE ? WORDS_COST + WHOLE - share : SIZE_MAX;
}

void ah_near_offer(ah_near *near, ah_slice name)
{
    size_t cost;

    if (near->to.n == 0 || name.n == 0 || near->to.n > MAX_NAME || name.n > MAX_NAME)
        return;
    cost = cost_of(near, name);
    if (cost == SIZE_MAX || (near->best.p && cost >= near->cost))
        return;
    near->best = name;
    near->cost = cost;
}
