/* Removes from a recording the keys that a server has sent back in pieces of a stream: no piece is
 * the whole key, but a reader of the recording, or a replay, joins them.
 *
 * The body is scanned as JSON in any framing (events, lines, a list, one document) by its
 * punctuation only; invalid JSON is kept too, and may contain pieces. Pieces are the strings of the
 * values. They are joined in the three ways in which readers join them: those at the same place in
 * each document with the same numbers beside them (`index` and the like), those at the same place,
 * and all that differ between documents. If a key is found in one of these, its first piece becomes
 * "[secret]" and the others lose their part. */
#include <stdlib.h>

#include "base/json.h"
#include "host/recording.h"

enum { MAX_DEPTH = 64, MAX_TEXT = 512 << 20 };

typedef struct piece {
    size_t at, n, order; /* place in the body, between the quotes; order of the pieces */
    uint64_t place;      /* hash of the members on the path to it */
    uint64_t numbered;   /* hash of the path and the numbers beside it */
    bool fixed;          /* the string is the same in each document */
} piece;

typedef struct level {
    uint64_t place, key, numbers; /* key: hash of the current member */
    size_t first;                 /* index of its first piece */
    bool counts;                  /* the current member is a numbering one, such as `index` */
} level;

typedef struct scan {
    const ah_mem *mem;
    ah_slice body;
    piece *piece;
    size_t n, cap;
    level level[MAX_DEPTH];
    size_t depth; /* may exceed the number of levels */
    bool failed;  /* out of memory */
} scan;

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    return a * 0xff51afd7ed558ccdu;
}

static level *level_of(scan *s)
{
    return &s->level[s->depth < MAX_DEPTH ? s->depth : MAX_DEPTH - 1];
}

/* -- finding the pieces ------------------------------------------------------------------------ */

static void open_level(scan *s)
{
    const level *up = level_of(s);
    level in = {.place = mix(up->place, up->key), .first = s->n};

    s->depth++;
    if (s->depth < MAX_DEPTH)
        s->level[s->depth] = in;
}

static void close_level(scan *s)
{
    s->depth -= s->depth > 0;
}

