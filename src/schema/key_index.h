/* Maps keys to numbers: a tree that branches at the first bit in which two keys differ. A lookup
 * takes time in the length of its key, for any set of keys: neither their order nor collisions
 * make it slow. Keys are borrowed and must live as long as the index. Callers: its floor. */
#ifndef AH_SCHEMA_KEY_INDEX_H
#define AH_SCHEMA_KEY_INDEX_H

#include "base/slice.h"
#include "base/text.h"

enum { SCHEMA_KEY_NUMBERS = 3 };

/* Numbers and a text; unused parts are 0. */
typedef struct schema_key {
    uint32_t number[SCHEMA_KEY_NUMBERS];
    ah_slice text;
} schema_key;

typedef struct schema_leaf {
    schema_key key;
    uint32_t value;
} schema_leaf;

/* `at` is a symbol of the key, and `bit` its bit that selects the child. A child is twice the
 * number of a fork, or twice that of a leaf, plus 1. */
typedef struct schema_fork {
    uint32_t at, bit, child[2];
} schema_fork;

/* Zero initializes it; it allocates nothing before the first key. */
typedef struct schema_index {
    schema_leaf *leaf;
    schema_fork *fork;
    size_t n, leaves, forks; /* number of keys; room for leaves and forks */
    uint32_t root;
} schema_index;

/* Returns the number of the key, or UINT32_MAX. */
uint32_t schema_index_find(const schema_index *index, schema_key key);
/* Enters a new key. False: out of memory. */
bool schema_index_put(const ah_mem *mem, schema_index *index, schema_key key, uint32_t value);
void schema_index_clear(const ah_mem *mem, schema_index *index);

#endif
