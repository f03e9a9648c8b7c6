/* Converts seconds, the unit of users and servers, to milliseconds, the unit of the clocks.
 * Callers: wire, io, lua. */
#ifndef AH_BASE_SECONDS_H
#define AH_BASE_SECONDS_H

#include <stdint.h>

/* Rounds to the nearest: 0.03 s is 30 ms even if the product is just below. */
static inline int64_t ah_ms_of(double seconds)
{
    return (int64_t)(seconds * 1000 + (seconds < 0 ? -0.5 : 0.5));
}

#endif
