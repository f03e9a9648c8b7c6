/* JSON text: a strict scanner that judges what comes from outside, a reader over
 * what passed it, the small parts of a writer, and canonical text. The only file
 * that knows cJSON, and only ah_json_canon uses it. No schema, no Lua, no values.
 *
 * Duplicate keys: the first LINEAR_KEYS names of an object are compared one with
 * all; a larger object is sorted once when it closes and its neighbours compared.
 * Sorting was taken rather than a hash table because its worst case is n log n
 * whatever the sender does, with no secret seed to find and no second table: the
 * names already lie in one array that all open objects share as a stack. */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LINEAR_KEYS = 16,  /* compared one with all; more are sorted */
    FEW_KEYS = 128,    /* of all open objects together, before memory is asked for */
    SIGNIFICANT = 800, /* digits that can matter to a double: halfway cases have at most 767 */
    MAX_EXPONENT = 20000
};

static bool is_white(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_blank(char c)
{
    return c == ' ';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* ASCII that stands for itself in a string. */
static bool is_plain(char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && (unsigned char)c < 0x80;
}

/* The first of eight bytes that `is` not: the one with the lowest bit found where bytes
 * are loaded lowest first, else by looking. */
static inline const char *lowest(const char *p, uint64_t found, bool (*is)(char))
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    (void)is;
    return p + __builtin_ctzll(found) / 8;
#else
    (void)found;
    while (is(*p))
        p++;
    return p;
#endif
}

/* Eight bytes at once: has a high bit where a byte is not plain, none where all are.
 * A subtraction sets a high bit only by borrowing, so the lowest one set is true;
 * those above it may be due to its borrow. */
static uint64_t not_plain(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t quote = (w ^ ones * '"') - ones, slash = (w ^ ones * '\\') - ones;

    return (w | quote | slash | (w - ones * 0x20)) & ones << 7;
}

static inline const char *skip_plain(const char *p, const char *end)
{
    for (uint64_t w, found; end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        if ((found = not_plain(w)))
            return lowest(p, found, is_plain);
    }
    while (p < end && is_plain(*p))
        p++;
    return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
    for (uint64_t w; end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        if (w != 0x2020202020202020u)
            return lowest(p, w ^ 0x2020202020202020u, is_blank);
    }
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* Most white space is none, one blank, or a line's end and an indentation. */
static inline const char *skip_white(const char *p, const char *end)
{
    while (p < end && is_white(*p))
        p = skip_blanks(p + 1, end);
    return p;
}

/* Length of the well-formed character at s (RFC 3629, section 4), or 0. */
static size_t utf8_len(const char *s, const char *end)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > (size_t)(end - s))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90)) /* overlong */
        return 0;
    if ((p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90)) /* surrogate, too large */
        return 0;
    return n;
}

static size_t utf8_put(unsigned c, char out[4])
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n > 1 ? n : 0] | c);
    return n;
}

static const char *skip_ascii(const char *p, const char *end)
{
    for (uint64_t w; end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        if (w & 0x8080808080808080u)
            break;
    }
    while (p < end && (unsigned char)*p < 0x80)
        p++;
    return p;
}

bool ah_utf8_valid(ah_slice s)
{
    const char *p = s.n ? s.p : "", *end = p + s.n;

    while ((p = skip_ascii(p, end)) < end) {
        size_t n = utf8_len(p, end);

        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

void ah_utf8_repair(ah_slice s, ah_buf *out)
{
    const char *p = s.n ? s.p : "", *from = p, *end = p + s.n;

    while (p < end) {
        size_t n = utf8_len(p, end);

        if (n) {
            p += n;
            continue;
        }
        ah_buf_add(out, from, (size_t)(p - from));
        ah_buf_str(out, "\xef\xbf\xbd");
        from = ++p;
    }
    ah_buf_add(out, from, (size_t)(end - from));
}

/* Four hexadecimal digits, or -1. */
static int hex4(const char *p, const char *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i], lower = (char)(c | 0x20);

        if (is_digit(c))
            v = v * 16 + (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v * 16 + (lower - 'a' + 10);
        else
            return -1;
    }
    return v;
}

static bool is_high(int c)
{
    return (c & ~0x3ff) == 0xd800;
}

static bool is_low(int c)
{
    return (c & ~0x3ff) == 0xdc00;
}

/* The escaped low surrogate at p, or -1. */
static int low_at(const char *p, const char *end)
{
    int c = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2, end) : -1;

    return is_low(c) ? c : -1;
}

