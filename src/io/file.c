/* Reading within a limit, and private files, which are replaced through a temporary file beside the
 * target, or appended to. io/disk.c has the files of tools, which are confined to a root. */
#define _GNU_SOURCE /* mkostemp */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

static ah_status failed(const char *what, const char *path, ah_err *err)
{
    int why = errno;

    if (why == ENOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, AH_USAGE, "cannot %s '%.300s': %s", what, path, strerror(why));
}

/* Reads the next bytes; 0 at the end, -1 with errno. */
static ssize_t read_some(int fd, ah_buf *out)
{
    char *to = ah_buf_room(out, CHUNK);
    ssize_t n;

    if (!to)
        return 0;
    do
        n = read(fd, to, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        out->len += (size_t)n;
    return n;
}

ah_status ah_file_look(const char *path, bool follow, ah_buf *out, ah_file_found *found,
                       ah_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
    ah_status st = AH_OK;
    struct stat s;
    ssize_t n = 1;

    *found = (ah_file_found){.why = fd < 0 ? errno : 0};
    if (fd < 0 && errno == ELOOP && !follow)
        return ah_err_set(err, AH_USAGE, "cannot read '%.300s': it is a symbolic link", path);
    if (fd < 0)
        return failed("read", path, err);
    if (fstat(fd, &s) != 0)
        st = failed("read", path, err);
    else if (!S_ISREG(s.st_mode))
        st = ah_err_set(err, AH_USAGE, "cannot read '%.300s': it is no regular file", path);
    found->mine = st == AH_OK && s.st_uid == geteuid();
    while (st == AH_OK && n > 0)
        n = read_some(fd, out);
    if (st == AH_OK && n < 0)
        st = failed("read", path, err);
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, path, err);
    close(fd);
    return st;
}

ah_status ah_file_read(const char *path, ah_buf *out, ah_err *err)
{
    ah_file_found found;

    return ah_file_look(path, true, out, &found, err);
}

static bool write_all(int fd, ah_slice bytes)
{
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            bytes = (ah_slice){bytes.p + n, bytes.n - (size_t)n};
    }
    return true;
}

/* Syncs the folder of the file, so that a rename is on the disk; errors are ignored. */
static void sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    int fd;

    if (slash)
        slash[slash == path] = '\0';
    fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

static ah_status not_private(const char *what, const char *path, const char *why, ah_err *err)
{
    return ah_err_set(err, AH_USAGE, "cannot %s '%.300s': %s", what, path, why);
}

/* Only a regular file may be replaced. A symbolic link is refused: it is unclear if its target or
 * the link itself is meant. */
static ah_status check_place(const char *what, const char *path, ah_err *err)
{
    struct stat s;

    if (lstat(path, &s) != 0)
        return errno == ENOENT ? AH_OK : failed(what, path, err);
    if (S_ISLNK(s.st_mode))
        return not_private(what, path, "it is a symbolic link; name the file itself", err);
    return S_ISREG(s.st_mode) ? AH_OK : not_private(what, path, "it is no regular file", err);
}

/* Creates a file beside `path`, accessible to our user only. Returns its descriptor, with its name
 * in *beside; -1 with errno. */
static int new_beside(const ah_mem *mem, const char *path, char **beside)
{
    static const char tail[] = ".XXXXXX";
    size_t n = strlen(path);

    if (!(*beside = ah_alloc(mem, n + sizeof tail))) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(*beside, path, n);
    memcpy(*beside + n, tail, sizeof tail);
    return mkostemp(*beside, O_CLOEXEC | O_APPEND);
}

ah_status ah_file_replace(const ah_mem *mem, const char *path, ah_slice bytes, ah_err *err)
{
    static const char what[] = "write";
    char *beside = NULL;
    ah_status st = check_place(what, path, err);
    int fd = -1;

    if (st == AH_OK && (fd = new_beside(mem, path, &beside)) < 0)
        st = failed(what, path, err);
    if (fd >= 0) {
        if (!write_all(fd, bytes) || fsync(fd) != 0)
            st = failed(what, path, err);
        if (close(fd) != 0 && st == AH_OK)
            st = failed(what, path, err);
        if (st == AH_OK && rename(beside, path) != 0)
            st = failed(what, path, err);
        if (st == AH_OK)
            sync_folder(beside);
        else
            unlink(beside);
    }
    ah_free(mem, beside);
    return st;
}

static ah_status begin_anew(const ah_mem *mem, const char *what, const char *path, int *out,
                            ah_err *err)
{
    char *beside = NULL;
    ah_status st = check_place(what, path, err);
    int fd = -1;

    if (st == AH_OK && (fd = new_beside(mem, path, &beside)) < 0)
        st = failed(what, path, err);
    if (fd >= 0 && rename(beside, path) != 0) {
        st = failed(what, path, err);
        unlink(beside);
        close(fd);
    } else if (fd >= 0) {
        *out = fd;
    }
    ah_free(mem, beside);
    return st;
}

/* Checked once it is open, so that nothing can replace it in between. */
static ah_status make_private(int fd, const char *what, const char *path, ah_err *err)
{
    struct stat s;

    if (fstat(fd, &s) != 0)
        return failed(what, path, err);
    if (!S_ISREG(s.st_mode))
        return not_private(what, path, "it is no regular file", err);
    if (s.st_uid != geteuid())
        return not_private(what, path, "it is another user's", err);
    if (s.st_nlink > 1)
        return not_private(what, path, "it has another name, too (a hard link)", err);
    if ((s.st_mode & 07777) != 0600 && fchmod(fd, 0600) != 0)
        return failed(what, path, err);
    return AH_OK;
}

static ah_status begin_append(const char *what, const char *path, int *out, ah_err *err)
{
    const int flags =
        O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    ah_status st = check_place(what, path, err);
    int fd;

    if (st != AH_OK)
        return st;
    if ((fd = open(path, flags, 0600)) < 0)
        return failed(what, path, err);
    if ((st = make_private(fd, what, path, err)) == AH_OK)
        *out = fd;
    else
        close(fd);
    return st;
}

ah_status ah_file_private(const ah_mem *mem, const char *what, const char *path,
                          ah_file_begin begin, int *fd, ah_err *err)
{
    return begin == AH_FILE_ANEW ? begin_anew(mem, what, path, fd, err)
                                 : begin_append(what, path, fd, err);
}
