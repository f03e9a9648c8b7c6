/* /proc has, for each process, the lists of its threads' children. A walk is a snapshot: processes
 * forked meanwhile are found by the next one.
 *
 * The watch must not need anything that a watched process can take away. The list of this process
 * is open from the start, and all processes below appear in it once their parents are gone. So
 * rounds of KILL end everything even if no other file can be opened (RLIMIT_NOFILE lowered to 0),
 * if /proc was mounted over, or if it hides other users' processes. */
#define _GNU_SOURCE /* syscall, getdents64 */
#include "io/descent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#if AH_HAS_DESCENT
#include <sys/syscall.h>

enum {
    MAX_NAME = 64,
    CHUNK = 2048,
    MAX_TREE = 2048 /* limit of one walk; the next one finds others */
};

typedef struct tree {
    const ah_descent *at;
    pid_t pid[MAX_TREE]; /* parents before their children */
    size_t n;
    bool whole; /* nothing was left out */
} tree;

/* Writes n in decimal, followed by `what`. */
static void name_of(char out[MAX_NAME], long n, const char *what)
{
    char digits[24];
    size_t k = 0, at = 0;

    do
        digits[k++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (k)
        out[at++] = digits[--k];
    strcpy(out + at, what);
}

static void add(tree *t, long pid)
{
    if (t->n < MAX_TREE)
        t->pid[t->n++] = (pid_t)pid;
    else
        t->whole = false;
}

static void add_numbers(tree *t, const char *p, const char *end, long *partial)
{
    for (; p < end; p++) {
        if (*p >= '0' && *p <= '9') {
            *partial = (*partial < 0 ? 0 : *partial) * 10 + (*p - '0');
            continue;
        }
        if (*partial > 0)
            add(t, *partial);
        *partial = -1;
    }
}

/* Adds the children of one thread: numbers, each followed by a blank. */
static void add_list(tree *t, int fd)
{
    char chunk[CHUNK];
    long partial = -1;
    ssize_t n;

    if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0) {
        t->whole = false;
        return;
    }
    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        add_numbers(t, chunk, chunk + n, &partial);
    if (n < 0 && errno != ESRCH)
        t->whole = false;
}

/* Opens a file for reading. If that fails the list is incomplete, unless the process is gone and so
 * has no children. */
static int open_at(tree *t, int dir, const char *name, int flags)
{
    int fd = openat(dir, name, flags | O_RDONLY | O_CLOEXEC);

    if (fd < 0 && errno != ENOENT && errno != ESRCH)
        t->whole = false;
    return fd;
}

struct entry { /* of getdents64; no header has it */
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static void add_thread(tree *t, int folder, const char *name)
{
    char path[MAX_NAME];
    int fd;

    if (*name < '0' || *name > '9' || strlen(name) > MAX_NAME / 2)
        return;
    strcpy(path, name);
    strcat(path, "/children");
    if ((fd = open_at(t, folder, path, 0)) < 0)
        return;
    add_list(t, fd);
    close(fd);
}

/* Adds the children of all threads of a process. */
static void add_children_of(tree *t, pid_t pid)
{
    _Alignas(8) char entries[CHUNK];
    char folder[MAX_NAME];
    long n;
    int fd;

    name_of(folder, pid, "/task");
    if ((fd = open_at(t, t->at->proc, folder, O_DIRECTORY)) < 0)
        return;
    while ((n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (long at = 0; at < n;) {
            const struct entry *e = (const struct entry *)(const void *)(entries + at);

            add_thread(t, fd, e->name);
            at += e->size;
        }
    close(fd);
}

static void walk(tree *t, const ah_descent *d)
{
    t->at = d;
    t->n = 0;
    t->whole = true;
    add_list(t, d->children);
    for (size_t i = 0; i < t->n; i++)
        add_children_of(t, t->pid[i]);
}

/* Kills all process groups in the tree except our own, in which a new child is for a moment. */
static void kill_groups(const tree *t)
{
    pid_t ours = getpgrp(), last = 0, spared = t->at->spared ? getpgid(t->at->spared) : 0;

    for (size_t i = 0; i < t->n; i++) {
        pid_t group = getpgid(t->pid[i]);

        if (group > 1 && group != ours && group != last && group != spared)
            kill(-group, SIGKILL);
        last = group;
    }
}

void ah_descent_open(ah_descent *d)
{
    ah_descent_open_of(d, getpid());
}

void ah_descent_open_of(ah_descent *d, pid_t child)
{
    char path[MAX_NAME];

    d->spared = 0;
    d->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    name_of(path, child, "/task/");
    name_of(path + strlen(path), child, "/children");
    d->children = d->proc < 0 ? -1 : openat(d->proc, path, O_RDONLY | O_CLOEXEC);
}

void ah_descent_close(ah_descent *d)
{
    if (d->proc >= 0)
        close(d->proc);
    if (d->children >= 0)
        close(d->children);
    d->proc = d->children = -1;
}

/* A process id can belong to another process only if its process had ended and all other ids had
 * been assigned since the walk. Ids of our children stay theirs until we wait for them. */
void ah_descent_signal(const ah_descent *d, int sig)
{
    tree t;

    walk(&t, d);
    if (sig == SIGKILL)
        kill_groups(&t);
    for (size_t i = 0; i < t.n; i++)
        if (t.pid[i] != d->spared)
            kill(t.pid[i], sig);
}

int ah_descent_count(const ah_descent *d)
{
    tree t;

    walk(&t, d);
    return t.whole ? (int)t.n : AH_LEFT_UNKNOWN;
}

#else

void ah_descent_open(ah_descent *d)
{
    ah_descent_open_of(d, 0);
}

void ah_descent_open_of(ah_descent *d, pid_t child)
{
    (void)child;
    d->proc = d->children = -1;
    d->spared = 0;
}

void ah_descent_close(ah_descent *d)
{
    (void)d;
}

void ah_descent_signal(const ah_descent *d, int sig)
{
    (void)d;
    (void)sig;
}

int ah_descent_count(const ah_descent *d)
{
    (void)d;
    return AH_LEFT_UNKNOWN;
}
#endif
