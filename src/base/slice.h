/* A slice: borrowed bytes. May contain NUL; never a format string.
 * Callers: its floor, floors above. */
#ifndef AH_BASE_SLICE_H
#define AH_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct ah_slice {
    const char *p; /* NULL: missing, which is not the same as empty */
    size_t n;
} ah_slice;

/* A literal, usable in initialisers. */
#define AH_LIT(s)                                                                                  \
    {                                                                                              \
        .p = (s), .n = sizeof(s) - 1                                                               \
    }
/* printf arguments for "%.*s" (cut at 2 GiB). */
#define AH_FMT(s) (int)((s).n > 0x7fffffff ? 0x7fffffff : (s).n), (s).p ? (s).p : ""

static inline ah_slice ah_slice_of(const char *s)
{
    return (ah_slice){.p = s, .n = s ? strlen(s) : 0};
}

static inline bool ah_slice_eq(ah_slice a, ah_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool ah_slice_is(ah_slice a, const char *lit)
{
    return ah_slice_eq(a, ah_slice_of(lit));
}

static inline bool ah_slice_begins(ah_slice a, const char *lit)
{
    size_t n = strlen(lit);

    return a.n >= n && memcmp(a.p, lit, n) == 0;
}

static inline bool ah_slice_ends(ah_slice a, const char *lit)
{
    size_t n = strlen(lit);

    return a.n >= n && memcmp(a.p + a.n - n, lit, n) == 0;
}

/* Compares by bytes, a prefix first: the order of map keys. */
int ah_slice_cmp(ah_slice a, ah_slice b);

/* Returns the first occurrence of `what` in `in`, or NULL. */
const char *ah_slice_find(ah_slice in, ah_slice what);
/* True if s is a word of the list " one two ", with a blank on each side of each word. */
bool ah_slice_among(ah_slice s, const char *words);

/* Removes and returns the first line, without its end. */
ah_slice ah_slice_line(ah_slice *rest);

/* For ASCII, independent of the locale. */
static inline bool ah_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ah_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool ah_is_letter(char c)
{
    return ah_is_upper(c) || (c >= 'a' && c <= 'z');
}

static inline char ah_lower(char c)
{
    return ah_is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

static inline bool ah_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

ah_slice ah_slice_trim(ah_slice s);                  /* without blanks at both ends */
bool ah_slice_is_word(ah_slice a, const char *word); /* ignores case */

/* FNV-1a: equal on every machine and in every version. It does not resist deliberate collisions. */
uint64_t ah_slice_hash(ah_slice s);
/* Hashes in parts: starts from AH_HASH_BEGIN or the result of the part before. */
#define AH_HASH_BEGIN UINT64_C(14695981039346656037)
uint64_t ah_slice_hash_on(uint64_t before, ah_slice s);

/* Marks a cut text: number of bytes left out. */
#define AH_LEFT_OUT " [... %zu bytes left out]"

/* Returns n, reduced so that no UTF-8 character of the text is split. */
size_t ah_utf8_cut(const char *p, size_t n);

/* Returns the length of the first character if a terminal or an editor acts on it instead of
 * showing it: controls (C0, DEL, C1), separators of lines and paragraphs, and characters that
 * change the direction of writing. Otherwise 0. */
size_t ah_control_len(ah_slice text);
/* Replaces each such character with a blank, in place, so that the text is one line. Returns the
 * new length. */
size_t ah_flatten(char *p, size_t n);

#endif
