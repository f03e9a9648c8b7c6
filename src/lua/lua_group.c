/* A group is a table { name, tools } with a metatable of its own; the registry has the latest of
 * each name. A group is only a way to write a list, so the tools of a run are not decided here. */
#include "lua/lua_group.h"

#include "base/near.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_tool.h"
#include "lua/lua_options.h"

static const char GROUP[] = "agenthost.tool_group";
static const char GROUPS[] = "agenthost.tool_groups"; /* registry: groups by name */

enum { MAX_GROUP_NAME = 64, MAX_LISTS = 16 }; /* MAX_LISTS: lists within each other */

static bool is_group(lua_State *L, int idx)
{
    bool is;

    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return false;
    luaL_getmetatable(L, GROUP);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

/* True for a table that looks like a declaration to which ah.tool was not applied. */
static bool is_declaration(lua_State *L, int idx)
{
    bool is;

    lua_pushliteral(L, "name");
    is = lua_rawget(L, idx) == LUA_TSTRING;
    lua_pop(L, 1);
    return is;
}

/* Returns the nearest group name, borrowed from the registry's table. */
static ah_slice nearest(lua_State *L, ah_slice name)
{
    ah_near near = {.to = name};

    luaL_getsubtable(L, LUA_REGISTRYINDEX, GROUPS); /* -- groups */
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        ah_slice there;

        there.p = lua_tolstring(L, -2, &there.n);
        ah_near_offer(&near, there);
    }
    lua_pop(L, 1);
    return near.best;
}

/* Returns what ends the error of a name. As the last of a list, `require` adds its second value,
 * too: the path of the file. */
static const char *advice(ah_slice name, ah_slice near)
{
    if (near.p)
        return "'?)";
    return ah_slice_ends(name, ".lua") ? "; require also returns a path: write (require \"...\")"
                                       : "";
}

static void refuse(lua_State *L, const char *what, lua_Integer at, int idx)
{
    ah_slice name = {NULL, 0}, near;

    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "%s[%d] must be made by ah.tool, found %s", what,
                     (int)at, luaL_typename(L, idx));
    name.p = lua_tolstring(L, idx, &name.n);
    near = nearest(L, name);
    ah_lua_raise(L, AH_PROMPT_VALIDATION,
                 "%s[%d] must be made by ah.tool, found string '%.*s', and there is no tool group "
                 "of that name%s%.*s%s",
                 what, (int)at, (int)(name.n > MAX_GROUP_NAME ? MAX_GROUP_NAME : name.n), name.p,
                 near.p ? " (did you mean '" : "", AH_FMT(near), advice(name, near));
}

/* Appends the tool at idx to the list, unless the list already has it and a group brought either of
 * the two: a script that names a tool twice itself must get the error. The table behind the list
 * has the tools in it: true if by a group. */
static void append(lua_State *L, int list, int idx, bool by_group)
{
    const ah_tool *t = ah_lua_to_tool(L, idx);
    bool there = lua_rawgetp(L, list + 1, t) != LUA_TNIL;

    if (!there || !(by_group || lua_toboolean(L, -1))) {
        lua_pushvalue(L, idx);
        lua_rawseti(L, list, luaL_len(L, list) + 1);
    }
    lua_pop(L, 1);
    lua_pushboolean(L, by_group);
    lua_rawsetp(L, list + 1, t);
}

