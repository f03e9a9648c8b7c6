/* Shared code of the fuzz targets whose checks are a Lua script. The script returns a function
 * that gets an input; an error that it raises is a finding. The Lua state is made once. Lines of
 * Lua that run count for libFuzzer as blocks of C do. */
#ifndef FUZZ_LUA_TARGET_H
#define FUZZ_LUA_TARGET_H

#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agenthost_lua.h"

enum { LINES = 1 << 16 };

/* libFuzzer looks for a section of this name (its documentation, "Extra counters"). */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t line_counters[LINES];

static void count_line(lua_State *L, lua_Debug *at)
{
    uintptr_t hash;

    lua_getinfo(L, "S", at);
    hash = (uintptr_t)at->linedefined * 31 + (uintptr_t)at->currentline;
    for (const char *p = at->short_src; *p; p++)
        hash = hash * 33 + (unsigned char)*p;
    line_counters[hash % LINES]++;
}

static void fail(lua_State *L)
{
    fprintf(stderr, "%s\n", luaL_tolstring(L, -1, NULL));
    abort();
}

/* Leaves the function of the script on the stack. */
static lua_State *open_target(const char *script)
{
    lua_State *L = luaL_newstate();

    if (!L)
        abort();
    luaL_openlibs(L);
    luaL_requiref(L, "agenthost", luaopen_agenthost, 0);
    lua_pop(L, 1);
    if (luaL_loadfile(L, script) != LUA_OK || lua_pcall(L, 0, 1, 0) != LUA_OK)
        fail(L);
    lua_sethook(L, count_line, LUA_MASKLINE, 0);
    return L;
}

static int traced(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

static int fuzz_lua(const char *script, const uint8_t *data, size_t size)
{
    static lua_State *L;

    if (!L)
        L = open_target(script);
    lua_settop(L, 1);
    lua_pushcfunction(L, traced);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)data, size);
    if (lua_pcall(L, 1, 0, 2) != LUA_OK)
        fail(L);
    return 0;
}

#endif
