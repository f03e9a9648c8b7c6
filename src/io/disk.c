/* A folder of the machine: stat, list and read. Each path is opened as its folder, below the root
 * and without following links (disk_root.c), and then one name in it, which must be a regular file.
 * disk_write.c has the changes. */
#include "io/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/disk_store.h"

enum { WORDS = 128 };

ah_status ah_fs_host_err(int e, const char *what, ah_slice path, ah_err *err)
{
    char words[WORDS];

    if (e == ENOMEM)
        return ah_err_nomem(err);
    if (e == ENOTDIR || e == ELOOP)
        return ah_fs_err(
            err, AH_FS_NOT_A_FOLDER,
            "cannot %s '%.*s': a part of the path is a file or a symbolic link, which is not "
            "followed",
            what, AH_FMT(path));
    if (strerror_r(e, words, sizeof words) != 0)
        snprintf(words, sizeof words, "error %d", e);
    return ah_fs_err(err, AH_FS_SYSTEM, "cannot %s '%.*s': %s", what, AH_FMT(path), words);
}

void ah_fs_host_info(const struct stat *s, ah_fs_info *out)
{
    uint64_t modified = (uint64_t)s->st_mtim.tv_sec * 1000000000u + (uint64_t)s->st_mtim.tv_nsec;
    uint64_t changed = (uint64_t)s->st_ctim.tv_sec * 1000000000u + (uint64_t)s->st_ctim.tv_nsec;

    *out = (ah_fs_info){
        .kind = S_ISREG(s->st_mode)   ? AH_FS_FILE
                : S_ISDIR(s->st_mode) ? AH_FS_FOLDER
                : S_ISLNK(s->st_mode) ? AH_FS_LINK
                                      : AH_FS_OTHER,
        .mode = {true, s->st_mode & 0777},
        .size = S_ISREG(s->st_mode) ? (uint64_t)s->st_size : 0,
        .modified_ms = (int64_t)s->st_mtim.tv_sec * 1000 + s->st_mtim.tv_nsec / 1000000,
        .version = {{(uint64_t)s->st_ino, (uint64_t)s->st_size, modified, changed}},
    };
}

/* -- places ------------------------------------------------------------------------------- */

void ah_fs_host_leave(ah_fs_place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* Opens the path's folder, and sets its last name; -1 with errno. */
static int open_place(ah_fs_host *h, ah_slice path, bool to_read, ah_fs_place *out)
{
    ah_slice name = ah_fs_name(path);

    out->fd = -1;
    if (name.n >= sizeof out->name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(out->name, name.p, name.n);
    out->name[name.n] = '\0';
    out->fd = ah_disk_root_folder(&h->root, ah_fs_parent(path), to_read);
    if (out->fd >= 0 && path.n && ah_hidden_has(h->root.hidden, out->fd, out->name)) {
        ah_fs_host_leave(out);
        errno = ENOENT;
    }
    return out->fd;
}

ah_status ah_fs_host_enter(ah_fs_host *h, ah_slice path, bool to_read, ah_fs_place *out,
                           ah_err *err)
{
    if (open_place(h, path, to_read, out) >= 0)
        return AH_OK;
    if (errno == ENOENT)
        return ah_fs_err(err, AH_FS_NOT_FOUND, "there is no folder for '%.*s'", AH_FMT(path));
    return ah_fs_host_err(errno, "reach", path, err);
}

static ah_status host_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err)
{
    ah_fs_host *h = (ah_fs_host *)fs;
    ah_fs_place at;
    ah_status st = AH_OK;
    struct stat s;

    *out = (ah_fs_info){.modified_ms = AH_FS_NO_TIME};
    if (open_place(h, path, false, &at) < 0)
        return errno == ENOENT ? AH_OK : ah_fs_host_err(errno, "reach", path, err);
    if (fstatat(at.fd, path.n ? at.name : ".", &s, AT_SYMLINK_NOFOLLOW) == 0)
        ah_fs_host_info(&s, out);
    else if (errno != ENOENT)
        st = ah_fs_host_err(errno, "look at", path, err);
    ah_fs_host_leave(&at);
    return st;
}

/* -- reading -------------------------------------------------------------------------------- */

/* Checked before it is opened, as opening some devices has effects, and afterwards, as another file
 * may have taken the name. */
static int open_regular(const ah_fs_place *at, ah_slice path, ah_fs_info *info, ah_err *err)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat s;
    int fd;

    *info = (ah_fs_info){0};
    if (fstatat(at->fd, at->name, &s, AT_SYMLINK_NOFOLLOW) == 0)
        ah_fs_host_info(&s, info);
    else if (errno != ENOENT) {
        ah_fs_host_err(errno, "look at", path, err);
        return -1;
    }
    if (ah_fs_need_file(path, info, err) != AH_OK)
        return -1;
    fd = openat(at->fd, at->name, flags);
    if (fd < 0 || fstat(fd, &s) != 0) {
        ah_fs_host_err(errno, "open", path, err);
    } else {
        ah_fs_host_info(&s, info);
        if (ah_fs_need_file(path, info, err) == AH_OK)
            return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static ah_status read_all(int fd, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                          ah_err *err)
{
    enum { PIECE = 1 << 18 };

    while (limit) {
        size_t want = limit < PIECE ? limit : PIECE;
        char *to = ah_buf_room(out, want);
        ssize_t n;

        if (!to)
            return AH_OK; /* the caller checks the buffer */
        if ((n = pread(fd, to, want, (off_t)offset)) == 0)
            return AH_OK;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ah_fs_host_err(errno, "read", path, err);
        out->len += (size_t)n;
        offset += (uint64_t)n;
        limit -= (size_t)n;
    }
    return AH_OK;
}

static ah_status host_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                           ah_fs_info *info, ah_err *err)
{
    ah_fs_place at;
    ah_status st = ah_fs_host_enter((ah_fs_host *)fs, path, false, &at, err);
    int fd;

    if (st != AH_OK)
        return st;
    fd = open_regular(&at, path, info, err);
    ah_fs_host_leave(&at);
    if (fd < 0)
        return err->status;
    if (offset < info->size) {
        uint64_t left = info->size - offset;

        st = read_all(fd, path, offset, left < limit ? (size_t)left : limit, out, err);
    }
    close(fd);
    return st;
}

/* -- listing ---------------------------------------------------------------------------------- */

static ah_status list_entry(ah_fs_sweep *w, const char *name, ah_fs_items *out, ah_err *err)
{
    ah_slice s = ah_slice_of(name);
    ah_fs_info info;
    ah_fs_item item = {0};
    struct stat st;
    bool there;

    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return AH_OK;
    there = fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (ah_hidden_has(w->h->root.hidden, w->fd, name))
        return AH_OK;
    if (!there && errno == ENOENT) /* removed while we looked */
        return AH_OK;
    if (there && ah_fs_is_temporary(s)) {
        ah_fs_sweep_entry(w, name, &st);
        return AH_OK;
    }
    if (!there || !ah_fs_name_ok(s)) {
        out->left_out++;
        out->truncated = out->n + out->left_out > w->h->fs.o.max_files;
        return AH_OK;
    }
    ah_fs_host_info(&st, &info);
    item.kind = info.kind;
    item.size = info.size;
    return ah_fs_items_add(out, s, &item) == AH_OK ? AH_OK : ah_err_nomem(err);
}

static ah_status host_list(ah_fs *fs, ah_slice path, ah_fs_items *out, ah_err *err)
{
    ah_fs_host *h = (ah_fs_host *)fs;
    int fd = ah_disk_root_folder(&h->root, path, true);
    ah_fs_sweep w = {.h = h, .fd = fd};
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    ah_status st = AH_OK;
    struct dirent *e;
    int why = errno;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        if (fd < 0 && why == ENOENT)
            return ah_fs_err(err, AH_FS_NOT_FOUND, "there is no folder '%.*s'", AH_FMT(path));
        return ah_fs_host_err(why, "list", path, err);
    }
    while (st == AH_OK && !out->truncated && (errno = 0, e = readdir(dir)))
        st = list_entry(&w, e->d_name, out, err);
    if (st == AH_OK && !out->truncated && errno)
        st = ah_fs_host_err(errno, "list", path, err);
    closedir(dir);
    return st;
}

