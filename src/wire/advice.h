/* Reads the time to wait from the head of a response: Retry-After in its forms, and rate limits
 * that are used up. Waits are milliseconds, -1 if the head says nothing (zero counts as nothing),
 * or -2 if the time is longer than AH_LONGEST_WAIT_MS. Allocates nothing; all slices are borrowed.
 * Callers: its floor, host. */
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

/* The unit of a limit. */
typedef enum ah_advice_kind {
    AH_ADVICE_REQUESTS,
    AH_ADVICE_TOKENS, /* of the input, or of both */
    AH_ADVICE_OUTPUT  /* tokens */
} ah_advice_kind;

enum { AH_ADVICE_LIMITS = 9 };

extern const ah_advice_kind ah_advice_kinds[AH_ADVICE_LIMITS];

/* The last report of a limit. */
typedef struct ah_advice_left {
    int64_t n;  /* what is left */
    int64_t at; /* until then, ms of the caller's clock; 0: nothing holds */
} ah_advice_left;

/* Updates the limits that the head reports, and returns true if one of them holds; `now` is the
 * present time of the caller's clock, ms. A limit that is renewed later than AH_LONGEST_WAIT_MS
 * does not hold. */
bool ah_advice_limits(const ah_response_head *head, int64_t now,
                      ah_advice_left left[AH_ADVICE_LIMITS]);

/* Reads a time in one of the forms above, in ms; -1 if `s` is not a time. */
double ah_advice_span(ah_slice s, int64_t wall_ms);

#endif
