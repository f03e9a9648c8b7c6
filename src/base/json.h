/* JSON: a strict checker, a reader, small writers, and canonical text.
 *
 * Everything from outside passes ah_json_check once. It is then *checked text*, and ah_json_reader
 * walks it without memory and without failing. Only ah_json_canon builds a tree (cJSON).
 *
 * Where RFC 8259 leaves a choice: one value with white space around it, no byte order mark;
 * depth is limited; duplicate keys (compared unescaped) are errors; NUL is refused in keys and
 * kept in strings; lone surrogates and malformed UTF-8 (overlong forms and surrogates too) are
 * errors; numbers have any length, and are integers if they fit int64.
 * Callers: its floor, floors above. */
#ifndef AH_BASE_JSON_H
#define AH_BASE_JSON_H

#include "base/text.h"

enum { AH_JSON_MAX_DEPTH = 512 };

typedef enum ah_json_kind {
    AH_JSON_END, /* after the last value, or missing */
    AH_JSON_NULL,
    AH_JSON_FALSE,
    AH_JSON_TRUE,
    AH_JSON_NUMBER,
    AH_JSON_STRING,
    AH_JSON_KEY,
    AH_JSON_ARRAY,     /* [ */
    AH_JSON_ARRAY_END, /* ] */
    AH_JSON_OBJECT,    /* { */
    AH_JSON_OBJECT_END /* } */
} ah_json_kind;

/* Position and reason of a JSON syntax error. */
typedef struct ah_json_fault {
    size_t offset, line, column; /* offset from 0; line and column from 1, column in bytes */
    const char *what;            /* static, such as "duplicate key" or "unexpected character" */
} ah_json_fault;

/* Checks that the text is one JSON value, with at most max_depth (<= AH_JSON_MAX_DEPTH) nested
 * containers. Returns AH_OK, AH_NOMEM (objects with many keys need a table), or
 * AH_TOOL_VALIDATION with *fault filled. */
ah_status ah_json_check(const ah_mem *mem, ah_slice text, int max_depth, ah_json_fault *fault);

/* Like ah_json_check, but with the fault as message: "<what> is not JSON: <fault> at line 1, column
 * 7 near `...`". */
ah_status ah_json_check_err(const ah_mem *mem, ah_slice text, const char *what, ah_err *err);

/* Both check one piece of a stream, whose strings may be pieces themselves: a string value may
 * begin with the low half of a surrogate pair, or end with the high one, as an escape. *halves
 * counts them; NULL allows none. A caller that allows them joins or refuses them. */
ah_status ah_json_check_piece(const ah_mem *mem, ah_slice text, size_t *halves,
                              ah_json_fault *fault);
ah_status ah_json_check_piece_err(const ah_mem *mem, ah_slice text, size_t *halves,
                                  const char *what, ah_err *err);

/* Adds a string member to the error's details; left out if it does not fit. */
void ah_json_detail(ah_err *err, const char *name, ah_slice value);
void ah_json_detail_int(ah_err *err, const char *name, int64_t value);
/* Returns the string that ah_json_detail added under this name, with its escapes; .p NULL: none. */
ah_slice ah_json_detail_of(const ah_err *err, const char *name);

/* Fails with AH_TOOL_VALIDATION and "<said> at line 1, column 7 near `...`", for faults that
 * callers find in a text. */
ah_status ah_json_err_at(ah_slice text, size_t offset, const char *said, ah_err *err);

/* Walks checked text. */
typedef struct ah_json_reader {
    const char *p, *end;
} ah_json_reader;

typedef struct ah_json_token {
    ah_json_kind kind;
    bool escaped; /* strings and keys: has a backslash */
    ah_slice raw; /* scalars: the literal; strings and keys: the text between the quotes;
                     containers: the bracket */
} ah_json_token;

ah_json_reader ah_json_read(ah_slice checked);
ah_json_token ah_json_next(ah_json_reader *r);

/* Skips the rest of the value whose first token `t` was just read. Returns the whole value's
 * text, strings with quotes. After a key it skips nothing. */
ah_slice ah_json_skip(ah_json_reader *r, ah_json_token t);

ah_json_kind ah_json_kind_of(ah_slice checked); /* AH_JSON_END if empty */
/* Returns the text of the value; .p NULL: missing, or not an object. */
ah_slice ah_json_member(ah_slice checked_object, const char *key);
bool ah_json_has_one(ah_slice checked); /* true for an object with one member */
/* True if it is an array that begins with strings, and `raw` is the text between the quotes of
 * one of them. */
