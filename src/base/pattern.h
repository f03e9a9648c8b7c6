/* Regular expressions of schemas: the only use of PCRE2, which may be missing. An expression
 * owns its compiled form. Callers: its floor, schema, state. */
#ifndef AH_BASE_PATTERN_H
#define AH_BASE_PATTERN_H

#include "base/buf.h"
#include "base/work.h"

typedef struct ah_pattern ah_pattern;
typedef enum ah_match {
    AH_MATCH_NO,
    AH_MATCH_YES,
    AH_MATCH_LIMIT, /* undecided: this text takes more steps than are allowed */
    AH_MATCH_ENDED, /* undecided: the work has ended, which states why */
    AH_MATCH_NOMEM
} ah_match;

enum {
    AH_PATTERN_ANY_CASE = 1,
    AH_PATTERN_LENIENT = 2, /* as browsers read it without the flag u: \-, a { alone */
    AH_PATTERN_SYNTAX =
        4 /* only tests whether it is an expression: constructs that PCRE2 cannot do alike pass */
};

/* Compiles an expression with ECMAScript's meaning under its flag u. Refuses what that refuses,
 * and what PCRE2 cannot express. Fails with AH_NOMEM, or AH_PROMPT_VALIDATION and the reason in
 * `why`. */
ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, unsigned how, ah_pattern **out,
                         ah_buf *why);
void ah_pattern_free(ah_pattern *p);
ah_slice ah_pattern_text(const ah_pattern *p); /* as given */
/* Matches anywhere in `text` (UTF-8). Counts its steps in the work. */
ah_match ah_pattern_match(ah_pattern *p, ah_slice text, ah_work *work);

/* Features of an expression that raise the cost of one step of a match. */
typedef struct ah_pattern_cost {
    size_t widest; /* bytes of the longest class */
    size_t least;  /* largest number of characters that must be repeated at once */
    bool refers;   /* contains references to earlier matches */
} ah_pattern_cost;

/* Number of the callouts after parts that may pass over many characters. */
#define AH_PATTERN_MOVED "2"

/* Appends ECMAScript's expression (UTF-8) in the syntax of PCRE2 (pattern_ecma.c). `cost`,
 * zeroed, may be NULL; with it, callouts are added. Fails as ah_pattern_new. */
ah_status ah_pattern_translate(const ah_mem *mem, ah_slice text, unsigned how,
                               ah_pattern_cost *cost, ah_buf *out, ah_buf *why);
/* Appends \p{...}, or \P{...} if inverse, for the property of this name; false: unknown. */
bool ah_pattern_property(ah_slice name, bool inverse, ah_buf *out);
/* "10.42", or "none" if built without it. */
const char *ah_pattern_version(char *out, size_t size);

#endif
