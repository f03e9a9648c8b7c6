/* agent:open: reads the kept fields of an agent again for each conversation, by the code of
 * ah.agent. So each conversation gets its own copy of a value that is a table of the script (a
 * budget), and all share values that are objects (ah.budget, a registry, ah.scripted). */
#include "lua/lua_definition.h"

#include "lua/lua_agent.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_modules.h"
#include "lua/lua_session.h"
#include "lua/lua_setup.h"
#include "lua/lua_toolset.h"
#include "lua/lua_options.h"

enum { MAX_DEPTH = 64 };

/* Fields that are copied completely. Of other fields only the list is copied, and its items are
 * shared: a policy is called as a method of its table. */
static const char *const data[] = {"tools", "messages",      "options",  "output",   "budget",
                                   "http",  "loop_detector", "discover", "fallback", NULL};

static bool is_data(lua_State *L, int key)
{
    bool is = false;

    for (const char *const *d = data; *d && !is; d++)
        is = lua_type(L, key) == LUA_TSTRING && strcmp(lua_tostring(L, key), *d) == 0;
    return is;
}

/* Replaces a plain table on top by a copy of that many levels. */
static void copy_plain(lua_State *L, int levels)
{
    if (!lua_istable(L, -1) || levels <= 0)
        return;
    if (lua_getmetatable(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    luaL_checkstack(L, 6, "the fields of an agent");
    lua_newtable(L); /* -- t copy */
    for (lua_pushnil(L); lua_next(L, -3);) {
        copy_plain(L, levels - 1);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_remove(L, -2);
}

/* Pushes a copy of the fields at idx. */
static void push_fields(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, idx);) { /* -- copy key value */
        copy_plain(L, is_data(L, -2) ? MAX_DEPTH : 1);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

/* Replaces the session of the table on top by a copy of its present state. */
static void copy_session(lua_State *L)
{
    if (lua_getfield(L, -1, "session") != LUA_TNIL) {
        ah_lua_push_session_copy(L, -1);
        lua_setfield(L, -3, "session");
    }
    lua_pop(L, 1);
}

void ah_lua_keep_definition(lua_State *L)
{
    push_fields(L, 1);
    copy_session(L);
    lua_setiuservalue(L, -2, AH_AGENT_DEFINITION);
}

/* ah.agent { ... }: the agent, or nil and an error. */
int ah_lua_agent_open(lua_State *L)
{
    lua_settop(L, 1);
    ah_lua_attach_toolsets(L);
    if (!ah_lua_new_agent(L, "ah.agent", false))
        return 2;
    ah_lua_keep_definition(L);
    if (luaL_len(L, 1) > (lua_Integer)((ah_lua_agent *)lua_touserdata(L, 2))->prompt.n_sections)
        return ah_lua_raise(L, AH_USAGE, "ah.agent: the text goes to agent:run(text)");
    return 1;
}

/* -- agent:open -------------------------------------------------------------------------------- */

/* Adds the resources of the table `given` to those of the table on top of the stack. A resource of
 * the same name is replaced. */
static void put_resources(lua_State *L, int given)
{
    if (lua_getfield(L, given, "resources") == LUA_TTABLE) {
        if (lua_getfield(L, -2, "resources") != LUA_TTABLE) {
            lua_pop(L, 1);
            lua_newtable(L);
        }
        for (lua_pushnil(L); lua_next(L, -3);) { /* -- fields given all key value */
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
        lua_replace(L, -2);
        lua_setfield(L, -2, "resources");
        return;
    }
    if (!lua_isnil(L, -1))
        ah_lua_raise(L, AH_USAGE,
                     "agent:open: field 'resources' must be a table, { ... }, found a %s",
                     luaL_typename(L, -1));
    lua_pop(L, 1);
}

/* Replaces `id` and `store` of the fields on top by those of the table at 2. The definition's store
 * is only for conversations that are named. */
static void put_stream(lua_State *L)
{
    bool named = lua_getfield(L, 2, "id") != LUA_TNIL;

    lua_setfield(L, -2, "id");
    if (lua_getfield(L, 2, "store") != LUA_TNIL || !named)
        lua_setfield(L, -2, "store");
    else
        lua_pop(L, 1);
}

/* Appends the items of the list at `from` to the list on top. */
static void append_items(lua_State *L, int from)
{
    lua_Integer n = lua_isnil(L, from) ? 0 : luaL_len(L, from);
    lua_Integer to = luaL_len(L, -1);

    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, from, i);
        lua_seti(L, -2, ++to);
    }
}

/* Puts the policies of the table at 2 before those of the fields on top. */
static void put_policies(lua_State *L)
{
    int top = lua_gettop(L);

    if (lua_getfield(L, 2, "policies") != LUA_TNIL) {
        lua_getfield(L, top, "policies");
        lua_newtable(L); /* -- fields given own all */
        append_items(L, top + 1);
        append_items(L, top + 2);
        lua_setfield(L, top, "policies");
    }
    lua_settop(L, top);
}

/* -- fields: those of the agent at 1, overridden by those at 2 */
static void push_merged(lua_State *L)
{
    static const char *const taken[] = {"params", "session", "messages", "output", NULL};

    lua_getiuservalue(L, 1, AH_AGENT_DEFINITION);
    push_fields(L, -1);
    copy_session(L);
    put_stream(L);
    for (const char *const *f = taken; *f; f++)
        if (lua_getfield(L, 2, *f) != LUA_TNIL)
            lua_setfield(L, -2, *f);
        else
            lua_pop(L, 1);
    put_resources(L, 2);
    put_policies(L);
    lua_remove(L, -2);
}

static const ah_option open_rows[] = {
    {.name = "id", .kinds = AH_OPT_ANY, .type = "string", .doc = "1 to 200 bytes"},
    {.name = "store",
     .kinds = AH_OPT_ANY,
     .otherwise = "the definition's, if `id` is given",
     .is = "string, store, table or false",
     .type = "string|ah.Store|ah.StoreConfig|false",
     .doc = "the [store](stores.md) that keeps the conversation; false: none"},
    {.name = "params",
     .kinds = AH_OPT_ANY,
     .type = "table<string, any>",
     .doc = "in place of the definition's"},
    {.name = "session",
     .kinds = AH_OPT_OBJECT,
     .type = "ah.Session",
     .doc = "in place of one of its own"},
    {.name = "resources",
     .kinds = AH_OPT_ANY,
     .type = "table<string|ah.Type, any>",
     .doc = "beside the definition's"},
    {.name = "messages",
     .kinds = AH_OPT_LIST,
     .type = "ah.Message[]",
     .doc = "in place of the definition's"},
    {.name = "output",
     .kinds = AH_OPT_ANY,
     .is = "table, JSON text or schema",
     .type = "table|string|ah.Schema",
     .doc = "JSON Schema of the answers, in place of the definition's"},
    {.name = "policies",
     .kinds = AH_OPT_LIST,
     .is = "list of functions or tables",
     .type = "ah.Policy[]",
     .doc = "before the definition's"},
    {0},
};
const ah_subject ah_subject_open = {.what = "agent:open",
                                    .type = "ah.Open",
                                    .doc = "another conversation of an agent",
                                    .row = open_rows};

static void check_given(lua_State *L)
{
    if (lua_isnoneornil(L, 2)) {
        lua_settop(L, 1);
        lua_newtable(L);
    }
    lua_settop(L, 2);
    ah_options_read(L, 2, &ah_subject_open, NULL);
}

int ah_lua_open_conversation(lua_State *L)
{
    ah_lua_check_agent(L);
    check_given(L);
    push_merged(L);
    lua_insert(L, 1); /* -- fields agent given */
    if (!ah_lua_new_agent(L, "agent:open", false))
        return 2;
    lua_getiuservalue(L, 2, AH_AGENT_DEFINITION);
    lua_setiuservalue(L, 4, AH_AGENT_DEFINITION);
    push_fields(L, 3);
    lua_setiuservalue(L, 4, AH_AGENT_GIVEN);
    return 1;
}

void ah_lua_push_given(lua_State *L)
{
    if (lua_getiuservalue(L, 1, AH_AGENT_GIVEN) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        return;
    }
    push_fields(L, -1);
    copy_session(L);
    lua_remove(L, -2);
}

int ah_lua_own_fields(lua_State *L)
{
    ah_lua_push_given(L);
    lua_insert(L, 2);
    push_merged(L); /* -- agent given store fields */
    lua_pushvalue(L, 3);
    lua_setfield(L, 4, "store");
    lua_pushnil(L); /* the agent has its id */
    lua_setfield(L, 4, "id");
    if (lua_getfield(L, 4, "session") != LUA_TNIL) {
        lua_getiuservalue(L, 1, AH_AGENT_SESSION);
        lua_setfield(L, 4, "session");
    }
    lua_getiuservalue(L, 1, AH_AGENT_PARAMS);
    lua_setfield(L, 4, "params");
    lua_settop(L, 4);
    return 1;
}

int ah_lua_carried_fields(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    ah_lua_setup_push_id(L, a);
    ah_lua_push_given(L);
    lua_replace(L, 1);
    lua_pushvalue(L, 2);
    lua_insert(L, 1);
    lua_remove(L, 3); /* -- definition given store id */
    push_merged(L);
    lua_insert(L, 3); /* -- definition given fields store id */
    lua_setfield(L, 3, "id");
    lua_setfield(L, 3, "store");
    return 1;
}

/* -- agents as tools --------------------------------------------------------------------------- */

/* agent:as_tool { ... }: a tool whose calls run the agent, made by lua/agenthost/agents. */
static int agent_as_tool(lua_State *L)
{
    const ah_lua_agent *a = ah_lua_check_agent(L);
    ah_err err;

    lua_settop(L, 2);
    if (a->name)
        lua_pushlstring(L, a->name->data, a->name->len);
    else
        lua_pushnil(L);
    if (ah_lua_module(L, "agenthost.agents.as_tool", &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_insert(L, 1);
    lua_call(L, 3, 1);
    return 1;
}

/* ah._kept(): the table of the conversations that tools of the present conversation keep; nil
 * outside of a run's calls. */
static int kept(lua_State *L)
{
    const ah_task *t = ah_lua_of(L)->running;

    if (!t || !t->job.of || !ah_lua_agent_of(t->job.of))
        return 0;
    ah_lua_push_run(L, t->job.of);
    lua_getiuservalue(L, -1, 1); /* -- run agent */
    if (lua_getiuservalue(L, -1, AH_AGENT_KEPT) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, -3, AH_AGENT_KEPT);
    }
    return 1;
}

void ah_lua_open_definition(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"open", ah_lua_open_conversation}, {"as_tool", agent_as_tool}, {NULL, NULL}};

    lua_pushcfunction(L, kept);
    lua_setfield(L, -2, "_kept");
    lua_pushcfunction(L, ah_lua_agent_open);
    lua_setfield(L, -2, "agent");
    ah_lua_agent_methods(L, methods);
}
