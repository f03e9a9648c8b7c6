/* Where two JSON texts part, for people who must see what changed: the first place in the
 * order of the text, as a JSON pointer, and what stands there in each. */
#ifndef AH_BASE_DIFFER_H
#define AH_BASE_DIFFER_H

#include "base/json.h"

typedef struct ah_difference {
    ah_slice a, b; /* the values there; .p NULL: there is none */
} ah_difference;

/* Both are canonical (ah_json_canon). False: they are the same. The pointer is appended to path. */
bool ah_json_differ(ah_slice a, ah_slice b, ah_buf *path, ah_difference *out);

#endif
