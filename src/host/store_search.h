/* The search in what was said in the conversations of a store. Owns nothing; the result is appended
 * to the caller's buffer as JSON. Callers: lua. */
#ifndef AH_HOST_STORE_SEARCH_H
#define AH_HOST_STORE_SEARCH_H

#include "host/keeper.h"

typedef struct ah_search_query {
    ah_slice words;  /* io/store_query.h */
    ah_slice folder; /* only conversations with this working folder; .p NULL: all */
    bool best;
    size_t limit;
} ah_search_query;

/* Appends a JSON list of hits: {id, title, number, time, role, snippet, marks}. number: of the
 * record; time: ms since the epoch; role: "user", "assistant", "tool" or "note"; marks: a list of
 * pairs, the first and the last byte of each word in the snippet, from 1. AH_USAGE: the engine
 * cannot search, or there is no word to search for. */
ah_status ah_open_store_search(ah_host *h, ah_open_store *s, const ah_search_query *q, ah_buf *out,
                               ah_err *err);

#endif
