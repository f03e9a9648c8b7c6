/* ah.yaml.decode: reads front matter and settings. */
#include "io/yaml.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_open.h"
#include "lua/lua_value.h"
#include "lua/lua_watch.h"

/* An escape makes at most six bytes of one; aliases add repeated text. */
static const size_t MAX_VALUE = 6 * (size_t)AH_YAML_MAX + AH_YAML_REPEATED;

/* Returns the value, or nil and a message with the place. */
static int decode(lua_State *L)
{
    ah_slice text;
    ah_buf *b;
    ah_status st;
    ah_err err;

    if (lua_type(L, 1) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "ah.yaml.decode: the text must be a string, found %s",
                     luaL_typename(L, 1));
    text.p = lua_tolstring(L, 1, &text.n);
    b = ah_lua_push_buf(L, MAX_VALUE);
    lua_toclose(L, -1);
    st = ah_yaml_to_json(b->mem, text, &ah_lua_of(L)->interrupt, b, &err);
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (st == AH_CANCELLED)
        return ah_watch_raise(L, ah_slice_of("ah.yaml.decode"));
    if (st == AH_OK) {
        ah_lua_push_json(L, ah_buf_slice(b));
        return 1;
    }
    (void)ah_buf_ok(b); /* its content is not wanted */
    luaL_pushfail(L);
    lua_pushstring(L, err.message);
    return 2;
}

void ah_lua_open_yaml(lua_State *L)
{
    static const luaL_Reg functions[] = {{"decode", decode}, {NULL, NULL}};

    luaL_newlib(L, functions);
    lua_setfield(L, -2, "yaml");
}
