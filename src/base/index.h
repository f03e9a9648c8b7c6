/* An index of names over an array that its owner keeps: open addressing, positions only.
 * Names are never taken out; who removes one marks it in the array. */
#ifndef AH_BASE_INDEX_H
#define AH_BASE_INDEX_H

#include <stdint.h>

#include "base/mem.h"
#include "base/slice.h"

typedef struct ah_index {
    const ah_mem *mem;
    ah_slice (*name)(const void *owner, size_t at); /* of an item that was put in */
    const void *owner;
    uint32_t *cell; /* position + 1, 0 free */
    size_t n;       /* a power of two, or 0 */
    size_t used;    /* cells that are not free: at most half of them */
} ah_index;

#define AH_INDEX_NONE UINT32_MAX

void ah_index_clear(ah_index *x);
/* Room for `more` names beside those that are in; the first `items` of the array are put in anew
 * where it has to grow. False: out of memory, nothing changed. */
bool ah_index_reserve(ah_index *x, size_t more, size_t items);
/* Enters the item at `at`, which must be in the array already. ah_index_reserve was called for it,
 * so this cannot fail. A name that is entered already leads to the new item from now on. */
void ah_index_put(ah_index *x, ah_slice name, size_t at);
/* Anew, from the first `items` of an array that has become shorter. */
void ah_index_refill(ah_index *x, size_t items);
uint32_t ah_index_find(const ah_index *x, ah_slice name); /* position, or AH_INDEX_NONE */

#endif
