/* Memory: every allocation of the core goes through an ah_mem of the host. The contract is that
 * of realloc: size 0 frees and returns NULL, and a failure leaves the old block alone. The size
 * of the old block is not passed. Callers: its floor. */
#ifndef AH_BASE_MEM_H
#define AH_BASE_MEM_H

#include <stddef.h>

#include "agenthost.h" /* ah_realloc_fn */

typedef struct ah_mem {
    ah_realloc_fn fn;
    void *ud;
} ah_mem;

extern const ah_mem ah_mem_libc; /* malloc, realloc, free */

void *ah_alloc(const ah_mem *m, size_t size);             /* zeroed; NULL: out of memory */
void *ah_resize(const ah_mem *m, void *ptr, size_t size); /* not zeroed */
void ah_free(const ah_mem *m, void *ptr);                 /* NULL does nothing */

/* Grows an array to at least `need` items of `item` bytes by doubling *cap. Returns the array,
 * maybe moved; NULL: the old one is unchanged. */
void *ah_grow(const ah_mem *m, void *array, size_t *cap, size_t need, size_t item);

#endif
