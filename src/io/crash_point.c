/* Counts crash points, in a build for the specs. Any thread may pass one. */
#include "io/crash_point.h"

#ifdef AH_CRASH_POINTS

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CRASHED = 86 };

static atomic_long passed;
static long stop_at; /* 0: nowhere */

static void write_count(void)
{
    const char *path = getenv("AGENTHOST_CRASH_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f)
        return;
    fprintf(f, "%ld\n", atomic_load(&passed));
    fclose(f);
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("AGENTHOST_CRASH_AT");

    stop_at = at ? strtol(at, NULL, 10) : 0;
    if (getenv("AGENTHOST_CRASH_COUNT"))
        atexit(write_count);
}

void ah_crash_point(const char *what)
{
    (void)what;
    if (atomic_fetch_add(&passed, 1) + 1 == stop_at)
        _exit(CRASHED);
}

#else

void ah_crash_point(const char *what)
{
    (void)what;
}

#endif
