/* ah_json_check: the strict scanner for text from outside, and its error messages. It keeps no
 * value and builds nothing; the reader of json.c walks text that passed.
 *
 * Duplicate keys: the first LINEAR_KEYS names of an object are compared with each other; a
 * larger object is sorted once, when it closes, and neighbours are compared. Sorting takes n log
 * n at worst for any input; a hash table would need a secret seed and a second table, while the
 * names already lie in one array that all open objects share as a stack. */
#include "base/json.h"

#include <stdio.h>

#include "base/json_chars.h"

enum {
    LINEAR_KEYS = 16, /* compared with each other; more are sorted */
    FEW_KEYS = 128    /* of all open objects together, before memory is allocated */
};

typedef struct key {
    ah_slice raw;
    unsigned hash; /* only set if an object is sorted */
    bool escaped;
} key;

static const size_t IN_ARRAY = (size_t)-1;

typedef struct scan {
    const char *end;
    const char *what, *at; /* the fault; its `what` is NULL if memory ran out */
    const ah_mem *mem;
    int depth, max_depth;
    bool fresh;    /* a container was just opened */
    bool pieces;   /* a string may begin or end with half of a surrogate pair */
    size_t halves; /* number of strings that do */
    size_t nkeys, cap;
    key *keys; /* of all open objects, the outermost first; `few` until it is full */
    key few[FEW_KEYS];
    size_t first[AH_JSON_MAX_DEPTH]; /* first key of each open object; IN_ARRAY for arrays */
} scan;

/* Each scan_x gets the start of x and returns its end, or NULL. */

static const char *fail(scan *s, const char *at, const char *what)
{
    s->at = at;
    s->what = at == s->end ? "unexpected end of the text" : what;
    return NULL;
}

/* True for half of a pair whose other half is in another piece: a low one that begins a string,
 * or a high one that ends it. */
static bool is_cut(scan *s, const char *from, const char *slash, int u)
{
    const char *end = slash + 6;
    bool cut = s->pieces && (is_low_surrogate(u) ? slash == from : end < s->end && *end == '"');

    s->halves += cut;
    return cut;
}

/* Scans an escape in the string that begins at `from`. */
static const char *scan_escape(scan *s, const char *from, const char *slash)
{
    const char *p = slash + 1;
    int u;

    if (p == s->end)
        return fail(s, p, NULL);
    if (!memchr("\"\\/bfnrtu", *p, 9))
        return fail(s, slash, "unknown escape");
    if (*p++ != 'u')
        return p;
    if ((u = ah_json_hex4(p, s->end)) < 0)
        return fail(s, slash, "\\u without four hexadecimal digits");
    p += 4;
    if (is_high_surrogate(u) && ah_json_low_surrogate(p, s->end) >= 0)
        return p + 6;
    if (!is_low_surrogate(u) && !is_high_surrogate(u))
        return p;
    return is_cut(s, from, slash, u) ? p : fail(s, slash, "lone surrogate");
}

static const char *scan_utf8(scan *s, const char *p)
{
    do {
        size_t n = ah_utf8_len(p, s->end);

        if (n == 0)
            return fail(s, p, "malformed UTF-8");
        p += n;
    } while (p < s->end && (unsigned char)*p >= 0x80);
    return p;
}

/* Scans the rest of the string that begins at `from`; the character at p is not plain. */
static const char *scan_rest(scan *s, const char *from, const char *p, key *out)
{
    for (; p < s->end && *p != '"'; p = skip_plain(p, s->end)) {
        if ((unsigned char)*p < 0x20)
            return fail(s, p, "control character in a string");
        out->escaped |= *p == '\\';
        p = *p == '\\' ? scan_escape(s, from, p) : scan_utf8(s, p);
        if (!p)
            return NULL;
    }
    return p < s->end ? p : fail(s, p, NULL);
}

