/* Files for the command and the Lua half, not for scripts: ah._read_file, ah._real_path,
 * ah._is_mine, ah._is_terminal, ah._columns. Private files, for the log of the mock server and the
 * folders that a user trusts (rule: io/file.h): ah._make_folder, ah._write_private,
 * ah._append_private. ah._writer: a file of Lua's io for programs of the command, whose answers go
 * to the original stdout while output of scripts is redirected. */
#define _GNU_SOURCE /* fdopen, realpath, F_DUPFD_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "lua/lua_error.h"
#include "lua/lua_open.h"
#include "lua/lua_state.h"
#include "lua/lua_value.h"

enum { PATH_ROOM = 4096, MORE = 128 << 10 /* MORE: bytes read beyond the limit to find the end */ };

/* -- nil words errno */
static int fails(lua_State *L, int why)
{
    lua_pushnil(L);
    lua_pushstring(L, strerror(why));
    lua_pushinteger(L, why);
    return 3;
}

/* -- looking ------------------------------------------------------------------------------- */

/* ah._read_file(path, most, follow) -> text, mine; or nil, words, and the errno of opening it.
 * Reads a regular file of at most `most` bytes; never waits for a pipe. `follow`: the path may be a
 * link. */
static int read_file(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    size_t most = (size_t)luaL_checkinteger(L, 2);
    ah_buf *b = ah_lua_push_buf(L, most + MORE);
    ah_file_found found;
    ah_err err;
    ah_status st = ah_file_look(path, lua_toboolean(L, 3), b, &found, &err);

    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (!ah_buf_ok(b) || b->len > most)
        st = ah_err_set(&err, AH_USAGE, "cannot read '%.300s': it is larger than %zu bytes", path,
                        most);
    if (st == AH_OK) {
        lua_pushlstring(L, ah_buf_slice(b).p, b->len);
        lua_pushboolean(L, found.mine);
    } else {
        lua_pushnil(L);
        lua_pushstring(L, err.message);
    }
    ah_buf_clear(b);
    lua_pushinteger(L, found.why);
    return 3;
}

/* ah._real_path(path) -> the absolute path without links, or nil, words, errno */
static int real_path(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    luaL_Buffer b; /* first: its contents cannot be lost */
    char *room = luaL_buffinitsize(L, &b, PATH_ROOM), *real = realpath(path, NULL);
    int why = errno;

    if (!real)
        return fails(L, why);
    if (strlen(real) >= PATH_ROOM) {
        free(real);
        return fails(L, ENAMETOOLONG);
    }
    memcpy(room, real, strlen(real) + 1);
    free(real);
    luaL_pushresultsize(&b, strlen(room));
    return 1;
}

/* ah._enter(path): makes it the working folder. Returns true, or nil, words, errno. */
static int enter(lua_State *L)
{
    if (chdir(luaL_checkstring(L, 1)) != 0)
        return fails(L, errno);
    lua_pushboolean(L, true);
    return 1;
}

/* ah._is_mine(path): true if the file (or link) belongs to the user of this process */
static int is_mine(lua_State *L)
{
    struct stat s;

    lua_pushboolean(L, lstat(luaL_checkstring(L, 1), &s) == 0 && s.st_uid == geteuid());
    return 1;
}

/* ah._is_terminal(descriptor): true if it is a terminal */
static int is_terminal(lua_State *L)
{
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

/* ah._columns(descriptor): the width of the terminal; nil: it is none */
static int columns(lua_State *L)
{
    struct winsize size = {.ws_col = 0};

    if (ioctl((int)luaL_checkinteger(L, 1), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 0;
    lua_pushinteger(L, size.ws_col);
    return 1;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* ah._make_folder(path) -> true if the folder exists now, private if it is new; or nil, words,
 * errno */
static int make_folder(lua_State *L)
{
    if (mkdir(luaL_checkstring(L, 1), 0700) != 0 && errno != EEXIST)
        return fails(L, errno);
    lua_pushboolean(L, true);
    return 1;
}

/* ah._write_private(path, text): replaces the file. Raises `usage` on failure. */
static int write_private(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    ah_slice text;
    ah_err err;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (ah_file_replace(&ah_lua_of(L)->mem, path, text, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

static int close_file(lua_State *L)
{
    luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);

    return luaL_fileresult(L, fclose(s->f) == 0, NULL);
}

/* Pushes a file, which counts as closed while closef is NULL. */
static luaL_Stream *push_file(lua_State *L)
{
    luaL_Stream *s = lua_newuserdatauv(L, sizeof *s, 0);

    *s = (luaL_Stream){0};
    luaL_setmetatable(L, LUA_FILEHANDLE);
    return s;
}

/* ah._append_private(path, alone) -> a file of Lua's io for appending. With `alone` returns nothing
 * while another file opened with `alone` is open. Raises `usage` if the file cannot be opened. */
static int append_private(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    bool alone = lua_toboolean(L, 2);
    luaL_Stream *s = push_file(L);
    ah_err err;
    int fd;

    if (ah_file_private(&ah_lua_of(L)->mem, "append to", path, AH_FILE_APPEND, &fd, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (alone && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return 0;
    }
    if (!(s->f = fdopen(fd, "a"))) {
        close(fd);
        return ah_lua_raise_nomem(L);
    }
    s->closef = close_file;
    return 1;
}

/* ah._writer(descriptor) -> a file of Lua's io that writes to a copy of the descriptor */
static int writer(lua_State *L)
{
    lua_Integer of = luaL_checkinteger(L, 1);
    luaL_Stream *s = push_file(L);
    int fd;

    luaL_argcheck(L, of >= 0 && of <= INT_MAX, 1, "is no descriptor");
    fd = fcntl((int)of, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd == -1 || !(s->f = fdopen(fd, "w"))) {
        luaL_fileresult(L, 0, NULL);
        if (fd != -1)
            close(fd);
        return luaL_error(L, "cannot write there: %s", lua_tostring(L, -2));
    }
    s->closef = close_file;
    return 1;
}

void ah_lua_open_file(lua_State *L)
{
    static const luaL_Reg functions[] = {{"_read_file", read_file},
                                         {"_real_path", real_path},
                                         {"_enter", enter},
                                         {"_is_mine", is_mine},
                                         {"_is_terminal", is_terminal},
                                         {"_columns", columns},
                                         {"_make_folder", make_folder},
                                         {"_write_private", write_private},
                                         {"_append_private", append_private},
                                         {"_writer", writer},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
