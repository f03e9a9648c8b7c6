/* The number of cells is a power of two, at least half of them free. A cell holds position + 1,
 * or 0. Names come from the owner, so nothing is stored twice. */
#include "base/index.h"

void ah_index_clear(ah_index *x)
{
    if (x->mem)
        ah_free(x->mem, x->cell);
    x->cell = NULL;
    x->n = x->used = 0;
}

/* Returns the cell of the name, or the free one for it. */
static uint32_t *cell_of(const ah_index *x, ah_slice name)
{
    size_t i = (size_t)ah_slice_hash(name) & (x->n - 1);

    while (x->cell[i] && !ah_slice_eq(name, x->name(x->owner, x->cell[i] - 1)))
        i = (i + 1) & (x->n - 1);
    return &x->cell[i];
}

void ah_index_refill(ah_index *x, size_t items)
{
    memset(x->cell, 0, x->n * sizeof *x->cell);
    x->used = 0;
    for (size_t i = 0; i < items; i++)
        ah_index_put(x, x->name(x->owner, i), i);
}

bool ah_index_reserve(ah_index *x, size_t more, size_t items)
{
    size_t n = x->n ? x->n : 16;
    uint32_t *cell;

    while (n < (x->used + more) * 2)
        n *= 2;
    if (n == x->n)
        return true;
    if (!(cell = ah_alloc(x->mem, n * sizeof *cell)))
        return false;
    ah_free(x->mem, x->cell);
    x->cell = cell;
    x->n = n;
    ah_index_refill(x, items);
    return true;
}

void ah_index_put(ah_index *x, ah_slice name, size_t at)
{
    uint32_t *cell = cell_of(x, name);

    x->used += *cell == 0;
    *cell = (uint32_t)at + 1;
}

uint32_t ah_index_find(const ah_index *x, ah_slice name)
{
    uint32_t c = x->n ? *cell_of(x, name) : 0;

    return c ? c - 1 : AH_INDEX_NONE;
}
