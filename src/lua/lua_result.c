/* Results of handlers: a value, nothing, ah.ok / ah.result / ah.fail, or `nil, message`. Reads them
 * as an outcome, and makes those objects. lua_tool.c handles errors and the outcome; lua_render.c
 * renders the value for the model. */
#include "lua/lua_result.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_image.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

static const char RESULT[] = "agenthost.result";

enum { MAX_VALUE = 64 << 20 }; /* bytes of one result as JSON */

/* -- reading ------------------------------------------------------------------------------ */

/* Reads an image, or a list of texts and images. The texts are the value, unless there are none. */
static ah_status to_images(lua_State *L, int idx, ah_lua_result *r)
{
    ah_status st;

    r->images = ah_lua_push_buf(L, AH_LUA_PARTS_MAX);
    st = ah_lua_read_shown(L, idx, r->value, r->images, &r->err);
    if (st == AH_OK)
        r->o.images = ah_buf_slice(r->images);
    return st;
}

static void to_value(lua_State *L, int idx, ah_lua_result *r)
{
    ah_status st;

    idx = lua_absindex(L, idx);
    st = ah_lua_shows(L, idx) ? to_images(L, idx, r)
                              : ah_lua_to_json(L, idx, r->value->mem, r->value, &r->err);
    if (st != AH_OK) {
        r->o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of(r->err.message)};
        return;
    }
    if (r->value->len)
        r->o.value = ah_buf_slice(r->value);
    r->at = idx;
}

static void message_at(lua_State *L, int idx, ah_outcome *o)
{
    o->message.p = lua_tolstring(L, idx, &o->message.n);
}

/* Reads a result object, whose fields were checked when it was made and whose texts stay in its
 * table. */
static void from_result(lua_State *L, int idx, ah_lua_result *r)
{
    luaL_checkstack(L, 4, "tool result");
    lua_getfield(L, idx, "success");
    r->o.success = lua_toboolean(L, -1);
    lua_getfield(L, idx, "exclude_value_from_context");
    r->o.exclude_value = lua_toboolean(L, -1);
    if (lua_getfield(L, idx, "message") == LUA_TSTRING)
        message_at(L, -1, &r->o);
    lua_getfield(L, idx, "nil");
    r->o.nil = lua_toboolean(L, -1);
    if (lua_getfield(L, idx, "value") != LUA_TNIL)
        to_value(L, -1, r);
}

static bool is_result(lua_State *L, int idx)
{
    bool is;

    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return false;
    luaL_getmetatable(L, RESULT);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

void ah_lua_result_read(lua_State *L, int first, int nresults, ah_lua_result *r)
{
    *r = (ah_lua_result){.o = {.success = true}, .value = ah_lua_push_buf(L, MAX_VALUE)};
    if (nresults == 0)
        return;
    if (nresults >= 2 && lua_isnil(L, first) && !lua_isnil(L, first + 1)) {
        r->o.success = false;
        message_at(L, first + 1, &r->o);
    } else if (is_result(L, first)) {
        from_result(L, first, r);
    } else if (lua_isnil(L, first)) {
        r->o.nil = true;
    } else {
        to_value(L, first, r);
    }
    if (r->o.message.p && !ah_utf8_valid(r->o.message)) {
        r->o = (ah_outcome){.failure = AH_FAILED_RAISED,
                            .message = ah_slice_of("its message is not UTF-8")};
        r->at = 0;
    }
}

void ah_lua_result_clear(ah_lua_result *r)
{
    ah_buf_clear(r->value);
    if (r->images)
        ah_buf_clear(r->images);
}

/* -- making ------------------------------------------------------------------------------- */

/* Pushes a result object; `value` and `message` are stack indexes. */
static int make_result(lua_State *L, int value, int message, bool success)
{
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, message);
    lua_setfield(L, -2, "message");
    lua_pushvalue(L, value);
    lua_setfield(L, -2, "value");
    lua_pushboolean(L, success);
    lua_setfield(L, -2, "success");
    luaL_setmetatable(L, RESULT);
    return 1;
}

/* ah.ok(value, message). A nil that was given differs from no value. */
static int ok(lua_State *L)
{
    bool nil = lua_gettop(L) > 0 && lua_isnil(L, 1);

    lua_settop(L, 2);
    luaL_optstring(L, 2, NULL);
    make_result(L, 1, 2, true);
    lua_pushboolean(L, nil);
    lua_setfield(L, -2, "nil");
    return 1;
}

/* ah.fail(message) */
static int fail(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_settop(L, 2);
    return make_result(L, 2, 1, false);
}

/* Pushes the field `value`, or `payload`, its earlier name (seed 003). */
static void push_value(lua_State *L)
{
    int value = lua_getfield(L, 1, "value"), payload = lua_getfield(L, 1, "payload");

    if (value != LUA_TNIL && payload != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE,
                     "ah.result: `payload` is another name of `value`: give one of them");
    if (payload != LUA_TNIL)
        lua_replace(L, -2);
    else
        lua_pop(L, 1);
}

typedef struct result_fields {
    bool success, exclude;
} result_fields;

static const ah_option result_rows[] = {
    {.name = "message", .kinds = AH_OPT_STRING, .doc = "text for the model"},
    {.name = "value",
     .kinds = AH_OPT_ANY,
     .is = "any",
     .type = "any",
     .doc = "the result as a Lua value"},
    {.name = "payload",
     .kinds = AH_OPT_ANY,
     .is = "any",
     .type = "any",
     .doc = "another name of `value`"},
    {.name = "success",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "true",
     .to = AH_TO_BOOL(result_fields, success),
     .doc = "false: the call fails"},
    {.name = "exclude_value_from_context",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(result_fields, exclude),
     .doc = "true: the model sees only the message. This keeps the context short, not the value "
            "secret: sessions get the value, and a message may quote it"},
    {0},
};
const ah_subject ah_subject_result = {
    .what = "ah.result", .type = "ah.ResultConfig", .row = result_rows};

/* ah.result { message, value, success = true, exclude_value_from_context } */
static int result(lua_State *L)
{
    result_fields f = {.success = true};

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_result, &f);
    lua_getfield(L, 1, "message");
    push_value(L);
    make_result(L, 3, 2, f.success);
    lua_pushboolean(L, f.exclude);
    lua_setfield(L, -2, "exclude_value_from_context");
    return 1;
}

static int result_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "success");
    lua_getfield(L, 1, "message");
    lua_pushfstring(L, "%s: %s", lua_toboolean(L, -2) ? "ok" : "failed",
                    luaL_optstring(L, -1, "(no message)"));
    return 1;
}

void ah_lua_open_result(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__tostring", result_tostring}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"ok", ok}, {"fail", fail}, {"result", result}, {NULL, NULL}};

    luaL_newmetatable(L, RESULT);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