/* Decodes the escape at *pp (a backslash) and moves past it. */
static size_t unescape_one(const char **pp, const char *end, char out[4])
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *p = *pp + 1, *f;
    char c = p < end ? *p++ : '\\';
    int u, low;

    if (c != 'u') {
        *pp = p;
        f = memchr(from, c, 5);
        out[0] = f ? to[f - from] : c;
        return 1;
    }
    if ((u = hex4(p, end)) < 0) { /* not in checked text */
        *pp = end;
        return utf8_put(0xfffd, out);
    }
    p += 4;
    if (is_high(u) && (low = low_at(p, end)) >= 0) {
        u = 0x10000 + ((u & 0x3ff) << 10) + (low & 0x3ff);
        p += 6;
    }
    *pp = p;
    return utf8_put((unsigned)u, out);
}

/* The bytes of a raw string, unescaped one by one. */
typedef struct bytes {
    const char *p, *end;
    char held[4];
    size_t n, i;
} bytes;

static int next_byte(bytes *b) /* -1 at the end */
{
    if (b->i < b->n)
        return (unsigned char)b->held[b->i++];
    if (b->p == b->end)
        return -1;
    if (*b->p != '\\')
        return (unsigned char)*b->p++;
    b->n = unescape_one(&b->p, b->end, b->held);
    b->i = 1;
    return (unsigned char)b->held[0];
}

/* As memcmp, of the unescaped strings. */
static int raw_cmp(ah_slice a, ah_slice b)
{
    bytes x = {.p = a.p, .end = a.p + a.n}, y = {.p = b.p, .end = b.p + b.n};
    int c, d;

    do {
        c = next_byte(&x);
        d = next_byte(&y);
    } while (c == d && c >= 0);
    return c - d;
}

typedef struct key {
    ah_slice raw;
    unsigned hash; /* only where an object is sorted */
    bool escaped;
} key;

static const size_t IN_ARRAY = (size_t)-1;

typedef struct scan {
    const char *end;
    const char *what, *at; /* the fault; what is NULL when memory is out */
    const ah_mem *mem;
    int depth, max_depth;
    bool fresh; /* a container was just opened */
    size_t nkeys, cap;
    key *keys; /* of all open objects, the outermost first; `few` until that is full */
    key few[FEW_KEYS];
    size_t first[AH_JSON_MAX_DEPTH]; /* of each open object its first key; IN_ARRAY for arrays */
} scan;

/* Each scan_x takes the place where x begins and returns the one behind it, or NULL. */

static const char *fail(scan *s, const char *at, const char *what)
{
    s->at = at;
    s->what = at == s->end ? "unexpected end of the text" : what;
    return NULL;
}

static const char *scan_escape(scan *s, const char *slash)
{
    const char *p = slash + 1;
    int u;

    if (p == s->end)
        return fail(s, p, NULL);
    if (!memchr("\"\\/bfnrtu", *p, 9))
        return fail(s, slash, "unknown escape");
    if (*p++ != 'u')
        return p;
    if ((u = hex4(p, s->end)) < 0)
        return fail(s, slash, "\\u without four hexadecimal digits");
    p += 4;
    if (is_low(u) || (is_high(u) && low_at(p, s->end) < 0))
        return fail(s, slash, "lone surrogate");
    return is_high(u) ? p + 6 : p;
}

