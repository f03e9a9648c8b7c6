/* The quick way through checked text of known form, shared by json.c and the readers of what models
 * send, which go over each delta of a stream: from key to key and from item to item, where
 * ah_json_next has to ask of everything what it is. Inline, as it is in many small steps.
 *
 * After ah_json_read a reader is before a value. That is taken in with enter, passed over with
 * pass_value, or read token by token. */
#ifndef AH_BASE_JSON_WALK_H
#define AH_BASE_JSON_WALK_H

#include "base/json_chars.h"

enum { SHORT_STRING = 64 /* most are: not worth two calls of memchr */ };

/* string_end where the text up to `near` is plain and no quote stands there. */
const char *ah_json_far_string_end(const char *p, const char *near, const char *end, bool *escaped);

/* The closing quote of the string whose text begins at p, or `end`. */
static inline const char *string_end(const char *p, const char *end, bool *escaped)
{
    const char *near = skip_plain(p, end - p > SHORT_STRING ? p + SHORT_STRING : end);

    *escaped = false;
    return near < end && *near == '"' ? near : ah_json_far_string_end(p, near, end, escaped);
}

/* The string whose quote r->p is at; r is behind it then. */
static inline ah_json_token read_string(ah_json_reader *r)
{
    ah_json_token t = {.kind = AH_JSON_STRING, .raw = {.p = r->p + 1}};
    const char *p = string_end(t.raw.p, r->end, &t.escaped);

    t.raw.n = (size_t)(p - t.raw.p);
    r->p = p + (p < r->end);
    return t;
}

/* Behind the colon that r->p is before; false: it is before none. */
static inline bool pass_colon(ah_json_reader *r)
{
    const char *p = skip_white(r->p, r->end);
    bool is = p < r->end && *p == ':';

    if (is)
        r->p = p + 1;
    return is;
}

/* Behind a number, true, false or null. */
static inline const char *word_end(const char *p, const char *end)
{
    do
        p++;
    while (end > p && *p > ' ' && *p != ',' && *p != ']' && *p != '}');
    return p;
}

/* Behind the bracket that closes the array or object that r is in. */
void ah_json_leave(ah_json_reader *r);

/* Into the array ('[') or object ('{') that r is before; false, and r where it was: it is none. */
static inline bool enter(ah_json_reader *r, char bracket)
{
    bool is = r->p < r->end && *r->p == bracket;

    r->p += is;
    return is;
}

/* Behind the value that r is before; returns its text. */
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

/* Before the next item of the array that r is in; false, and behind the bracket, at its end. */
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

/* Before the value of the next member of the object that r is in; false, and behind the bracket, at
 * its end. */
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
