/* ah.registry: an ordered list of tools, each declared in brief until it is picked. Conversations
 * have registries of their own, made from this list; changes here are applied to the agents that
 * use it, as by agent:add_tools. A model's pick belongs to its conversation alone. */
#include "lua/lua_registry.h"

#include "base/near.h"
#include "lua/lua_book.h"
#include "lua/lua_direct.h"
#include "lua/lua_fields.h"
#include "lua/lua_group.h"
#include "lua/lua_modules.h"
#include "lua/lua_tool.h"
#include "lua/lua_tool_fields.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

enum { MAX_ARGS = 32 << 20 };

static ah_book *check(lua_State *L)
{
    return luaL_checkudata(L, 1, AH_BOOK);
}

/* Returns the tools as the current code sees them. */
static const ah_registry *tools_of(lua_State *L)
{
    return ah_book_seen(L, check(L));
}

static ah_slice check_name(lua_State *L, int idx)
{
    ah_slice name;

    name.p = luaL_checklstring(L, idx, &name.n);
    return name;
}

/* Returns the tool as the script gave it, not the brief one. */
static ah_tool *given(ah_tool *t)
{
    return t && t->full ? t->full : t;
}

/* Sets *err to the error that there is no such tool, with the nearest name. */
static void no_tool(const ah_registry *r, ah_slice name, ah_err *err)
{
    ah_near near = {.to = name};
    const ah_tool *t;

    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;)
        ah_near_offer(&near, ah_text_slice(t->name));
    ah_err_set(err, AH_TOOL_NOT_FOUND, "the registry has no tool '%.*s'%s%.*s%s",
               (int)(name.n > 64 ? ah_utf8_cut(name.p, 64) : name.n), name.p,
               near.best.p ? "; did you mean '" : "", AH_FMT(near.best), near.best.p ? "'?" : "");
    ah_registry_detail(r, name, err);
}

/* -- registering ------------------------------------------------------------------------------- */

/* Adds the tools, groups and names of groups at idx. */
static void put_all(lua_State *L, int idx, const char *what, bool replace)
{
    ah_lua_push_flat_tools(L, idx, what);
    for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; i++) {
        lua_geti(L, -1, i);
        ah_book_put(L, given(ah_lua_to_tool(L, -1)), replace);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static int itself(lua_State *L)
{
    lua_settop(L, 1);
    return 1;
}

static int registry_register(lua_State *L)
{
    check(L);
    if (!ah_lua_to_tool(L, 2))
        return ah_lua_raise(L, AH_PROMPT_VALIDATION,
                            "registry:register: expected a tool made by ah.tool, found %s",
                            luaL_typename(L, 2));
    ah_book_put(L, given(ah_lua_to_tool(L, 2)), false);
    return itself(L);
}

static int registry_register_all(lua_State *L)
{
    check(L);
    put_all(L, 2, "registry:register_all", false);
    return itself(L);
}

/* registry:register_all_builtin(which): registers the tools of ah.builtin(which). If one of them
 * cannot be made on this machine, registers none and returns nil and the error. */
static int registry_register_all_builtin(lua_State *L)
{
    check(L);
    lua_settop(L, 2);
    ah_lua_push_library(L); /* -- registry which ah */
    lua_getfield(L, 3, "builtin");
    lua_pushvalue(L, 2);
    lua_call(L, 1, 2); /* -- registry which ah tools err */
    if (lua_isnil(L, 4))
        return 2;
    put_all(L, 4, "registry:register_all_builtin", false);
    return itself(L);
}

static int registry_replace(lua_State *L)
{
    check(L);
    put_all(L, 2, "registry:replace", true);
    return itself(L);
}

/* registry:remove(name): true if the tool was there. */
static int registry_remove(lua_State *L)
{
    check(L);
    lua_pushboolean(L, ah_book_remove(L, check_name(L, 2)));
    return 1;
}

/* -- looking ----------------------------------------------------------------------------------- */

static int registry_has(lua_State *L)
{
    lua_pushboolean(L, ah_registry_find(tools_of(L), check_name(L, 2)) != NULL);
    return 1;
}

static int registry_get(lua_State *L)
{
    ah_tool *t = given(ah_registry_find(tools_of(L), check_name(L, 2)));

    if (t)
        ah_lua_push_tool(L, t);
    else
        lua_pushnil(L);
    return 1;
}

static int registry_names(lua_State *L)
{
    const ah_registry *r = tools_of(L);
    lua_Integer n = 0;
    const ah_tool *t;

    lua_createtable(L, (int)r->live, 0);
    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;) {
        lua_pushlstring(L, t->name->data, t->name->len);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

static int registry_tools_for_llm(lua_State *L)
{
    const ah_registry *r = tools_of(L);
    lua_Integer n = 0;
    const ah_tool *t;

    lua_createtable(L, (int)r->live, 0);
    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;) {
        ah_lua_push_tool_field(L, t, "spec");
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

static int registry_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)tools_of(L)->live);
    return 1;
}

