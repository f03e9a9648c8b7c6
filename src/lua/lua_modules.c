/* The Lua half, compiled in: each module is loaded once, on first use. */
#include "lua/lua_modules.h"

#include "lua/lua_host.h"
#include "lua/lua_sources.h"
#include "lua/lua_state.h"

static const char GLOBALS[] = "agenthost.globals"; /* registry: the globals of the Lua half */

/* Registry: the modules by name. In no table of scripts: a test runner clears package.loaded, and
 * the state of a module, such as the tasks at work, exists once. */
static const char LOADED[] = "agenthost.loaded";

static const ah_lua_source *find_source(const char *name)
{
    const ah_lua_source *s = ah_lua_sources;

    while (s->name && strcmp(s->name, name) != 0)
        s++;
    return s->name ? s : NULL;
}

void ah_lua_push_chunk(lua_State *L, const char *name)
{
    const ah_lua_source *s = find_source(name);

    if (!s)
        luaL_error(L, "agenthost has no module '%s'", name);
    lua_pushfstring(L, "=%s", name); /* -- chunk name */
    if (luaL_loadbufferx(L, s->text, s->len, lua_tostring(L, -1), "t") != LUA_OK)
        lua_error(L);
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    lua_setupvalue(L, -2, 1);
    lua_remove(L, -2); /* -- function */
}

/* Replaces the table on top by one with the same fields. */
static void copy_table(lua_State *L)
{
    lua_createtable(L, 0, 32);
    lua_pushnil(L);
    while (lua_next(L, -3)) { /* -- table copy key value */
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_remove(L, -2);
}

void ah_lua_keep_globals(lua_State *L)
{
    static const char *const libraries[] = {"io", "math", "os", "string", "table", "utf8"};

    luaL_checkstack(L, 8, "globals");
    lua_pushglobaltable(L);
    copy_table(L);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (lua_getfield(L, -1, libraries[i]) != LUA_TTABLE) {
            lua_pop(L, 1);
            continue;
        }
        copy_table(L);
        lua_setfield(L, -2, libraries[i]);
    }
    lua_setfield(L, LUA_REGISTRYINDEX, GLOBALS);
}

/* name -> the module. The chunk gets the table of agenthost, so that it needs no require, and the
 * function that makes tools of agenthost's own, which is in no table that a script can reach. */
int ah_lua_load_module(lua_State *L)
{
    ah_lua_push_chunk(L, luaL_checkstring(L, 1));
    lua_getfield(L, LUA_REGISTRYINDEX, AH_LUA_LIBRARY);
    lua_pushcfunction(L, ah_lua_of(L)->own_tool);
    lua_call(L, 2, 1);
    return 1;
}

void ah_lua_push_library(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, AH_LUA_LIBRARY);
}

int ah_lua_load_module_once(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LOADED); /* -- name loaded */
    lua_pushvalue(L, 1);
    if (lua_rawget(L, 2) != LUA_TNIL)
        return 1;
    lua_settop(L, 2);
    lua_pushcfunction(L, ah_lua_load_module);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1); /* -- name loaded module */
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 3);
    lua_rawset(L, 2);
    return 1;
}

ah_status ah_lua_module(lua_State *L, const char *name, ah_err *err)
{
    lua_pushcfunction(L, ah_lua_load_module_once);
    lua_pushstring(L, name);
    return ah_lua_call(ah_lua_of(L), L, 1, 1, err);
}
