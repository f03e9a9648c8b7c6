/* Shares schemas with equal texts and options. The cache is a hash table of the schemas in use. It
 * holds no references: a schema is removed when its last user frees it. If the table is full, or
 * out of memory, a new schema is not shared. */
#include "schema/program.h"

enum { MAX_SHARED = 16384 };

void ah_schema_cache_init(ah_schema_cache *cache, const ah_mem *mem)
{
    *cache = (ah_schema_cache){.mem = mem};
}

void ah_schema_cache_clear(ah_schema_cache *cache)
{
    for (size_t i = 0; i < cache->n_rows; i++)
        for (ah_schema *s = cache->row[i]; s; s = s->same_row)
            s->cache = NULL;
    if (cache->mem)
        ah_free(cache->mem, cache->row);
    ah_schema_cache_init(cache, cache->mem);
}

static uint64_t hash_of(const ah_schema *s)
{
    uint64_t h = s->formats + 2 * (uint64_t)s->any_keywords + 4 * (uint64_t)s->any_defaults;

    for (size_t i = 0; i < s->given; i++)
        h = h * 31 + ah_slice_hash(ah_text_slice(document_at(s, i)->text)) +
            ah_slice_hash(document_at(s, i)->uri);
    return h;
}

static bool is_made_alike(const ah_schema *a, const ah_schema *b)
{
    bool alike = a->hash == b->hash && a->formats == b->formats &&
                 a->any_keywords == b->any_keywords && a->any_defaults == b->any_defaults &&
                 a->given == b->given;

    for (size_t i = 0; i < a->given && alike; i++) {
        const document *x = document_at(a, i), *y = document_at(b, i);

        alike = ah_slice_eq(ah_text_slice(x->text), ah_text_slice(y->text)) &&
                ah_slice_eq(x->uri, y->uri);
    }
    return alike;
}

ah_schema *schema_shared(const ah_schema_cache *cache, ah_schema *like)
{
    ah_schema *s = NULL;

    like->hash = hash_of(like);
    if (cache->n_rows)
        s = cache->row[like->hash % cache->n_rows];
    while (s && !is_made_alike(s, like))
        s = s->same_row;
    return ah_schema_ref(s);
}

static bool grow(ah_schema_cache *cache)
{
    size_t n = cache->n_rows ? cache->n_rows * 2 : 16;
    ah_schema **row = ah_alloc(cache->mem, n * sizeof *row), *s, *next;

    if (!row)
        return false;
    for (size_t i = 0; i < cache->n_rows; i++) {
        for (s = cache->row[i]; s; s = next) {
            next = s->same_row;
            s->same_row = row[s->hash % n];
            row[s->hash % n] = s;
        }
    }
    ah_free(cache->mem, cache->row);
    cache->row = row;
    cache->n_rows = n;
    return true;
}

void schema_share(ah_schema_cache *cache, ah_schema *s)
{
    if (cache->n == MAX_SHARED || (cache->n == cache->n_rows && !grow(cache)))
        return;
    s->cache = cache;
    s->same_row = cache->row[s->hash % cache->n_rows];
    cache->row[s->hash % cache->n_rows] = s;
    cache->n++;
}

void schema_unshare(ah_schema *s)
{
    ah_schema **at = s->cache ? &s->cache->row[s->hash % s->cache->n_rows] : NULL;

    if (!at)
        return;
    while (*at != s)
        at = &(*at)->same_row;
    *at = s->same_row;
    s->cache->n--;
    s->cache = NULL;
}
