/* Regular expressions of schemas: the one door to PCRE2, which may be missing. */
#ifndef AH_MODEL_SCHEMA_PATTERN_H
#define AH_MODEL_SCHEMA_PATTERN_H

#include "base/buf.h"

typedef struct ah_pattern ah_pattern;
typedef enum ah_match { AH_MATCH_NO, AH_MATCH_YES, AH_MATCH_LIMIT, AH_MATCH_NOMEM } ah_match;

/* With ECMAScript's meaning; what PCRE2 cannot say alike is refused. On failure AH_NOMEM,
 * or AH_PROMPT_VALIDATION with what is wrong in `why`. */
ah_status ah_pattern_new(const ah_mem *mem, ah_slice text, bool any_case, ah_pattern **out, ah_buf *why);
void ah_pattern_free(ah_pattern *p);
/* Somewhere in `text` (UTF-8)? AH_MATCH_LIMIT: not found out within the limits. */
ah_match ah_pattern_match(ah_pattern *p, ah_slice text);
/* ECMAScript's expression (UTF-8) in the words of PCRE2, appended to `out`
 * (schema_ecma.c). Fails as ah_pattern_new does. */
ah_status ah_pattern_translate(const ah_mem *mem, ah_slice text, ah_buf *out, ah_buf *why);
/* "10.42", or "none" where it was built without. */
const char *ah_pattern_version(char *out, size_t size);

#endif