static const char *scan_utf8(scan *s, const char *p)
{
    do {
        size_t n = utf8_len(p, s->end);

        if (n == 0)
            return fail(s, p, "malformed UTF-8");
        p += n;
    } while (p < s->end && (unsigned char)*p >= 0x80);
    return p;
}

static const char *scan_string(scan *s, const char *quote, key *out)
{
    const char *from = quote + 1, *p = from;

    out->escaped = false;
    while ((p = skip_plain(p, s->end)) < s->end && *p != '"') {
        if ((unsigned char)*p < 0x20)
            return fail(s, p, "control character in a string");
        out->escaped |= *p == '\\';
        p = *p == '\\' ? scan_escape(s, p) : scan_utf8(s, p);
        if (!p)
            return NULL;
    }
    if (p == s->end)
        return fail(s, p, NULL);
    out->raw = (ah_slice){from, (size_t)(p - from)};
    return p + 1;
}

/* Digits, at least one. */
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

static bool key_eq(const key *a, const key *b)
{
    if (!a->escaped && !b->escaped)
        return ah_slice_eq(a->raw, b->raw);
    return raw_cmp(a->raw, b->raw) == 0;
}

static int key_cmp(const key *a, const key *b)
{
    int c;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    c = a->escaped || b->escaped ? raw_cmp(a->raw, b->raw) : ah_slice_cmp(a->raw, b->raw);
    if (c)
        return c;
    return (a->raw.p > b->raw.p) - (a->raw.p < b->raw.p); /* the later one second */
}

/* FNV-1a: spares most comparisons of text; a collision costs time, never correctness. */
static unsigned key_hash(const key *k)
{
    bytes b = {.p = k->raw.p, .end = k->raw.p + k->raw.n};
    unsigned h = 2166136261u;

    for (int c; (c = next_byte(&b)) >= 0;)
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

/* Heap sort: in place, n log n at worst (qsort promises neither). */
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

/* The keys of a large object: where the first repetition in the text begins, or NULL. */
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
    bytes b = {.p = raw.p, .end = raw.p + raw.n};
    int c;

    while ((c = next_byte(&b)) > 0)
        continue;
    return c == 0;
}

