/* A folder of the machine: changing it. prepare writes each content to a temporary file in
 * the folder where it belongs and forces it to the disk; commit renames. So each file is the
 * old one or the new one, whenever the process ends; what it leaves then is a file named
 * .agenthost-*.tmp, never shown, and removed when its folder is listed an hour later.
 * Hard links are never written through: the name gets a new file. */
#define _DEFAULT_SOURCE /* fchown */
#include "prompt/fs_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMP_NAME = 80, TRIES = 16 };

typedef struct step {
    ah_text *path;
    ah_fs_act act;
    ah_fs_kind kind;      /* REMOVE: of what */
    bool made;            /* MAKE_FOLDER: by us */
    char temp[TEMP_NAME]; /* PUT; "": none */
} step;

typedef struct ticket {
    size_t n;
    step item[];
} ticket;

/* -- preparing --------------------------------------------------------------------------- */

static int new_temporary(ah_fs_host *h, int folder, unsigned mode, char name[TEMP_NAME])
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = -1;

    for (int i = 0; i < TRIES; i++) {
        snprintf(name, TEMP_NAME, ".agenthost-%lx-%llx-%llx.tmp", (unsigned long)getpid(),
                 (unsigned long long)h->started, (unsigned long long)++h->temporaries);
        if ((fd = openat(folder, name, flags, (mode_t)mode)) >= 0 || errno != EEXIST)
            break;
    }
    if (fd < 0)
        name[0] = '\0';
    return fd;
}

static int write_all(int fd, ah_slice s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        s.p += n;
        s.n -= (size_t)n;
    }
    return 0;
}

/* As far as we are allowed to: another owner is kept where we are root. */
static void keep_owner(int fd, const ah_fs_place *at)
{
    struct stat old, own;

    if (fstatat(at->fd, at->name, &old, AT_SYMLINK_NOFOLLOW) != 0 || fstat(fd, &own) != 0)
        return;
    if ((old.st_uid != own.st_uid || old.st_gid != own.st_gid) &&
        fchown(fd, old.st_uid, old.st_gid) != 0)
        return;
}

/* Never more open than the target: the mode is that of the file to be from the first. */
static int write_temporary(ah_fs_host *h, const ah_fs_place *at, const ah_fs_change *c, step *s)
{
    int fd = new_temporary(h, at->fd, c->mode.known ? c->mode.bits : 0666, s->temp), rc = -1, e;

    if (fd < 0)
        return -1;
    if (c->mode.known)
        keep_owner(fd, at);
    if ((!c->mode.known || fchmod(fd, (mode_t)c->mode.bits) == 0) &&
        write_all(fd, ah_text_slice(c->content)) == 0 && (h->fs.o.no_sync || fsync(fd) == 0))
        rc = 0;
    e = errno;
    if (close(fd) != 0 && rc == 0) {
        e = errno;
        rc = -1;
    }
    if (rc != 0) {
        unlinkat(at->fd, s->temp, 0);
        s->temp[0] = '\0';
    }
    errno = e;
    return rc;
}

