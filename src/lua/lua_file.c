/* ah._append_private(path): a file of Lua's io that is appended to and readable by its owner only
 * (io/file.h has the rule), for what the Lua half keeps: the log of the mock server. */
#define _GNU_SOURCE /* fdopen */
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

/* Raises `usage` where the file cannot be that. */
static int append_private(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    luaL_Stream *s = lua_newuserdatauv(L, sizeof *s, 0);
    ah_err err;
    int fd;

    *s = (luaL_Stream){0}; /* closed, as long as closef is NULL */
    luaL_setmetatable(L, LUA_FILEHANDLE);
    if (ah_file_private(&ah_lua_of(L)->mem, "append to", path, AH_FILE_APPEND, &fd, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (!(s->f = fdopen(fd, "a"))) {
        close(fd);
        return ah_lua_raise_nomem(L);
    }
    s->closef = close_file;
    return 1;
}

void ah_lua_open_file(lua_State *L)
{
    lua_pushcfunction(L, append_private);
    lua_setfield(L, -2, "_append_private");
}
