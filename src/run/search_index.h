/* An index of words over documents, which are numbers here: what search_tools ranks by, for
 * search.c alone. Words are letters and digits; getUser_name is get, user and name, and getUser is
 * getuser, too; capitals and plurals count alike. It is made once and never changed, the same
 * for the same words. It knows nothing of tools, and no language but for a few words of
 * English that say nothing. */
#ifndef AH_RUN_SEARCH_INDEX_H
#define AH_RUN_SEARCH_INDEX_H

#include "base/buf.h"
#include "base/index.h"

enum {
    AH_QUERY_WORDS = 32,      /* of a query; what follows is not looked at */
    AH_INDEX_WORD = 48,       /* bytes of a word; longer ones are cut */
    AH_INDEX_BYTES = 64 << 20 /* of all its words */
};

typedef struct ah_word {
    uint32_t at, len;  /* in `bytes` */
    uint32_t first, n; /* its postings, once the index is made */
} ah_word;

/* That a word stands in a document, and how much it says there. */
typedef struct ah_posting {
    uint32_t word, doc, weight;
} ah_posting;

typedef struct ah_search_index {
    const ah_mem *mem;
    ah_buf bytes;
    ah_word *word;
    size_t n_words, cap_words;
    ah_index by_word;
    ah_posting *posting; /* by document while it is made, then by word */
    size_t n_postings, cap_postings;
    size_t doc_from; /* the postings of the document at work */
    uint32_t *order; /* the words by their bytes */
    size_t docs;
} ah_search_index;

void ah_search_index_init(ah_search_index *x, const ah_mem *mem); /* it must not move afterwards */
void ah_search_index_clear(ah_search_index *x);

/* Making it: words of the document that was begun last, then the next; AH_NOMEM, or AH_USAGE where
 * there are too many words. */
void ah_search_index_begin(ah_search_index *x);
ah_status ah_search_index_add(ah_search_index *x, ah_slice text, uint32_t weight, ah_err *err);
ah_status ah_search_index_make(ah_search_index *x, ah_err *err);

/* The best documents for a query, best first, at most *n of them, which says how many there are.
 * One that has more of its words comes before others; of equals the one that was begun first. */
ah_status ah_search_index_find(const ah_search_index *x, ah_slice query, uint32_t *doc, size_t *n,
                               ah_err *err);
/* Words of the index that are near to those of the query, with commas between. */
void ah_search_index_near(const ah_search_index *x, ah_slice query, ah_buf *out);

#endif
