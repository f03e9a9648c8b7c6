/* Checks and makes the file of a store. */
#include "io/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/disk_kind.h"

enum { PRIVATE_FOLDER = 0700, PRIVATE_FILE = 0600, OTHERS_WRITE = 022 };

/* -- the place -------------------------------------------------------------------------------- */

/* Filesystems whose locks or shared memory do not hold between machines, from linux/magic.h and
 * the kernel's sources of cifs and smb. */
static const struct {
    uint32_t kind;
    const char *name;
} unfit[] = {{0x6969, "NFS"},     {0x517b, "SMB"},    {0xff534d42, "CIFS"},
             {0xfe534d42, "SMB"}, {0x01021997, "9p"}, {0x65735546, "FUSE"}};

static ah_status check_kind(const char *folder, ah_err *err)
{
    uint32_t kind = ah_disk_kind(folder);

    for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++)
        if (kind == unfit[i].kind)
            return ah_err_set(err, AH_STORE,
                              "a store cannot be in %s, which is on %s: its locks are not safe "
                              "there; choose a folder on a disk of this machine, or use force",
                              folder, unfit[i].name);
    return AH_OK;
}

/* Makes the folder and the missing ones above it. `folder` is changed meanwhile. */
static ah_status make_folders(char *folder, ah_err *err)
{
    for (char *p = folder + 1;; p++) {
        char was = *p;

        if (was != '/' && was != '\0')
            continue;
        *p = '\0';
        if (mkdir(folder, PRIVATE_FOLDER) != 0 && errno != EEXIST)
            return ah_err_set(err, AH_STORE, "the folder %s of the store cannot be made: %s",
                              folder, strerror(errno));
        *p = was;
        if (was == '\0')
            return AH_OK;
    }
}

/* Writes the folder of the path to `out`, which has as much room as the path. */
static void folder_of(const char *path, char *out)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;

    memcpy(out, path, n);
    out[n] = '\0';
    if (n == 0)
        strcpy(out, slash ? "/" : ".");
}

static ah_status check_folder(const char *path, bool create, bool force, ah_err *err)
{
    char folder[AH_STORE_FILE_PATH];
    struct stat s;
    ah_status st;

    folder_of(path, folder);
    if (stat(folder, &s) != 0) {
        if (errno != ENOENT || !create)
            return ah_err_set(err, AH_STORE, "the folder %s of the store cannot be used: %s",
                              folder, strerror(errno));
        if ((st = make_folders(folder, err)) != AH_OK)
            return st;
    }
    return force ? AH_OK : check_kind(folder, err);
}

/* -- the file --------------------------------------------------------------------------------- */

bool ah_store_file_make(const char *path, bool *made)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, PRIVATE_FILE);
    bool ok = fd >= 0 ? fchmod(fd, PRIVATE_FILE) == 0 : errno == EEXIST;
    int error = errno;

    *made = fd >= 0;
    if (fd >= 0)
        close(fd);
    errno = error;
    return ok;
}

static ah_status check_rights(const char *path, const struct stat *s, ah_err *err)
{
    if (S_ISLNK(s->st_mode))
        return ah_err_set(err, AH_STORE,
                          "%s is a symbolic link, and a store must be a file: name the file itself",
                          path);
    if (!S_ISREG(s->st_mode))
        return ah_err_set(err, AH_STORE, "%s is not a file, so it is no store", path);
    if (s->st_mode & OTHERS_WRITE)
        return ah_err_set(err, AH_STORE,
                          "others may write the file %s, so it cannot be trusted as a store: look "
                          "for changes, then chmod 600 it",
                          path);
    if (geteuid() != 0 && s->st_uid != geteuid())
        return ah_err_set(err, AH_STORE,
                          "the store %s belongs to another user (%lu): use a store of your own",
                          path, (unsigned long)s->st_uid);
    return AH_OK;
}

