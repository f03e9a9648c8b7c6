/* The use of a conversation: the answers that its runs, and the runs that its handlers have begun,
 * got so far, with their tokens and cost. Records and the label of a stream have it as JSON.
 * Callers: its module, host. */
#ifndef AH_RUN_SPENT_H
#define AH_RUN_SPENT_H

#include "wire/assemble.h"

typedef struct ah_spent {
    ah_usage usage;
    int64_t answers;
    bool cut;      /* answers were cut off, which are in usage.unpriced; not in the JSON */
    int64_t since; /* time of the first one, ms since the epoch; 0: unknown */
} ah_spent;

/* The earlier `since` counts. */
void ah_spent_add(ah_spent *sum, const ah_spent *more);
void ah_spent_print(const ah_spent *s, ah_buf *out); /* appends a JSON object */
/* Reads it back from checked JSON. Members that are missing or wrong are 0. */
void ah_spent_read(ah_slice json, ah_spent *out);
/* Adds the use of a record `answer` or, if `answer` is false, `run_ended`: `said` is a checked JSON
 * object. */
void ah_spent_add_record(ah_spent *sum, bool answer, ah_slice said, int64_t time);

#endif
