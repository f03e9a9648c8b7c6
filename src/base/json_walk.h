/* A fast reader for checked text of known form, used by json.c and by the readers of model
 * responses for each delta of a stream. It goes from key to key and from item to item; ah_json_next
 * must test what each token is. Inline, because the steps are small and many.
 *
 * After ah_json_read a reader is before a value. The caller enters it with enter, skips it with
 * pass_value, or reads it token by token. Callers: its floor, wire, io. */
#ifndef AH_BASE_JSON_WALK_H
#define AH_BASE_JSON_WALK_H

#include "base/json_chars.h"

enum { SHORT_STRING = 64 /* most are: two calls of memchr would cost more */ };

/* The slow path of string_end: the text up to `near` is plain and has no quote. */
const char *ah_json_far_string_end(const char *p, const char *near, const char *end, bool *escaped);

/* Returns the closing quote of the string whose text begins at p, or `end`. */
static inline const char *string_end(const char *p, const char *end, bool *escaped)
{
    const char *near = skip_plain(p, end - p > SHORT_STRING ? p + SHORT_STRING : end);

    *escaped = false;
    return near < end && *near == '"' ? near : ah_json_far_string_end(p, near, end, escaped);
}

/* Reads the string whose opening quote is at r->p, and moves r after it. */
static inline ah_json_token read_string(ah_json_reader *r)
{
    ah_json_token t = {.kind = AH_JSON_STRING, .raw = {.p = r->p + 1}};
    const char *p = string_end(t.raw.p, r->end, &t.escaped);

    t.raw.n = (size_t)(p - t.raw.p);
    r->p = p + (p < r->end);
    return t;
}

/* Moves r after the colon; false if there is none. */
static inline bool pass_colon(ah_json_reader *r)
{
    const char *p = skip_white(r->p, r->end);
    bool is = p < r->end && *p == ':';

    if (is)
        r->p = p + 1;
    return is;
}

/* Returns the end of a number, true, false or null. */
static inline const char *word_end(const char *p, const char *end)
{
    do
        p++;
    while (end > p && *p > ' ' && *p != ',' && *p != ']' && *p != '}');
    return p;
}

/* Moves r after the bracket that closes its array or object. */
void ah_json_leave(ah_json_reader *r);

/* Moves r into the array ('[') or object ('{') before it; false, and r unchanged, if there is
 * none. */
static inline bool enter(ah_json_reader *r, char bracket)
{
    bool is = r->p < r->end && *r->p == bracket;

    r->p += is;
    return is;
}

/* Moves r after the value before it; returns its text. */
static inline ah_slice pass_value(ah_json_reader *r)
{
    const char *from = r->p;
    bool escaped;

    if (from < r->end && *from == '"') {
        r->p = string_end(from + 1, r->end, &escaped);
        r->p += r->p < r->end;
    } else if (enter(r, '{') || enter(r, '[')) {
        ah_json_leave(r);
    } else if (from < r->end) {
        r->p = word_end(from, r->end);
    }
    return (ah_slice){from, (size_t)(r->p - from)};
}

/* Moves r before the next item of its array; at the end returns false, and r is after the
 * bracket. */
static inline bool next_item(ah_json_reader *r)
{
    const char *p = skip_white(r->p, r->end);

    if (p < r->end && *p == ',')
        p = skip_white(p + 1, r->end);
    r->p = p;
    if (p < r->end && *p != ']' && *p != '}')
        return true;
    r->p += p < r->end;
    return false;
}

/* Moves r before the value of the next member of its object; at the end returns false, and r is
 * after the bracket. */
static inline bool next_key(ah_json_reader *r, ah_json_token *key)
{
    if (!next_item(r))
        return false;
    *key = read_string(r);
    key->kind = AH_JSON_KEY;
    pass_colon(r);
    r->p = skip_white(r->p, r->end);
    return true;
}

#endif
