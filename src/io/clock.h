/* The clock that only goes forward, for whoever measures or waits. */
#ifndef AH_IO_CLOCK_H
#define AH_IO_CLOCK_H

#include <stdint.h>

int64_t ah_clock_ns(void);
int64_t ah_clock_ms(void);

#endif
