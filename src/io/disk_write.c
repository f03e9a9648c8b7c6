/* A folder of the machine: preparing changes. Each content is written to a temporary file in its
 * folder and synced; a new folder is made as a temporary one with all its contents. Nothing is
 * visible until disk_commit.c renames it into place, so each step is either done or not, whenever
 * the process ends; disk_leftover.c removes what it leaves. Hard links are never written through:
 * the name gets a new file. */
#define _DEFAULT_SOURCE /* fchown */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/disk_store.h"

enum { TRIES = 16 };

/* -- tickets ------------------------------------------------------------------------------ */

ah_fs_ticket *ah_fs_ticket_new(const ah_mem *mem, size_t n)
{
    ah_fs_ticket *t = ah_alloc(mem, sizeof *t + n * sizeof *t->item);

    if (t)
        t->record = -1;
    return t;
}

void ah_fs_ticket_free(const ah_mem *mem, ah_fs_ticket *t)
{
    for (size_t i = 0; i < t->holds; i++)
        close(t->hold[i].fd);
    for (size_t i = 0; i < t->n; i++)
        ah_text_unref(t->item[i].path);
    if (t->record >= 0)
        close(t->record);
    ah_free(mem, t);
}

/* -- steps inside other steps ------------------------------------------------------------------ */

static int by_path(const void *a, const void *b)
{
    const ah_fs_step *const *x = a, *const *y = b;

    return ah_slice_cmp(ah_text_slice((*x)->path), ah_text_slice((*y)->path));
}

static long find_step(const ah_fs_ticket *t, const ah_fs_step *const *sorted, ah_slice path)
{
    size_t low = 0, high = t->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = ah_slice_cmp(ah_text_slice(sorted[mid]->path), path);

        if (c == 0)
            return sorted[mid] - t->item;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return AH_FS_NO_STEP;
}

/* True if the change of the folder includes the step inside it. */
static bool carries(const ah_fs_step *folder, const ah_fs_step *s)
{
    if (s->act == AH_FS_REMOVE)
        return folder->was.kind == AH_FS_FOLDER && folder->act != AH_FS_MAKE_FOLDER;
    return folder->was.kind != AH_FS_FOLDER && folder->act == AH_FS_MAKE_FOLDER;
}

static bool is_of_a_kind(const ah_fs_step *s)
{
    if (s->act == AH_FS_REMOVE || s->was.kind == AH_FS_ABSENT)
        return true;
    return s->was.kind == (s->act == AH_FS_PUT ? AH_FS_FILE : AH_FS_FOLDER);
}

bool ah_fs_ticket_plan(ah_fs_host *h, ah_fs_ticket *t)
{
    const ah_fs_step **sorted = ah_alloc(h->fs.mem, t->n * sizeof *sorted);

    if (!sorted)
        return false;
    for (size_t i = 0; i < t->n; i++)
        sorted[i] = &t->item[i];
    qsort(sorted, t->n, sizeof *sorted, by_path);
    for (size_t i = 0; i < t->n; i++) {
        ah_fs_step *s = &t->item[i];
        ah_slice folder = ah_fs_parent(ah_text_slice(s->path));

        s->top = i;
        s->parent = folder.n ? find_step(t, sorted, folder) : AH_FS_NO_STEP;
        if (s->parent >= (long)i || (s->parent >= 0 && !carries(&t->item[s->parent], s)))
            s->parent = AH_FS_NO_STEP;
        if (s->parent >= 0) {
            s->top = t->item[s->parent].top;
            t->item[s->parent].children++;
        }
        t->tops += s->top == i;
        t->set = t->set || t->tops > 1 || !is_of_a_kind(s);
    }
    ah_free(h->fs.mem, sorted);
    return true;
}

ah_slice ah_fs_waiting(const ah_fs_ticket *t, const ah_fs_step *s, char out[AH_DISK_ROOT_PATH + 1])
{
    const ah_fs_step *top = &t->item[s->top];
    ah_slice folder = ah_fs_parent(ah_text_slice(top->path)), temp = ah_slice_of(top->temp);
    ah_slice rest = {s->path->data + top->path->len, s->path->len - top->path->len};
    size_t n = 0;

    if (folder.n + 1 + temp.n + rest.n > AH_DISK_ROOT_PATH)
        return (ah_slice){"", 0};
    if (folder.n) {
        memcpy(out, folder.p, folder.n);
        n = folder.n;
        out[n++] = '/';
    }
    memcpy(out + n, temp.p, temp.n);
    memcpy(out + n + temp.n, rest.p, rest.n);
    n += temp.n + rest.n;
    out[n] = '\0';
    return (ah_slice){out, n};
}

