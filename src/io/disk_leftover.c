/* Leftovers of a process that was killed while it wrote: temporary files and folders, named
 * .agenthost-*.tmp and never shown. Once no process holds the lock of their folder, the next
 * process that lists the folder removes them. They do not prevent the folder from being deleted. If
 * the folder cannot be locked, or an older version left them without a lock, they are removed after
 * an hour. */
#define _GNU_SOURCE /* flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "io/disk_store.h"

/* HEAD is followed by a letter: t for a single temporary, s for one of a set, o for an entry that
 * one of a set replaced. */
static const char HEAD[] = ".agenthost-";
enum { KIND = sizeof HEAD - 1, STALE_SECONDS = 3600, HOLD_TRIES = 20, MAX_PASSES = 1000 };

/* -- names ---------------------------------------------------------------------------------- */

void ah_fs_temp_name(ah_fs_host *h, bool set, char out[AH_FS_TEMP])
{
    char root[24] = "";

    if (set)
        snprintf(root, sizeof root, "%llx-", (unsigned long long)h->id);
    snprintf(out, AH_FS_TEMP, "%s%c%s%lx-%llx-%llx.tmp", HEAD, set ? 's' : 't', root,
             (unsigned long)getpid(), (unsigned long long)h->started,
             (unsigned long long)++h->temporaries);
}

bool ah_fs_temp_of_set(ah_slice name)
{
    return ah_fs_is_temporary(name) && name.n < AH_FS_TEMP && name.p[KIND] == 's' &&
           !memchr(name.p, '/', name.n) && !memchr(name.p, '\0', name.n);
}

void ah_fs_temp_old(const char temp[AH_FS_TEMP], char out[AH_FS_TEMP])
{
    memcpy(out, temp, AH_FS_TEMP);
    out[KIND] = 'o';
}

/* -- locks ---------------------------------------------------------------------------------- */

/* Waits only briefly. A foreign process that holds the lock endangers only this folder, which it
 * can change anyway. */
void ah_fs_hold(int folder)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < HOLD_TRIES && flock(folder, LOCK_SH | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK)
            break;
        nanosleep(&pause, NULL);
    }
}

ah_fs_holding ah_fs_held(int folder)
{
    if (flock(folder, LOCK_EX | LOCK_NB) == 0)
        return AH_FS_FREE;
    return errno == EWOULDBLOCK ? AH_FS_HELD : AH_FS_UNKNOWN;
}

/* -- removing -------------------------------------------------------------------------------- */

/* Removes the entry, unless it is a non-empty folder. */
static bool remove_entry(int folder, const char *name)
{
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return true;
    return unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

static DIR *open_list(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties the folder `name` of `top`. Non-empty folders in it are moved up into `top`, to be
 * emptied later, so that no depth needs a stack. */
static bool flatten(int top, const char *name, unsigned long *moved)
{
    DIR *dir = open_list(top, name);
    char up[48];
    struct dirent *e;
    bool ok = dir != NULL;

    while (ok && (e = readdir(dir))) {
        if (is_dots(e->d_name) || remove_entry(dirfd(dir), e->d_name))
            continue;
        snprintf(up, sizeof up, "%sup-%lx", HEAD, ++*moved);
        ok = renameat(dirfd(dir), e->d_name, top, up) == 0;
    }
    if (dir)
        closedir(dir);
    return ok && remove_entry(top, name);
}

/* Goes through the folder once. Returns the number of removed entries. */
static size_t clear_pass(int folder, const char *name, unsigned long *moved)
{
    DIR *dir = open_list(folder, name);
    struct dirent *e;
    size_t n = 0;

    while (dir && (e = readdir(dir)))
        if (!is_dots(e->d_name))
            n += remove_entry(dirfd(dir), e->d_name) || flatten(dirfd(dir), e->d_name, moved);
    if (dir)
        closedir(dir);
    return n;
}

bool ah_fs_clear(int folder, const char *name)
{
    unsigned long moved = 0;

    for (int i = 0, idle = 0; i < MAX_PASSES && idle < 2; i++) {
        if (remove_entry(folder, name))
            return true;
        idle += clear_pass(folder, name, &moved) == 0;
    }
    return remove_entry(folder, name);
}

/* -- sweeping --------------------------------------------------------------------------------- */

static bool is_of_root(const ah_fs_host *h, const char *name)
{
    return strtoull(name + KIND + 1, NULL, 16) == h->id;
}

static void end_sets(ah_fs_sweep *s)
{
    if (!s->asked)
        s->busy = ah_fs_recover(s->h);
    s->asked = true;
}

/* Temporaries of a set are needed while its record exists. */
static bool is_of_nobody(ah_fs_sweep *s, const char *name)
{
    if (name[KIND] == 't')
        return true;
    if ((name[KIND] != 's' && name[KIND] != 'o') || !is_of_root(s->h, name))
        return false;
    end_sets(s);
    return !s->busy;
}

void ah_fs_sweep_entry(ah_fs_sweep *s, const char *name, const struct stat *st)
{
    struct timespec now;
    bool stale;

    if (s->h->fs.o.read_only)
        return;
    if (ah_fs_is_record(name)) {
        end_sets(s);
        return;
    }
    if (s->holding == AH_FS_UNASKED)
        s->holding = ah_fs_held(s->fd);
    if (s->holding == AH_FS_HELD)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    stale = st->st_mtim.tv_sec < now.tv_sec - STALE_SECONDS;
    if (stale || (s->holding == AH_FS_FREE && is_of_nobody(s, name)))
        ah_fs_clear(s->fd, name);
}
