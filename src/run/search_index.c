/* The word index is built in three steps: the words of each document with their weights, the
 * postings sorted by word, and the words sorted by their letters, so that words with the same
 * prefix are neighbours. Ranks are integers: the same on every machine. */
#include "run/search_index.h"

#include "base/near.h"

enum {
    LEAST_PREFIX = 3, /* letters of the shortest prefix that matches longer words */
    DOC_WORDS = 512,  /* of one document; later ones are left out */
    MOST_WEIGHT = 24, /* of a word in a document, however often it occurs */
    NEAR_WORDS = 8    /* words of a query for which similar ones are searched */
};

/* -- words ------------------------------------------------------------------------------------ */

static bool is_word(char c)
{
    return ah_is_letter(c) || ah_is_digit(c) || (unsigned char)c >= 0x80;
}

/* True if a new word begins at text.p[i]: the B of fooBar, and of ABar. */
static bool is_hump(ah_slice text, size_t i)
{
    if (!ah_is_upper(text.p[i]))
        return false;
    return !ah_is_upper(text.p[i - 1]) ||
           (i + 1 < text.n && is_word(text.p[i + 1]) && !ah_is_upper(text.p[i + 1]) &&
            !ah_is_digit(text.p[i + 1]));
}

static bool ends_with(const char *word, size_t n, const char *end)
{
    size_t k = strlen(end);

    return n > k + 1 && memcmp(word + n - k, end, k) == 0;
}

/* Makes a plural singular, roughly; queries and documents are treated alike. */
static size_t singular(char *word, size_t n)
{
    if (ends_with(word, n, "ies")) {
        word[n - 3] = 'y';
        return n - 2;
    }
    if (ends_with(word, n, "ches") || ends_with(word, n, "shes") || ends_with(word, n, "sses") ||
        ends_with(word, n, "xes"))
        return n - 2;
    if (ends_with(word, n, "ss") || ends_with(word, n, "us") || ends_with(word, n, "is"))
        return n;
    return ends_with(word, n, "s") ? n - 1 : n;
}

static bool says_nothing(ah_slice word)
{
    static const char *const empty[] = {"a",  "an", "the", "of", "to", "for",  "and",  "or", "in",
                                        "on", "by", "is",  "it", "at", "with", "from", "as", "be",
                                        "me", "my", "i",   "do", "we", "this", "that", NULL};
    size_t i = 0;

    while (empty[i] && !ah_slice_is(word, empty[i]))
        i++;
    return empty[i] != NULL;
}

/* Iterates over the words of a text. */
typedef struct splitter {
    ah_slice text;
    size_t at, run, end; /* [run, end): the current run of letters */
    bool humps; /* the run has several words; the whole run follows them as one more word */
    char word[AH_INDEX_WORD];
} splitter;

static ah_slice fold(splitter *s, size_t from, size_t to)
{
    size_t n = 0;

    for (; from < to && n < sizeof s->word; from++)
        s->word[n++] =
            (char)(ah_is_upper(s->text.p[from]) ? s->text.p[from] + ('a' - 'A') : s->text.p[from]);
    return (ah_slice){s->word, singular(s->word, from < to ? ah_utf8_cut(s->word, n) : n)};
}

/* Finds the next run of letters; false: none. */
static bool next_run(splitter *s)
{
    s->run = s->end;
    while (s->run < s->text.n && !is_word(s->text.p[s->run]))
        s->run++;
    for (s->end = s->run; s->end < s->text.n && is_word(s->text.p[s->end]); s->end++)
        ;
    s->at = s->run;
    s->humps = false;
    return s->run < s->end;
}

/* The next word, valid until the next call; .p NULL: none left. */
static ah_slice next_word(splitter *s)
{
    size_t from = s->at, i;

    if (from == s->end && s->humps) {
        s->humps = false;
        return fold(s, s->run, s->end);
    }
    if (from == s->end && !next_run(s))
        return (ah_slice){NULL, 0};
    from = s->at;
    for (i = from + 1; i < s->end && !is_hump(s->text, i); i++)
        ;
    s->humps = s->humps || i < s->end;
    s->at = i;
    return fold(s, from, i);
}

/* -- building ---------------------------------------------------------------------------------- */

static ah_slice word_at(const void *owner, size_t at)
{
    const ah_search_index *x = owner;

    return (ah_slice){x->bytes.data + x->word[at].at, x->word[at].len};
}

void ah_search_index_init(ah_search_index *x, const ah_mem *mem)
{
    *x = (ah_search_index){.mem = mem, .by_word = {.mem = mem, .name = word_at, .owner = x}};
    ah_buf_init(&x->bytes, mem, AH_INDEX_BYTES);
}

