/* Reading within a limit, and replacing by way of a temporary file beside the target. Roots that
 * no link leads out of, as the files of tools have them, are prompt/fs_host.c's. */
#include "base/file.h"

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

    return ah_err_set(err, why == ENOMEM ? AH_NOMEM : AH_USAGE, "cannot %s '%.300s': %s", what, path,
                      strerror(why));
}

/* 0 at the end, -1 with errno. */
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

ah_status ah_file_read(const char *path, ah_buf *out, ah_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ah_status st = AH_OK;
    struct stat s;
    ssize_t n = 1;

    if (fd < 0)
        return failed("read", path, err);
    if (fstat(fd, &s) != 0)
        st = failed("read", path, err);
    else if (!S_ISREG(s.st_mode))
        st = ah_err_set(err, AH_USAGE, "cannot read '%.300s': it is no regular file", path);
    while (st == AH_OK && n > 0)
        n = read_some(fd, out);
    if (st == AH_OK && n < 0)
        st = failed("read", path, err);
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, path, err);
    close(fd);
    return st;
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

/* The renamed name is on the disk, too. A file system without this is none of our business. */
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

ah_status ah_file_replace(const ah_mem *mem, const char *path, ah_slice bytes, ah_err *err)
{
    size_t n = strlen(path);
    char *beside = ah_alloc(mem, n + sizeof ".XXXXXX");
    ah_status st = AH_OK;
    int fd;

    if (!beside)
        return ah_err_nomem(err);
    memcpy(beside, path, n);
    memcpy(beside + n, ".XXXXXX", sizeof ".XXXXXX");
    if ((fd = mkstemp(beside)) < 0) {
        st = failed("write", path, err);
        ah_free(mem, beside);
        return st;
    }
    if (!write_all(fd, bytes) || fsync(fd) != 0)
        st = failed("write", path, err);
    if (close(fd) != 0 && st == AH_OK)
        st = failed("write", path, err);
    if (st == AH_OK && rename(beside, path) != 0)
        st = failed("write", path, err);
    if (st == AH_OK)
        sync_folder(beside);
    else
        unlink(beside);
    ah_free(mem, beside);
    return st;
}
