/* Fuzz target: Lua values and JSON, both ways. If the first byte is even, the rest is a JSON
 * text that becomes a value and a text again. If it is odd, the rest is a program for the small
 * machine below, which builds the oddest values that Lua allows; they become JSON or are
 * refused. Nothing may raise, the stack must be as before, and a text must be canonical JSON. */
#include <stdint.h>
#include <stdlib.h>

#include "lua/lua_host.h"
#include "lua/lua_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_VALUES = 200, MAX_TEXT = 8 << 20 };

static void require_that(bool holds)
{
    if (!holds)
        abort();
}

typedef struct input {
    const uint8_t *p, *end;
} input;

static uint8_t next(input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

/* Encodes the value on top; returns false if it is refused, with a message. */
static bool encode(lua_State *L, ah_buf *out)
{
    int top = lua_gettop(L);
    ah_err err = {0};
    ah_status st = ah_lua_to_json(L, -1, &ah_mem_libc, out, &err);

    require_that(lua_gettop(L) == top);
    if (st == AH_OK)
        return true;
    require_that(st == AH_TOOL_VALIDATION && err.message[0]);
    require_that(ah_utf8_valid(ah_slice_of(err.message)));
    return false;
}

/* The text must be canonical, and the same after it was read and written again. */
static void check_text(lua_State *L, ah_slice text)
{
    ah_buf *canon = ah_lua_push_buf(L, MAX_TEXT), *again = ah_lua_push_buf(L, MAX_TEXT);

    require_that(ah_json_check(&ah_mem_libc, text, AH_JSON_MAX_DEPTH, NULL) == AH_OK);
    require_that(ah_json_canon(&ah_mem_libc, text, canon) == AH_OK);
    require_that(ah_slice_eq(text, ah_buf_slice(canon)));
    ah_lua_push_json(L, text);
    require_that(encode(L, again));
    require_that(ah_slice_eq(text, ah_buf_slice(again)));
    lua_pop(L, 3);
}

static int nothing(lua_State *L)
{
    (void)L;
    return 0;
}

static void push_bytes(lua_State *L, input *in)
{
    size_t n = next(in), left = (size_t)(in->end - in->p);

    n = n < left ? n : left;
    lua_pushlstring(L, (const char *)in->p, n);
    in->p += n;
}

static void push_number(lua_State *L, input *in, bool integer)
{
    uint64_t bits = 0;
    double d;

    for (int i = 0; i < 8; i++)
        bits = bits << 8 | next(in);
    memcpy(&d, &bits, sizeof d);
    if (integer)
        lua_pushinteger(L, (lua_Integer)bits);
    else
        lua_pushnumber(L, d);
}

/* t[k] = v for the three values on top; the table stays. An invalid key is skipped. */
static void set(lua_State *L)
{
    bool fits = lua_istable(L, -3) && !lua_isnil(L, -2) &&
                (lua_type(L, -2) != LUA_TNUMBER || lua_rawequal(L, -2, -2));

    if (fits)
        lua_rawset(L, -3);
    else
        lua_pop(L, 2);
}

/* Gives this table the metatable of a value below: a marker's, or the table's own. */
static void set_metatable(lua_State *L, int marker)
{
    if (lua_istable(L, -1) && luaL_getmetafield(L, marker, "__metatable") == LUA_TNIL &&
        lua_getmetatable(L, marker))
        lua_setmetatable(L, -2);
}

/* One step; the first values are the library's null, array {} and object {}. */
static void step(lua_State *L, input *in)
{
    int top = lua_gettop(L);

    switch (next(in) % 14) {
    case 0:
        lua_pushnil(L);
        break;
    case 1:
        lua_pushboolean(L, next(in) & 1);
        break;
    case 2:
        push_number(L, in, true);
        break;
    case 3:
        push_number(L, in, false);
        break;
    case 4:
        lua_pushinteger(L, next(in));
        break;
    case 5:
        push_bytes(L, in);
        break;
    case 6:
        lua_newtable(L);
        break;
    case 7:
        if (top > 5)
            set(L);
        break;
    case 8:
        lua_pushvalue(L, 1 + next(in) % top);
        break;
    case 9:
        lua_pushcfunction(L, nothing);
        break;
    case 10:
        lua_newuserdatauv(L, 1, 0);
        break;
    case 11:
        lua_newthread(L);
        break;
    case 12:
        set_metatable(L, 1 + next(in) % top);
        break;
    default: /* a chain: the depth of values grows quickly */
        for (int n = next(in); n > 0 && lua_gettop(L) > 3; n--) {
            lua_createtable(L, 1, 0);
            lua_insert(L, -2);
            lua_rawseti(L, -2, 1);
        }
        break;
    }
}

static void build(lua_State *L, input in)
{
    ah_buf *out;

    lua_getfield(L, 1, "null");
    lua_getfield(L, 1, "array");
    lua_newtable(L);
    lua_call(L, 1, 1);
    lua_getfield(L, 1, "object");
    lua_newtable(L);
    lua_call(L, 1, 1);
    while (in.p < in.end && lua_gettop(L) < MOST_VALUES)
        step(L, &in);
    out = ah_lua_push_buf(L, MAX_TEXT);
    lua_insert(L, 1);
    if (encode(L, out))
        check_text(L, ah_buf_slice(out));
}

static void convert(lua_State *L, input in)
{
    ah_slice text = {(const char *)in.p, (size_t)(in.end - in.p)};
    ah_buf *out = ah_lua_push_buf(L, MAX_TEXT);

    if (ah_json_check(&ah_mem_libc, text, AH_JSON_MAX_DEPTH, NULL) != AH_OK)
        return;
    ah_lua_push_json(L, text);
    if (encode(L, out)) /* a number may be out of range */
        check_text(L, ah_buf_slice(out));
}

static int run(lua_State *L)
{
    input in = *(const input *)lua_touserdata(L, 1);

    luaL_checkstack(L, MOST_VALUES + 100, "fuzz");
    lua_settop(L, 0);
    ah_lua_host(L, &ah_mem_libc, NULL);
    lua_newtable(L);
    ah_lua_open_value(L);
    if (next(&in) & 1)
        build(L, in);
    else
        convert(L, in);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, data + size};
    lua_State *L;

    if (size == 0 || !(L = luaL_newstate()))
        return 0;
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &in);
    require_that(lua_pcall(L, 1, 0, 0) == LUA_OK);
    lua_close(L);
    return 0;
}
