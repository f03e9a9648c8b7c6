/* The C library's allocator as an ah_mem, and growth without overflow. lua/lua_memory.c limits
 * Lua's memory. */
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *libc_realloc(void *ud, void *ptr, size_t size)
{
    (void)ud;
    if (size)
        return realloc(ptr, size);
    free(ptr);
    return NULL;
}

const ah_mem ah_mem_libc = {.fn = libc_realloc};

void *ah_resize(const ah_mem *m, void *ptr, size_t size)
{
    return m->fn(m->ud, ptr, size);
}

void *ah_alloc(const ah_mem *m, size_t size)
{
    void *p = m->fn(m->ud, NULL, size);

    if (p)
        memset(p, 0, size);
    return p;
}

void ah_free(const ah_mem *m, void *ptr)
{
    if (ptr)
        m->fn(m->ud, ptr, 0);
}

/* In the checking build an array has exactly the requested room: AddressSanitizer then sees each
 * write beyond it. */
static size_t room_for(size_t need, size_t cap, size_t item)
{
    size_t n = cap ? cap : item == 1 ? 64 : 8;

#ifdef AH_CHECKING
    if (item > 1 && need < 256) /* except where this would be too slow */
        return need;
#endif
    while (n < need) {
        if (n > SIZE_MAX / 2)
            return 0;
        n *= 2;
    }
    return n;
}

void *ah_grow(const ah_mem *m, void *array, size_t *cap, size_t need, size_t item)
{
    size_t n = room_for(need, *cap, item);
    void *p;

    if (need <= *cap)
        return array;
    if (n == 0 || n > SIZE_MAX / item)
        return NULL;
    p = ah_resize(m, array, n * item);
    if (p)
        *cap = n;
    return p;
}
