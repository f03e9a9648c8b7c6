/* ahtest: the system calls of the filesystem. The linker redirects the calls of the library's
 * copy in this module to the functions below (--wrap), so that specs can make them fail.
 *
 *   fs_fail(call, at, error)   the at-th call (0: each) fails: "EIO" ..., or "short": moves only
 *                              one byte, or "kill": the process is killed before the call.
 *                              Without arguments: no call fails any more
 *   fs_old_kernel(on)          the kernel has no openat2 and no renameat2
 *   fs_calls() -> { call = n } number of calls since fs_fail
 *   fs_names(dir) -> names     all entries, folders with a `/` at the end
 *   fs_open() -> n             number of open descriptors
 *   fs_swap(a, b) -> swapper   a thread that exchanges the two paths until swapper:stop(),
 *                              which returns the number of exchanges
 *
 *   fs_tower(dir, name, depth, text)  makes folders called `name` within each other, and the text
 *                              as the file `f` in the last one: deeper than any path can be
 *   fs_make(path, kind)        "fifo", "socket", or "sparse": an empty file of 1 TiB
 *
 * The armed fault has file scope, as the calls carry no pointer; one Lua state uses it at a
 * time. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/ahtest.h"

enum { SHORT = -1, KILL = -2, FOREVER = 0 };

/* All system calls of the library for files. */
#define CALLS(X)                                                                                   \
    X(openat)                                                                                      \
    X(fstatat)                                                                                     \
    X(fstat)                                                                                       \
    X(pread)                                                                                       \
    X(write)                                                                                       \
    X(fsync)                                                                                       \
    X(fchmod)                                                                                      \
    X(close)                                                                                       \
    X(renameat)                                                                                    \
    X(linkat)                                                                                      \
    X(unlinkat)                                                                                    \
    X(mkdirat)                                                                                     \
    X(fdopendir)                                                                                   \
    X(readdir)                                                                                     \
    X(syscall)

#define ENUM(name) CALL_##name,
#define NAME(name) #name,
typedef enum call { CALLS(ENUM) N_CALLS } call;
static const char *const names[] = {CALLS(NAME) NULL};

static struct {
    bool on, old_kernel;
    call call;
    long at, seen[N_CALLS];
    int error;
} armed;

static bool hit(call c)
{
    long n = ++armed.seen[c];

    if (!armed.on || armed.call != c || (armed.at != FOREVER && armed.at != n))
        return false;
    if (armed.error == KILL)
        kill(getpid(), SIGKILL);
    return true;
}

static bool fails(call c)
{
    if (!hit(c) || armed.error == SHORT)
        return false;
    errno = armed.error;
    return true;
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails(CALL_openat) ? -1 : __real_openat(dir, path, flags, mode);
}

/* The C library of GNU has other names for calls with offsets of 64 bits, with which ours is
 * compiled. They count as the same calls. */
#ifdef __GLIBC__
int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails(CALL_openat) ? -1 : __real_openat64(dir, path, flags, mode);
}
#endif

/* A call that returns -1 if it fails. */
#define PLAIN_AS(call, type, name, params, args)                                                   \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params                                                                      \
    {                                                                                              \
        return fails(CALL_##call) ? -1 : __real_##name args;                                       \
    }
#define PLAIN(type, name, params, args) PLAIN_AS(name, type, name, params, args)

PLAIN(int, fstatat, (int dir, const char *path, struct stat *s, int flags), (dir, path, s, flags))
PLAIN(int, fstat, (int fd, struct stat *s), (fd, s))
#ifdef __GLIBC__
PLAIN_AS(fstatat, int, fstatat64, (int dir, const char *path, struct stat *s, int flags),
         (dir, path, s, flags))
PLAIN_AS(fstat, int, fstat64, (int fd, struct stat *s), (fd, s))
#endif
PLAIN(int, fsync, (int fd), (fd))
PLAIN(int, fchmod, (int fd, mode_t mode), (fd, mode))
PLAIN(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
PLAIN(int, linkat, (int a, const char *from, int b, const char *to, int flags),
      (a, from, b, to, flags))
PLAIN(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
PLAIN(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))

/* A call that moves bytes. */
#define MOVING_AS(call, name, params, args, short_args)                                            \
    ssize_t __real_##name params;                                                                  \
    ssize_t __wrap_##name params;                                                                  \
    ssize_t __wrap_##name params                                                                   \
    {                                                                                              \
        if (!hit(CALL_##call))                                                                     \
            return __real_##name args;                                                             \
        errno = armed.error;                                                                       \
        return armed.error == SHORT && n ? __real_##name short_args : -1;                          \
    }
#define MOVING(name, params, args, short_args) MOVING_AS(name, name, params, args, short_args)

MOVING(pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), (fd, p, 1, at))
#ifdef __GLIBC__
MOVING_AS(pread, pread64, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), (fd, p, 1, at))
#endif
MOVING(write, (int fd, const void *p, size_t n), (fd, p, n), (fd, p, 1))

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) /* a failed close still closes the descriptor, as on Linux */
{
    bool bad = fails(CALL_close);
    int e = errno, rc = __real_close(fd);

    if (bad)
        errno = e;
    return bad ? -1 : rc;
}

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    return fails(CALL_fdopendir) ? NULL : __real_fdopendir(fd);
}

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
    return fails(CALL_readdir) ? NULL : __real_readdir(dir);
}

