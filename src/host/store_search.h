/* The search in what was said in the conversations of a store, and the wait for its index. The
 * result is appended to the caller's buffer as JSON. A wait owns a reference of its store.
 * Callers: lua. */
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

/* A wait until a search takes little time. In the memory of the caller, to ah_search_wait_end. All
 * zero is one that has ended. */
typedef struct ah_search_wait {
    ah_store_append append;
    ah_open_store *store; /* NULL: it has ended */
    bool waits;
    ah_err err; /* AH_OK, or why the index cannot be written */
    void (*done)(struct ah_search_wait *w);
} ah_search_wait;

/* False: all searches of this store take little time, and nothing has begun. `done` is called once
 * after it, on the host's thread, unless the wait is ended before. */
bool ah_search_wait_begin(ah_search_wait *w, ah_open_store *s, void (*done)(ah_search_wait *w));
void ah_search_wait_end(ah_search_wait *w);

#endif
