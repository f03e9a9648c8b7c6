/* Keys to numbers: a tree that forks where two keys first differ in a bit.
 *
 * A look takes time in the length of its key, whoever chose the keys that are in it: no order of
 * them and no hash of theirs makes it slow. Keys are borrowed and must live as long as the
 * index. */
#ifndef AH_SCHEMA_KEY_INDEX_H
#define AH_SCHEMA_KEY_INDEX_H

#include "base/slice.h"
#include "base/text.h"

enum { SCHEMA_KEY_NUMBERS = 3 };

/* Some numbers and a text; what a use does not need is 0. */
typedef struct schema_key {
    uint32_t number[SCHEMA_KEY_NUMBERS];
    ah_slice text;
} schema_key;

typedef struct schema_leaf {
    schema_key key;
    uint32_t value;
} schema_leaf;

/* `at` is the symbol of the key, and `bit` the one of its bits, that chooses the child. Children
 * are twice the number of a fork, or that of a leaf and 1. */
typedef struct schema_fork {
    uint32_t at, bit, child[2];
} schema_fork;

/* Zero it; no memory is taken before the first key. */
typedef struct schema_index {
    schema_leaf *leaf;
    schema_fork *fork;
    size_t n, leaves, forks; /* keys, and the room for them */
    uint32_t root;
} schema_index;

/* The number of the key, or UINT32_MAX. */
uint32_t schema_index_find(const schema_index *index, schema_key key);
/* Enters a key that is not there yet. False: out of memory. */
bool schema_index_put(const ah_mem *mem, schema_index *index, schema_key key, uint32_t value);
void schema_index_clear(const ah_mem *mem, schema_index *index);

#endif
