/* Files of Lua's io for the Lua half. ah._append_private(path): one that is appended to and readable by its
 * owner only (io/file.h has the rule), for what is kept: the log of the mock server.
 * ah._writer(descriptor): one that writes where a descriptor of the process does, for the command's programs,
 * whose answers go there though what scripts print goes elsewhere. */
#define _GNU_SOURCE /* fdopen, F_DUPFD_CLOEXEC */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "io/file.h"
#include "lua/lua_error.h"
#include "lua/lua_open.h"
#include "lua/lua_state.h"

static int close_file(lua_State *L)
{
    luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);

    return luaL_fileresult(L, fclose(s->f) == 0, NULL);
}

/* Pushes a file, which is closed as long as closef is NULL. */
static luaL_Stream *push_file(lua_State *L)
{
    luaL_Stream *s = lua_newuserdatauv(L, sizeof *s, 0);

    *s = (luaL_Stream){0};
    luaL_setmetatable(L, LUA_FILEHANDLE);
    return s;
}

/* Raises `usage` where the file cannot be that. */
static int append_private(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    luaL_Stream *s = push_file(L);
    ah_err err;
    int fd;

    if (ah_file_private(&ah_lua_of(L)->mem, "append to", path, AH_FILE_APPEND, &fd, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (!(s->f = fdopen(fd, "a"))) {
        close(fd);
        return ah_lua_raise_nomem(L);
    }
    s->closef = close_file;
    return 1;
}

/* Has a descriptor of its own. */
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
    lua_pushcfunction(L, append_private);
    lua_setfield(L, -2, "_append_private");
    lua_pushcfunction(L, writer);
    lua_setfield(L, -2, "_writer");
}
