/* Finds the nearest of some names, for "did you mean". It allocates nothing; the best name is
 * the slice that was offered. Callers: floors above. */
#ifndef AH_BASE_NEAR_H
#define AH_BASE_NEAR_H

#include <stdbool.h>

#include "base/slice.h"

/* A running search: zero it, set `to`, offer names. `best.p` is NULL if none is near enough:
 * case, `-` and `_` count little, and at most a third may differ. */
typedef struct ah_near {
    ah_slice to;
    bool words; /* names consist of words (a_b, a-b, aB): a name is also near if it shares half of
                   its letters in words or beginnings of words, in any order */
    ah_slice best;
    size_t cost;
} ah_near;

void ah_near_offer(ah_near *near, ah_slice name);

#endif
