/* Regular expressions of schemas: the one door to PCRE2, which may be missing. */
#ifndef AH_BASE_PATTERN_H
#define AH_BASE_PATTERN_H

#include "base/buf.h"
#include "base/work.h"

typedef struct ah_pattern ah_pattern;
typedef enum ah_match {
    AH_MATCH_NO,
    AH_MATCH_YES,
    AH_MATCH_LIMIT, /* not found out: this text alone takes more steps than one may */
    AH_MATCH_ENDED, /* not found out: the work has ended, see there why */
    AH_MATCH_NOMEM
} ah_match;

enum {
    AH_PATTERN_ANY_CASE = 1,
    AH_PATTERN_LENIENT = 2, /* as browsers read it without the flag u: \-, a { alone */
    AH_PATTERN_SYNTAX =
        4 /* translated only to see if it is one: what PCRE2 cannot do alike is taken */
};

/* With ECMAScript's meaning under its flag u; what that refuses, and what PCRE2 cannot say alike,
 * is refused. On failure AH_NOMEM, or AH_PROMPT_VALIDATION with what is wrong in `why`. */
ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, unsigned how, ah_pattern **out,
                         ah_buf *why);
void ah_pattern_free(ah_pattern *p);
ah_slice ah_pattern_text(const ah_pattern *p); /* as it was given */
/* Matches anywhere in `text` (UTF-8). Counts its steps in the work. */
ah_match ah_pattern_match(ah_pattern *p, ah_slice text, ah_work *work);

/* Features of an expression that raise the cost of one step of a match. */
typedef struct ah_pattern_cost {
    size_t widest; /* bytes of the longest class */
    size_t least;  /* the most characters that must be repeated at once */
    bool refers;   /* has references to what was matched */
} ah_pattern_cost;

#define AH_PATTERN_MOVED                                                                           \
    "2" /* number of the callouts behind what may pass over many characters                        \
         */

/* ECMAScript's expression (UTF-8) in the words of PCRE2, appended to `out` (pattern_ecma.c); with
 * `cost`, which was zeroed, with callouts in it. Fails as ah_pattern_new does. */
ah_status ah_pattern_translate(const ah_mem *mem, ah_slice text, unsigned how,
                               ah_pattern_cost *cost, ah_buf *out, ah_buf *why);
/* Appends \p{...}, or \P{...} where inverse, for the property of this name; false: there is
 * none. */
bool ah_pattern_property(ah_slice name, bool inverse, ah_buf *out);
/* "10.42", or "none" where it was built without. */
const char *ah_pattern_version(char *out, size_t size);

#endif
