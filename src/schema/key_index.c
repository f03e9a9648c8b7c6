/* A key is read as symbols of 9 bits: its numbers byte by byte, then the bytes of its text with
 * the ninth bit set, then endless zeros. So a key also differs from one that it begins with. */
#include "schema/key_index.h"

enum { NUMBER_BYTES = SCHEMA_KEY_NUMBERS * 4, PRESENT = 256 };

static uint32_t symbol(const schema_key *key, size_t at)
{
    if (at < NUMBER_BYTES)
        return PRESENT | (key->number[at / 4] >> (24 - at % 4 * 8) & 255);
    at -= NUMBER_BYTES;
    return at < key->text.n ? PRESENT | (unsigned char)key->text.p[at] : 0;
}

static size_t length(const schema_key *key)
{
    return NUMBER_BYTES + key->text.n;
}

static bool chooses(const schema_fork *f, const schema_key *key)
{
    return symbol(key, f->at) & f->bit;
}

/* Returns the only leaf that may have this key. */
static const schema_leaf *nearest(const schema_index *index, const schema_key *key)
{
    uint32_t i = index->root;

    while (!(i & 1))
        i = index->fork[i / 2].child[chooses(&index->fork[i / 2], key)];
    return index->leaf + i / 2;
}

static bool is_same(const schema_key *a, const schema_key *b)
{
    return memcmp(a->number, b->number, sizeof a->number) == 0 && ah_slice_eq(a->text, b->text);
}

uint32_t schema_index_find(const schema_index *index, schema_key key)
{
    const schema_leaf *l = index->n ? nearest(index, &key) : NULL;

    return l && is_same(&l->key, &key) ? l->value : UINT32_MAX;
}

/* Returns the first symbol in which the keys differ, and its highest differing bit. */
static schema_fork fork_of(const schema_key *a, const schema_key *b)
{
    size_t at = 0, end = length(a) < length(b) ? length(a) : length(b);
    uint32_t bit = PRESENT, differ;

    while (at < end && symbol(a, at) == symbol(b, at))
        at++;
    differ = symbol(a, at) ^ symbol(b, at);
    while (bit > 1 && !(differ & bit))
        bit /= 2;
    return (schema_fork){.at = (uint32_t)at, .bit = bit};
}

static bool comes_before(const schema_fork *a, const schema_fork *b)
{
    return a->at != b->at ? a->at < b->at : a->bit > b->bit;
}

static bool make_room(const ah_mem *mem, schema_index *index)
{
    void *leaf = ah_grow(mem, index->leaf, &index->leaves, index->n + 1, sizeof *index->leaf),
         *fork;

    if (!leaf)
        return false;
    index->leaf = leaf;
    fork = ah_grow(mem, index->fork, &index->forks, index->n + 1, sizeof *index->fork);
    if (fork)
        index->fork = fork;
    return fork != NULL;
}

bool schema_index_put(const ah_mem *mem, schema_index *index, schema_key key, uint32_t value)
{
    uint32_t own = (uint32_t)index->n * 2 + 1, *link = &index->root;
    schema_fork f;
    bool side;

    if (index->n > UINT32_MAX / 4 || !make_room(mem, index))
        return false;
    index->leaf[index->n] = (schema_leaf){key, value};
    if (index->n++ == 0) {
        index->root = own;
        return true;
    }
    f = fork_of(&key, &nearest(index, &key)->key);
    while (!(*link & 1) && comes_before(&index->fork[*link / 2], &f))
        link = &index->fork[*link / 2].child[chooses(&index->fork[*link / 2], &key)];
    side = chooses(&f, &key);
    f.child[side] = own;
    f.child[!side] = *link;
    index->fork[index->n - 2] = f;
    *link = (uint32_t)(index->n - 2) * 2;
    return true;
}

void schema_index_clear(const ah_mem *mem, schema_index *index)
{
    ah_free(mem, index->leaf);
    ah_free(mem, index->fork);
    *index = (schema_index){0};
}