/* -- writing --------------------------------------------------------------------------------- */

static int new_file(ah_fs_host *h, const ah_fs_ticket *t, const ah_fs_place *at, unsigned mode,
                    ah_fs_step *s)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = -1;

    if (t->set || t->item[s->top].act == AH_FS_MAKE_FOLDER)
        return openat(at->fd, at->name, flags, (mode_t)mode);
    for (int i = 0; i < TRIES; i++) {
        if ((fd = openat(at->fd, s->temp, flags, (mode_t)mode)) >= 0 || errno != EEXIST)
            break;
        ah_fs_temp_name(h, false, s->temp);
    }
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

/* Gives the new file the mode of the replaced one, and its owner if the process may set it (root
 * may). */
static int keep_mode(int fd, int folder, const ah_fs_change *c)
{
    struct stat old, own;

    if (fstat(fd, &own) != 0)
        return -1;
    if (fstatat(folder, ah_fs_name(ah_text_slice(c->path)).p, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
        (old.st_uid != own.st_uid || old.st_gid != own.st_gid) &&
        fchown(fd, old.st_uid, old.st_gid) == 0)
        own.st_mode = 0; /* chown may have cleared bits */
    if ((own.st_mode & 07777) == c->mode.bits)
        return 0;
    return fchmod(fd, (mode_t)c->mode.bits);
}

/* Writes the new file, which is never more accessible than the target, from its creation on. */
static int write_file(ah_fs_host *h, const ah_fs_ticket *t, const ah_fs_place *at,
                      const ah_fs_change *c, ah_fs_step *s)
{
    int fd = new_file(h, t, at, c->mode.known ? c->mode.bits : 0666, s), rc = -1, e;

    if (fd < 0)
        return -1;
    s->ready = true;
    if ((!c->mode.known || keep_mode(fd, at->fd, c) == 0) &&
        write_all(fd, ah_text_slice(c->content)) == 0 && (h->fs.o.no_sync || fsync(fd) == 0))
        rc = 0;
    e = errno;
    if (close(fd) != 0 && rc == 0) {
        e = errno;
        rc = -1;
    }
    errno = e;
    return rc;
}

/* -- preparing --------------------------------------------------------------------------------- */

/* Locks the folder for the life of the ticket, before anything is put into it. False: the
 * descriptor stays the caller's, as the folder is locked already or too many are. */
static bool hold_folder(ah_fs_ticket *t, const ah_fs_step *s, int fd)
{
    ah_slice folder = ah_fs_parent(ah_text_slice(s->path));

    for (size_t i = t->holds; i-- > 0;)
        if (ah_slice_eq(t->hold[i].folder, folder))
            return false;
    if (t->holds == AH_FS_HOLDS)
        return false;
    ah_fs_hold(fd);
    t->hold[t->holds].folder = folder;
    t->hold[t->holds++].fd = fd;
    return true;
}

/* Opens the folder where the step waits, and sets the name there. */
static ah_status enter_waiting(ah_fs_host *h, const ah_fs_ticket *t, size_t i, ah_fs_place *at,
                               ah_err *err)
{
    const ah_fs_step *s = &t->item[i];
    char room[AH_DISK_ROOT_PATH + 1];
    ah_status st;

    if (s->top != i)
        return ah_fs_host_enter(h, ah_fs_waiting(t, s, room), true, at, err);
    st = ah_fs_host_enter(h, ah_text_slice(s->path), true, at, err);
    memcpy(at->name, s->temp, sizeof s->temp);
    return st;
}

static int make_ready(ah_fs_host *h, const ah_fs_ticket *t, const ah_fs_place *at,
                      const ah_fs_change *c, ah_fs_step *s)
{
    if (s->act == AH_FS_PUT)
        return write_file(h, t, at, c, s);
    if (s->act == AH_FS_MAKE_FOLDER && mkdirat(at->fd, at->name, 0777) != 0)
        return -1;
    s->ready = s->act == AH_FS_MAKE_FOLDER;
    return 0;
}

static ah_status prepare_step(ah_fs_host *h, ah_fs_ticket *t, size_t i, const ah_fs_change *c,
                              ah_err *err)
{
    ah_fs_step *s = &t->item[i];
    ah_fs_place at;
    ah_status st;
    bool held;

    if (s->act == AH_FS_REMOVE && (s->top != i || !s->temp[0]))
        return AH_OK;
    if ((st = enter_waiting(h, t, i, &at, err)) != AH_OK)
        return st;
    held = s->top == i && hold_folder(t, s, at.fd);
    if (make_ready(h, t, &at, c, s) != 0)
        st = ah_fs_host_err(errno, s->act == AH_FS_PUT ? "write" : "make the folder",
                            ah_text_slice(s->path), err);
    if (!held)
        ah_fs_host_leave(&at);
    return st;
}

/* Syncs new folders, so that their entries are on the disk before the folders take their places. */
static void sync_new_folders(ah_fs_host *h, const ah_fs_ticket *t)
{
    char room[AH_DISK_ROOT_PATH + 1];

    for (size_t i = 0; i < t->n && !h->fs.o.no_sync; i++) {
        int fd = -1;

        if (t->item[i].act == AH_FS_MAKE_FOLDER && t->item[i].ready)
            fd = ah_disk_root_folder(&h->root, ah_fs_waiting(t, &t->item[i], room), true);
        if (fd < 0)
            continue;
        (void)fsync(fd); /* if this fails, the earlier state may return after a crash */
        close(fd);
    }
}

/* Fills the ticket, without making anything on the disk. */
static ah_status begin(ah_fs_host *h, ah_fs_ticket *t, const ah_fs_changes *list, ah_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const ah_fs_change *c = &list->item[i];

        t->item[t->n++] = (ah_fs_step){.path = ah_text_ref(c->path), .act = c->act, .was = c->was};
    }
    if (!ah_fs_ticket_plan(h, t))
        return ah_err_nomem(err);
    for (size_t i = 0; i < t->n; i++) {
        ah_fs_step *s = &t->item[i];

        if (s->top == i && (t->set || s->act != AH_FS_REMOVE || s->was.kind == AH_FS_FOLDER))
            ah_fs_temp_name(h, t->set, s->temp);
        if (t->set && s->act == AH_FS_PUT)
            s->hash = ah_slice_hash(ah_text_slice(list->item[i].content));
    }
    return ah_fs_check_repository(h, t, err);
}