static int registry_tostring(lua_State *L)
{
    lua_pushfstring(L, "registry, %d tools", (int)tools_of(L)->live);
    return 1;
}

/* -- picks ------------------------------------------------------------------------------------- */

static void pick_one(lua_State *L, int idx)
{
    ah_slice name = check_name(L, idx);
    ah_err err;

    if (!ah_registry_find(tools_of(L), name)) {
        no_tool(tools_of(L), name, &err);
        ah_lua_raise_err(L, &err);
    }
    ah_book_pick(L, name);
}

/* registry:pick(name | { names }) */
static int registry_pick(lua_State *L)
{
    check(L);
    if (lua_type(L, 2) == LUA_TSTRING) {
        pick_one(L, 2);
        return itself(L);
    }
    for (lua_Integer i = 1, n = ah_lua_list_check(L, 2, "registry:pick"); i <= n; i++) {
        lua_geti(L, 2, i);
        pick_one(L, lua_gettop(L));
        lua_settop(L, 2);
    }
    return itself(L);
}

static int registry_clear_picked(lua_State *L)
{
    check(L);
    ah_book_clear_picked(L);
    return itself(L);
}

/* -- running a tool ---------------------------------------------------------------------------- */

/* { success, content, value, code } or nil, err */
static int take(lua_State *L, const ah_direct_reply *r)
{
    ah_err err;

    if (r->ended || !r->words) {
        ah_direct_error(r, &err);
        lua_pushnil(L);
        ah_lua_push_error(L, &err);
        return 2;
    }
    lua_createtable(L, 0, 4);
    lua_pushboolean(L, r->status == AH_OK);
    lua_setfield(L, -2, "success");
    lua_pushlstring(L, r->words->data, r->words->len);
    lua_setfield(L, -2, "content");
    if (r->status != AH_OK) {
        lua_pushstring(L, ah_status_name(r->status));
        lua_setfield(L, -2, "code");
        return 1;
    }
    if (r->live->vt)
        ah_lua_push_live(L, r->live);
    else if (r->value)
        ah_lua_push_json(L, ah_text_slice(r->value));
    lua_setfield(L, -2, "value");
    return 1;
}

/* Pushes the arguments at idx (a table, JSON text, or nil) as JSON text. */
static ah_slice push_args(lua_State *L, int idx, ah_lua *h)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_ARGS);
    ah_err err;

    if (lua_isnoneornil(L, idx)) {
        ah_buf_str(b, "{}");
    } else if (lua_type(L, idx) == LUA_TSTRING) {
        ah_buf_put(b, check_name(L, idx));
    } else if (ah_lua_to_json(L, idx, &h->mem, b, &err) != AH_OK) {
        ah_lua_raise(L, AH_USAGE, "registry:execute: arguments: %s", err.message);
    }
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    if (ah_json_check_err(&h->mem, ah_buf_slice(b), "arguments", &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "registry:execute: %s", err.message);
    return ah_buf_slice(b);
}

static const ah_option call_rows[] = {
    {.name = "id", .kinds = AH_OPT_ANY, .doc = "as events have it; passed over"},
    {.name = "name", .kinds = AH_OPT_STRING, .needed = true},
    {.name = "arguments", .kinds = AH_OPT_ANY, .type = "table|string"},
    {.name = "parent_call", .kinds = AH_OPT_ANY, .doc = "as events have it; passed over"},
    {0},
};
const ah_subject ah_subject_call = {.what = "registry:execute",
                                    .type = "ah.Called",
                                    .doc = "a call as messages and events have it",
                                    .row = call_rows};

