/* The strategy that ah.search returns is an ordinary table: `tools` has search_tools, `later` the
 * tools to be found, so that a loaded conversation gets their handlers back, and `search` the set,
 * which the run itself searches. */
#include "lua/lua_search.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_inject.h"
#include "lua/lua_tool.h"
#include "lua/lua_options.h"

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

/* Pushes the set with the tools of the list on top. */
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

/* The changes keep the tool if pushing it raises. */
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

typedef struct search_fields {
    ah_search_rules rules;
    ah_slice name;
    int by, method; /* number of the word; -1: not given */
} search_fields;

static const ah_option search_rows[] = {
    {.name = "tools",
     .kinds = AH_OPT_LIST,
     .type = "ah.ToolList",
     .needed = true,
     .doc = "tools and [groups](registry.md#groups): 1 to 20,000 tools of different names"},
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = AH_SEARCH_MOST,
     .otherwise = "5",
     .to = AH_TO_INT(search_fields, rules.max),
     .doc = "tools that one call of `search_tools` returns"},
    {.name = "by",
     .kinds = AH_OPT_STRING,
     .words = "provider here",
     .otherwise = "`provider` if the model supports it",
     .to = AH_TO_WORD(search_fields, by),
     .doc = "where the search runs; `here` is `search_tools`"},
    {.name = "method",
     .kinds = AH_OPT_STRING,
     .words = "regex bm25",
     .otherwise = "`bm25`",
     .to = AH_TO_WORD(search_fields, method),
     .doc = "the provider's way to search, if it has two (`anthropic`)"},
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .otherwise = "`search`",
     .to = AH_TO_HELD(search_fields, name),
     .doc = "the name of [the strategy](strategies.md#writing-one)"},
    {0},
};
const ah_subject ah_subject_search = {
    .what = "ah.search", .type = "ah.SearchConfig", .row = search_rows};

/* ah.search { tools, max, by, method, name }: a strategy. */
static int search(lua_State *L)
{
    search_fields f = {.name = AH_LIT("search"), .by = -1, .method = -1};
    ah_search *s;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_search, &f);
    f.rules.who = f.by < 0 ? NULL : f.by == 0 ? "provider" : "here";
    f.rules.method = f.method == 0 ? "regex" : NULL; /* the default is bm25 */
    lua_getfield(L, 1, "tools");                     /* -- t list */
    lua_createtable(L, 0, 4);
    lua_insert(L, 2); /* -- t strategy list */
    s = push_set(L, &f.rules);
    lua_setfield(L, 2, "search");
    lua_settop(L, 2);
    lua_getfield(L, 1, "tools");
    lua_setfield(L, 2, "later");
    lua_createtable(L, 1, 0);
    push_search_tool(L, s);
    lua_rawseti(L, -2, 1);
    lua_setfield(L, 2, "tools");
    lua_pushlstring(L, f.name.p, f.name.n);
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
