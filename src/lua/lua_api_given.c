/* Values that a program and its scripts pass to each other by name: tools that the program adds or
 * a script returns, agents and adapters that a script returns; ah.host_tool. All are in one Lua
 * table of the host, so the collector handles them as other values. Also ah_alias and
 * ah_defaults. */
#include "base/lent.h"
#include "base/near.h"
#include "lua/lua_adapter.h"
#include "lua/lua_api.h"
#include "lua/lua_error.h"
#include "lua/lua_defaults.h"
#include "lua/lua_models.h"
#include "lua/lua_open.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"

static const char *const kinds[] = {"tools", "agents", "models"};

enum { MAX_LIST = 64 << 20 };

void ah_given_open(lua_State *L, ah_embed *e)
{
    lua_createtable(L, 0, 3);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        lua_newtable(L);
        lua_setfield(L, -2, kinds[i]);
    }
    e->given = ah_lua_ref(L);
}

/* -- table of that kind */
static void push_kind(lua_State *L, const ah_embed *e, ah_given kind)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, e->given);
    lua_getfield(L, -1, kinds[kind]);
    lua_remove(L, -2);
}

void ah_given_push(lua_State *L, ah_embed *e, ah_given kind, const char *name)
{
    push_kind(L, e, kind);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* Raises if the table at `in` has another tool of that name. */
static void check_name(lua_State *L, int in, const ah_tool *t)
{
    if (lua_getfield(L, in, t->name->data) != LUA_TNIL && ah_lua_to_tool(L, -1) != t)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "there is another tool '%s'; remove it with ah_remove_tool first",
                     t->name->data);
    lua_pop(L, 1);
}

void ah_given_tool(lua_State *L, ah_embed *e, int idx)
{
    const ah_tool *t = ah_lua_to_tool(L, idx);

    lua_pushvalue(L, idx);
    push_kind(L, e, AH_GIVEN_TOOLS); /* -- tool tools */
    check_name(L, lua_gettop(L), t);
    lua_insert(L, -2);
    lua_setfield(L, -2, t->name->data);
    lua_pop(L, 1);
}

/* With key and value on top: puts the value into the table of its kind, at `fresh` + kind. */
static void sort_out(lua_State *L, int fresh)
{
    const ah_tool *t = ah_lua_to_tool(L, -1);
    bool named = lua_type(L, -2) == LUA_TSTRING;
    ah_given kind;

    if (t) {
        check_name(L, fresh + AH_GIVEN_TOOLS, t);
        lua_pushvalue(L, -1);
        lua_setfield(L, fresh + AH_GIVEN_TOOLS, t->name->data);
        return;
    }
    if (!named || (!ah_lua_to_agent(L, -1) && !ah_lua_is_adapter(L, -1)))
        return;
    kind = ah_lua_to_agent(L, -1) ? AH_GIVEN_AGENTS : AH_GIVEN_MODELS;
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, fresh + (int)kind);
}