/* -- opening and closing ----------------------------------------------------------------------- */

static void host_free(ah_fs *fs)
{
    close(((ah_fs_host *)fs)->root.root);
    ah_free(fs->mem, fs);
}

static const ah_fs_store host_store = {
    .stat = host_stat,
    .read = host_read,
    .list = host_list,
    .prepare = ah_fs_host_prepare,
    .commit = ah_fs_host_commit,
    .drop = ah_fs_host_drop,
    .free = host_free,
};

int ah_fs_folder(const ah_fs *fs, bool *read_only)
{
    if (fs->store != &host_store)
        return -1;
    if (read_only)
        *read_only = fs->o.read_only;
    return ((const ah_fs_host *)(const void *)fs)->root.root;
}

/* Sets the folder's names, for advice only. A name stays missing without memory, or if the system
 * does not report it. */
static void name_folder(ah_fs_host *h, const char *root)
{
    char link[64], real[AH_FS_MAX_PATH];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", h->root.root);
    n = readlink(link, real, sizeof real);
    h->fs.folder[0] = ah_text_new(h->fs.mem, ah_slice_of(root));
    if (n > 0 && (size_t)n < sizeof real)
        h->fs.folder[1] = ah_text_new(h->fs.mem, (ah_slice){real, (size_t)n});
}

ah_status ah_fs_host_new(const ah_mem *mem, const char *root, const ah_fs_options *o, ah_fs **out,
                         ah_err *err)
{
    ah_fs_host *h = ah_alloc(mem, sizeof *h);
    struct timespec now;
    struct stat s;

    if (!h)
        return ah_err_nomem(err);
    ah_fs_init(&h->fs, &host_store, mem, o);
    h->fs.guarded = h->fs.machine = true;
    h->root.hidden = o->hidden;
    clock_gettime(CLOCK_REALTIME, &now);
    h->started = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if ((h->root.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
        fstat(h->root.root, &s) == 0) {
        h->id = (uint64_t)s.st_ino;
        name_folder(h, root);
        ah_fs_recover(h);
        *out = &h->fs;
        return AH_OK;
    }
    ah_fs_err(err,
              errno == ENOENT    ? AH_FS_NOT_FOUND
              : errno == ENOTDIR ? AH_FS_NOT_A_FOLDER
                                 : AH_FS_SYSTEM,
              "cannot open the root folder '%s': %s", root,
              errno == ENOENT    ? "it does not exist"
              : errno == ENOTDIR ? "it is not a folder"
                                 : "the system refuses it");
    if (h->root.root >= 0)
        close(h->root.root);
    ah_text_unref(h->fs.o.allow);
    ah_free(mem, h);
    return err->status;
}