void ah_search_index_clear(ah_search_index *x)
{
    ah_buf_clear(&x->bytes);
    ah_index_clear(&x->by_word);
    ah_free(x->mem, x->word);
    ah_free(x->mem, x->posting);
    ah_free(x->mem, x->order);
    ah_search_index_init(x, x->mem);
}

void ah_search_index_begin(ah_search_index *x)
{
    x->docs++;
    x->doc_from = x->n_postings;
}

/* Sets *out to the number of the word, adding it if it is new. */
static ah_status take_word(ah_search_index *x, ah_slice word, uint32_t *out, ah_err *err)
{
    ah_word *grown;

    if ((*out = ah_index_find(&x->by_word, word)) != AH_INDEX_NONE)
        return AH_OK;
    if (!(grown = ah_grow(x->mem, x->word, &x->cap_words, x->n_words + 1, sizeof *grown)))
        return ah_err_nomem(err);
    x->word = grown;
    grown[x->n_words] = (ah_word){.at = (uint32_t)x->bytes.len, .len = (uint32_t)word.n};
    ah_buf_put(&x->bytes, word);
    if (!ah_buf_ok(&x->bytes))
        return ah_buf_error(&x->bytes, "the words of the tools to be searched", err);
    if (!ah_index_reserve(&x->by_word, 1, x->n_words))
        return ah_err_nomem(err);
    ah_index_put(&x->by_word, word, x->n_words);
    *out = (uint32_t)x->n_words++;
    return AH_OK;
}

/* Adds a posting; a word that is in the document already gets the sum of the weights. */
static ah_status note(ah_search_index *x, uint32_t word, uint32_t weight, ah_err *err)
{
    ah_posting *p;

    for (size_t i = x->doc_from; i < x->n_postings; i++)
        if (x->posting[i].word == word) {
            x->posting[i].weight += weight;
            return AH_OK;
        }
    if (x->n_postings - x->doc_from == DOC_WORDS)
        return AH_OK;
    if (!(p = ah_grow(x->mem, x->posting, &x->cap_postings, x->n_postings + 1, sizeof *p)))
        return ah_err_nomem(err);
    x->posting = p;
    p[x->n_postings++] = (ah_posting){word, (uint32_t)x->docs - 1, weight};
    return AH_OK;
}

ah_status ah_search_index_add(ah_search_index *x, ah_slice text, uint32_t weight, ah_err *err)
{
    splitter s = {.text = text};
    ah_status st = AH_OK;
    ah_slice word;

    while (st == AH_OK && (word = next_word(&s)).p) {
        uint32_t number;

        if (says_nothing(word))
            continue;
        st = take_word(x, word, &number, err);
        if (st == AH_OK)
            st = note(x, number, weight, err);
    }
    return st;
}

/* Sorts the postings by word; within a word, the order of documents is kept. */
static void sort_postings(ah_search_index *x, ah_posting *sorted)
{
    uint32_t at = 0;

    for (size_t i = 0; i < x->n_postings; i++)
        x->word[x->posting[i].word].n++;
    for (size_t i = 0; i < x->n_words; i++) {
        x->word[i].first = at;
        at += x->word[i].n;
        x->word[i].n = 0;
    }
    for (size_t i = 0; i < x->n_postings; i++) {
        ah_word *w = &x->word[x->posting[i].word];

        sorted[w->first + w->n++] = x->posting[i];
    }
}

/* Sifts down in heapsort, which is used because qsort passes no context. */
static void sift(const ah_search_index *x, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        uint32_t held = x->order[root];

        if (child + 1 < n &&
            ah_slice_cmp(word_at(x, x->order[child]), word_at(x, x->order[child + 1])) < 0)
            child++;
        if (ah_slice_cmp(word_at(x, held), word_at(x, x->order[child])) >= 0)
            return;
        x->order[root] = x->order[child];
        x->order[child] = held;
    }
}

static void sort_words(ah_search_index *x)
{
    for (uint32_t i = 0; i < x->n_words; i++)
        x->order[i] = i;
    for (size_t i = x->n_words / 2; i > 0; i--)
        sift(x, i - 1, x->n_words);
    for (size_t n = x->n_words; n > 1; n--) {
        uint32_t last = x->order[n - 1];

        x->order[n - 1] = x->order[0];
        x->order[0] = last;
        sift(x, 0, n - 1);
    }
}

ah_status ah_search_index_make(ah_search_index *x, ah_err *err)
{
    ah_posting *sorted;

    if (x->n_words == 0)
        return AH_OK;
    sorted = ah_alloc(x->mem, x->n_postings * sizeof *sorted);
    x->order = ah_alloc(x->mem, x->n_words * sizeof *x->order);
    if (!sorted || !x->order) {
        ah_free(x->mem, sorted);
        return ah_err_nomem(err);
    }
    sort_postings(x, sorted);
    ah_free(x->mem, x->posting);
    x->posting = sorted;
    sort_words(x);
    return AH_OK;
}

