/* CLOCK_MONOTONIC. Safe between fork and exec. */
#include "io/clock.h"

#include <time.h>

int64_t ah_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t ah_clock_ms(void)
{
    return ah_clock_ns() / 1000000;
}
