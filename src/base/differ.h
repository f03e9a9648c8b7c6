/* The first difference of two JSON texts, in the order of the text: its place, as a JSON pointer,
 * and the value there in each. For messages that show a change. */
#ifndef AH_BASE_DIFFER_H
#define AH_BASE_DIFFER_H

#include "base/json.h"

typedef struct ah_difference {
    ah_slice a, b; /* the values there; .p NULL: there is none */
} ah_difference;

/* Both are canonical (ah_json_canon). False: they are the same. The pointer is appended to path. */
bool ah_json_differ(ah_slice a, ah_slice b, ah_buf *path, ah_difference *out);

#endif
