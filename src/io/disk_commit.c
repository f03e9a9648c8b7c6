/* A folder of the machine: carrying out prepared changes. Each step is one rename in one folder. In
 * a set, what a step replaces or removes is kept beside it until all steps are done, so that a
 * failure takes back the earlier ones. If this process ends in between, the next process that opens
 * the root continues by the record (disk_record.c). */
#define _GNU_SOURCE /* RENAME_EXCHANGE, AT_EACCESS, syscall */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat */
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "io/crash_point.h"
#include "io/disk_store.h"

enum { EXCHANGE = 2, NO_REPLACE = 1 }; /* Linux's flags for renameat2 */

/* -- renaming ---------------------------------------------------------------------------------- */

/* renameat within one folder. */
static int rename_in(int folder, const char *from, const char *to)
{
    int rc;

    ah_crash_point("rename");
    rc = renameat(folder, from, folder, to);
    ah_crash_point("rename");
    return rc;
}

/* Returns -1 with ENOSYS if the kernel or the file system does not support this rename. */
static int rename_how(int folder, const char *from, const char *to, unsigned how)
{
#ifdef SYS_renameat2
    long rc;

    ah_crash_point("rename");
    rc = syscall(SYS_renameat2, folder, from, folder, to, how);
    ah_crash_point("rename");
    if (rc == 0)
        return 0;
    if (errno == EINVAL || errno == EPERM || errno == EOPNOTSUPP)
        errno = ENOSYS; /* possibly refused by a filter of system calls */
#else
    (void)folder;
    (void)from;
    (void)to;
    (void)how;
    errno = ENOSYS;
#endif
    return -1;
}

/* unlinkat of a file or an empty folder. */
static int unlink_in(int folder, const char *name, bool is_folder)
{
    int rc;

    ah_crash_point("unlink");
    rc = unlinkat(folder, name, is_folder ? AT_REMOVEDIR : 0);
    ah_crash_point("unlink");
    return rc;
}

static ah_fs_kind kind_at(int folder, const char *name)
{
    ah_fs_info info;
    struct stat s;

    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return AH_FS_ABSENT;
    ah_fs_host_info(&s, &info);
    return info.kind;
}

/* True if the step may replace what it found. It may replace an unseen file: the last writer
 * wins. */
static bool may_replace(const ah_fs_step *s, ah_fs_kind found)
{
    return found == s->was.kind || (s->act == AH_FS_PUT && found == AH_FS_FILE);
}

/* Puts a step's file or folder into place if names cannot be exchanged: renames the existing entry
 * first. A file replaced by a file keeps its name until the new one has it. -1 with errno. */
static int put_by_parts(const ah_fs_place *at, ah_fs_step *s)
{
    char old[AH_FS_TEMP];
    ah_fs_kind found = kind_at(at->fd, at->name);
    int e;

    if (found != AH_FS_ABSENT && !may_replace(s, found)) {
        errno = EEXIST;
        return -1;
    }
    ah_fs_temp_old(s->temp, old);
    if (found == AH_FS_FILE && s->act == AH_FS_PUT && linkat(at->fd, at->name, at->fd, old, 0) == 0)
        s->old = AH_FS_OLD_BESIDE;
    else if (found != AH_FS_ABSENT && rename_in(at->fd, at->name, old) == 0)
        s->old = AH_FS_OLD_BESIDE;
    else if (found != AH_FS_ABSENT)
        return -1;
    if (rename_in(at->fd, s->temp, at->name) == 0)
        return 0;
    e = errno;
    if (s->old == AH_FS_OLD_BESIDE)
        (void)rename_in(at->fd, old, at->name);
    s->old = AH_FS_OLD_NONE;
    errno = e;
    return -1;
}

static int exchange(const ah_fs_place *at, ah_fs_step *s)
{
    if (rename_how(at->fd, s->temp, at->name, EXCHANGE) != 0)
        return -1;
    if (may_replace(s, kind_at(at->fd, s->temp))) {
        s->old = AH_FS_OLD_TEMP;
        return 0;
    }
    (void)rename_how(at->fd, s->temp, at->name, EXCHANGE);
    errno = EEXIST;
    return -1;
}