/* Fails if the folder that the step removes holds what is hidden. */
static ah_status check_hidden(ah_fs_host *h, const ah_fs_step *s, ah_err *err)
{
    bool holds;
    int fd;

    if (!h->root.hidden || !h->root.hidden->first || s->act != AH_FS_REMOVE ||
        s->was.kind != AH_FS_FOLDER)
        return AH_OK;
    fd = ah_disk_root_folder(&h->root, ah_text_slice(s->path), false);
    holds = fd >= 0 && ah_hidden_below(h->root.hidden, fd);
    if (fd >= 0)
        close(fd);
    return holds ? ah_fs_err(err, AH_FS_REFUSED,
                             "'%s' holds files of the program that runs the tools, and stays",
                             s->path->data)
                 : AH_OK;
}

static ah_status check_all_hidden(ah_fs_host *h, const ah_fs_ticket *t, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && i < t->n; i++)
        st = check_hidden(h, &t->item[i], err);
    return st;
}

ah_status ah_fs_host_prepare(ah_fs *fs, const ah_fs_changes *list, void **out, ah_err *err)
{
    ah_fs_host *h = (ah_fs_host *)fs;
    ah_fs_ticket *t = ah_fs_ticket_new(fs->mem, list->n);
    ah_status st = t ? begin(h, t, list, err) : ah_err_nomem(err);

    if (st == AH_OK)
        st = check_all_hidden(h, t, err);
    if (st == AH_OK && t->set)
        st = ah_fs_record_begin(h, t, err);
    for (size_t i = 0; st == AH_OK && i < list->n; i++)
        st = prepare_step(h, t, i, &list->item[i], err);
    if (st == AH_OK)
        sync_new_folders(h, t);
    if (st == AH_OK)
        *out = t;
    else if (t)
        ah_fs_host_drop(fs, t);
    return st;
}

void ah_fs_host_drop(ah_fs *fs, void *ticket)
{
    ah_fs_host *h = (ah_fs_host *)fs;

    ah_fs_forget(h, ticket);
    ah_fs_record_end(h, ticket);
    ah_fs_ticket_free(fs->mem, ticket);
}
