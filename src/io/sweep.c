/* Flattens a deep tree: the files of a folder inside the removed folder are deleted, and its
 * folders are moved up beside it. So each folder is moved once, no path is longer than two names,
 * and neither a stack nor the number of descriptors grows with the depth. */
#define _GNU_SOURCE /* syscall, getdents64, O_PATH */
#include "io/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>

#include "io/clock.h"

enum { CHUNK = 8192, MAX_NUMBER = 24, TRIES = 16 };

typedef struct sweeper {
    int top;
    unsigned long next; /* number in the name of the next folder that is moved up */
    bool progress;
    bool late;
    int64_t until; /* ms; -1: without limit */
} sweeper;

/* Writes the prefix and a number. */
static void number(char *to, const char *prefix, unsigned long n)
{
    char digits[MAX_NUMBER];
    size_t k = 0;

    strcpy(to, prefix);
    to += strlen(to);
    do
        digits[k++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (k)
        *to++ = digits[--k];
    *to = '\0';
}

/* Lets the owner open a folder whose mode forbids it. */
static void unlock(int dir, const char *name)
{
    char path[sizeof "/proc/self/fd/" + MAX_NUMBER];
    int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    number(path, "/proc/self/fd/", (unsigned long)fd);
    chmod(path, S_IRWXU); /* fchmod does not accept such a descriptor */
    close(fd);
}

/* Opens a folder for reading and changing; -1 if it is no folder. */
static int open_folder(int dir, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, flags);

    if (fd < 0 && errno == EACCES) {
        unlock(dir, name);
        fd = openat(dir, name, flags);
    }
    if (fd >= 0)
        fchmod(fd, S_IRWXU);
    return fd;
}

static bool remove_plain(int dir, const char *name)
{
    return unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* Moves a folder up. Only a folder that the process may write in can be moved. */
static void move_up(sweeper *s, int dir, const char *name)
{
    char to[MAX_NUMBER + 8];
    int fd = open_folder(dir, name);
    bool moved = false;

    if (fd < 0)
        return;
    close(fd);
    for (int i = 0; i < TRIES && !moved; i++) {
        number(to, "swept-", s->next++);
        moved = renameat(dir, name, s->top, to) == 0;
    }
    s->progress |= moved;
}

static void flatten(sweeper *s, int dir, const char *name)
{
    if (remove_plain(dir, name))
        s->progress = true;
    else
        move_up(s, dir, name);
}

struct entry { /* of getdents64; no header has it */
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Calls visit for each name in dir while there is time. */
static void each(sweeper *s, int dir, void (*visit)(sweeper *, int, const char *))
{
    _Alignas(8) char entries[CHUNK];
    long n;

    while (!s->late && (n = syscall(SYS_getdents64, dir, entries, sizeof entries)) > 0)
        for (long at = 0; at < n && !s->late;) {
            const struct entry *e = (const struct entry *)(const void *)(entries + at);

            if (!is_dots(e->name))
                visit(s, dir, e->name);
            at += e->size;
            s->late = s->until >= 0 && ah_clock_ms() >= s->until;
        }
}

static void sweep_one(sweeper *s, int top, const char *name)
{
    int fd;

    if (remove_plain(top, name)) {
        s->progress = true;
        return;
    }
    if ((fd = open_folder(top, name)) < 0)
        return;
    each(s, fd, flatten);
    close(fd);
    s->progress |= unlinkat(top, name, AT_REMOVEDIR) == 0;
}

bool ah_sweep(const char *path, long for_ms)
{
    sweeper s = {.progress = true, .until = for_ms < 0 ? -1 : ah_clock_ms() + for_ms};

    if (rmdir(path) == 0 || (s.top = open_folder(AT_FDCWD, path)) < 0)
        return true;
    while (s.progress && !s.late && rmdir(path) != 0 && errno != ENOENT) {
        s.progress = false;
        lseek(s.top, 0, SEEK_SET);
        each(&s, s.top, sweep_one);
    }
    close(s.top);
    return !s.late;
}

#else

bool ah_sweep(const char *path, long for_ms)
{
    (void)for_ms;
    rmdir(path);
    return true;
}
#endif
