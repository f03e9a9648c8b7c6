/* luaopen_agenthost: builds the module from its parts in C and in compiled-in Lua. */
#include <lauxlib.h>
#include <lua.h>

#include "agenthost_lua.h"
#include "lua/lua_background.h"
#include "lua/lua_budget.h"
#include "lua/lua_named.h"
#include "lua/lua_definition.h"
#include "lua/lua_discover.h"
#include "lua/lua_entity.h"
#include "lua/lua_fork.h"
#include "lua/lua_front.h"
#include "lua/lua_fs.h"
#include "lua/lua_gate.h"
#include "lua/lua_handoff.h"
#include "lua/lua_host.h"
#include "lua/lua_image.h"
#include "lua/lua_inject.h"
#include "lua/lua_later.h"
#include "lua/lua_models.h"
#include "lua/lua_modules.h"
#include "lua/lua_moment.h"
#include "lua/lua_events.h"
#include "lua/lua_observe.h"
#include "lua/lua_open.h"
#include "lua/lua_prompt.h"
#include "lua/lua_registry.h"
#include "lua/lua_replay.h"
#include "lua/lua_resources.h"
#include "lua/lua_schema.h"
#include "lua/lua_search.h"
#include "lua/lua_section.h"
#include "lua/lua_session.h"
#include "lua/lua_store.h"
#include "lua/lua_tool.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"
#include "lua/lua_words.h"

/* The only other module for require: all others are reached through agenthost. */
static const char TESTING[] = "agenthost.testing";

/* Fields of the module that are written in Lua, loaded on first use. Those that begin with `_` are
 * for the command and for tests. */
static const struct {
    const char *key, *module, *member; /* member NULL: the module itself */
} lazy[] = {
    {"scripted", "agenthost.providers.scripted", NULL},
    {"adapter", "agenthost.providers.adapter", NULL},
    {"conformance", "agenthost.testing.conformance", NULL},
    {"policies", "agenthost.strategies.policies", NULL},
    {"resource", "agenthost.resource", NULL},
    {"spawn", "agenthost.tasks.tasks", "spawn"},
    {"scope", "agenthost.tasks.tasks", "scope"},
    {"all", "agenthost.tasks.tasks", "all"},
    {"race", "agenthost.tasks.tasks", "race"},
    {"map", "agenthost.tasks.map", NULL},
    {"with_timeout", "agenthost.tasks.tasks", "with_timeout"},
    {"every", "agenthost.tasks.tasks", "every"},
    {"yield", "agenthost.tasks.tasks", "yield"},
    {"handoff", "agenthost.agents.handoff", "handoff"},
    {"mcp", "agenthost.protocols.mcp.client", NULL},
    {"mcp_file", "agenthost.protocols.mcp.client.file", "open"},
    {"builtin", "agenthost.tools.builtin", NULL},
    {"planning", "agenthost.tools.planning", "types"},
    {"planning_section", "agenthost.tools.planning", "section"},
    {"unlock", "agenthost.strategies.ready", "unlock"},
    {"phases", "agenthost.strategies.ready", "phases"},
    {"unfold", "agenthost.strategies.ready", "unfold"},
    {"set_visibility_override", "agenthost.visibility", NULL},
    {"_calls", "agenthost.testing.calls", NULL},
    {"_handlers", "agenthost.testing.handlers", NULL},
};

enum { LAZY = sizeof lazy / sizeof *lazy };

/* Raises for a foreign name of a function, with our name: the script would otherwise only get the
 * error that it calls a nil. */
static int refuse_word(lua_State *L, const char *key)
{
    const char *meant = ah_word_function(ah_slice_of(key));

    return meant ? ah_lua_raise(L, AH_USAGE, "agenthost has no '%s'; here it is %s", key, meant)
                 : 0;
}

static int lazy_field(lua_State *L)
{
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    size_t i = 0;

    while (i < LAZY && strcmp(key, lazy[i].key) != 0)
        i++;
    if (i == LAZY)
        return refuse_word(L, key);
    lua_pushcfunction(L, ah_lua_load_module_once);
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
    lua_pushcfunction(L, ah_lua_load_module);
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

/* pairs(ah) shows all functions for scripts. */
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

/* In this order: an opener may use functions that earlier ones have set. */
static void (*const openers[])(lua_State *L) = {
    ah_lua_open_value,     ah_lua_open_schema,  ah_lua_open_error,      ah_lua_open_log,
    ah_lua_open_task,      ah_lua_open_spawn,   ah_lua_open_channel,    ah_lua_open_type,
    ah_lua_open_session,   ah_lua_open_ctx,     ah_lua_open_tool,       ah_lua_open_section,
    ah_lua_open_prompt,    ah_lua_open_models,  ah_lua_open_adapter,    ah_lua_open_later,
    ah_lua_open_inject,    ah_lua_open_moment,  ah_lua_open_metrics,    ah_lua_open_search,
    ah_lua_open_registry,  ah_lua_open_budget,  ah_lua_open_gate,       ah_lua_open_events,
    ah_lua_open_agent,     ah_lua_open_front,   ah_lua_open_definition, ah_lua_open_handoff,
    ah_lua_open_load,      ah_lua_open_fork,    ah_lua_open_background, ah_lua_open_entity,
    ah_lua_open_discover,  ah_lua_open_http,    ah_lua_open_serve,      ah_lua_open_fs,
    ah_lua_open_resources, ah_lua_open_embed,   ah_lua_open_builtin,    ah_lua_open_reader,
    ah_lua_open_subjects,  ah_lua_open_file,    ah_lua_open_launch,     ah_lua_open_command,
    ah_lua_open_outside,   ah_lua_open_process, ah_lua_open_terminal,   ah_lua_open_image,
    ah_lua_open_bytes,     ah_lua_open_yaml,    ah_lua_open_changes,    ah_lua_open_store,
    ah_lua_open_named,     ah_lua_open_replay,  ah_lua_open_input,      ah_lua_open_tables,
    ah_lua_open_carry,
};

AH_API int luaopen_agenthost(lua_State *L)
{
    ah_lua_host(L, &ah_mem_libc, NULL)->own_tool = ah_lua_own_tool;
    ah_lua_keep_globals(L);
    lua_newtable(L); /* -- ah */
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++)
        openers[i](L);
    lua_pushcfunction(L, ah_lua_load_module_once); /* for modules that use other modules */
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
    lua_setfield(L, LUA_REGISTRYINDEX, AH_LUA_LIBRARY);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, load_testing);
    lua_setfield(L, -2, TESTING);
    lua_pop(L, 1);
    return 1;
}
