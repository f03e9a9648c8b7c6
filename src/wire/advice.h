/* Reads the time to wait from the head of a response: Retry-After in its forms, and rate limits
 * that are used up. Both functions return milliseconds, -1 if the head says nothing (zero counts as
 * nothing), or -2 if the time is longer than AH_LONGEST_WAIT_MS. Allocates nothing; all slices are
 * borrowed. Callers: its floor. */
#ifndef AH_WIRE_ADVICE_H
#define AH_WIRE_ADVICE_H

#include "base/slice.h"

/* The head of a response, as adapters see it. */
typedef struct ah_response_head {
    int status;
    ah_slice (*header)(const void *ud, const char *name); /* .p NULL if absent */
    const void *ud;
    int64_t wall_ms; /* current time, ms since the epoch, for dates */
} ah_response_head;

enum { AH_LONGEST_WAIT_MS = 60000 };

/* Reads retry-after-ms, or Retry-After: seconds with or without a fraction, a duration ("1m30s"),
 * or a date in one of HTTP's three forms or RFC 3339's. */
int64_t ah_advice_retry(const ah_response_head *head);
/* Time until all limits that are at 0 are renewed (x-ratelimit-..., anthropic-ratelimit-...). */
int64_t ah_advice_limit(const ah_response_head *head);

/* A time in one of the forms above, in ms; -1 if it is none. */
double ah_advice_span(ah_slice s, int64_t wall_ms);

#endif
