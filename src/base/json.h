/* JSON: the strict scanner, the writer's small parts, and canonical text.
 *
 * Everything that comes from outside goes through ah_json_check once. After
 * that it is *checked text* and is walked with ah_json_reader, which cannot
 * fail and needs no memory. Trees exist only inside ah_json_canon (cJSON).
 *
 * Decisions where RFC 8259 leaves a choice: one value, white space around it
 * allowed, no byte order mark; depth limited; duplicate keys (compared after
 * unescaping) are an error; NUL is refused in keys and kept in strings; lone
 * surrogates and malformed UTF-8 (overlong forms and surrogates included) are
 * errors; numbers may have any length; what fits int64 is an integer. */
#ifndef AH_BASE_JSON_H
#define AH_BASE_JSON_H

#include "base/text.h"

enum { AH_JSON_MAX_DEPTH = 512 };

typedef enum ah_json_kind {
    AH_JSON_END, /* after the last value, or: absent */
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

/* Checks that the text is one JSON value, at most max_depth (<= AH_JSON_MAX_DEPTH)
 * containers deep. Returns AH_OK, AH_NOMEM (objects of many keys need a table),
 * or AH_TOOL_VALIDATION with *fault filled. */
ah_status ah_json_check(const ah_mem *mem, ah_slice text, int max_depth, ah_json_fault *fault);

/* The same, with the fault in words: "<what> is not JSON: <fault> at line 1, column 7 near
 * `...`". */
ah_status ah_json_check_err(const ah_mem *mem, ah_slice text, const char *what, ah_err *err);

/* The same two for one piece of a stream, whose strings may be pieces themselves: a string value
 * may begin with the low half of a surrogate pair, or end with the high one, as an escape. *halves
 * is how many do; NULL: none may. Whoever allows them joins them, or refuses them. */
ah_status ah_json_check_piece(const ah_mem *mem, ah_slice text, size_t *halves,
                              ah_json_fault *fault);
ah_status ah_json_check_piece_err(const ah_mem *mem, ah_slice text, size_t *halves,
                                  const char *what, ah_err *err);

/* Adds a member, a string, to the error's details; left out where it does not fit. */
void ah_json_detail(ah_err *err, const char *name, ah_slice value);
void ah_json_detail_int(ah_err *err, const char *name, int64_t value);
/* The string that ah_json_detail added under this name, still with its escapes; .p NULL: none. */
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
    ah_slice raw; /* scalars: the literal; strings and keys: what is between the quotes;
                     containers: the bracket */
} ah_json_token;

ah_json_reader ah_json_read(ah_slice checked);
ah_json_token ah_json_next(ah_json_reader *r);

/* With `t` just read by ah_json_next: passes over the rest of its value and
 * returns the whole value's text (strings with their quotes). Keys: skips nothing. */
ah_slice ah_json_skip(ah_json_reader *r, ah_json_token t);

ah_json_kind ah_json_kind_of(ah_slice checked);                    /* AH_JSON_END when empty */
ah_slice ah_json_member(ah_slice checked_object, const char *key); /* value's text; .p NULL when
                                                                      absent or not an object */
bool ah_json_has_one(ah_slice checked);                            /* an object with one member */
/* True if it is an array whose first values are strings, and `raw` is what one of them has between
 * its quotes. */
bool ah_json_has_string(ah_slice checked, ah_slice raw);
/* Several members in one pass; absent ones get .p NULL. False when it is no object. */
typedef struct ah_json_slot {
    const char *key; /* no NUL in it */
    ah_slice *value;
} ah_json_slot;
bool ah_json_members(ah_slice checked_object, const ah_json_slot *want, size_t n);
/* The same, of the object whose bracket r has just read; r is behind its end then. */
void ah_json_rest_members(ah_json_reader *r, const ah_json_slot *want, size_t n);

/* Unescaped string appended to out. `raw` is the text between the quotes. */
void ah_json_unescape(ah_slice raw, ah_buf *out);
/* True if the raw text between quotes, unescaped, is lit. Needs no memory. */
bool ah_json_spells(ah_slice raw, const char *lit);
/* True if the token's (unescaped) string is this literal. Inline: it is called for every key. */
static inline bool ah_json_token_is(ah_json_token t, const char *lit)
{
    if (t.kind != AH_JSON_STRING && t.kind != AH_JSON_KEY)
        return false;
    return t.escaped ? ah_json_spells(t.raw, lit) : ah_slice_is(t.raw, lit);
}
/* Appends the unescaped text of a string value (with quotes) to out; false, and nothing, if it is
 * no string. */
bool ah_json_string(ah_slice value, ah_buf *out);
/* The raw text between the quotes of a string value. */
static inline ah_slice ah_json_inside(ah_slice string)
{
    return (ah_slice){string.p + 1, string.n - 2};
}
bool ah_json_string_is(ah_slice value, const char *lit);

/* Numbers. Exactly one of the two is set. Literals without fraction and exponent
 * that fit are integers ("-0" is the float -0.0); the rest are floats, out of range
 * ones +-HUGE_VAL (false returned: not representable). The empty slice, which stands for a
 * member that is not there, is no number: 0 and false. No locale is asked. */
typedef struct ah_json_num {
    bool is_int;
    int64_t i;
    double d; /* always set */
} ah_json_num;
bool ah_json_number(ah_slice literal, ah_json_num *out);

/* Writers. */
void ah_json_put_string(ah_buf *b, ah_slice s); /* quotes and escapes; s must be UTF-8 */
void ah_json_put_double(ah_buf *b, double d);   /* shortest that reads back the same, always with
                                                   '.' or exponent; d must be finite */
bool ah_utf8_valid(ah_slice s);
size_t ah_utf8_put(unsigned c, char out[4]); /* a character of Unicode; its length */
/* Appends s with every malformed byte replaced by U+FFFD (bytes from processes and files). */
void ah_utf8_repair(ah_slice s, ah_buf *out);

/* Canonical form of checked text appended to out: keys sorted by bytes, no white
 * space, integers as digits (beyond int64 too), floats in a double's shortest form where
 * that is exact and with all their digits where it is not (1e400, 0.1 and 30 digits more),
 * strings escaped as ah_json_put_string does. The same value gives the same bytes.
 * AH_NOMEM, or the failure of `out`. The tree costs about 100 bytes a value while it lasts, in
 * cJSON's memory. */
ah_status ah_json_canon(const ah_mem *mem, ah_slice checked, ah_buf *out);

/* The same for all texts of the same value, but for integral floats beyond a double's precision,
 * which may come to the same. Anybody can make two values that do. (json_hash.c) */
uint64_t ah_json_hash(ah_slice checked);

const char *ah_json_version(void); /* of the cJSON in use, for --version */

#endif