/* A group has its own list, but a script may have changed it. */
static void append_group(lua_State *L, int list, int group)
{
    lua_getfield(L, group, "tools");
    for (lua_Integer i = 1, n = ah_lua_list_check(L, -1, "a tool group: tools"); i <= n; i++) {
        lua_geti(L, -1, i);
        if (!ah_lua_to_tool(L, -1))
            refuse(L, "a tool group: tools", i, -1);
        append(L, list, lua_gettop(L), true);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void append_list(lua_State *L, int list, int idx, const char *what, int depth);

/* Appends the element on top of the stack. */
static void append_element(lua_State *L, int list, const char *what, lua_Integer at, int depth)
{
    int element = lua_gettop(L);

    if (ah_lua_to_tool(L, element)) {
        append(L, list, element, false);
        return;
    }
    if (lua_istable(L, element) && !is_group(L, element) && !is_declaration(L, element)) {
        lua_pushfstring(L, "%s[%I]", what, (LUAI_UACINT)at);
        append_list(L, list, element, lua_tostring(L, -1), depth + 1);
        lua_settop(L, element);
        return;
    }
    if (lua_type(L, element) == LUA_TSTRING) {
        luaL_getsubtable(L, LUA_REGISTRYINDEX, GROUPS);
        lua_pushvalue(L, element);
        lua_rawget(L, -2);
    }
    if (!is_group(L, -1))
        refuse(L, what, at, element);
    append_group(L, list, lua_gettop(L));
    lua_settop(L, element);
}

/* Appends the list at idx with the lists in it, since ah.builtin and modules of tools return
 * lists. */
static void append_list(lua_State *L, int list, int idx, const char *what, int depth)
{
    luaL_checkstack(L, 16, "tools");
    if (depth > MAX_LISTS)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "%.100s...: more than %d nested lists", what,
                     MAX_LISTS);
    for (lua_Integer i = 1, n = ah_lua_list_check(L, idx, what); i <= n; i++) {
        lua_geti(L, idx, i);
        append_element(L, list, what, i, depth);
        lua_pop(L, 1);
    }
}

void ah_lua_push_flat_tools(lua_State *L, int idx, const char *what)
{
    int list;

    idx = lua_absindex(L, idx);
    luaL_checkstack(L, 16, "tools");
    lua_newtable(L);
    list = lua_gettop(L);
    lua_newtable(L); /* -- list seen what */
    lua_pushfstring(L, "%s: tools", what);
    if (lua_istable(L, idx) && !is_group(L, idx)) {
        append_list(L, list, idx, lua_tostring(L, -1), 1);
    } else {
        lua_pushvalue(L, idx);
        append_element(L, list, lua_tostring(L, -2), 1, 1);
    }
    lua_settop(L, list);
}

/* -- ah.tool_group ------------------------------------------------------------------------ */

static void check_name(lua_State *L, ah_slice name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    bool ok = name.n >= 1 && name.n <= MAX_GROUP_NAME;

    for (size_t i = 0; ok && i < name.n; i++)
        ok = name.p[i] && strchr(allowed, name.p[i]);
    if (!ok)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah.tool_group: name '%.*s' must be 1 to 64 of a-z, 0-9, _ and -",
                     AH_FMT(name));
}

typedef struct group_fields {
    ah_slice name;
} group_fields;

static const ah_option tool_group_rows[] = {
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .to = AH_TO_HELD(group_fields, name),
     .doc = "1 to 64 of `a-z`, `0-9`, `_` and `-`"},
    {.name = "tools",
     .kinds = AH_OPT_LIST,
     .type = "ah.ToolList",
     .needed = true,
     .doc = "tools, other groups, and names of groups"},
    {0},
};
const ah_subject ah_subject_tool_group = {.declares = true,
                                          .what = "ah.tool_group",
                                          .type = "ah.ToolGroupConfig",
                                          .row = tool_group_rows};

/* ah.tool_group { name, tools }: raises prompt_validation at the script's line. */
static int new_group(lua_State *L)
{
    group_fields f = {0};

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_tool_group, &f);
    check_name(L, f.name);
    lua_getfield(L, 1, "tools"); /* -- t tools */
    lua_createtable(L, 0, 2);
    lua_getfield(L, 1, "name");
    lua_setfield(L, -2, "name");
    ah_lua_push_flat_tools(L, 2, "ah.tool_group");
    lua_setfield(L, -2, "tools");
    luaL_setmetatable(L, GROUP); /* -- t tools group */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, GROUPS);
    lua_pushvalue(L, 3);
    lua_setfield(L, -2, f.name.p);
    lua_settop(L, 3);
    return 1;
}

static int group_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "name");
    lua_getfield(L, 1, "tools");
    lua_pushfstring(L, "tool group %s, %d tools", luaL_optstring(L, -2, "?"),
                    lua_istable(L, -1) ? (int)luaL_len(L, -1) : 0);
    return 1;
}

void ah_lua_open_group(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__tostring", group_tostring}, {NULL, NULL}};

    luaL_newmetatable(L, GROUP);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, new_group);
    lua_setfield(L, -2, "tool_group");
}