/* Places one step of a set so that it can be taken back. */
static int put_in_set(const ah_fs_place *at, ah_fs_step *s)
{
    int rc;

    if (s->act == AH_FS_MAKE_FOLDER && s->was.kind == AH_FS_ABSENT)
        return rename_in(at->fd, s->temp, at->name);
    if (s->was.kind == AH_FS_ABSENT) {
        rc = rename_how(at->fd, s->temp, at->name, NO_REPLACE);
        if (rc == 0 || (errno != EEXIST && errno != ENOSYS))
            return rc;
    }
    rc = exchange(at, s);
    if (rc != 0 && (errno == ENOENT || errno == ENOSYS))
        rc = put_by_parts(at, s);
    return rc;
}

/* -- folders made by another process ----------------------------------------------------------- */

/* Another process made the folder since we looked: moves the contents of ours into it. */
static ah_status merge(ah_fs_host *h, ah_fs_ticket *t, ah_fs_step *top, ah_err *err)
{
    size_t first = (size_t)(top - t->item);
    ah_status st = AH_OK;

    top->merged = true;
    for (size_t i = first + 1; st == AH_OK && i < t->n; i++) {
        ah_fs_step *s = &t->item[i];
        char room[AH_DISK_ROOT_PATH + 1];
        ah_fs_place from = {.fd = -1}, to = {.fd = -1};

        if (s->top != first || !t->item[s->parent].merged)
            continue;
        st = ah_fs_host_enter(h, ah_fs_waiting(t, s, room), false, &from, err);
        if (st == AH_OK)
            st = ah_fs_host_enter(h, ah_text_slice(s->path), false, &to, err);
        ah_crash_point("rename");
        if (st == AH_OK && renameat(from.fd, from.name, to.fd, to.name) != 0) {
            s->merged = s->act == AH_FS_MAKE_FOLDER && (errno == EEXIST || errno == ENOTEMPTY);
            if (!s->merged)
                st = ah_fs_host_err(errno, "write", ah_text_slice(s->path), err);
        }
        ah_fs_host_leave(&from);
        ah_fs_host_leave(&to);
    }
    top->old = AH_FS_OLD_TEMP; /* the remains of ours */
    return st;
}

static ah_status replaced(const char *what, ah_slice path, ah_err *err)
{
    return ah_fs_err(
        err, AH_FS_CONFLICT,
        "cannot %s '%.*s': another program has put something else there meanwhile: look at "
        "it again and repeat",
        what, AH_FMT(path));
}

static ah_status put(ah_fs_host *h, ah_fs_ticket *t, const ah_fs_place *at, ah_fs_step *s,
                     ah_err *err)
{
    int rc = t->set ? put_in_set(at, s) : rename_in(at->fd, s->temp, at->name);

    s->placed = rc == 0;
    if (rc == 0)
        return AH_OK;
    if (s->act == AH_FS_MAKE_FOLDER && s->was.kind == AH_FS_ABSENT &&
        (errno == EEXIST || errno == ENOTEMPTY)) {
        s->placed = true;
        return merge(h, t, s, err);
    }
    if (errno == EEXIST || errno == EISDIR || errno == ENOTDIR)
        return replaced("write", ah_text_slice(s->path), err);
    return ah_fs_host_err(errno, s->act == AH_FS_PUT ? "write" : "make the folder",
                          ah_text_slice(s->path), err);
}

/* -- removing ---------------------------------------------------------------------------------- */

/* Returns the number of entries without our temporaries; SIZE_MAX if a running process has one. */
static size_t count_entries(DIR *dir)
{
    bool temporaries = false;
    struct dirent *e;
    size_t n = 0;

    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (ah_fs_is_temporary(ah_slice_of(e->d_name)))
            temporaries = true;
        else
            n++;
    }
    return temporaries && ah_fs_held(dirfd(dir)) == AH_FS_HELD ? SIZE_MAX : n;
}

/* Checks a folder before it is removed with its contents: nothing may have been added since, and no
 * process may be writing there. */