bool ah_json_has_string(ah_slice checked, ah_slice raw);
/* Reads several members in one pass; a missing one gets .p NULL. Returns false if it is not an
 * object. */
typedef struct ah_json_slot {
    const char *key; /* without NUL */
    ah_slice *value;
} ah_json_slot;
bool ah_json_members(ah_slice checked_object, const ah_json_slot *want, size_t n);
/* Like ah_json_members, for the object whose bracket r has just read; r is then after its end. */
void ah_json_rest_members(ah_json_reader *r, const ah_json_slot *want, size_t n);

/* Appends the unescaped string. `raw` is the text between the quotes. */
void ah_json_unescape(ah_slice raw, ah_buf *out);
/* True if the raw text between quotes equals lit when unescaped. Needs no memory. */
bool ah_json_spells(ah_slice raw, const char *lit);
/* True if the token's unescaped string equals lit. Inline, because it is called for every key. */
static inline bool ah_json_token_is(ah_json_token t, const char *lit)
{
    if (t.kind != AH_JSON_STRING && t.kind != AH_JSON_KEY)
        return false;
    return t.escaped ? ah_json_spells(t.raw, lit) : ah_slice_is(t.raw, lit);
}
/* Appends the unescaped text of a string value (with quotes). Returns false, and appends
 * nothing, if it is not a string. */
bool ah_json_string(ah_slice value, ah_buf *out);
/* Returns the raw text between the quotes of a string value. */
static inline ah_slice ah_json_inside(ah_slice string)
{
    return (ah_slice){string.p + 1, string.n - 2};
}
bool ah_json_string_is(ah_slice value, const char *lit);

/* A literal without fraction and exponent that fits int64 is an integer; all others are floats,
 * also "-0" (-0.0). One out of range is +-HUGE_VAL, and ah_json_number returns false. The empty
 * slice, a missing member, gives 0 and false. Independent of the locale. */
typedef struct ah_json_num {
    bool is_int;
    int64_t i;
    double d; /* always set */
} ah_json_num;
bool ah_json_number(ah_slice literal, ah_json_num *out);

/* Writers. */
void ah_json_put_string(ah_buf *b, ah_slice s); /* with quotes and escapes; s must be UTF-8 */
/* Appends the shortest text that reads back equal, with '.' or an exponent; d must be finite. */
void ah_json_put_double(ah_buf *b, double d);
/* Append a member to an object that is being written, after a comma unless it is the first one.
 * The name is plain ASCII. With .p NULL as their value they append nothing; after ah_json_add_name
 * the caller appends the value. */
void ah_json_add_name(ah_buf *object, const char *name);
void ah_json_add(ah_buf *object, const char *name, ah_slice json);
void ah_json_add_string(ah_buf *object, const char *name, ah_slice text);
void ah_json_add_int(ah_buf *object, const char *name, int64_t v);
bool ah_utf8_valid(ah_slice s);
size_t ah_utf8_put(unsigned c, char out[4]); /* encodes a character; returns its length */
/* Appends s with each malformed byte replaced by U+FFFD (for bytes from processes and files). */
void ah_utf8_repair(ah_slice s, ah_buf *out);

/* Appends the canonical form of checked text: keys sorted by bytes, no white space, integers as
 * digits (beyond int64 too), floats in a double's shortest form if that is exact and otherwise
 * with all their digits (1e400, 0.1 and 30 digits more), strings escaped as by
 * ah_json_put_string. Equal values give equal bytes. Fails with AH_NOMEM or the failure of
 * `out`. Meanwhile its tree takes about 100 bytes per value, in cJSON's memory. */
ah_status ah_json_canon(const ah_mem *mem, ah_slice checked, ah_buf *out);
/* Sets *same if both are the same value. Fails with AH_NOMEM, and *same is false. */
ah_status ah_json_same(const ah_mem *mem, ah_slice checked, ah_slice other, bool *same);

/* Returns a hash of the value, equal for all of its texts. Different integral floats beyond a
 * double's precision may share a hash, and collisions are easy to make on purpose. (json_hash.c) */
uint64_t ah_json_hash(ah_slice checked);

const char *ah_json_version(void); /* version of the linked cJSON */

#endif
