/* The generator of the kernel, by its call: no descriptor, no file that somebody could put in place
 * of /dev/urandom. Waits only where the machine has just started and has gathered nothing yet. */
#include "io/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#ifndef __linux__
#include <unistd.h>
#endif

enum { MOST = 256 /* bytes at a time, which every system gives whole or not at all */ };

/* Returns the number that came: n, or -1. */
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