/* Moves the entries of the table on top (popped) to the table of that kind. */
static void merge(lua_State *L, const ah_embed *e, ah_given kind)
{
    push_kind(L, e, kind); /* -- fresh all */
    lua_pushnil(L);
    while (lua_next(L, -3)) { /* -- fresh all k v */
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_pop(L, 2);
}

static void check_known(lua_State *L, const ah_embed *e, int fresh)
{
    push_kind(L, e, AH_GIVEN_TOOLS); /* -- all */
    lua_pushnil(L);
    while (lua_next(L, fresh + AH_GIVEN_TOOLS)) {
        check_name(L, lua_gettop(L) - 2, ah_lua_to_tool(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Keeps the agent at idx under the name AH_GIVEN_AGENT. */
static void take_agent(lua_State *L, const ah_embed *e, int idx)
{
    push_kind(L, e, AH_GIVEN_AGENTS);
    lua_pushvalue(L, idx);
    lua_setfield(L, -2, AH_GIVEN_AGENT);
    lua_pop(L, 1);
}

/* Checks everything first, then takes all of it. */
void ah_given_take(lua_State *L, ah_embed *e, int idx)
{
    int fresh;

    idx = lua_absindex(L, idx);
    luaL_checkstack(L, 12, "what a script returned");
    if (ah_lua_to_tool(L, idx)) {
        ah_given_tool(L, e, idx);
        return;
    }
    if (ah_lua_to_agent(L, idx)) {
        take_agent(L, e, idx);
        return;
    }
    if (!lua_istable(L, idx))
        return;
    fresh = lua_gettop(L) + 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        sort_out(L, fresh);
        lua_pop(L, 1);
    }
    check_known(L, e, fresh);
    for (int kind = AH_GIVEN_MODELS; kind >= AH_GIVEN_TOOLS; kind--)
        merge(L, e, (ah_given)kind);
}

int ah_given_no_tool(lua_State *L, ah_embed *e, const char *name)
{
    ah_near near = {.to = ah_slice_of(name)};

    push_kind(L, e, AH_GIVEN_TOOLS);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        ah_near_offer(&near, ah_text_slice(ah_lua_to_tool(L, -1)->name)); /* held by the table */
        lua_pop(L, 1);
    }
    if (near.best.p)
        return ah_lua_raise(L, AH_TOOL_NOT_FOUND, "there is no tool '%s' (did you mean '%.*s'?)",
                            name, AH_FMT(near.best));
    return ah_lua_raise(L, AH_TOOL_NOT_FOUND,
                        "there is no tool '%s': ah_add_tool adds one, a script may return some",
                        name);
}

/* -- for the program ----------------------------------------------------------------------- */

static int remove_tool(lua_State *L)
{
    const char *name = lua_touserdata(L, 1);
    ah_embed *e = ah_lua_of(L)->embed;

    push_kind(L, e, AH_GIVEN_TOOLS);
    if (lua_getfield(L, -1, name) == LUA_TNIL)
        return ah_given_no_tool(L, e, name);
    lua_pushnil(L);
    lua_setfield(L, -3, name);
    return 0;
}

AH_API ah_status ah_remove_tool(ah_host *host, const char *name)
{
    ah_embed *e = ah_embed_of(host);
    ah_status st = ah_embed_enter(e, "ah_remove_tool");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!name)
        return ah_embed_fail(e, (ah_err_set(&err, AH_USAGE, "ah_remove_tool: no name"), &err));
    return ah_embed_call(e, remove_tool, (void *)(uintptr_t)ah_lend_text(name));
}

/* Sets the host's JSON list of tool specifications, sorted by name; the keys of objects are
 * sorted. */
static int list_tools(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_buf *b = ah_lua_push_buf(L, MAX_LIST);
    ah_text *list = NULL;
    ah_err err;

    lua_newtable(L);
    push_kind(L, h->embed, AH_GIVEN_TOOLS); /* -- specs tools */
    lua_pushnil(L);
    while (lua_next(L, -2)) { /* -- specs tools name tool */
        ah_lua_push_json(L, ah_text_slice(ah_lua_to_tool(L, -1)->spec));
        lua_setfield(L, -5, lua_tostring(L, -3));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (ah_lua_to_json(L, -1, &h->mem, b, &err) != AH_OK ||
        ah_text_from_buf(b, "the list of tools", &list, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_text_set(&h->embed->tools, list);
    return 0;
}

AH_API const char *ah_tools(ah_host *host)
{
    ah_embed *e = ah_embed_of(host);

    return ah_embed_call(e, list_tools, NULL) == AH_OK ? e->tools->data : NULL;
}

/* -- names of models, defaults of runs --------------------------------------------------------- */

static ah_status take_json(ah_host *host, const char *what, lua_CFunction take, const char *json)
{
    ah_embed *e = ah_embed_of(host);
    ah_status st = ah_embed_enter(e, what);
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!json)
        return ah_embed_fail(e,
                             (ah_err_set(&err, AH_USAGE, "%s: json must not be NULL", what), &err));
    st = ah_embed_call(e, take, (void *)(uintptr_t)ah_lend_text(json));
    if (st != AH_OK && st != AH_NOMEM) /* scripts share the checks, with codes of their own */
        st = e->err.status = AH_USAGE;
    return st;
}

AH_API ah_status ah_alias(ah_host *host, const char *json)
{
    return take_json(host, "ah_alias", ah_lua_set_models, json);
}

AH_API ah_status ah_defaults(ah_host *host, const char *json)
{
    return take_json(host, "ah_defaults", ah_lua_set_defaults, json);
}

/* -- ah.host_tool ---------------------------------------------------------------------------- */

/* ah.host_tool(name): the tool that the program added under this name. */
static int host_tool(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    ah_embed *e = ah_lua_of(L)->embed;

    if (!e)
        return ah_lua_raise(
            L, AH_TOOL_NOT_FOUND,
            "ah.host_tool: there is no tool '%s', since no C program embeds this script", name);
    ah_given_push(L, e, AH_GIVEN_TOOLS, name);
    return lua_isnil(L, -1) ? ah_given_no_tool(L, e, name) : 1;
}

void ah_lua_open_embed(lua_State *L)
{
    lua_pushcfunction(L, host_tool);
    lua_setfield(L, -2, "host_tool");
}
