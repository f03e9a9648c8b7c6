/* "did you mean": the nearest of some names. */
#ifndef AH_BASE_NEAR_H
#define AH_BASE_NEAR_H

#include <stdbool.h>

#include "base/slice.h"

/* A running search: zero it, set `to`, offer names; `best.p` stays NULL where none
 * is near enough (case, `-` and `_` count little, at most a third may differ). */
typedef struct ah_near {
    ah_slice to;
    bool words; /* names of words (a_b, a-b, aB): one is near, too, that shares half of the letters
                   with it in words, or in how words begin, in any order */
    ah_slice best;
    size_t cost;
} ah_near;

void ah_near_offer(ah_near *near, ah_slice name);

#endif
