/* Random bytes from the system, suitable for keys and tokens. Keeps no state. Callers: host,
 * lua. */
#ifndef AH_IO_RANDOM_H
#define AH_IO_RANDOM_H

#include "base/err.h"

/* Fills out with n bytes. Returns AH_INTERNAL if the system gives none; out is then zeroed, as
 * there is no weaker fallback. */
ah_status ah_random_bytes(void *out, size_t n, ah_err *err);

#endif
