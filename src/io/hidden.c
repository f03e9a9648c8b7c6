/* Folders are known by device and inode, whatever path leads to them. */
#define _GNU_SOURCE /* O_PATH */
#include "io/hidden.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum { FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC, MAX_DEPTH = 1024 };

static bool is_same(const struct stat *s, dev_t device, ino_t inode)
{
    return s->st_dev == device && s->st_ino == inode;
}

static bool fill(ah_hidden_folder *f, ah_slice file)
{
    size_t n = file.n;

    while (n > 0 && file.p[n - 1] != '/')
        n--;
    f->path = ah_text_new(f->mem, (ah_slice){file.p, n > 1 ? n - 1 : n});
    f->name = ah_text_new(f->mem, (ah_slice){file.p + n, file.n - n});
    return f->path && f->name;
}

ah_status ah_hidden_add(ah_hidden *h, const ah_mem *mem, ah_slice file, ah_hidden_folder **out,
                        ah_err *err)
{
    ah_hidden_folder *f = ah_alloc(mem, sizeof *f);
    struct stat s;

    if (!f)
        return ah_err_nomem(err);
    f->mem = mem;
    f->fd = -1;
    if (!fill(f, file)) {
        ah_err_nomem(err);
    } else if ((f->fd = open(f->path->data, FOLDER)) < 0 || fstat(f->fd, &s) != 0) {
        ah_err_set(err, AH_STORE, "cannot open the folder of the store '%.*s': %s", AH_FMT(file),
                   strerror(errno));
    } else {
        f->device = s.st_dev;
        f->inode = s.st_ino;
        f->next = h->first;
        f->link = &h->first;
        if (f->next)
            f->next->link = &f->next;
        h->first = *out = f;
        return AH_OK;
    }
    ah_hidden_remove(f);
    return err->status;
}

void ah_hidden_remove(ah_hidden_folder *f)
{
    if (!f)
        return;
    if (f->link) {
        *f->link = f->next;
        if (f->next)
            f->next->link = f->link;
    }
    if (f->fd >= 0)
        close(f->fd);
    ah_text_unref(f->path);
    ah_text_unref(f->name);
    ah_free(f->mem, f);
}

bool ah_hidden_is(const ah_hidden *h, const struct stat *s)
{
    for (const ah_hidden_folder *f = h ? h->first : NULL; f; f = f->next)
        if (is_same(s, f->device, f->inode))
            return true;
    return false;
}

bool ah_hidden_has(const ah_hidden *h, int folder, const char *name)
{
    struct stat s;

    if (!h || !h->first)
        return false;
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode) &&
        ah_hidden_is(h, &s))
        return true;
    if (fstat(folder, &s) != 0)
        return false;
    for (const ah_hidden_folder *f = h->first; f; f = f->next)
        if (is_same(&s, f->device, f->inode) && ah_slice_begins(ah_slice_of(name), f->name->data))
            return true;
    return false;
}

/* Walks up from a hidden folder. */
static bool is_above(const struct stat *above, const ah_hidden_folder *f)
{
    int fd = openat(f->fd, ".", FOLDER), up;
    struct stat s, before = {0};
    bool found = false;

    for (int i = 0; fd >= 0 && i < MAX_DEPTH && fstat(fd, &s) == 0; i++) {
        found = is_same(above, s.st_dev, s.st_ino);
        if (found || is_same(&before, s.st_dev, s.st_ino))
            break;
        before = s;
        up = openat(fd, "..", FOLDER);
        close(fd);
        fd = up;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

bool ah_hidden_below(const ah_hidden *h, int folder)
{
    struct stat s;

    if (!h || !h->first || fstat(folder, &s) != 0)
        return false;
    for (const ah_hidden_folder *f = h->first; f; f = f->next)
        if (is_above(&s, f))
            return true;
    return false;
}