/* Most strings are plain to their end. */
static inline const char *scan_string(scan *s, const char *quote, key *out)
{
    const char *from = quote + 1, *p = skip_plain(from, s->end);

    out->escaped = false;
    if ((p == s->end || *p != '"') && !(p = scan_rest(s, from, p, out)))
        return NULL;
    out->raw = (ah_slice){from, (size_t)(p - from)};
    return p + 1;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* Scans at least one digit. */
static const char *scan_digits(scan *s, const char *p)
{
    const char *q = skip_digits(p, s->end);

    return q > p ? q : fail(s, p, "digit expected");
}

static const char *scan_number(scan *s, const char *p)
{
    const char *from = p + (*p == '-');

    if (!(p = scan_digits(s, from)))
        return NULL;
    if (*from == '0' && p - from > 1)
        return fail(s, from, "leading zero in a number");
    if (p < s->end && *p == '.' && !(p = scan_digits(s, p + 1)))
        return NULL;
    if (p == s->end || (*p != 'e' && *p != 'E'))
        return p;
    p++;
    return scan_digits(s, p + (p < s->end && (*p == '+' || *p == '-')));
}

static const char *scan_word(scan *s, const char *p, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(s->end - p) < n || memcmp(p, word, n) != 0)
        return fail(s, p, "unknown word");
    return p + n;
}

/* Compares unescaped strings as memcmp does. */
static int raw_cmp(ah_slice a, ah_slice b)
{
    unescaped x = unescaping(a), y = unescaping(b);
    int c, d;

    do {
        c = next_byte(&x);
        d = next_byte(&y);
    } while (c == d && c >= 0);
    return c - d;
}

/* Most differ in their lengths or their first bytes. */
static inline bool key_eq(const key *a, const key *b)
{
    if (a->escaped || b->escaped)
        return raw_cmp(a->raw, b->raw) == 0;
    return a->raw.n == b->raw.n && *a->raw.p == *b->raw.p &&
           memcmp(a->raw.p, b->raw.p, a->raw.n) == 0;
}

static int key_cmp(const key *a, const key *b)
{
    int c;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    c = a->escaped || b->escaped ? raw_cmp(a->raw, b->raw) : ah_slice_cmp(a->raw, b->raw);
    if (c)
        return c;
    return (a->raw.p > b->raw.p) - (a->raw.p < b->raw.p); /* the later one comes second */
}

/* FNV-1a: avoids most comparisons of text; a collision costs time, never correctness. */
static unsigned key_hash(const key *k)
{
    unescaped u = unescaping(k->raw);
    unsigned h = 2166136261u;

    for (int c; (c = next_byte(&u)) >= 0;)
        h = (h ^ (unsigned)c) * 16777619u;
    return h;
}

static void sift_down(key *k, size_t i, size_t n)
{
    key top = k[i];

    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && key_cmp(&k[c], &k[c + 1]) < 0)
            c++;
        if (key_cmp(&top, &k[c]) >= 0)
            break;
        k[i] = k[c];
    }
    k[i] = top;
}

/* Heap sort: in place, n log n at worst; qsort guarantees neither. */
static void sort_keys(key *k, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(k, i, n);
    for (size_t i = n; i-- > 1;) {
        key last = k[i];

        k[i] = k[0];
        k[0] = last;
        sift_down(k, 0, i);
    }
}

/* Returns the start of the first repeated key in the text, or NULL. */
static const char *find_repetition(key *k, size_t n)
{
    const char *at = NULL;

    for (size_t i = 0; i < n; i++)
        k[i].hash = key_hash(&k[i]);
    sort_keys(k, n);
    for (size_t i = 1; i < n; i++)
        if (k[i - 1].hash == k[i].hash && key_eq(&k[i - 1], &k[i]) && (!at || k[i].raw.p < at))
            at = k[i].raw.p;
    return at;
}

static bool grow_keys(scan *s)
{
    bool few = s->keys == s->few;
    size_t cap = few ? 0 : s->cap;
    key *k = ah_grow(s->mem, few ? NULL : s->keys, &cap, s->nkeys + 1, sizeof *k);

    if (!k)
        return false; /* s->what stays NULL */
    if (few)
        memcpy(k, s->few, sizeof s->few);
    s->keys = k;
    s->cap = cap;
    return true;
}

static bool add_key(scan *s, const key *k)
{
    size_t first = s->first[s->depth - 1];

    if (s->nkeys - first < LINEAR_KEYS)
        for (size_t i = first; i < s->nkeys; i++)
            if (key_eq(&s->keys[i], k))
                return fail(s, k->raw.p - 1, "duplicate key");
    if (s->nkeys == s->cap && !grow_keys(s))
        return false;
    s->keys[s->nkeys++] = *k;
    return true;
}