static ah_status check_folder(ah_fs_host *h, const ah_fs_step *s, ah_err *err)
{
    ah_slice path = ah_text_slice(s->path);
    int fd = ah_disk_root_folder(&h->root, path, true);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    ah_status st = AH_OK;
    size_t n;

    if (!dir) {
        st = ah_fs_host_err(errno, "delete", path, err);
        if (fd >= 0)
            close(fd);
        return st;
    }
    n = count_entries(dir);
    if (n > s->children)
        st = ah_fs_err(
            err, AH_FS_CONFLICT,
            n == SIZE_MAX
                ? "another process is writing in '%.*s': wait a moment and repeat"
                : "'%.*s' was changed meanwhile by another program: look at it again and repeat",
            AH_FMT(path));
    else if (s->children && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        st = ah_fs_host_err(errno, "delete what is in", path, err);
    closedir(dir);
    return st;
}

static ah_status check_folders(ah_fs_host *h, const ah_fs_ticket *t, size_t top, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = top; st == AH_OK && i < t->n; i++)
        if (t->item[i].top == top && t->item[i].was.kind == AH_FS_FOLDER &&
            t->item[i].act != AH_FS_MAKE_FOLDER)
            st = check_folder(h, &t->item[i], err);
    return st;
}

static ah_status hide(const ah_fs_place *at, ah_fs_step *s, ah_err *err)
{
    ah_slice path = ah_text_slice(s->path);

    if (rename_in(at->fd, at->name, s->temp) != 0)
        return errno == ENOENT ? AH_OK : ah_fs_host_err(errno, "delete", path, err);
    if (kind_at(at->fd, s->temp) != s->was.kind) {
        (void)rename_in(at->fd, s->temp, at->name);
        return replaced("delete", path, err);
    }
    s->placed = true;
    s->old = AH_FS_OLD_TEMP;
    return AH_OK;
}

static ah_status remove_top(ah_fs_host *h, const ah_fs_ticket *t, const ah_fs_place *at, size_t i,
                            ah_fs_step *s, ah_err *err)
{
    bool folder = s->was.kind == AH_FS_FOLDER;
    ah_status st = AH_OK;

    if (!t->set && s->children == 0) { /* at once, unless it contains leftovers */
        if (unlink_in(at->fd, at->name, folder) == 0 || errno == ENOENT)
            return AH_OK;
        if (!folder || (errno != ENOTEMPTY && errno != EEXIST))
            return ah_fs_host_err(errno, "delete", ah_text_slice(s->path), err);
    }
    if (folder)
        st = check_folders(h, t, i, err);
    return st == AH_OK ? hide(at, s, err) : st;
}

/* -- whole sets -------------------------------------------------------------------------------- */

static ah_status apply_step(ah_fs_host *h, ah_fs_ticket *t, size_t i, ah_err *err)
{
    ah_fs_step *s = &t->item[i];
    ah_fs_place at;
    ah_status st = ah_fs_host_enter(h, ah_text_slice(s->path), false, &at, err);

    if (st == AH_TOOL_VALIDATION && s->act == AH_FS_REMOVE)
        return AH_OK; /* already gone, with its folder */
    if (st != AH_OK)
        return st;
    if (s->act == AH_FS_REMOVE)
        st = remove_top(h, t, &at, i, s, err);
    else if (s->was.kind == AH_FS_FOLDER && (st = check_folders(h, t, i, err)) != AH_OK)
        ;
    else
        st = put(h, t, &at, s, err);
    ah_fs_host_leave(&at);
    return st;
}

/* Writes before it deletes: the deleted file may be the only copy. */
ah_status ah_fs_apply(ah_fs_host *h, ah_fs_ticket *t, ah_err *err)
{
    ah_status st = AH_OK;

    for (int removing = 0; removing < 2; removing++)
        for (size_t i = 0; st == AH_OK && i < t->n; i++)
            if (t->item[i].top == i && !t->item[i].placed &&
                (t->item[i].act == AH_FS_REMOVE) == (removing == 1))
                st = apply_step(h, t, i, err);
    return st;
}

/* Takes back one step: the replaced entry gets its name back, and the new one its temporary
 * name. */
