/* Lists what a rewind of a conversation drops, from its records alone: turns, calls whose handlers
 * were begun, their steps, the files that they changed, a question without an answer, open asks;
 * and the entities that were changed and cannot come back. Pure. It owns a fold of the whole
 * stream, and the lists. Callers: host. */
#ifndef AH_JOURNAL_DROPPED_H
#define AH_JOURNAL_DROPPED_H

#include "journal/fold.h"

typedef struct ah_dropped_item {
    int64_t number; /* of its record */
    ah_text *json;
} ah_dropped_item;

typedef struct ah_dropped_list {
    ah_dropped_item *item;
    size_t n, cap;
} ah_dropped_list;

/* A record `rewound`. */
typedef struct ah_dropped_rewind {
    int64_t number, to;
} ah_dropped_rewind;

typedef struct ah_dropped {
    ah_fold fold;
    int64_t after; /* the record after which the conversation goes on */
    int64_t turns; /* so far */
    size_t seen;   /* entries of the transcript that belong to earlier turns */
    ah_dropped_list items;
    ah_dropped_list stays; /* entities that stay; sorted at the end */
    ah_dropped_rewind *rewind;
    size_t rewinds, cap_rewinds;
} ah_dropped;

ah_status ah_dropped_init(ah_dropped *d, const ah_mem *mem, int64_t after, ah_err *err);
void ah_dropped_clear(ah_dropped *d); /* all zero is allowed */
/* Takes the next record of a stream that is read from record 1 on. Has the type of
 * ah_store_record_fn. */
ah_status ah_dropped_add(void *dropped, const ah_store_record *r, ah_err *err);
/* Adds what belongs to no turn. No more records follow. */
ah_status ah_dropped_end(ah_dropped *d, ah_err *err);
/* True if the record counts: no earlier rewind has dropped it, or a later one has brought it
 * back. */
bool ah_dropped_counts(const ah_dropped *d, int64_t number);
/* Appends {"to":2,"turns":6,"dropped":[{"kind":"turn","turn":3,"question":".."},
 * {"kind":"call","turn":3,"id":"..", "tool":"..","on_lost":".."},
 * {"kind":"step","turn":3,"step":".."},
 * {"kind":"file","turn":3,"root":"..","path":".."}, {"kind":"question","turn":4,"question":".."},
 * {"kind":"ask","turn":4,"id":"..","question":".."}]
 * without the end of the object. turns: how many there are. */
ah_status ah_dropped_print(const ah_dropped *d, int64_t to, ah_buf *out, ah_err *err);
/* Appends {"kind":"entity","class":"..","id":"..","why":".."} of each entity that stays. n: how
 * many items the list has so far. */
void ah_dropped_print_stays(const ah_dropped *d, size_t *n, ah_buf *out);

#endif
