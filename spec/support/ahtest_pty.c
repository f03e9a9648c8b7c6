/* ahtest.pty: a program under a terminal, for the specs.
 *
 *   p = pty({ word, ... }, { env = { "NAME=VALUE", ... }, columns = 80 })
 *   p:read(seconds) -> output | "" if nothing came in time | nil at the end
 *   p:write(text)       as typed: "\3" is Ctrl-C
 *   p:resize(columns, rows = 24)
 *   p:hang_up()         closes the terminal; its processes continue
 *   p:wait(seconds) -> exit code, 128 + signal | nil if it has not ended in time
 *   p:close()           kills the processes that are left
 *
 * The environment is only what is given. Returns nil, message if no terminal can be
 * made. At most 64 words and variables. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/ahtest.h"

#define PTY "ahtest.pty"

enum { MAX_WORDS = 64, ROWS = 24 };

typedef struct pty {
    int fd;    /* -1: closed */
    pid_t pid; /* 0: the child was waited for */
} pty;

/* Reads the strings of a list, ended by NULL; they are valid as long as the list. */
static void read_list(lua_State *L, int idx, char *out[MAX_WORDS + 1])
{
    lua_Integer n = luaL_len(L, idx);

    luaL_argcheck(L, n <= MAX_WORDS, idx, "too many words");
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, idx, i);
        out[i - 1] = (char *)(uintptr_t)luaL_checkstring(L, -1);
        lua_pop(L, 1);
    }
    out[n] = NULL;
}

static void set_size(int fd, int columns, int rows)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

    ioctl(fd, TIOCSWINSZ, &size);
}

/* In the child: makes the terminal its controlling one, and its only descriptors. */
static void become(const char *name, char **argv, char **env)
{
    int fd;

    for (int sig = 1; sig < 32; sig++) /* a background shell may ignore signals; here they act */
        signal(sig, SIG_DFL);
    setsid();
    if ((fd = open(name, O_RDWR)) == -1 || ioctl(fd, TIOCSCTTY, 0) == -1)
        _exit(126);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    if (fd > 2)
        close(fd);
    execve(argv[0], argv, env);
    _exit(127);
}

static int give_up(lua_State *L)
{
    lua_pushnil(L);
    lua_pushstring(L, strerror(errno));
    return 2;
}

static int new_pty(lua_State *L)
{
    char *argv[MAX_WORDS + 1], *env[MAX_WORDS + 1];
    pty *p = lua_newuserdatauv(L, sizeof *p, 0); /* -- words options p */
    const char *name;
    int columns;

    *p = (pty){.fd = -1};
    luaL_setmetatable(L, PTY);
    read_list(L, 1, argv);
    lua_getfield(L, 2, "env");
    read_list(L, lua_gettop(L), env);
    lua_getfield(L, 2, "columns");
    columns = (int)luaL_optinteger(L, -1, 80);
    if ((p->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) == -1 || grantpt(p->fd) != 0 ||
        unlockpt(p->fd) != 0 || !(name = ptsname(p->fd)))
        return give_up(L);
    set_size(p->fd, columns, ROWS);
    if ((p->pid = fork()) == 0)
        become(name, argv, env);
    if (p->pid == -1)
        return give_up(L);
    lua_settop(L, 3);
    return 1;
}

static pty *check(lua_State *L)
{
    return luaL_checkudata(L, 1, PTY);
}

/* A terminal without users gives EIO. */
static int read_pty(lua_State *L)
{
    pty *p = check(L);
    struct pollfd ready = {.fd = p->fd, .events = POLLIN};
    char bytes[4096];
    ssize_t n = 0;

    if (poll(&ready, 1, (int)(luaL_checknumber(L, 2) * 1000)) > 0)
        n = read(p->fd, bytes, sizeof bytes);
    else
        ready.revents = 0;
    if (n < 0 || (n == 0 && ready.revents))
        lua_pushnil(L);
    else
        lua_pushlstring(L, bytes, (size_t)n);
    return 1;
}

static int write_pty(lua_State *L)
{
    size_t n;
    const char *s = luaL_checklstring(L, 2, &n);

    lua_pushboolean(L, write(check(L)->fd, s, n) == (ssize_t)n);
    return 1;
}

static int resize(lua_State *L)
{
    set_size(check(L)->fd, (int)luaL_checkinteger(L, 2), (int)luaL_optinteger(L, 3, ROWS));
    return 0;
}

static int hang_up(lua_State *L)
{
    pty *p = check(L);

    close(p->fd);
    p->fd = -1;
    return 0;
}

static int wait_pty(lua_State *L)
{
    pty *p = check(L);
    int left = (int)(luaL_checknumber(L, 2) * 100), status = 0;

    while (p->pid && waitpid(p->pid, &status, WNOHANG) == 0) {
        if (left-- <= 0)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    p->pid = 0;
    lua_pushinteger(L, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return 1;
}

static int close_pty(lua_State *L)
{
    pty *p = check(L);

    if (p->pid) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
        p->pid = 0;
    }
    if (p->fd != -1)
        close(p->fd);
    p->fd = -1;
    return 0;
}

void ahtest_open_pty(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"read", read_pty},  {"write", write_pty},   {"resize", resize},
        {"wait", wait_pty},  {"hang_up", hang_up},   {"close", close_pty},
        {"__gc", close_pty}, {"__close", close_pty}, {NULL, NULL}};

    luaL_newmetatable(L, PTY);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_pty);
    lua_setfield(L, -2, "pty");
}