/* A folder that is there by now is as good. */
static int make_folder(const ah_fs_place *at, step *s)
{
    struct stat st;

    if (mkdirat(at->fd, at->name, 0777) == 0) {
        s->made = true;
        return 0;
    }
    if (errno != EEXIST)
        return -1;
    if (fstatat(at->fd, at->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return 0;
    errno = ENOTDIR;
    return -1;
}

static ah_status prepare_step(ah_fs_host *h, const ah_fs_change *c, step *s, ah_err *err)
{
    ah_slice path = ah_text_slice(c->path);
    ah_fs_place at;
    ah_status st;

    *s = (step){.path = ah_text_ref(c->path), .act = c->act, .kind = c->was.kind};
    if (c->act != AH_FS_PUT && c->act != AH_FS_MAKE_FOLDER)
        return AH_OK;
    if ((st = ah_fs_host_enter(h, path, true, &at, err)) != AH_OK)
        return st;
    if ((c->act == AH_FS_PUT ? write_temporary(h, &at, c, s) : make_folder(&at, s)) != 0)
        st = ah_fs_host_err(errno, c->act == AH_FS_PUT ? "write" : "make the folder", path, err);
    ah_fs_host_leave(&at);
    return st;
}

ah_status ah_fs_host_prepare(ah_fs *fs, const ah_fs_changes *list, void **out, ah_err *err)
{
    ticket *t = ah_alloc(fs->mem, sizeof *t + list->n * sizeof *t->item);
    ah_status st = t ? AH_OK : ah_err_nomem(err);

    for (size_t i = 0; st == AH_OK && i < list->n; i++)
        st = prepare_step((ah_fs_host *)fs, &list->item[i], &t->item[t->n++], err);
    if (st == AH_OK)
        *out = t;
    else if (t)
        ah_fs_host_drop(fs, t);
    return st;
}

/* -- settling ------------------------------------------------------------------------------ */

/* Of a commit: what went wrong first. */
typedef struct outcome {
    ah_status st;
    ah_err *err;
    size_t put; /* contents in place */
} outcome;

static void failed(outcome *o, int e, const char *what, const step *s)
{
    if (o->st == AH_OK)
        o->st = ah_fs_host_err(e, what, ah_text_slice(s->path), o->err);
}

static void unreachable(outcome *o, const ah_err *why)
{
    if (o->st != AH_OK)
        return;
    o->st = why->status;
    *o->err = *why;
}

/* What is in place stays there: whoever reads the error must know. */
static void also_written(outcome *o)
{
    size_t n = strlen(o->err->message);

    ah_print(o->err->message + n, sizeof o->err->message - n,
             " (%zu other%s of these files %s written and nothing was deleted)", o->put,
             o->put == 1 ? "" : "s", o->put == 1 ? "was" : "were");
}

/* So that the renames of a folder outlive a failure of power. That this fails cannot be
 * undone, and leaves what was true without it. */
static void sync_folder(const ah_fs_host *h, int fd)
{
    if (fd >= 0 && !h->fs.o.no_sync)
        (void)fsync(fd);
}

static bool same_folder(const ticket *t, size_t i, size_t k)
{
    return ah_slice_eq(ah_fs_parent(ah_text_slice(t->item[i].path)),
                       ah_fs_parent(ah_text_slice(t->item[k].path)));
}

/* The contents, folder by folder as they come. */
static void put_all(ah_fs_host *h, ticket *t, outcome *o)
{
    ah_fs_place at = {.fd = -1};
    size_t last = 0;

    for (size_t i = 0; i < t->n; i++) {
        step *s = &t->item[i];
        ah_err why;

        if (s->act != AH_FS_PUT)
            continue;
        if (at.fd < 0 || !same_folder(t, i, last)) {
            sync_folder(h, at.fd);
            ah_fs_host_leave(&at);
            if (ah_fs_host_enter(h, ah_text_slice(s->path), true, &at, &why) != AH_OK) {
                unreachable(o, &why);
                continue;
            }
            last = i;
        }
        memcpy(at.name, ah_fs_name(ah_text_slice(s->path)).p, ah_fs_name(ah_text_slice(s->path)).n + 1);
        if (renameat(at.fd, s->temp, at.fd, at.name) != 0) {
            failed(o, errno, "write", s);
            continue;
        }
        s->temp[0] = '\0';
        o->put++;
    }
    sync_folder(h, at.fd);
    ah_fs_host_leave(&at);
}

/* From the end: what is in a folder stands behind it. */
static void remove_all(ah_fs_host *h, ticket *t, outcome *o)
{
    for (size_t i = t->n; i-- > 0;) {
        const step *s = &t->item[i];
        ah_fs_place at;
        ah_err why;

        if (s->act != AH_FS_REMOVE)
            continue;
        if (ah_fs_host_enter(h, ah_text_slice(s->path), false, &at, &why) != AH_OK) {
            if (why.status != AH_TOOL_VALIDATION) /* else it is gone, with its folder */
                unreachable(o, &why);
            continue;
        }
        if (unlinkat(at.fd, at.name, s->kind == AH_FS_FOLDER ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
            failed(o, errno, "delete", s);
        ah_fs_host_leave(&at);
    }
}

static void free_ticket(const ah_mem *mem, ticket *t)
{
    for (size_t i = 0; i < t->n; i++)
        ah_text_unref(t->item[i].path);
    ah_free(mem, t);
}

/* Takes back what is still only prepared. `folders`: those we made, too. */
static void take_back(ah_fs_host *h, ticket *t, bool folders)
{
    for (size_t i = t->n; i-- > 0;) {
        const step *s = &t->item[i];
        ah_fs_place at;
        ah_err why;

        if ((!s->temp[0] && !(s->made && folders)) ||
            ah_fs_host_enter(h, ah_text_slice(s->path), false, &at, &why) != AH_OK)
            continue;
        if (s->temp[0])
            unlinkat(at.fd, s->temp, 0);
        else
            unlinkat(at.fd, at.name, AT_REMOVEDIR); /* stays where others put something in */
        ah_fs_host_leave(&at);
    }
}

ah_status ah_fs_host_commit(ah_fs *fs, void *ticket_, ah_err *err)
{
    ah_fs_host *h = (ah_fs_host *)fs;
    ticket *t = ticket_;
    outcome o = {AH_OK, err, 0};

    put_all(h, t, &o);
    if (o.st == AH_OK) /* else what was to be deleted may be the only copy */
        remove_all(h, t, &o);
    if (o.st != AH_OK && o.put)
        also_written(&o);
    if (o.st != AH_OK)
        take_back(h, t, o.put == 0);
    free_ticket(fs->mem, t);
    return o.st;
}

void ah_fs_host_drop(ah_fs *fs, void *ticket_)
{
    take_back((ah_fs_host *)fs, ticket_, true);
    free_ticket(fs->mem, ticket_);
}
