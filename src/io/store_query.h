/* The words that a person searches for, as an expression of FTS5. A word, or several in quotes,
 * which stand side by side then; with `*` behind it, words that begin so. All of them must be in a
 * text, in any order. Nothing in the words is an operator of FTS5. Callers: its floor. */
#ifndef AH_IO_STORE_QUERY_H
#define AH_IO_STORE_QUERY_H

#include "base/buf.h"

enum { AH_STORE_QUERY_BYTES = 4096, AH_STORE_QUERY_TERMS = 64 };

/* The expression and its terms, each with a blank behind it. */
typedef struct ah_store_match {
    ah_buf text;
    size_t n, end[AH_STORE_QUERY_TERMS]; /* of each term in the text */
} ah_store_match;

/* AH_USAGE: there are no words, too many, or too many bytes. The caller calls
 * ah_store_match_clear in any case. */
ah_status ah_store_match_read(ah_slice words, ah_store_match *out, ah_err *err);
void ah_store_match_clear(ah_store_match *m);
ah_slice ah_store_match_term(const ah_store_match *m, size_t i);

#endif
