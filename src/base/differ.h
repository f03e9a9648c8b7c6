/* Finds the first difference of two JSON texts, in the order of the text: its place as a JSON
 * pointer, and the value of each text there. For messages that show a change. The values are
 * slices of the given texts. Callers: host. */
#ifndef AH_BASE_DIFFER_H
#define AH_BASE_DIFFER_H

#include "base/json.h"

typedef struct ah_difference {
    ah_slice a, b; /* values at that place; .p NULL: missing */
} ah_difference;

/* Both texts are canonical (ah_json_canon). Returns false if they are equal. Appends the pointer
 * to path. */
bool ah_json_differ(ah_slice a, ah_slice b, ah_buf *path, ah_difference *out);

#endif
