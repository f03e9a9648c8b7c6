/* luaopen_agenthost: puts the module together, from C and from the compiled-in Lua. */
#include <lauxlib.h>
#include <lua.h>

#include "agenthost_lua.h"
#include "lua/lua_discover.h"
#include "lua/lua_entity.h"
#include "lua/lua_gate.h"
#include "lua/lua_hooks.h"
#include "lua/lua_host.h"
#include "lua/lua_image.h"
#include "lua/lua_inject.h"
#include "lua/lua_moment.h"
#include "lua/lua_observe.h"
#include "lua/lua_registry.h"
#include "lua/lua_resources.h"
#include "lua/lua_schema.h"
#include "lua/lua_search.h"
#include "lua/lua_sources.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "lua/lua_words.h"

static const char MODULE[] = "agenthost.module"; /* registry: the module's table */

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
    lua_remove(L, -2); /* -- function */
}

/* Name -> the module. Its chunk is given the table of agenthost, so that it needs no require, and
 * what makes a tool of agenthost's own: that is in no table, so no script has it. */
static int load_source(lua_State *L)
{
    ah_lua_push_chunk(L, luaL_checkstring(L, 1));
    lua_getfield(L, LUA_REGISTRYINDEX, MODULE);
    lua_pushcfunction(L, ah_lua_own_tool);
    lua_call(L, 2, 1);
    return 1;
}

void ah_lua_push_library(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, MODULE);
}

/* require "agenthost.testing" and no other: the rest is reached through agenthost. */
static const char TESTING[] = "agenthost.testing";

static int load_once(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); /* -- name loaded */
    lua_pushvalue(L, 1);
    if (lua_rawget(L, 2) != LUA_TNIL)
        return 1;
    lua_settop(L, 2);
    lua_pushcfunction(L, load_source);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1); /* -- name loaded module */
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 3);
    lua_rawset(L, 2);
    return 1;
}

ah_status ah_lua_module(lua_State *L, const char *name, ah_err *err)
{
    lua_pushcfunction(L, load_once);
    lua_pushstring(L, name);
    return ah_lua_call(ah_lua_of(L), L, 1, 1, err);
}

/* Fields of the module that are Lua: loaded when they are first asked for. Those that begin
 * with `_` are for the command and for tests. */
static const struct {
    const char *key, *module, *member; /* member NULL: the module itself */
} lazy[] = {
    {"scripted", "agenthost.scripted", NULL},
    {"adapter", "agenthost.adapter", NULL},
    {"conformance", "agenthost.conformance", NULL},
    {"policies", "agenthost.policies", NULL},
    {"resource", "agenthost.resource", NULL},
    {"builtin", "agenthost.builtin", NULL},
    {"planning", "agenthost.planning", "types"},
    {"planning_section", "agenthost.planning", "section"},
    {"unlock", "agenthost.strategies", "unlock"},
    {"phases", "agenthost.strategies", "phases"},
    {"unfold", "agenthost.strategies", "unfold"},
    {"set_visibility_override", "agenthost.visibility", NULL},
    {"_inspect", "agenthost.inspect", NULL},
    {"_calls", "agenthost.calls", NULL},
    {"_mock", "agenthost.mock", NULL},
    {"_models", "agenthost.models", NULL},
};

enum { LAZY = sizeof lazy / sizeof *lazy };

/* A word that means something here is no field that may be absent: it raises, so that the call
 * of a nil is not all that is told. */
static int refuse_word(lua_State *L, const char *key)
{
    const char *meant = ah_word_function(ah_slice_of(key));

    return meant ? ah_lua_raise(L, AH_USAGE, "agenthost has no '%s'; here it is %s", key, meant) : 0;
}

static int lazy_field(lua_State *L)
{
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    size_t i = 0;

    while (i < LAZY && strcmp(key, lazy[i].key) != 0)
        i++;
    if (i == LAZY)
        return refuse_word(L, key);
    lua_pushcfunction(L, load_once);
    lua_pushstring(L, lazy[i].module);
    lua_call(L, 1, 1);
    if (lazy[i].member)
        lua_getfield(L, -1, lazy[i].member);
    lua_pushvalue(L, -1);
    lua_setfield(L, 1, key);
    return 1;
}

static int load_testing(lua_State *L)
{
    lua_pushcfunction(L, load_source);
    lua_pushstring(L, TESTING);
    lua_call(L, 1, 1);
    return 1;
}

/* For stock Lua, where it may be required before agenthost. */
AH_API int luaopen_agenthost_testing(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "agenthost");
    lua_call(L, 1, 0);
    return load_testing(L);
}

static int next_field(lua_State *L)
{
    lua_settop(L, 2);
    return lua_next(L, 1) ? 2 : 0;
}

/* pairs(ah) shows all there is for scripts. */
static int all_fields(lua_State *L)
{
    for (size_t i = 0; i < LAZY && lazy[i].key[0] != '_'; i++) {
        lua_getfield(L, 1, lazy[i].key);
        lua_pop(L, 1);
    }
    lua_pushcfunction(L, next_field);
    lua_pushvalue(L, 1);
    return 2;
}

AH_API int luaopen_agenthost(lua_State *L)
{
    ah_lua_host(L, &ah_mem_libc, NULL);
    lua_newtable(L); /* -- ah */
    ah_lua_open_value(L);
    ah_lua_open_schema(L);
    ah_lua_open_error(L);
    ah_lua_open_log(L);
    ah_lua_open_task(L);
    ah_lua_open_type(L);
    ah_lua_open_session(L);
    ah_lua_open_tool(L);
    ah_lua_open_section(L);
    ah_lua_open_prompt(L);
    ah_lua_open_models(L);
    ah_lua_open_adapter(L);
    ah_lua_open_inject(L);
    ah_lua_open_moment(L);
    ah_lua_open_metrics(L);
    ah_lua_open_search(L);
    ah_lua_open_registry(L);
    ah_lua_open_budget(L);
    ah_lua_open_gate(L);
    ah_lua_open_agent(L);
    ah_lua_open_entity(L);
    ah_lua_open_discover(L);
    ah_lua_open_http(L);
    ah_lua_open_serve(L);
    ah_lua_open_fs(L);
    ah_lua_open_resources(L);
    ah_lua_open_embed(L);
    ah_lua_open_builtin(L);
    ah_lua_open_file(L);
    ah_lua_open_process(L);
    ah_lua_open_image(L);
    lua_pushcfunction(L, load_once); /* for modules that are made of others */
    lua_setfield(L, -2, "_module");
    lua_pushliteral(L, AH_VERSION);
    lua_setfield(L, -2, "version");
    lua_newtable(L);
    lua_pushcfunction(L, lazy_field);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, all_fields);
    lua_setfield(L, -2, "__pairs");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, MODULE);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, load_testing);
    lua_setfield(L, -2, TESTING);
    lua_pop(L, 1);
    return 1;
}
