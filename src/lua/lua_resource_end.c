/* Calls lua/agenthost/resources.lua, which closes resources, when a run or a call ends. */
#include "lua/lua_resource_end.h"

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_modules.h"

void ah_lua_push_resource_function(lua_State *L, const char *name)
{
    ah_err err;

    if (ah_lua_module(L, "agenthost.resources", &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* (name, ref): calls the module's function with the referenced value. */
static int call_end(lua_State *L)
{
    ah_lua_push_resource_function(L, lua_touserdata(L, 1));
    lua_rawgeti(L, LUA_REGISTRYINDEX, *(int *)lua_touserdata(L, 2));
    lua_call(L, 1, 0);
    return 0;
}

static void end(ah_lua *h, const char *function, int *ref)
{
    lua_State *L = h->caller;
    ah_err err;

    if (*ref == LUA_NOREF || !lua_checkstack(L, 4))
        return;
    lua_pushcfunction(L, call_end);
    lua_pushlightuserdata(L, (void *)(uintptr_t)function);
    lua_pushlightuserdata(L, ref);
    if (ah_lua_call(h, L, 2, 0, &err) != AH_OK)
        ah_log_put(&h->host->log, AH_LOG_WARNING, "resources could not be closed: %s", err.message);
    ah_lua_unref(h, ref);
}

void ah_lua_close_resources(ah_lua *h, int *ref)
{
    end(h, "close", ref);
}

void ah_lua_leave_resources(ah_lua *h, ah_ctx *c)
{
    end(h, "leave", &c->resources);
}
