/* Seconds, as people and servers say them, as the milliseconds of clocks. */
#ifndef AH_BASE_SECONDS_H
#define AH_BASE_SECONDS_H

#include <stdint.h>

/* Rounded: 0.03 s are 30 ms also where products have more digits than a double, and are just
 * below. */
static inline int64_t ah_ms_of(double seconds)
{
    return (int64_t)(seconds * 1000 + (seconds < 0 ? -0.5 : 0.5));
}

#endif