/* -- finding ----------------------------------------------------------------------------------- */

typedef struct score {
    uint32_t points, words; /* words: number of query words that the document has */
    uint32_t last;          /* the number of the latest query word seen in it, from 1 */
} score;

/* Eight times the logarithm to the base two of v / 8, v >= 8. */
static uint32_t log_of(uint64_t v)
{
    uint32_t bits = 0;

    while (v >> (bits + 1))
        bits++;
    return 8 * (bits - 3) + (uint32_t)(v >> (bits - 3) & 7);
}

/* Adds points to the documents of a word; rare words give more. */
static void count(const ah_search_index *x, const ah_word *w, uint32_t number, uint32_t times,
                  score *s)
{
    uint32_t rare = log_of(8 * (x->docs + w->n) / w->n);

    for (uint32_t i = 0; i < w->n; i++) {
        const ah_posting *p = &x->posting[w->first + i];
        uint32_t weight = p->weight < MOST_WEIGHT ? p->weight : MOST_WEIGHT;

        s[p->doc].points += rare * weight * times;
        s[p->doc].words += s[p->doc].last != number;
        s[p->doc].last = number;
    }
}

/* The first place in `order` whose word is not less than this one. */
static size_t lower_bound(const ah_search_index *x, ah_slice word)
{
    size_t low = 0, high = x->n_words;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (ah_slice_cmp(word_at(x, x->order[mid]), word) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool begins(ah_slice word, ah_slice with)
{
    return word.n >= with.n && memcmp(word.p, with.p, with.n) == 0;
}

/* An exact match scores twice a prefix match, in either direction. */
static void look_up(const ah_search_index *x, ah_slice word, uint32_t number, score *s)
{
    size_t at = word.n < LEAST_PREFIX ? x->n_words : lower_bound(x, word);
    uint32_t it = ah_index_find(&x->by_word, word), shorter;

    if (it != AH_INDEX_NONE)
        count(x, &x->word[it], number, 2, s);
    for (; at < x->n_words && begins(word_at(x, x->order[at]), word); at++)
        if (x->order[at] != it)
            count(x, &x->word[x->order[at]], number, 1, s);
    for (size_t n = LEAST_PREFIX + 1; n < word.n; n++)
        if ((shorter = ah_index_find(&x->by_word, (ah_slice){word.p, n})) != AH_INDEX_NONE)
            count(x, &x->word[shorter], number, 1, s);
}

static uint64_t rank_of(const score *s)
{
    return (uint64_t)s->points * s->words;
}

/* Puts a document among the best, which are sorted; *n of at most `max` are set. */
static void place(const score *s, uint32_t doc, uint32_t *best, size_t *n, size_t max)
{
    size_t at = *n;

    while (at > 0 && rank_of(&s[doc]) > rank_of(&s[best[at - 1]]))
        at--;
    if (at == max)
        return;
    *n += *n < max;
    memmove(best + at + 1, best + at, (*n - at - 1) * sizeof *best);
    best[at] = doc;
}

ah_status ah_search_index_find(const ah_search_index *x, ah_slice query, uint32_t *doc, size_t *n,
                               ah_err *err)
{
    splitter split = {.text = query};
    size_t max = *n;
    uint32_t number = 0;
    ah_slice word;
    score *s;

    *n = 0;
    if (x->n_words == 0 || max == 0)
        return AH_OK;
    if (!(s = ah_alloc(x->mem, x->docs * sizeof *s)))
        return ah_err_nomem(err);
    while (number < AH_QUERY_WORDS && (word = next_word(&split)).p)
        if (!says_nothing(word))
            look_up(x, word, ++number, s);
    for (uint32_t i = 0; i < x->docs; i++)
        if (s[i].points)
            place(s, i, doc, n, max);
    ah_free(x->mem, s);
    return AH_OK;
}

static ah_slice nearest(const ah_search_index *x, ah_slice word)
{
    ah_near near = {.to = word};

    for (size_t i = 0; i < x->n_words; i++)
        ah_near_offer(&near, word_at(x, x->order[i]));
    return near.best;
}

void ah_search_index_near(const ah_search_index *x, ah_slice query, ah_buf *out)
{
    splitter split = {.text = query};
    ah_slice word, best;

    for (int i = 0; i < NEAR_WORDS && (word = next_word(&split)).p; i++)
        if (!says_nothing(word) && (best = nearest(x, word)).p)
            ah_buf_fmt(out, out->len ? ", %.*s" : "%.*s", AH_FMT(best));
}