static bool has_nul(ah_slice raw)
{
    unescaped u = unescaping(raw);
    int c;

    while ((c = next_byte(&u)) > 0)
        continue;
    return c == 0;
}

/* Scans a key and its colon. */
static const char *scan_key(scan *s, const char *p)
{
    bool pieces = s->pieces;
    key k;

    if (p == s->end || *p != '"')
        return fail(s, p, "a key in double quotes expected");
    s->pieces = false;
    p = scan_string(s, p, &k);
    s->pieces = pieces;
    if (!p)
        return NULL;
    if (k.escaped && has_nul(k.raw))
        return fail(s, k.raw.p - 1, "NUL in a key");
    if (!add_key(s, &k))
        return NULL;
    p = skip_white(p, s->end);
    return p < s->end && *p == ':' ? p + 1 : fail(s, p, "':' expected");
}

static const char *scan_open(scan *s, const char *p, size_t first)
{
    if (s->depth >= s->max_depth)
        return fail(s, p, "nested deeper than 512 levels");
    s->first[s->depth++] = first;
    s->fresh = true;
    return p + 1;
}

static const char *scan_close(scan *s, const char *p)
{
    size_t first = s->first[--s->depth], n = s->nkeys - first;
    const char *at;

    s->fresh = false;
    if (first == IN_ARRAY)
        return p + 1;
    if (n > LINEAR_KEYS && (at = find_repetition(s->keys + first, n)))
        return fail(s, at - 1, "duplicate key");
    s->nkeys = first;
    return p + 1;
}

/* Scans a scalar, or the opening of a container. */
static const char *scan_value(scan *s, const char *p)
{
    key ignored;

    p = skip_white(p, s->end);
    if (p == s->end)
        return fail(s, p, NULL);
    if (*p == '"') /* most are */
        return scan_string(s, p, &ignored);
    switch (*p) {
    case '{':
        return scan_open(s, p, s->nkeys);
    case '[':
        return scan_open(s, p, IN_ARRAY);
    case 't':
        return scan_word(s, p, "true");
    case 'f':
        return scan_word(s, p, "false");
    case 'n':
        return scan_word(s, p, "null");
    default:
        if (*p == '-' || is_digit(*p))
            return scan_number(s, p);
        return fail(s, p, "unexpected character");
    }
}

/* Scans the next member of a container, or its end. */
static const char *scan_member(scan *s, const char *p)
{
    bool fresh = s->fresh, object = s->first[s->depth - 1] != IN_ARRAY;

    p = skip_white(p, s->end);
    if (p < s->end && *p == (object ? '}' : ']'))
        return scan_close(s, p);
    if (!fresh) {
        if (p == s->end || *p != ',')
            return fail(s, p, object ? "',' or '}' expected" : "',' or ']' expected");
        p = skip_white(p + 1, s->end);
    }
    s->fresh = false;
    if (object && !(p = scan_key(s, p)))
        return NULL;
    return scan_value(s, p);
}

