/* Defaults of runs: a table in the registry with fields of ah.run, which fill those that a script
 * leaves out. The rows say which fields are allowed (AH_IN_SETTINGS). */
#include "lua/lua_defaults.h"

#include <limits.h>
#include <string.h>

#include "host/host.h"
#include "lua/lua_error.h"
#include "lua/lua_options.h"
#include "lua/lua_state.h"
#include "lua/lua_value.h"

static const char DEFAULTS[] = "agenthost.defaults"; /* in the registry */

/* Fields that are tables. */
static const struct part {
    const char *name, *what;
    const ah_subject *subject;
} parts[] = {{"http", "defaults of runs: http", &ah_subject_http_limits},
             {"options", "defaults of runs: options", &ah_subject_options},
             {"budget", "defaults of runs: budget", &ah_subject_budget},
             {NULL, NULL, NULL}};

static const struct part whole = {NULL, "defaults of runs", &ah_subject_run};

static const ah_option provider_rows[] = {
    {.name = "max_in_flight",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = INT_MAX,
     .to = AH_TO_INT(ah_lane_limit, most),
     .where = AH_IN_SETTINGS},
    {0},
};
static const ah_subject provider_limits = {.what = "defaults of runs: providers",
                                           .row = provider_rows};

/* -- setting -------------------------------------------------------------------------------- */

/* Checks that the value on top is a table of allowed fields. */
static void check(lua_State *L, const struct part *p)
{
    const char *out;

    ah_options_read_as(L, -1, p->subject, p->what, NULL);
    if ((out = ah_options_out_of(L, -1, p->subject, AH_IN_SETTINGS)))
        ah_lua_raise(L, AH_USAGE, "%s: field '%s' can be given by a script only", p->what, out);
}

/* -- ... name limits: reads those of one provider */
static void read_provider(lua_State *L, ah_lane_limit *out)
{
    if (lua_type(L, -2) != LUA_TSTRING || !lua_istable(L, -1))
        ah_lua_raise(L, AH_USAGE,
                     "%s: expected objects with max_in_flight by the provider's name, found a %s",
                     provider_limits.what, luaL_typename(L, -1));
    ah_options_read(L, -1, &provider_limits, out);
    out->provider.p = lua_tolstring(L, -2, &out->provider.n);
}

/* Removes `providers` from the defaults at 1, and pushes it (its names are borrowed) and a list of
 * its n limits. */
static ah_lane_limit *read_providers(lua_State *L, size_t *n)
{
    ah_lane_limit *list;

    if (lua_getfield(L, 1, "providers") != LUA_TNIL && !lua_istable(L, 2))
        ah_lua_raise(L, AH_USAGE, "%s: expected an object, found a %s", provider_limits.what,
                     luaL_typename(L, 2));
    lua_pushnil(L);
    lua_setfield(L, 1, "providers");
    for (lua_pushnil(L); lua_istable(L, 2) && lua_next(L, 2); lua_pop(L, 1))
        ++*n;
    lua_settop(L, 2);
    list = lua_newuserdatauv(L, (*n + 1) * sizeof *list, 0);
    memset(list, 0, (*n + 1) * sizeof *list);
    *n = 0;
    for (lua_pushnil(L); lua_istable(L, 2) && lua_next(L, 2); lua_pop(L, 1))
        read_provider(L, &list[(*n)++]);
    lua_settop(L, 3);
    return list;
}

int ah_lua_set_defaults(lua_State *L)
{
    ah_slice json = ah_slice_of(lua_touserdata(L, 1));
    ah_lane_limit *limits;
    size_t n = 0;
    ah_err err;

    if (ah_json_check_err(&ah_lua_of(L)->mem, json, whole.what, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (ah_json_kind_of(json) != AH_JSON_OBJECT)
        return ah_lua_raise(L, AH_USAGE, "%s: expected a JSON object", whole.what);
    lua_settop(L, 0);
    ah_lua_push_json(L, json);
    limits = read_providers(L, &n); /* -- defaults providers limits */
    lua_pushvalue(L, 1);
    check(L, &whole);
    for (const struct part *p = parts; p->name; p++) {
        if (lua_getfield(L, 1, p->name) != LUA_TNIL) {
            check(L, p);
            lua_setfield(L, 1, p->name);
        }
        lua_settop(L, 3);
    }
    if (!ah_lanes_limit(ah_lua_of(L)->host, limits, n))
        return ah_lua_raise_nomem(L);
    lua_settop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, DEFAULTS);
    return 0;
}

/* -- filling ---------------------------------------------------------------------------------- */

/* -- ... from to: copies the fields of `from` that `to` does not have */
static void fill_absent(lua_State *L)
{
    int to = lua_gettop(L), from = to - 1;

    for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) { /* -- ... from to name value */
        lua_pushvalue(L, -2);
        if (lua_rawget(L, to) == LUA_TNIL) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -3);
            lua_rawset(L, to);
        }
        lua_pop(L, 1);
    }
}

/* -- ... defaults table: if both have the part, replaces the table's by a copy of our own with the
 * members of both */
static void fill_part(lua_State *L, const struct part *p)
{
    int table = lua_gettop(L), defaults = table - 1;

    if (lua_getfield(L, defaults, p->name) != LUA_TNIL &&
        lua_getfield(L, table, p->name) == LUA_TTABLE) {
        ah_options_read(L, -1, p->subject, NULL);
        fill_absent(L);
        lua_setfield(L, table, p->name);
    }
    lua_settop(L, table);
}

void ah_lua_fill_defaults(lua_State *L, int idx, bool options)
{
    int top = lua_gettop(L);
    bool own_options;

    luaL_checkstack(L, 16, whole.what);
    idx = lua_absindex(L, idx);
    if (lua_getfield(L, LUA_REGISTRYINDEX, DEFAULTS) == LUA_TTABLE) {
        lua_pushvalue(L, idx); /* -- defaults table */
        for (const struct part *p = parts; p->name; p++)
            fill_part(L, p);
        own_options = lua_getfield(L, idx, "options") != LUA_TNIL;
        lua_pop(L, 1);
        fill_absent(L);
        if (options && !own_options) {
            lua_pushnil(L);
            lua_setfield(L, idx, "options");
        }
    }
    lua_settop(L, top);
}