static bool take_back(const ah_fs_place *at, ah_fs_step *s)
{
    char old[AH_FS_TEMP];

    if (s->act == AH_FS_REMOVE)
        return rename_in(at->fd, s->temp, at->name) == 0;
    if (s->old == AH_FS_OLD_TEMP)
        return rename_how(at->fd, s->temp, at->name, EXCHANGE) == 0;
    if (rename_in(at->fd, at->name, s->temp) != 0)
        return false;
    if (s->old == AH_FS_OLD_NONE)
        return true;
    ah_fs_temp_old(s->temp, old);
    return rename_in(at->fd, old, at->name) == 0;
}

bool ah_fs_undo(ah_fs_host *h, ah_fs_ticket *t)
{
    bool all = true;

    for (size_t i = t->n; i-- > 0;) {
        ah_fs_step *s = &t->item[i];
        ah_fs_place at;
        ah_err ignored;

        if (s->top != i || !s->placed || (!t->set && s->act != AH_FS_REMOVE && !s->merged))
            continue; /* the single step of a commit is placed only if everything succeeded */
        if (s->merged || s->settled ||
            ah_fs_host_enter(h, ah_text_slice(s->path), false, &at, &ignored) != AH_OK) {
            all = false;
            continue;
        }
        if (take_back(&at, s)) {
            s->placed = false;
            s->old = AH_FS_OLD_NONE;
        } else {
            all = false;
        }
        ah_fs_host_leave(&at);
    }
    return all;
}

/* Syncs the renames to the disk before the replaced entries are removed. */
static void sync_folders(const ah_fs_host *h, const ah_fs_ticket *t)
{
    for (size_t i = 0; i < t->holds && !h->fs.o.no_sync; i++)
        (void)fsync(t->hold[i].fd); /* if this fails, the earlier state may return after a crash */
}

/* Removes what was not placed (`waiting`), or what a placed step replaced. */
static void clear_step(ah_fs_host *h, ah_fs_step *s, bool waiting)
{
    char old[AH_FS_TEMP];
    ah_fs_place at;
    ah_err ignored;

    if (ah_fs_host_enter(h, ah_text_slice(s->path), false, &at, &ignored) != AH_OK)
        return;
    ah_fs_temp_old(s->temp, old);
    ah_fs_clear(at.fd, !waiting && s->old == AH_FS_OLD_BESIDE ? old : s->temp);
    ah_fs_host_leave(&at);
}

void ah_fs_finish(ah_fs_host *h, ah_fs_ticket *t)
{
    sync_folders(h, t);
    for (size_t i = 0; i < t->n; i++)
        if (t->item[i].top == i && t->item[i].placed && t->item[i].old != AH_FS_OLD_NONE)
            clear_step(h, &t->item[i], false);
}

void ah_fs_forget(ah_fs_host *h, ah_fs_ticket *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->item[i].top == i && t->item[i].ready && !t->item[i].placed)
            clear_step(h, &t->item[i], true);
}

/* Adds to the error how many changes remain. */
static void tell_rest(ah_fs_ticket *t, ah_err *err)
{
    size_t n = strlen(err->message), left = 0;

    for (size_t i = 0; i < t->n; i++)
        left += t->item[i].top == i && t->item[i].placed;
    ah_print(err->message + n, sizeof err->message - n,
             " (%zu of these changes could not be taken back)", left);
}

ah_status ah_fs_host_commit(ah_fs *fs, void *ticket, ah_err *err)
{
    ah_fs_host *h = (ah_fs_host *)fs;
    ah_fs_ticket *t = ticket;
    ah_status st = t->set ? ah_fs_record_seal(h, t, err) : AH_OK;

    if (st == AH_OK)
        st = ah_fs_apply(h, t, err);
    if (st != AH_OK && !ah_fs_undo(h, t))
        tell_rest(t, err);
    ah_crash_point("set");
    ah_fs_finish(h, t);
    ah_crash_point("set");
    ah_fs_forget(h, t);
    ah_fs_record_end(h, t);
    ah_crash_point("set");
    ah_fs_ticket_free(fs->mem, t);
    return st;
}