static bool scan_text(scan *s, const char *p)
{
    if (s->end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        return fail(s, p, "byte order mark");
    p = scan_value(s, p);
    while (p && s->depth > 0)
        p = scan_member(s, p);
    if (!p)
        return false;
    p = skip_white(p, s->end);
    return p == s->end || fail(s, p, "more text after the value");
}

static void place(ah_slice text, size_t offset, ah_json_fault *f)
{
    f->offset = offset;
    f->line = f->column = 1;
    for (size_t i = 0; i < offset; i++) {
        f->column++;
        if (text.p[i] == '\n') {
            f->line++;
            f->column = 1;
        }
    }
}

static ah_status check(const ah_mem *mem, ah_slice text, int max_depth, size_t *halves,
                       ah_json_fault *fault)
{
    const char *start = text.p ? text.p : "";
    bool ok;
    scan s; /* its arrays are not cleared: only written elements are read */

    s.end = start + text.n;
    s.what = s.at = NULL;
    s.mem = mem;
    s.max_depth = max_depth < AH_JSON_MAX_DEPTH ? max_depth : AH_JSON_MAX_DEPTH;
    s.depth = 0;
    s.fresh = false;
    s.pieces = halves != NULL;
    s.halves = 0;
    s.keys = s.few;
    s.cap = FEW_KEYS;
    s.nkeys = 0;
    ok = scan_text(&s, start);
    if (s.keys != s.few)
        ah_free(mem, s.keys);
    if (ok && halves)
        *halves = s.halves;
    if (ok)
        return AH_OK;
    if (!s.what)
        return AH_NOMEM;
    if (fault) {
        place(text, (size_t)(s.at - start), fault);
        fault->what = s.what;
    }
    return AH_TOOL_VALIDATION;
}

ah_status ah_json_check(const ah_mem *mem, ah_slice text, int max_depth, ah_json_fault *fault)
{
    return check(mem, text, max_depth, NULL, fault);
}

ah_status ah_json_check_piece(const ah_mem *mem, ah_slice text, size_t *halves,
                              ah_json_fault *fault)
{
    return check(mem, text, AH_JSON_MAX_DEPTH, halves, fault);
}

enum { BEFORE = 24, AFTER = 16, LONGEST_SHOWN = 6 };

/* Returns the code point of a character of two or three bytes. */
static unsigned number_of(const char *p, size_t n)
{
    unsigned number = (unsigned char)*p & (n == 2 ? 0x1f : 0x0f);

    for (size_t i = 1; i < n; i++)
        number = number << 6 | ((unsigned char)p[i] & 0x3f);
    return number & 0xffff;
}

/* Makes one character safe for a terminal and a log; returns its length in the text. */
static size_t show_char(const char *p, const char *end, char shown[LONGEST_SHOWN + 1])
{
    unsigned char c = (unsigned char)*p;
    size_t n = ah_utf8_len(p, end);

    if (n == 0 || c < 0x20 || c == 0x7f)
        snprintf(shown, LONGEST_SHOWN + 1, "\\x%02x", c);
    else if (ah_control_len((ah_slice){p, n})) /* of two or three bytes */
        snprintf(shown, LONGEST_SHOWN + 1, "\\u%04x", number_of(p, n));
    else
        snprintf(shown, LONGEST_SHOWN + 1, "%.*s", (int)n, p);
    return n ? n : 1;
}

/* Returns the text around an offset, in whole characters. */
static void excerpt(ah_slice text, size_t offset,
                    char out[(BEFORE + AFTER + 4) * LONGEST_SHOWN + 1])
{
    const char *p = text.p + (offset > BEFORE ? offset - BEFORE : 0), *end = text.p + text.n;
    const char *stop = text.n - offset > AFTER ? text.p + offset + AFTER : end;
    char shown[LONGEST_SHOWN + 1];

    while (p < text.p + offset && p > text.p && ((unsigned char)*p & 0xc0) == 0x80)
        p++;
    for (*out = '\0'; p < stop; out += strlen(out)) {
        p += show_char(p, end, shown);
        memcpy(out, shown, strlen(shown) + 1);
    }
}

ah_status ah_json_err_at(ah_slice text, size_t offset, const char *said, ah_err *err)
{
    char near[(BEFORE + AFTER + 4) * LONGEST_SHOWN + 1] = "";
    ah_json_fault f;

    place(text, offset, &f);
    if (text.n)
        excerpt(text, offset, near);
    return ah_err_set(err, AH_TOOL_VALIDATION, "%s at line %zu, column %zu%s%s%s", said, f.line,
                      f.column, *near ? " near `" : "", near, *near ? "`" : "");
}

ah_status ah_json_check_err(const ah_mem *mem, ah_slice text, const char *what, ah_err *err)
{
    return ah_json_check_piece_err(mem, text, NULL, what, err);
}

ah_status ah_json_check_piece_err(const ah_mem *mem, ah_slice text, size_t *halves,
                                  const char *what, ah_err *err)
{
    ah_json_fault fault;
    ah_status st = check(mem, text, AH_JSON_MAX_DEPTH, halves, &fault);
    char said[400];

    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    if (st != AH_OK) {
        snprintf(said, sizeof said, "%.300s is not JSON: %s", what, fault.what);
        ah_json_err_at(text, fault.offset, said, err);
    }
    return st;
}
