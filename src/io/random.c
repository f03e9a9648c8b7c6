/* The kernel's generator, by its system call: no descriptor, and no file that could replace
 * /dev/urandom. Blocks only if the machine has just started and has no entropy yet. */
#include "io/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#ifndef __linux__
#include <unistd.h>
#endif

enum { MOST = 256 /* bytes per call, which every system returns completely or not at all */ };

/* Returns the number of bytes read: n, or -1. */
static ssize_t some_bytes(char *out, size_t n)
{
#ifdef __linux__
    return getrandom(out, n, 0);
#else
    return getentropy(out, n) == 0 ? (ssize_t)n : -1;
#endif
}

ah_status ah_random_bytes(void *out, size_t n, ah_err *err)
{
    char *to = out;
    size_t at = 0;

    while (at < n) {
        size_t want = n - at < MOST ? n - at : MOST;
        ssize_t got = some_bytes(to + at, want);

        if (got > 0) {
            at += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            memset(out, 0, n);
            return ah_err_set(err, AH_INTERNAL, "the system gives no random bytes: %s",
                              got == 0 ? "it gave none" : strerror(errno));
        }
    }
    return AH_OK;
}