/* A key and its colon. */
static const char *scan_key(scan *s, const char *p)
{
    key k;

    if (p == s->end || *p != '"')
        return fail(s, p, "a key in double quotes expected");
    if (!(p = scan_string(s, p, &k)))
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
        return fail(s, p, "nested too deep");
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

/* A scalar, or the opening of a container. */
static const char *scan_value(scan *s, const char *p)
{
    key ignored;

    p = skip_white(p, s->end);
    if (p == s->end)
        return fail(s, p, NULL);
    switch (*p) {
    case '{':
        return scan_open(s, p, s->nkeys);
    case '[':
        return scan_open(s, p, IN_ARRAY);
    case '"':
        return scan_string(s, p, &ignored);
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

/* In a container: its next member, or its end. */
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

ah_status ah_json_check(const ah_mem *mem, ah_slice text, int max_depth, ah_json_fault *fault)
{
    const char *start = text.p ? text.p : "";
    bool ok;
    scan s; /* its arrays are not cleared: only what was written is read */

    s.end = start + text.n;
    s.what = s.at = NULL;
    s.mem = mem;
    s.max_depth = max_depth < AH_JSON_MAX_DEPTH ? max_depth : AH_JSON_MAX_DEPTH;
    s.depth = 0;
    s.fresh = false;
    s.keys = s.few;
    s.cap = FEW_KEYS;
    s.nkeys = 0;
    ok = scan_text(&s, start);
    if (s.keys != s.few)
        ah_free(mem, s.keys);
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

enum { BEFORE = 24, AFTER = 16, LONGEST_SHOWN = 6 };

/* One character made safe for a terminal and a log; returns its length in the text. */
static size_t show_char(const char *p, const char *end, char shown[LONGEST_SHOWN + 1])
{
    unsigned char c = (unsigned char)*p;
    size_t n = utf8_len(p, end);

    if (n == 0 || c < 0x20 || c == 0x7f)
        snprintf(shown, LONGEST_SHOWN + 1, "\\x%02x", c);
    else if (c == 0xc2 && (unsigned char)p[1] < 0xa0) /* C1 controls */
        snprintf(shown, LONGEST_SHOWN + 1, "\\u%04x", (unsigned char)p[1]);
    else
        snprintf(shown, LONGEST_SHOWN + 1, "%.*s", (int)n, p);
    return n ? n : 1;
}

/* The text around an offset, whole characters only. */
static void excerpt(ah_slice text, size_t offset, char out[(BEFORE + AFTER + 4) * LONGEST_SHOWN + 1])
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
    ah_json_fault fault;
    ah_status st = ah_json_check(mem, text, AH_JSON_MAX_DEPTH, &fault);
    char said[400];

    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    if (st != AH_OK) {
        snprintf(said, sizeof said, "%.300s is not JSON: %s", what, fault.what);
        ah_json_err_at(text, fault.offset, said, err);
    }
    return st;
}

/* The closing quote of the string whose text begins at p, or `end`. */
static const char *string_end(const char *p, const char *end, bool *escaped)
{
    const char *quote = memchr(p, '"', (size_t)(end - p)), *slash;

    *escaped = false;
    while (quote && (slash = memchr(p, '\\', (size_t)(quote - p)))) {
        *escaped = true;
        if (end - slash < 2)
            return end;
        p = slash + 2;
        if (quote < p) /* it was the escaped one */
            quote = memchr(p, '"', (size_t)(end - p));
    }
    return quote ? quote : end;
}

static ah_json_token read_string(ah_json_reader *r)
{
    ah_json_token t = {.kind = AH_JSON_STRING, .raw = {.p = r->p + 1}};
    const char *p = string_end(t.raw.p, r->end, &t.escaped);

    t.raw.n = (size_t)(p - t.raw.p);
    p += p < r->end;
    r->p = p;
    p = skip_white(p, r->end);
    if (p < r->end && *p == ':') {
        t.kind = AH_JSON_KEY;
        r->p = p + 1;
    }
    return t;
}

static ah_json_token read_word(ah_json_reader *r, ah_json_kind kind)
{
    const char *p = r->p + 1;

    while (r->end > p && *p > ' ' && *p != ',' && *p != ']' && *p != '}')
        p++;
    ah_json_token t = {.kind = kind, .raw = {r->p, (size_t)(p - r->p)}};
    r->p = p;
    return t;
}

static ah_json_token read_bracket(ah_json_reader *r, ah_json_kind kind)
{
    return (ah_json_token){.kind = kind, .raw = {r->p++, 1}};
}

ah_json_reader ah_json_read(ah_slice checked)
{
    const char *p = checked.p ? checked.p : "";

    return (ah_json_reader){.p = p, .end = p + checked.n};
}

ah_json_token ah_json_next(ah_json_reader *r)
{
    while (r->p < r->end && (is_white(*r->p) || *r->p == ',' || *r->p == ':'))
        r->p++;
    if (r->p == r->end)
        return (ah_json_token){.kind = AH_JSON_END, .raw = {r->p, 0}};
    switch (*r->p) {
    case '{':
        return read_bracket(r, AH_JSON_OBJECT);
    case '}':
        return read_bracket(r, AH_JSON_OBJECT_END);
    case '[':
        return read_bracket(r, AH_JSON_ARRAY);
    case ']':
        return read_bracket(r, AH_JSON_ARRAY_END);
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, AH_JSON_TRUE);
    case 'f':
        return read_word(r, AH_JSON_FALSE);
    case 'n':
        return read_word(r, AH_JSON_NULL);
    default:
        return read_word(r, AH_JSON_NUMBER);
    }
}

/* To the bracket that closes the one just read. */
static void skip_container(ah_json_reader *r)
{
    bool escaped;

    for (size_t open = 1; open > 0 && r->p < r->end; r->p++) {
        switch (*r->p) {
        case '{':
        case '[':
            open++;
            break;
        case '}':
        case ']':
            open--;
            break;
        case '"':
            if ((r->p = string_end(r->p + 1, r->end, &escaped)) == r->end)
                return;
            break;
        default:
            break;
        }
    }
}

ah_slice ah_json_skip(ah_json_reader *r, ah_json_token t)
{
    if (t.kind == AH_JSON_STRING || t.kind == AH_JSON_KEY) {
        size_t left = (size_t)(r->end - t.raw.p);

        return (ah_slice){t.raw.p - 1, 1 + (t.raw.n < left ? t.raw.n + 1 : left)};
    }
    if (t.kind != AH_JSON_OBJECT && t.kind != AH_JSON_ARRAY)
        return t.raw;
    skip_container(r);
    return (ah_slice){t.raw.p, (size_t)(r->p - t.raw.p)};
}

ah_json_kind ah_json_kind_of(ah_slice checked)
{
    ah_json_reader r = ah_json_read(checked);

    return ah_json_next(&r).kind;
}

static bool token_is(ah_json_token t, ah_slice s)
{
    bytes b = {.p = t.raw.p, .end = t.raw.p + t.raw.n};
    size_t i = 0;
    int c;

    if (!t.escaped)
        return ah_slice_eq(t.raw, s);
    while ((c = next_byte(&b)) >= 0 && i < s.n && c == (unsigned char)s.p[i])
        i++;
    return c < 0 && i == s.n;
}

static ah_slice member(ah_slice object, ah_slice name)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_OBJECT)
        return (ah_slice){0};
    while ((t = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (token_is(t, name))
            return value;
    }
    return (ah_slice){0};
}

ah_slice ah_json_member(ah_slice checked_object, const char *name)
{
    return member(checked_object, ah_slice_of(name));
}

bool ah_json_members(ah_slice checked_object, const ah_json_wanted *want, size_t n)
{
    ah_json_reader r = ah_json_read(checked_object);
    ah_json_token t = ah_json_next(&r);
    bool is_object = t.kind == AH_JSON_OBJECT;

    for (size_t i = 0; i < n; i++)
        *want[i].value = (ah_slice){0};
    while (is_object && (t = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        for (size_t i = 0; i < n; i++)
            if (token_is(t, ah_slice_of(want[i].key)))
                *want[i].value = value;
    }
    return is_object;
}

ah_slice ah_json_path(ah_slice checked, const char *dotted)
{
    for (const char *dot; checked.p; dotted = dot + 1) {
        dot = strchr(dotted, '.');
        if (!dot)
            return ah_json_member(checked, dotted);
        checked = member(checked, (ah_slice){dotted, (size_t)(dot - dotted)});
    }
    return checked;
}

void ah_json_unescape(ah_slice raw, ah_buf *out)
{
    const char *p = raw.n ? raw.p : "", *end = p + raw.n, *slash;
    char c[4];

    while (p < end && (slash = memchr(p, '\\', (size_t)(end - p)))) {
        ah_buf_add(out, p, (size_t)(slash - p));
        p = slash;
        ah_buf_add(out, c, unescape_one(&p, end, c));
    }
    ah_buf_add(out, p, (size_t)(end - p));
}

bool ah_json_token_is(ah_json_token t, const char *lit)
{
    return (t.kind == AH_JSON_STRING || t.kind == AH_JSON_KEY) && token_is(t, ah_slice_of(lit));
}

static ah_json_token first_token(ah_slice value)
{
    ah_json_reader r = ah_json_read(value);

    return ah_json_next(&r);
}

bool ah_json_string(ah_slice value, ah_buf *out)
{
    ah_json_token t = first_token(value);

    if (t.kind != AH_JSON_STRING)
        return false;
    if (t.escaped)
        ah_json_unescape(t.raw, out);
    else
        ah_buf_put(out, t.raw);
    return true;
}

bool ah_json_string_is(ah_slice value, const char *lit)
{
    return ah_json_token_is(first_token(value), lit);
}

ah_slice ah_json_plain(ah_slice value)
{
    ah_json_token t = first_token(value);

    return t.kind == AH_JSON_STRING && !t.escaped ? t.raw : (ah_slice){0};
}

/* Escapes as cJSON's printer does, so that both give the same canonical text. */
static void put_escape(ah_buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *f = c ? memchr(from, c, 7) : NULL;

    if (f) {
        ah_buf_char(b, '\\');
        ah_buf_char(b, to[f - from]);
    } else {
        ah_buf_fmt(b, "\\u%04x", c);
    }
}

void ah_json_put_string(ah_buf *b, ah_slice s)
{
    const char *p = s.n ? s.p : "", *end = p + s.n;

    ah_buf_char(b, '"');
    while (p < end) {
        const char *from = p;

        do
            p = skip_plain(p, end);
        while (p < end && (unsigned char)*p >= 0x80 && ++p < end);
        ah_buf_add(b, from, (size_t)(p - from));
        if (p < end)
            put_escape(b, (unsigned char)*p++);
    }
    ah_buf_char(b, '"');
}

/* Only what fits and is not "-0", which is a float. */
static bool read_int(ah_slice lit, int64_t *out)
{
    bool negative = lit.n && lit.p[0] == '-';
    uint64_t u = 0, max = (uint64_t)INT64_MAX + negative;

    for (size_t i = negative; i < lit.n; i++) {
        uint64_t d = (uint64_t)(lit.p[i] - '0');

        if (!is_digit(lit.p[i]) || u > (max - d) / 10)
            return false;
        u = u * 10 + d;
    }
    if (negative && u == 0)
        return false;
    *out = negative ? (int64_t)(0 - u) : (int64_t)u;
    return lit.n > negative;
}

/* What follows 'e', held within bounds that no count of digits reaches. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    for (p += p < end && !is_digit(*p); p < end && is_digit(*p); p++)
        if (v < INT64_MAX / 1000)
            v = v * 10 + (*p - '0');
    return negative ? -v : v;
}

/* The literal rewritten as digits and exponent without a point: strtod would look
 * for the locale's. Digits too many to matter are only told to be more than none. */
static double read_float(ah_slice lit)
{
    const char *p = lit.n ? lit.p : "", *end = p + lit.n;
    char s[SIGNIFICANT + 32];
    size_t n = 0, most = SIGNIFICANT;
    int64_t e = 0;
    bool point = false, more = false;

    if (lit.n && *p == '-') {
        s[n++] = *p++;
        most++;
    }
    for (; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        e -= point;
        if (n < most) {
            if (*p != '0' || (n && is_digit(s[n - 1])))
                s[n++] = *p;
        } else {
            e++;
            more |= *p != '0';
        }
    }
    if (more) {
        s[n++] = '1';
        e--;
    }
    if (p < end)
        e += read_exponent(p + 1, end);
    e = e > MAX_EXPONENT ? MAX_EXPONENT : e < -MAX_EXPONENT ? -MAX_EXPONENT : e;
    snprintf(s + n, sizeof s - n, "%se%d", n && is_digit(s[n - 1]) ? "" : "0", (int)e);
    return strtod(s, NULL);
}

bool ah_json_number(ah_slice literal, ah_json_num *out)
{
    *out = (ah_json_num){0};
    if (read_int(literal, &out->i)) {
        out->is_int = true;
        out->d = (double)out->i;
        return true;
    }
    out->i = 0;
    out->d = read_float(literal);
    return out->d <= DBL_MAX && out->d >= -DBL_MAX;
}

/* "%g", but with '.' for the locale's point (of whatever bytes) and never like an integer. */
static void print_double(char *out, size_t size, int digits, double d)
{
    char s[48];
    const char *between = "";
    size_t whole, point;

    snprintf(s, sizeof s, "%.*g", digits, d);
    whole = strspn(s, "-0123456789");
    point = strcspn(s + whole, "0123456789e");
    if (point)
        between = ".";
    else if (!s[whole])
        between = ".0";
    snprintf(out, size, "%.*s%s%s", (int)whole, s, between, s + whole + point);
}

void ah_json_put_double(ah_buf *b, double d)
{
    int digits = d < DBL_MIN && d > -DBL_MIN ? 1 : 15; /* subnormals hold fewer */
    ah_json_num back;
    char s[48];

    do
        print_double(s, sizeof s, digits, d);
    while (digits++ < 17 && (!ah_json_number(ah_slice_of(s), &back) || back.d != d));
    ah_buf_str(b, s);
}

/* Integers of any length are canonical as they stand, "-0" (a float) apart. */
static void put_number(ah_buf *b, ah_slice literal)
{
    size_t n = 0;
    ah_json_num num;

    while (n < literal.n && (is_digit(literal.p[n]) || literal.p[n] == '-'))
        n++;
    if ((n == literal.n && !ah_slice_is(literal, "-0")) || !ah_json_number(literal, &num))
        ah_buf_put(b, literal);
    else
        ah_json_put_double(b, num.d);
}

/* A cJSON tree in the making. The tree is in cJSON's memory, the buffers in ours. */
typedef struct tree {
    cJSON *root;
    cJSON *open[AH_JSON_MAX_DEPTH];
    int depth;
    ah_buf name, text, quoted;
} tree;

/* Buffer's bytes as a C string; NULL when memory is out. */
static const char *c_string(ah_buf *b)
{
    ah_buf_char(b, '\0');
    return ah_buf_ok(b) ? b->data : NULL;
}

static cJSON *number_node(tree *t, ah_slice literal)
{
    const char *s;

    ah_buf_reset(&t->text, 0);
    put_number(&t->text, literal);
    s = c_string(&t->text);
    return s ? cJSON_CreateRaw(s) : NULL;
}

/* A string with NUL goes in ready-made: a cJSON string ends there. */
static cJSON *string_node(tree *t, ah_json_token tok)
{
    ah_slice s;

    ah_buf_reset(&t->text, 0);
    ah_json_unescape(tok.raw, &t->text);
    s = ah_buf_slice(&t->text);
    if (!s.n || !memchr(s.p, '\0', s.n)) {
        const char *c = c_string(&t->text);

        return c ? cJSON_CreateString(c) : NULL;
    }
    ah_buf_reset(&t->quoted, 0);
    ah_json_put_string(&t->quoted, s);
    return ah_buf_ok(&t->text) && c_string(&t->quoted) ? cJSON_CreateRaw(t->quoted.data) : NULL;
}

static cJSON *new_node(tree *t, ah_json_token tok)
{
    switch (tok.kind) {
    case AH_JSON_NULL:
        return cJSON_CreateNull();
    case AH_JSON_FALSE:
        return cJSON_CreateFalse();
    case AH_JSON_TRUE:
        return cJSON_CreateTrue();
    case AH_JSON_NUMBER:
        return number_node(t, tok.raw);
    case AH_JSON_STRING:
        return string_node(t, tok);
    case AH_JSON_ARRAY:
        return cJSON_CreateArray();
    case AH_JSON_OBJECT:
        return cJSON_CreateObject();
    case AH_JSON_END:
    case AH_JSON_KEY:
    case AH_JSON_ARRAY_END:
    case AH_JSON_OBJECT_END:
        break;
    }
    return NULL;
}

/* Hangs a node into the tree, which owns it from then on. */
static bool hang(tree *t, cJSON *node)
{
    cJSON *parent = t->depth ? t->open[t->depth - 1] : NULL;

    if (!node)
        return false;
    if (!parent && !t->root) {
        t->root = node;
        return true;
    }
    if (parent && (cJSON_IsObject(parent) ? cJSON_AddItemToObject(parent, t->name.data, node)
                                          : cJSON_AddItemToArray(parent, node)))
        return true;
    cJSON_Delete(node);
    return false;
}

static bool keep_name(tree *t, ah_slice raw)
{
    ah_buf_reset(&t->name, 0);
    ah_json_unescape(raw, &t->name);
    return c_string(&t->name) != NULL;
}

static cJSON *merge(cJSON *a, cJSON *b)
{
    cJSON *first = NULL, **end = &first;

    while (a && b) {
        cJSON **less = strcmp(a->string, b->string) <= 0 ? &a : &b;

        *end = *less;
        *less = (*less)->next;
        end = &(*end)->next;
    }
    *end = a ? a : b;
    return first;
}

/* Sorts the first n of a list; recursion of log2(n). */
static cJSON *sort_list(cJSON *list, size_t n)
{
    cJSON *last = list, *rest;

    if (n < 2) {
        if (list)
            list->next = NULL;
        return list;
    }
    for (size_t i = 1; i < n / 2; i++)
        last = last->next;
    rest = last->next;
    list = sort_list(list, n / 2);
    return merge(list, sort_list(rest, n - n / 2));
}

/* Sorts members by the bytes of their keys, with the links as cJSON keeps them:
 * the first one's prev is the last. */
static void sort_members(cJSON *object)
{
    cJSON *last = NULL;
    size_t n = 0;
    bool sorted = true;

    for (cJSON *c = object->child; c; c = c->next, n++)
        sorted = sorted && (!c->next || strcmp(c->string, c->next->string) < 0);
    if (sorted)
        return;
    object->child = sort_list(object->child, n);
    for (cJSON *c = object->child; c; last = c, c = c->next)
        c->prev = last;
    object->child->prev = last;
}

static bool grow_tree(tree *t, ah_json_token tok)
{
    cJSON *node;

    if (tok.kind == AH_JSON_KEY)
        return keep_name(t, tok.raw);
    if (tok.kind == AH_JSON_ARRAY_END || tok.kind == AH_JSON_OBJECT_END) {
        if (t->depth == 0)
            return false;
        node = t->open[--t->depth];
        if (cJSON_IsObject(node))
            sort_members(node);
        return true;
    }
    node = new_node(t, tok);
    if (!hang(t, node))
        return false;
    if (tok.kind == AH_JSON_ARRAY || tok.kind == AH_JSON_OBJECT) {
        if (t->depth == AH_JSON_MAX_DEPTH)
            return false;
        t->open[t->depth++] = node;
    }
    return true;
}

ah_status ah_json_canon(const ah_mem *mem, ah_slice checked, ah_buf *out)
{
    ah_json_reader r = ah_json_read(checked);
    ah_status st = AH_NOMEM;
    char *printed = NULL;
    tree t = {0};

    ah_buf_init(&t.name, mem, checked.n + 1);
    ah_buf_init(&t.text, mem, checked.n + 64); /* a number may become longer */
    ah_buf_init(&t.quoted, mem, checked.n + 3);
    for (ah_json_token tok; (tok = ah_json_next(&r)).kind != AH_JSON_END;)
        if (!grow_tree(&t, tok))
            goto done;
    if (!t.root || !(printed = cJSON_PrintUnformatted(t.root)))
        goto done;
    ah_buf_str(out, printed);
    st = out->status;
done:
    cJSON_free(printed);
    cJSON_Delete(t.root);
    ah_buf_clear(&t.name);
    ah_buf_clear(&t.text);
    ah_buf_clear(&t.quoted);
    return st;
}

const char *ah_json_version(void)
{
    return cJSON_Version();
}
