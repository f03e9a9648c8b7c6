/* A word index over documents, which are numbers here; search_tools ranks by it. Words are letters
 * and digits: getUser_name gives get, user and name, and getUser also gives getuser. Case and
 * plurals are ignored, as are some frequent English words. The index owns its memory, is built once
 * and never changed, and gives the same order on every machine. Used by search.c only.
 * Callers: its floor. */
#ifndef AH_RUN_SEARCH_INDEX_H
#define AH_RUN_SEARCH_INDEX_H

#include "base/buf.h"
#include "base/index.h"

enum {
    AH_QUERY_WORDS = 32,      /* of a query; later ones are ignored */
    AH_INDEX_WORD = 48,       /* bytes of a word; longer ones are cut */
    AH_INDEX_BYTES = 64 << 20 /* of all its words */
};

typedef struct ah_word {
    uint32_t at, len;  /* in `bytes` */
    uint32_t first, n; /* its postings, set by ah_search_index_make */
} ah_word;

/* A word occurs in a document, with this weight. */
typedef struct ah_posting {
    uint32_t word, doc, weight;
} ah_posting;

typedef struct ah_search_index {
    const ah_mem *mem;
    ah_buf bytes;
    ah_word *word;
    size_t n_words, cap_words;
    ah_index by_word;
    ah_posting *posting; /* by document while the index is built, then by word */
    size_t n_postings, cap_postings;
    size_t doc_from; /* the first posting of the current document */
    uint32_t *order; /* the words sorted by their bytes */
    size_t docs;
} ah_search_index;

/* The index must not move afterwards. */
void ah_search_index_init(ah_search_index *x, const ah_mem *mem);
void ah_search_index_clear(ah_search_index *x);

/* Building: begin a document, add its words, repeat, then make. Return AH_NOMEM, or AH_USAGE if
 * there are too many words. */
void ah_search_index_begin(ah_search_index *x);
ah_status ah_search_index_add(ah_search_index *x, ah_slice text, uint32_t weight, ah_err *err);
ah_status ah_search_index_make(ah_search_index *x, ah_err *err);

/* Sets *doc to the best documents for a query, best first. *n is the capacity, then the number
 * found. Points times the number of query words found decides; of equals the document that was
 * begun first comes first. */
ah_status ah_search_index_find(const ah_search_index *x, ah_slice query, uint32_t *doc, size_t *n,
                               ah_err *err);
/* Appends words of the index that are similar to those of the query, with commas between. */
void ah_search_index_near(const ah_search_index *x, ah_slice query, ah_buf *out);

#endif
