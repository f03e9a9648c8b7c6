/* The resources that a run has and that a call sees. lua/agenthost/resources.lua makes and keeps
 * them; this file calls it. lua_resource_end.c closes them. */
#include "lua/lua_resources.h"

#include "lua/lua_agent.h"
#include "lua/lua_fields.h"
#include "lua/lua_prompt.h"
#include "lua/lua_resource_end.h"

void ah_lua_push_bound(lua_State *L, ah_binding *b)
{
    int top = lua_gettop(L);

    if (b) {
        ah_lua_push_prompt(L, b);
        lua_getfield(L, -1, "resources");
        lua_replace(L, -2);
    } else {
        lua_pushnil(L);
    }
    if (!ah_lua_field_push(L, 1, "ah.run", "resources", LUA_TTABLE))
        lua_pushnil(L);
    if (lua_isnil(L, -1) && lua_isnil(L, -2)) {
        lua_settop(L, top + 1);
        return;
    }
    ah_lua_push_resource_function(L, "bind");
    lua_insert(L, top + 1);
    lua_call(L, 2, 1);
}

int ah_lua_open_resources_of(lua_State *L)
{
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return LUA_NOREF;
    }
    ah_lua_push_resource_function(L, "open");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    return ah_lua_ref(L);
}

/* Replaces the value on top by the result of the module's function for it. */
static void convert(lua_State *L, const char *name)
{
    ah_lua_push_resource_function(L, name);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
}

void ah_lua_push_own_resources(lua_State *L)
{
    convert(L, "own");
}

void ah_lua_push_bound_of(lua_State *L)
{
    convert(L, "bound");
}

/* -- for a call --------------------------------------------------------------------------- */

void ah_lua_push_resources(lua_State *L, ah_ctx *c)
{
    int container = ah_lua_run_resources(ah_run_owner(c->call->run));

    if (c->resources == LUA_NOREF) {
        ah_lua_push_resource_function(L, "view");
        if (container == LUA_NOREF)
            lua_pushnil(L);
        else
            lua_rawgeti(L, LUA_REGISTRYINDEX, container);
        lua_pushvalue(L, 1);
        lua_call(L, 2, 1);
        c->resources = ah_lua_ref(L);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->resources);
}

void ah_lua_push_filesystem(lua_State *L, ah_ctx *c)
{
    ah_lua_push_resource_function(L, "filesystem");
    ah_lua_push_resources(L, c);
    lua_call(L, 1, 1);
}

void ah_lua_push_files(lua_State *L, int container)
{
    if (container == LUA_NOREF) {
        lua_pushnil(L);
        return;
    }
    ah_lua_push_resource_function(L, "files");
    lua_rawgeti(L, LUA_REGISTRYINDEX, container);
    lua_call(L, 1, 1);
}

/* Calls the function in upvalue 1 so that nothing in it yields: a wait in it drives. */
static int fenced(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int fence(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushcclosure(L, fenced, 1);
    return 1;
}

static int framed_end(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    return lua_gettop(L);
}

/* Calls the function in upvalue 1, which may yield. */
static int framed(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, framed_end);
    return lua_gettop(L);
}

/* ah._framed(f): the same function in C, which keeps the caller's line in a tail call. */
static int frame(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushcclosure(L, framed, 1);
    return 1;
}

void ah_lua_open_resources(lua_State *L)
{
    lua_pushcfunction(L, fence);
    lua_setfield(L, -2, "_fenced");
    lua_pushcfunction(L, frame);
    lua_setfield(L, -2, "_framed");
}