/* The closing quote of the string whose text begins at p, or NULL: it has no end. */
static const char *string_end(const char *p, const char *end)
{
    for (; p < end && *p != '"' && *p != '\n'; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end && *p == '"' ? p : NULL;
}

static void take_key(scan *s, ah_slice key)
{
    level *in = level_of(s);

    in->key = ah_slice_hash(key);
    in->counts = ah_slice_is(key, "index") || ah_slice_ends(key, "_index");
}

static void take_piece(scan *s, ah_slice raw)
{
    piece *grown = ah_grow(s->mem, s->piece, &s->cap, s->n + 1, sizeof *grown), p;

    if (!grown) {
        s->failed = true;
        return;
    }
    s->piece = grown;
    p = (piece){.at = (size_t)(raw.p - s->body.p), .n = raw.n, .order = s->n};
    p.place = p.numbered = mix(level_of(s)->place, level_of(s)->key);
    for (size_t i = 0; i <= s->depth && i < MAX_DEPTH; i++)
        p.numbered ^= s->level[i].numbers;
    s->piece[s->n++] = p;
}

/* Takes a number of the current object, which applies to the pieces before it in the object too. */
static void take_number(scan *s, ah_slice digits)
{
    level *in = level_of(s);
    uint64_t number = mix(mix(in->key, in->place), ah_slice_hash(digits));

    if (!in->counts)
        return;
    in->numbers ^= number;
    for (size_t i = in->first; i < s->n; i++)
        s->piece[i].numbered ^= number;
}

static const char *take_string(scan *s, const char *quote, const char *end)
{
    const char *close = string_end(quote + 1, end), *p;
    ah_slice raw;

    if (!close)
        return quote + 1;
    raw = (ah_slice){quote + 1, (size_t)(close - quote - 1)};
    for (p = close + 1; p < end && ah_is_blank(*p);)
        p++;
    if (p < end && *p == ':')
        take_key(s, raw);
    else
        take_piece(s, raw);
    return close + 1;
}

static const char *take_digits(scan *s, const char *p, const char *end)
{
    const char *from = p;

    while (p < end && *p >= '0' && *p <= '9')
        p++;
    take_number(s, (ah_slice){from, (size_t)(p - from)});
    return p;
}

/* A blank line closes all levels: the next document begins at the top. */
static const char *take_line_end(scan *s, const char *p, const char *end)
{
    p++;
    if (p < end && *p == '\r')
        p++;
    if (p < end && *p == '\n')
        s->depth = 0;
    return p;
}

static void find_pieces(scan *s)
{
    const char *p = s->body.p, *end = p + s->body.n;

    while (p < end && !s->failed) {
        if (*p == '"') {
            p = take_string(s, p, end);
        } else if (*p >= '0' && *p <= '9') {
            p = take_digits(s, p, end);
        } else if (*p == '\n') {
            p = take_line_end(s, p, end);
        } else {
            if (*p == '{' || *p == '[')
                open_level(s);
            else if (*p == '}' || *p == ']')
                close_level(s);
            p++;
        }
    }
}

/* -- joining the pieces ------------------------------------------------------------------------ */

static int by_order(const piece *a, const piece *b)
{
    return a->order < b->order ? -1 : a->order > b->order;
}

static int by_place(const void *x, const void *y)
{
    const piece *a = x, *b = y;

    return a->place != b->place ? (a->place < b->place ? -1 : 1) : by_order(a, b);
}

static int by_number(const void *x, const void *y)
{
    const piece *a = x, *b = y;

    return a->numbered != b->numbered ? (a->numbered < b->numbered ? -1 : 1) : by_order(a, b);
}

/* Order for qsort: changing pieces before fixed ones, each in their order. */
static int by_change(const void *x, const void *y)
{
    const piece *a = x, *b = y;

    return a->fixed != b->fixed ? (a->fixed ? 1 : -1) : by_order(a, b);
}

static bool goes_on_place(const piece *a, const piece *b)
{
    return a->place == b->place;
}

static bool goes_on_number(const piece *a, const piece *b)
{
    return a->numbered == b->numbered;
}

static bool goes_on_change(const piece *a, const piece *b)
{
    return !a->fixed && !b->fixed;
}

/* Marks pieces as fixed if there are several at their place and all are equal, so that they carry
 * no information. */
static void note_fixed(const scan *s)
{
    for (size_t i = 0, n; i < s->n; i += n) {
        bool same = true;

        for (n = 1; i + n < s->n && goes_on_place(&s->piece[i], &s->piece[i + n]); n++)
            same = same && s->piece[i].n == s->piece[i + n].n &&
                   memcmp(s->body.p + s->piece[i].at, s->body.p + s->piece[i + n].at,
                          s->piece[i].n) == 0;
        for (size_t k = 0; k < n; k++)
            s->piece[i + k].fixed = same && n > 1;
    }
}

/* Mark of a byte of the body. */
enum { KEPT, DROPPED, REPLACED };

/* Marks the bytes `from` to `to` of n joined pieces. */
static void mark(const piece *p, size_t n, size_t from, size_t to, char *marks)
{
    size_t at = 0;
    char how = REPLACED;

    for (size_t i = 0; i < n && at < to; at += p[i++].n)
        for (size_t k = from > at ? from - at : 0; k < p[i].n && at + k < to; k++) {
            marks[p[i].at + k] = how;
            how = DROPPED;
        }
}

static void mark_keys(const scan *s, const ah_secrets *secrets, const piece *p, size_t n,
                      ah_buf *text, char *marks)
{
    size_t at = 0, hit, len;

    ah_buf_reset(text, 0);
    for (size_t i = 0; i < n; i++)
        ah_buf_add(text, s->body.p + p[i].at, p[i].n);
    while (ah_buf_ok(text) &&
           ah_secrets_find(secrets, (ah_slice){text->data + at, text->len - at}, &hit, &len)) {
        mark(p, n, at + hit, at + hit + len, marks);
        at += hit + len;
    }
}

static void mark_groups(scan *s, const ah_secrets *secrets,
                        bool (*goes_on)(const piece *a, const piece *b), ah_buf *text, char *marks)
{
    for (size_t i = 0, n; i < s->n; i += n) {
        for (n = 1; i + n < s->n && goes_on(&s->piece[i], &s->piece[i + n]);)
            n++;
        if (n > 1)
            mark_keys(s, secrets, s->piece + i, n, text, marks);
    }
    s->failed = s->failed || !ah_buf_ok(text);
}

static void mark_all(scan *s, const ah_secrets *secrets, char *marks)
{
    ah_buf text;

    ah_buf_init(&text, s->mem, MAX_TEXT);
    qsort(s->piece, s->n, sizeof *s->piece, by_number);
    mark_groups(s, secrets, goes_on_number, &text, marks);
    qsort(s->piece, s->n, sizeof *s->piece, by_place);
    mark_groups(s, secrets, goes_on_place, &text, marks);
    note_fixed(s);
    qsort(s->piece, s->n, sizeof *s->piece, by_change);
    mark_groups(s, secrets, goes_on_change, &text, marks);
    ah_buf_clear(&text);
}

static void put_marked(ah_slice body, const char *marks, ah_buf *out)
{
    for (size_t i = 0, n; i < body.n; i += n) {
        for (n = 1; i + n < body.n && marks[i] == KEPT && marks[i + n] == KEPT;)
            n++;
        if (marks[i] == KEPT)
            ah_buf_add(out, body.p + i, n);
        else if (marks[i] == REPLACED)
            ah_buf_str(out, "[secret]");
    }
}

bool ah_recording_clean(const ah_mem *mem, const ah_secrets *secrets, ah_buf *body)
{
    scan s = {.mem = mem, .body = ah_buf_slice(body)};
    char *marks;
    ah_buf out;

    if (!secrets || !secrets->n || !body->len)
        return true;
    find_pieces(&s);
    if (!s.failed && s.n < 2) {
        ah_free(mem, s.piece);
        return true;
    }
    marks = s.failed ? NULL : ah_alloc(mem, body->len);
    ah_buf_init(&out, mem, body->max);
    if (marks) {
        mark_all(&s, secrets, marks);
        put_marked(s.body, marks, &out);
    }
    s.failed = s.failed || !marks || !ah_buf_ok(&out);
    ah_free(mem, marks);
    ah_free(mem, s.piece);
    if (s.failed) {
        ah_buf_clear(&out);
        return false;
    }
    ah_buf_clear(body);
    *body = out;
    return true;
}