long __real_syscall(long n, ...);
long __wrap_syscall(long n, ...);
long __wrap_syscall(long n, ...) /* of up to five arguments */
{
    long a[5];
    va_list ap;

    va_start(ap, n);
    for (int i = 0; i < 5; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (fails(CALL_syscall))
        return -1;
    if (armed.old_kernel && (n == SYS_openat2 || n == SYS_renameat2)) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(n, a[0], a[1], a[2], a[3], a[4]);
}

/* -- for the specs ------------------------------------------------------------------------ */

static int fs_fail(lua_State *L)
{
    static const char *const errors[] = {"short", "kill",   "EIO",   "ENOSPC", "ENOSYS",
                                         "EPERM", "EAGAIN", "EINTR", "EACCES", NULL};
    static const int numbers[] = {SHORT, KILL, EIO, ENOSPC, ENOSYS, EPERM, EAGAIN, EINTR, EACCES};
    bool old = armed.old_kernel;

    memset(&armed, 0, sizeof armed);
    armed.old_kernel = old;
    if (lua_isnoneornil(L, 1))
        return 0;
    armed.call = (call)luaL_checkoption(L, 1, NULL, names);
    armed.at = (long)luaL_checkinteger(L, 2);
    armed.error = numbers[luaL_checkoption(L, 3, "EIO", errors)];
    armed.on = true;
    return 0;
}

static int fs_old_kernel(lua_State *L)
{
    armed.old_kernel = lua_toboolean(L, 1);
    return 0;
}

static int fs_calls(lua_State *L)
{
    lua_createtable(L, 0, N_CALLS);
    for (int i = 0; i < N_CALLS; i++) {
        lua_pushinteger(L, armed.seen[i]);
        lua_setfield(L, -2, names[i]);
    }
    return 1;
}

static int fs_names(lua_State *L)
{
    DIR *dir = opendir(luaL_checkstring(L, 1));
    struct dirent *e;
    lua_Integer n = 0;

    if (!dir)
        return luaL_error(L, "cannot list '%s': %s", lua_tostring(L, 1), strerror(errno));
    lua_newtable(L);
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        lua_pushfstring(L, "%s%s", e->d_name, e->d_type == DT_DIR ? "/" : "");
        lua_rawseti(L, -2, ++n);
    }
    closedir(dir);
    return 1;
}

static int fs_open(lua_State *L)
{
    lua_Integer n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    lua_pushinteger(L, n);
    return 1;
}

static int fs_tower(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2), *text = luaL_checkstring(L, 4);
    int at = open(luaL_checkstring(L, 1), O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;

    for (lua_Integer i = luaL_checkinteger(L, 3); at >= 0 && i > 0; i--) {
        next = __real_mkdirat(at, name, 0777) == 0
                   ? __real_openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                   : -1;
        __real_close(at);
        at = next;
    }
    next = at >= 0 ? __real_openat(at, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (next < 0 || __real_write(next, text, strlen(text)) < 0)
        return luaL_error(L, "no tower: %s", strerror(errno));
    __real_close(next);
    __real_close(at);
    return 0;
}

static int make_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    rc = fd >= 0 ? bind(fd, (struct sockaddr *)&a, sizeof a) : -1;
    if (fd >= 0)
        __real_close(fd);
    return rc;
}

static int make_sparse(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    int rc = fd >= 0 ? ftruncate(fd, (off_t)1 << 40) : -1;

    if (fd >= 0)
        __real_close(fd);
    return rc;
}

static int fs_make(lua_State *L)
{
    static const char *const kinds[] = {"fifo", "socket", "sparse", NULL};
    const char *path = luaL_checkstring(L, 1);
    int rc = -1;

    switch (luaL_checkoption(L, 2, NULL, kinds)) {
    case 0:
        rc = mkfifo(path, 0666);
        break;
    case 1:
        rc = make_socket(path);
        break;
    default:
        rc = make_sparse(path);
    }
    lua_pushboolean(L, rc == 0); /* not every filesystem has all kinds */
    return 1;
}

/* -- swapping ------------------------------------------------------------------------------- */

#define SWAPPER "ahtest.swapper"

typedef struct swapper {
    char a[1024], b[1024];
    pthread_t thread;
    atomic_bool stop, running;
    atomic_long times;
} swapper;

static void *swap_on(void *ud)
{
    swapper *s = ud;
    const unsigned exchange = 2; /* RENAME_EXCHANGE */

    while (!s->stop)
        if (__real_syscall(SYS_renameat2, AT_FDCWD, s->a, AT_FDCWD, s->b, exchange) == 0)
            s->times++;
    return NULL;
}

static int swap_stop(lua_State *L)
{
    swapper *s = luaL_checkudata(L, 1, SWAPPER);

    s->stop = true;
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    lua_pushinteger(L, s->times);
    return 1;
}

static int fs_swap(lua_State *L)
{
    const char *a = luaL_checkstring(L, 1), *b = luaL_checkstring(L, 2);
    swapper *s = lua_newuserdatauv(L, sizeof *s, 0);

    memset(s, 0, sizeof *s);
    snprintf(s->a, sizeof s->a, "%s", a);
    snprintf(s->b, sizeof s->b, "%s", b);
    luaL_setmetatable(L, SWAPPER);
    if (pthread_create(&s->thread, NULL, swap_on, s) != 0)
        return luaL_error(L, "no thread");
    s->running = true;
    return 1;
}

void ahtest_open_fs(lua_State *L)
{
    static const luaL_Reg functions[] = {{"fs_fail", fs_fail},
                                         {"fs_calls", fs_calls},
                                         {"fs_names", fs_names},
                                         {"fs_open", fs_open},
                                         {"fs_swap", fs_swap},
                                         {"fs_tower", fs_tower},
                                         {"fs_make", fs_make},
                                         {"fs_old_kernel", fs_old_kernel},
                                         {NULL, NULL}};

    luaL_newmetatable(L, SWAPPER);
    lua_pushcfunction(L, swap_stop);
    lua_setfield(L, -2, "stop");
    lua_pushcfunction(L, swap_stop);
    lua_setfield(L, -2, "__gc");
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
