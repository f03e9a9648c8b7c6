/* Memory: every allocation of the core goes through one ah_mem, given by the
 * host. The contract is realloc's: size 0 frees and gives NULL, and a failure
 * leaves the old block alone. No size is passed for the old block. */
#ifndef AH_BASE_MEM_H
#define AH_BASE_MEM_H

#include <stddef.h>

#include "agenthost.h" /* ah_realloc_fn */

typedef struct ah_mem {
    ah_realloc_fn fn;
    void *ud;
} ah_mem;

extern const ah_mem ah_mem_libc; /* malloc and friends */

void *ah_alloc(const ah_mem *m, size_t size);             /* zeroed; NULL when out of memory */
void *ah_resize(const ah_mem *m, void *ptr, size_t size); /* not zeroed */
void ah_free(const ah_mem *m, void *ptr);                 /* NULL is fine */

/* Grows an array to hold at least `need` items of `item` bytes: doubles *cap.
 * Returns the array (maybe moved), or NULL with the old one untouched. */
void *ah_grow(const ah_mem *m, void *array, size_t *cap, size_t need, size_t item);

#endif
