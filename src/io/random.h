/* Random bytes from the system, good enough for keys and tokens. */
#ifndef AH_IO_RANDOM_H
#define AH_IO_RANDOM_H

#include "base/err.h"

/* Fills out with n bytes; or AH_INTERNAL where the system gives none, and out holds nothing then:
 * there are no others to fall back on. */
ah_status ah_random_bytes(void *out, size_t n, ah_err *err);

#endif
