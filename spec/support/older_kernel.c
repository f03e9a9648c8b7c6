/* For LD_PRELOAD: simulates an older kernel, or a machine without bwrap, for a program under
 * test. LANDLOCK_ABI: the reported version of Landlock (0: none). NO_BWRAP: bwrap is not found.
 * NO_RANDOM: the kernel has no random bytes. INOTIFY: no instance can be made (EMFILE), or no
 * watch of a folder (ENOSPC). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE_RULESET = 444, VERSION = 1 };

long syscall(long n, ...);
long syscall(long n, ...)
{
    static long (*real)(long, ...);
    const char *abi = getenv("LANDLOCK_ABI");
    long a[6];
    va_list args;

    va_start(args, n);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (n == CREATE_RULESET && abi && atoi(abi) == 0) {
        errno = ENOSYS;
        return -1;
    }
    if (n == CREATE_RULESET && abi && (a[2] & VERSION))
        return atoi(abi);
    return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int is_bwrap(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && strcmp(name, "/bwrap") == 0;
}

int access(const char *path, int mode)
{
    static int (*real)(const char *, int);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "access");
    if (getenv("NO_BWRAP") && is_bwrap(path)) {
        errno = ENOENT;
        return -1;
    }
    return real(path, mode);
}

ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    static ssize_t (*real)(void *, size_t, unsigned);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getrandom");
    if (getenv("NO_RANDOM")) {
        errno = ENOSYS;
        return -1;
    }
    return real(out, n, flags);
}

static int refused(const char *how, int code)
{
    const char *set = getenv("INOTIFY");

    if (!set || strcmp(set, how) != 0)
        return 0;
    errno = code;
    return -1;
}

int inotify_init1(int flags)
{
    static int (*real)(int);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "inotify_init1");
    return refused("EMFILE", EMFILE) ? -1 : real(flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    static int (*real)(int, const char *, uint32_t);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "inotify_add_watch");
    return refused("ENOSPC", ENOSPC) ? -1 : real(fd, path, mask);
}
