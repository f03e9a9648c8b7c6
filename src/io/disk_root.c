/* See disk_root.h. Systems without openat2 (Linux before 5.6, all others) open name by name. */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "io/disk_root.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif
#endif

#include "base/backing.h"

_Static_assert(AH_DISK_ROOT_PATH >= AH_FS_MAX_PATH + 128, "a user's path and a temporary name");

#ifndef O_PATH /* Linux: opens a folder for passing through, without the right to read it */
#define O_PATH O_RDONLY
#endif

enum { FOLDER = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, TRIES = 16 };

#if defined(SYS_openat2) && defined(RESOLVE_NO_SYMLINKS)

/* Returns -1 with ENOSYS if the path must be opened by name. */
static int at_once(ah_disk_root *b, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)flags,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = -1;

    /* EAGAIN: a rename meanwhile made the result uncertain */
    for (int i = 0; i < TRIES; i++) {
        fd = (int)syscall(SYS_openat2, b->root, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    if (fd < 0 && errno == EAGAIN)
        errno = ENOSYS;
    else if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG)) {
        b->by_name = true; /* too old a kernel, or refused by a filter of system calls */
        errno = ENOSYS;
    }
    return fd;
}

#else

static int at_once(ah_disk_root *b, const char *path, int flags)
{
    (void)path;
    (void)flags;
    b->by_name = true;
    errno = ENOSYS;
    return -1;
}

#endif

static void close_quietly(int fd)
{
    int e = errno;

    close(fd);
    errno = e;
}

/* Opens a folder in another one; ENOENT if it is hidden. */
static int open_next(const ah_disk_root *b, int at, const char *name, int flags)
{
    int next = openat(at, name, flags | FOLDER);
    struct stat s;

    if (next >= 0 && b->hidden && b->hidden->first && fstat(next, &s) == 0 &&
        ah_hidden_is(b->hidden, &s)) {
        close(next);
        errno = ENOENT;
        return -1;
    }
    return next;
}

/* Opens one folder after another, with at most two descriptors at a time. */
static int by_name(const ah_disk_root *b, ah_slice path, int flags)
{
    char name[AH_FS_MAX_NAME + 1];
    int root = b->root, at = root, next;

    while (path.n) {
        const char *slash = memchr(path.p, '/', path.n);
        size_t n = slash ? (size_t)(slash - path.p) : path.n, used = n + (slash != NULL);

        if (n < sizeof name) {
            memcpy(name, path.p, n);
            name[n] = '\0';
            next = open_next(b, at, name, slash ? O_PATH : flags);
        } else {
            errno = ENAMETOOLONG;
            next = -1;
        }
        if (at != root)
            close_quietly(at);
        if ((at = next) < 0)
            break;
        path.p += used;
        path.n -= used;
    }
    return at;
}

int ah_disk_root_folder(ah_disk_root *b, ah_slice path, bool to_read)
{
    int flags = to_read ? O_RDONLY : O_PATH, fd = -1;
    char text[AH_DISK_ROOT_PATH + 1];

    if (path.n == 0)
        return openat(b->root, ".", flags | FOLDER);
    if (path.n > AH_DISK_ROOT_PATH) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(text, path.p, path.n);
    text[path.n] = '\0';
    if (!b->by_name && !(b->hidden && b->hidden->first) &&
        ((fd = at_once(b, text, flags | FOLDER)) >= 0 || errno != ENOSYS))
        return fd;
    return by_name(b, path, flags);
}
