/* Tables with named fields, read strictly: a typo in a declaration must never
 * become a silent default. */
#include <limits.h>
#include <stdio.h>

#include "base/near.h"
#include "lua/lua_host.h"

static bool is_known(const char *const *known, ah_slice key)
{
    for (; *known; known++)
        if (ah_slice_is(key, *known))
            return true;
    return false;
}

static void refuse(lua_State *L, const char *what, const char *const *known, ah_slice key)
{
    ah_near near = {.to = key};

    for (; *known; known++)
        ah_near_offer(&near, ah_slice_of(*known));
    if (near.best.p)
        ah_lua_raise(L, AH_USAGE, "%s: unknown field '%.*s' (did you mean '%.*s'?)", what, AH_FMT(key),
                     AH_FMT(near.best));
    ah_lua_raise(L, AH_USAGE, "%s: unknown field '%.*s'", what, AH_FMT(key));
}

void ah_fields_check(lua_State *L, int idx, const char *what, const char *const *known, bool list)
{
    idx = lua_absindex(L, idx);
    if (lua_type(L, idx) != LUA_TTABLE)
        ah_lua_raise(L, AH_USAGE, "%s: expected a table of fields, found %s", what,
                     luaL_typename(L, idx));
    luaL_checkstack(L, 4, what);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pop(L, 1); /* -- key */
        if (lua_type(L, -1) == LUA_TSTRING) {
            ah_slice key;

            key.p = lua_tolstring(L, -1, &key.n);
            if (!is_known(known, key))
                refuse(L, what, known, key);
        } else if (!list || !lua_isinteger(L, -1)) {
            ah_lua_raise(L, AH_USAGE, "%s: unexpected %s as key", what, luaL_typename(L, -1));
        }
    }
}

static int wrong(lua_State *L, const char *what, const char *name, const char *wanted)
{
    return ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be %s, found %s", what, name, wanted,
                        luaL_typename(L, -1));
}

bool ah_field_string(lua_State *L, int idx, const char *what, const char *name, ah_slice *out)
{
    int type = lua_getfield(L, idx, name);

    if (type != LUA_TNIL && type != LUA_TSTRING)
        wrong(L, what, name, "a string");
    if (type == LUA_TSTRING)
        out->p = lua_tolstring(L, -1, &out->n);
    lua_pop(L, 1);
    return type == LUA_TSTRING;
}

bool ah_field_number(lua_State *L, int idx, const char *what, const char *name, double least,
                     double *out)
{
    int type = lua_getfield(L, idx, name);
    double v = type == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    bool over = v > 1e15;

    if (type != LUA_TNIL && (type != LUA_TNUMBER || !(v >= least) || over))
        ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be a number of at %s %g, found %s", what, name,
                     over ? "most" : "least", over ? 1e15 : least,
                     type == LUA_TNUMBER ? luaL_tolstring(L, -1, NULL) : luaL_typename(L, -1));
    if (type != LUA_TNIL)
        *out = v;
    lua_pop(L, 1);
    return type != LUA_TNIL;
}

bool ah_field_count(lua_State *L, int idx, const char *what, const char *name, int least, int *out)
{
    int type = lua_getfield(L, idx, name);
    bool over = type == LUA_TNUMBER && lua_tonumber(L, -1) > INT_MAX;

    if (type != LUA_TNIL) {
        if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < least || over)
            ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be an integer of at %s %d, found %s", what,
                         name, over ? "most" : "least", over ? INT_MAX : least,
                         type == LUA_TNUMBER ? luaL_tolstring(L, -1, NULL) : luaL_typename(L, -1));
        *out = (int)lua_tointeger(L, -1);
    }
    lua_pop(L, 1);
    return type != LUA_TNIL;
}

bool ah_field_bool(lua_State *L, int idx, const char *what, const char *name, bool *out)
{
    int type = lua_getfield(L, idx, name);

    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        wrong(L, what, name, "a boolean");
    if (type == LUA_TBOOLEAN)
        *out = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return type == LUA_TBOOLEAN;
}

bool ah_field_push(lua_State *L, int idx, const char *what, const char *name, int type)
{
    int found = lua_getfield(L, idx, name);

    if (found == LUA_TNIL) {
        lua_pop(L, 1);
        return false;
    }
    if (found != type) {
        char wanted[32];

        snprintf(wanted, sizeof wanted, "a %s", lua_typename(L, type));
        wrong(L, what, name, wanted);
    }
    return true;
}