/* (registry, call) -- registry name arguments: the call is as in messages and events. */
static void read_call(lua_State *L)
{
    lua_settop(L, 2);
    ah_options_read(L, 2, &ah_subject_call, NULL);
    lua_getfield(L, 2, "name");
    lua_getfield(L, 2, "arguments");
    lua_remove(L, 2);
}

/* registry:execute(name, arguments), or with a call { name, arguments }: the result of the call, or
 * nil and an error. */
static int registry_execute(lua_State *L)
{
    ah_lua *h = check(L)->lua;
    ah_slice name, args;
    ah_tool *tool;
    ah_err err;

    if (lua_istable(L, 2))
        read_call(L);
    name = check_name(L, 2);
    tool = given(ah_registry_find(tools_of(L), name));
    lua_settop(L, 3);
    if (!tool) {
        no_tool(tools_of(L), name, &err);
        lua_pushnil(L);
        ah_lua_push_error(L, &err);
        return 2;
    }
    args = push_args(L, 3, h);
    return ah_lua_direct(L, tool, args, take);
}

/* -- for agents -------------------------------------------------------------------------------- */

static ah_change *find_change(ah_changes *c, const ah_tool *t)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->item[i].tool == t)
            return &c->item[i];
    return NULL;
}

static void add_tools(lua_State *L, const ah_registry *r, ah_changes *c)
{
    ah_err err;

    for (size_t i = 0; i < r->n; i++) {
        ah_tool *t = given(r->slot[i].tool);
        ah_change *there = find_change(c, t);

        if (!t)
            continue;
        if (!there && ah_changes_add(c, t, NULL, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
        there = there ? there : &c->item[c->n - 1];
        there->full = r->slot[i].brief != NULL;
    }
}

void ah_lua_use_registry(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    if (!lua_isnil(L, -1)) {
        lua_getiuservalue(L, -1, AH_BOOK_AGENTS);
        lua_pushvalue(L, idx);
        lua_pushboolean(L, true);
        lua_rawset(L, -3);
        lua_pop(L, 1);
    }
    lua_setiuservalue(L, idx, AH_AGENT_REGISTRY);
}

void ah_lua_read_registry(lua_State *L, int agent, ah_changes *c)
{
    const ah_book *b;

    if (lua_getfield(L, 1, "registry") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (!(b = luaL_testudata(L, -1, AH_BOOK)))
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: field 'registry' must be made by ah.registry, found a %s",
                     luaL_typename(L, -1));
    add_tools(L, ah_book_seen(L, b), c);
    ah_lua_use_registry(L, agent);
}

/* -- ah.registry ------------------------------------------------------------------------------- */

/* ah.registry { tools } or ah.registry() */
static int new_registry(lua_State *L)
{
    lua_settop(L, 1);
    if (!lua_isnil(L, 1))
        luaL_checktype(L, 1, LUA_TTABLE);
    ah_book_push(L);
    lua_insert(L, 1); /* -- registry tools */
    if (!lua_isnil(L, 2))
        put_all(L, 2, "ah.registry", false);
    return itself(L);
}

static int registry_gc(lua_State *L)
{
    ah_book_clear(check(L));
    return ah_lua_retire(L);
}

void ah_lua_open_registry(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", registry_gc},
                                    {"__len", registry_len},
                                    {"__tostring", registry_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"register", registry_register},
                                       {"register_all", registry_register_all},
                                       {"register_all_builtin", registry_register_all_builtin},
                                       {"replace", registry_replace},
                                       {"remove", registry_remove},
                                       {"has", registry_has},
                                       {"get", registry_get},
                                       {"names", registry_names},
                                       {"execute", registry_execute},
                                       {"tools_for_llm", registry_tools_for_llm},
                                       {"pick", registry_pick},
                                       {"clear_picked", registry_clear_picked},
                                       {NULL, NULL}};

    ah_lua_open_group(L);
    luaL_newmetatable(L, AH_BOOK);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "registry");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_registry);
    lua_setfield(L, -2, "registry");
}
