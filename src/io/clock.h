/* The system's monotonic clock, in ns and ms. Async-signal-safe. Callers: its floor, host, lua. */
#ifndef AH_IO_CLOCK_H
#define AH_IO_CLOCK_H

#include <stdint.h>

int64_t ah_clock_ns(void);
int64_t ah_clock_ms(void);

#endif
