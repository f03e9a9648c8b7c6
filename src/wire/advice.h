/* The time that a server wants us to wait, from the head of its response: Retry-After in its
 * spellings, and limits on requests and tokens that are used up. Both give milliseconds, or -1
 * where nothing is said (zero is no advice), or -2 where it is longer than we wait. For readers:
 * adapter.c asks for all of them, gemini_read.c for a length that its errors tell. */
#ifndef AH_WIRE_ADVICE_H
#define AH_WIRE_ADVICE_H

#include "base/slice.h"

/* The head of a response, as far as adapters look at it. */
typedef struct ah_response_head {
    int status;
    ah_slice (*header)(const void *ud, const char *name); /* .p NULL when absent */
    const void *ud;
    int64_t wall_ms; /* now, for dates */
} ah_response_head;

enum { AH_LONGEST_WAIT_MS = 60000 };

/* retry-after-ms, or Retry-After: seconds with or without a fraction, a duration ("1m30s"), or a
 * date in one of HTTP's three forms or RFC 3339's. */
int64_t ah_advice_retry(const ah_response_head *head);
/* Until the last of the limits that stand at 0 is renewed (x-ratelimit-...,
 * anthropic-ratelimit-...). */
int64_t ah_advice_limit(const ah_response_head *head);

/* A length of time as it stands above, in ms; -1 where it is none. */
double ah_advice_span(ah_slice s, int64_t wall_ms);

#endif