ah_status ah_store_file_find(ah_slice path, bool create, bool force, ah_store_file *f, ah_err *err)
{
    enum { TAIL = 16 }; /* of the longest name that is made of the path */
    struct stat s;
    ah_status st;

    if (path.n == 0 || path.n + TAIL > sizeof f->path || memchr(path.p, '\0', path.n))
        return ah_err_set(err, AH_STORE, "the path of a store must have 1 to %zu bytes and no NUL",
                          sizeof f->path - TAIL);
    memcpy(f->path, path.p, path.n);
    f->path[path.n] = '\0';
    f->made = false;
    if ((st = check_folder(f->path, create, force, err)) != AH_OK)
        return st;
    if (lstat(f->path, &s) != 0 &&
        (errno != ENOENT || !create || !ah_store_file_make(f->path, &f->made) ||
         lstat(f->path, &s) != 0))
        return ah_err_set(err, AH_STORE,
                          create ? "the store %s cannot be opened: %s" : "there is no store %s: %s",
                          f->path, strerror(errno));
    f->device = s.st_dev, f->inode = s.st_ino;
    return check_rights(f->path, &s, err);
}

/* -- its first bytes -------------------------------------------------------------------------- */

/* Offsets of the header, from SQLite's "Database File Format". */
enum {
    HEADER = 100,
    PAGE_SIZE_AT = 16,
    PAGES_AT = 28,
    FORMAT_AT = 60,
    ID_AT = 68,
    VALID_AT = 92,
    CHANGES_AT = 24
};

static uint32_t number_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* True if a file with this ending lies beside the store, and is not empty. */
static bool has_beside(const char *path, const char *ending)
{
    char name[AH_STORE_FILE_PATH + 16];
    struct stat s;

    snprintf(name, sizeof name, "%s%s", path, ending);
    return stat(name, &s) == 0 && s.st_size > 0;
}

/* True if the file has fewer pages than its header says, and neither a log nor the journal of a
 * creation that was killed has the others. */
static bool is_cut(const char *path, const unsigned char *h, off_t size)
{
    uint32_t page = (uint32_t)h[PAGE_SIZE_AT] << 8 | h[PAGE_SIZE_AT + 1];

    if (has_beside(path, "-wal") || has_beside(path, "-journal") ||
        number_at(h + VALID_AT) != number_at(h + CHANGES_AT))
        return false;
    return size < (off_t)(page == 1 ? 65536 : page) * (off_t)number_at(h + PAGES_AT);
}

static ah_status check_header(const char *path, const unsigned char *h, size_t n, off_t size,
                              ah_err *err)
{
    if (n < HEADER || memcmp(h, "SQLite format 3", 16) != 0)
        return ah_err_set(err, AH_STORE, "%s is not a store of agenthost, but another kind of file",
                          path);
    if (number_at(h + ID_AT) != AH_STORE_FILE_ID)
        return ah_err_set(err, AH_STORE,
                          "%s is a database of another program, not a store of agenthost", path);
    if (number_at(h + FORMAT_AT) > AH_STORE_FILE_FORMAT)
        return ah_err_set(err, AH_STORE,
                          "the store %s needs a newer agenthost: its format is %lu, and this one "
                          "knows %d (agenthost " AH_VERSION ")",
                          path, (unsigned long)number_at(h + FORMAT_AT), AH_STORE_FILE_FORMAT);
    if (is_cut(path, h, size))
        return ah_err_set(
            err, AH_STORE, "the store %s is cut: it has %lld bytes of %lld; use a copy of it", path,
            (long long)size,
            (long long)number_at(h + PAGES_AT) * (h[PAGE_SIZE_AT] << 8 | h[PAGE_SIZE_AT + 1]));
    return AH_OK;
}

ah_status ah_store_file_check(const ah_store_file *f, bool create, ah_err *err)
{
    unsigned char header[HEADER];
    struct stat s;
    ssize_t n = -1;
    int fd = open(f->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, &s) == 0)
        n = pread(fd, header, sizeof header, 0);
    if (n < 0)
        ah_err_set(err, AH_STORE, "the store %s cannot be opened: %s", f->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return AH_STORE;
    if (n == 0 && create)
        return AH_OK; /* it was made, and nothing was written yet */
    return check_header(f->path, header, (size_t)n, s.st_size, err);
}

bool ah_store_file_is_there(const ah_store_file *f)
{
    struct stat s;

    return lstat(f->path, &s) == 0 && s.st_dev == f->device && s.st_ino == f->inode;
}

int ah_store_file_locks(const char *path, ah_err *err)
{
    char name[AH_STORE_FILE_PATH + 8];
    int fd;

    snprintf(name, sizeof name, "%s-locks", path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, PRIVATE_FILE);
    if (fd >= 0 && fchmod(fd, PRIVATE_FILE) == 0)
        return fd;
    ah_err_set(err, AH_STORE, "the locks of the store, %s, cannot be opened: %s", name,
               strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}
