/* Instances of entities as JSON: the fields that the class names, else the members that do not
 * begin with an underscore. Values that cannot be JSON are left out. */
#include "lua/lua_entity.h"
#include "lua/lua_value.h"

enum {
    SHOWN = 1,        /* all members */
    BY_FIELDS,        /* the fields that the class names */
    ENTITY_LEVELS = 4 /* nested entities, if `fields` names them */
};

/* (instance, fields) */
static ah_status put_fields(lua_State *L, ah_lua_json *j)
{
    ah_status st = AH_OK;

    for (lua_Integer i = 1; st == AH_OK && lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -4) != LUA_TNIL) /* -- instance fields key value */
            st = ah_lua_json_try(j);
        lua_pop(L, 2);
    }
    return st;
}

/* (instance, nil) */
static ah_status put_shown(lua_State *L, ah_lua_json *j)
{
    ah_status st = AH_OK;

    lua_pop(L, 1);
    for (lua_pushnil(L); st == AH_OK && lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && lua_tostring(L, -2)[0] != '_')
            st = ah_lua_json_try(j);
    return st;
}

/* Entities inside an entity are left out, unless `fields` names them. */
static bool is_within_entity(const ah_lua_json *j)
{
    return ah_lua_json_around(j, SHOWN) || ah_lua_json_around(j, BY_FIELDS) >= ENTITY_LEVELS;
}

ah_status ah_lua_put_entity(lua_State *L, ah_lua_json *j)
{
    int top = lua_gettop(L);
    bool by_fields;
    ah_status st;

    if (!ah_lua_push_entity_of(L, -1))
        return ah_lua_json_refuse(j, "an instance of a class that no longer exists cannot be JSON");
    if (is_within_entity(j))
        return ah_lua_json_refuse(j, "an entity within an entity cannot be JSON");
    by_fields = lua_getiuservalue(L, -1, AH_ENTITY_FIELDS) == LUA_TTABLE;
    lua_replace(L, -2); /* -- instance fields */
    ah_lua_json_begin(j, by_fields ? BY_FIELDS : SHOWN);
    st = by_fields ? put_fields(L, j) : put_shown(L, j);
    if (st != AH_OK)
        return st;
    lua_settop(L, top);
    return ah_lua_json_end(j);
}
