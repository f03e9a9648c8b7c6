/* The characters of JSON text, shared by json*.c and secret.c: classes, skipping, UTF-8, and
 * reading strings byte by byte without unescaping them into memory. The functions are small and
 * hot, therefore inline. None reports an error. Callers: its floor. */
#ifndef AH_BASE_JSON_CHARS_H
#define AH_BASE_JSON_CHARS_H

#include "base/json.h"

/* 1 on little-endian machines: the lowest set bit of a word then marks its first relevant byte.
 * 0 elsewhere: bytes are checked one by one. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOWEST_FIRST = 1 };
#else
enum { LOWEST_FIRST = 0 };
#endif

static inline bool is_white(char c)
{
    return (unsigned char)c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* True for ASCII that stands for itself in a string. */
static inline bool is_plain(char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && (unsigned char)c < 0x80;
}

/* Tests eight bytes at once: the result has a high bit set if some byte is not plain, and is 0
 * if all are. A subtraction sets a high bit only by borrowing, so the lowest set bit is right;
 * higher ones may come from its borrow. */
static inline uint64_t not_plain(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t quote = (w ^ ones * '"') - ones, slash = (w ^ ones * '\\') - ones;

    return (w | quote | slash | (w - ones * 0x20)) & ones << 7;
}

static inline const char *skip_plain(const char *p, const char *end)
{
    for (uint64_t w, found; LOWEST_FIRST && end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        if ((found = not_plain(w)))
            return p + __builtin_ctzll(found) / 8;
    }
    while (p < end && is_plain(*p))
        p++;
    return p;
}

/* The slow path of skip_white. */
const char *ah_json_skip_white(const char *p, const char *end);

static inline const char *skip_white(const char *p, const char *end)
{
    return p < end && is_white(*p) ? ah_json_skip_white(p, end) : p;
}

/* Returns the length of the well-formed character at s (RFC 3629, section 4), or 0. */
size_t ah_utf8_len(const char *s, const char *end);

static inline bool is_high_surrogate(int c)
{
    return (c & ~0x3ff) == 0xd800;
}

static inline bool is_low_surrogate(int c)
{
    return (c & ~0x3ff) == 0xdc00;
}

/* Returns the value of four hexadecimal digits, or -1. */
int ah_json_hex4(const char *p, const char *end);

/* Returns the escaped low surrogate at p, or -1. */
int ah_json_low_surrogate(const char *p, const char *end);

/* Decodes the escape at *pp (a backslash) and moves past it. Returns the length of `out`. */
size_t ah_json_unescape_one(const char **pp, const char *end, char out[4]);

/* A reader of a raw string that unescapes it byte by byte. */
typedef struct unescaped {
    const char *p, *end;
    char held[4]; /* bytes of the escape just decoded */
    size_t n, i;  /* number of these bytes, and of those returned */
} unescaped;

static inline unescaped unescaping(ah_slice raw)
{
    return (unescaped){.p = raw.p, .end = raw.p + raw.n};
}

static inline int next_byte(unescaped *u) /* -1 at the end */
{
    if (u->i < u->n)
        return (unsigned char)u->held[u->i++];
    if (u->p == u->end)
        return -1;
    if (*u->p != '\\')
        return (unsigned char)*u->p++;
    u->n = ah_json_unescape_one(&u->p, u->end, u->held);
    u->i = 1;
    return (unsigned char)u->held[0];
}

#endif
