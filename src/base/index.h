/* A hash index of names over an array: open addressing, positions only. The caller owns the
 * array and its names; the index owns its cells. Names are never removed from the index: the
 * caller marks the item in the array. Callers: floors above. */
#ifndef AH_BASE_INDEX_H
#define AH_BASE_INDEX_H

#include <stdint.h>

#include "base/mem.h"
#include "base/slice.h"

typedef struct ah_index {
    const ah_mem *mem;
    ah_slice (*name)(const void *owner, size_t at); /* name of an item in the index */
    const void *owner;
    uint32_t *cell; /* position + 1; 0: free */
    size_t n;       /* a power of two, or 0 */
    size_t used;    /* cells in use, at most half of all */
} ah_index;

#define AH_INDEX_NONE UINT32_MAX

void ah_index_clear(ah_index *x);
/* Makes room for `more` names. If it must grow, it enters the first `items` of the array anew.
 * Returns false without memory; nothing has changed then. */
bool ah_index_reserve(ah_index *x, size_t more, size_t items);
/* Enters the item at `at`, which must be in the array. ah_index_reserve made the room, so this
 * cannot fail. A name that was entered before leads to the new item. */
void ah_index_put(ah_index *x, ah_slice name, size_t at);
/* Fills the index anew with the first `items` of an array that became shorter. */
void ah_index_refill(ah_index *x, size_t items);
uint32_t ah_index_find(const ah_index *x, ah_slice name); /* position, or AH_INDEX_NONE */

#endif
