/* The strategy that ah.search gives is a table like any other: `tools` holds search_tools, `later`
 * what may be found, so that a loaded conversation gets its handlers back, and `search` the set,
 * which the run looks into by itself. Nothing is searched here. */
#include "lua/lua_search.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_inject.h"
#include "lua/lua_tool.h"

static const char SET[] = "agenthost.search";

static int set_gc(lua_State *L)
{
    ah_search **box = luaL_checkudata(L, 1, SET);

    ah_search_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
}

static int set_len(lua_State *L)
{
    ah_search **box = luaL_checkudata(L, 1, SET);

    lua_pushinteger(L, *box ? (lua_Integer)ah_search_count(*box) : 0);
    return 1;
}

ah_search *ah_lua_search_of(lua_State *L, int idx)
{
    ah_search **box, *s = NULL;

    if (lua_istable(L, idx)) {
        lua_getfield(L, idx, "search");
        box = luaL_testudata(L, -1, SET);
        s = box ? *box : NULL;
        lua_pop(L, 1);
    }
    return s;
}

/* One of two words, or NULL where the field is absent. */
static const char *read_word(lua_State *L, const char *field, const char *one, const char *other)
{
    ah_slice word;

    if (!ah_field_string(L, 1, "ah.search", field, &word))
        return NULL;
    if (!ah_slice_is(word, one) && !ah_slice_is(word, other))
        ah_lua_raise(L, AH_USAGE, "ah.search: field '%s' must be \"%s\" or \"%s\", found \"%.*s\"",
                     field, one, other, AH_FMT(word));
    return ah_slice_is(word, one) ? one : other;
}

static void read_rules(lua_State *L, ah_search_rules *rules)
{
    const char *method;

    ah_field_count(L, 1, "ah.search", "max", 1, &rules->max);
    if (rules->max > AH_SEARCH_MOST)
        ah_lua_raise(L, AH_USAGE, "ah.search: field 'max' must be at most %d, found %d", AH_SEARCH_MOST,
                     rules->max);
    rules->who = read_word(L, "by", "provider", "here");
    method = read_word(L, "method", "regex", "bm25");
    rules->method = method && strcmp(method, "regex") == 0 ? method : NULL; /* bm25 is the usual one */
}

/* Pushes the set, whose tools are those of the list on top. */
static ah_search *push_set(lua_State *L, const ah_search_rules *rules)
{
    ah_search **box;
    ah_tool **tools;
    size_t n;
    ah_err err;

    tools = ah_lua_tool_list(L, "ah.search: tools", &n); /* -- list array */
    if (n == 0 || n > AH_SEARCH_TOOLS_MOST)
        ah_lua_raise(L, AH_USAGE, "ah.search: field 'tools' must have 1 to %d tools, found %d",
                     AH_SEARCH_TOOLS_MOST, (int)n);
    box = lua_newuserdatauv(L, sizeof *box, 0); /* -- list array set */
    *box = NULL;
    luaL_setmetatable(L, SET);
    if (ah_search_new(&ah_lua_of(L)->mem, rules, tools, n, box, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return *box;
}

/* The changes hold it where pushing it raises. */
static void push_search_tool(lua_State *L, ah_search *s)
{
    ah_changes *held = ah_lua_push_changes(L, &ah_lua_of(L)->mem);
    ah_tool *t = NULL;
    ah_err err;
    ah_status st = ah_search_tool(s, &t, &err);

    if (st == AH_OK)
        st = ah_changes_add(held, t, NULL, &err);
    ah_tool_unref(t);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_lua_push_tool(L, held->item[0].tool);
    lua_remove(L, -2);
}

/* ah.search { tools, max, by, method, name }: a strategy. */
static int search(lua_State *L)
{
    static const char *const known[] = {"tools", "max", "by", "method", "name", NULL};
    ah_search_rules rules = {0};
    ah_slice name = AH_LIT("search");
    ah_search *s;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    ah_fields_check(L, 1, "ah.search", known, false);
    ah_field_string(L, 1, "ah.search", "name", &name);
    read_rules(L, &rules);
    if (lua_getfield(L, 1, "tools") == LUA_TNIL) /* -- t list */
        ah_lua_raise(L, AH_USAGE, "ah.search: field 'tools' is missing: which tools are to be found");
    lua_createtable(L, 0, 4);
    lua_insert(L, 2); /* -- t strategy list */
    s = push_set(L, &rules);
    lua_setfield(L, 2, "search");
    lua_settop(L, 2);
    lua_getfield(L, 1, "tools");
    lua_setfield(L, 2, "later");
    lua_createtable(L, 1, 0);
    push_search_tool(L, s);
    lua_rawseti(L, -2, 1);
    lua_setfield(L, 2, "tools");
    lua_pushlstring(L, name.p, name.n);
    lua_setfield(L, 2, "name");
    return 1;
}

void ah_lua_open_search(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", set_gc}, {"__len", set_len}, {NULL, NULL}};

    luaL_newmetatable(L, SET);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, search);
    lua_setfield(L, -2, "search");
}
