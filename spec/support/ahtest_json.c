/* ahtest: JSON as the core reads it, for the specs.
 *
 *   canon(text)             -> canonical text
 *   hash(text)              -> integer
 *   walk(text)              -> { "object {", "key a", "escaped string \\n", "object end }" }
 *   member(text, key)       -> the value's text | nil
 *   members(text, key, ...) -> a value's text or nil for each key, then true if it is an object
 *   path(text, "a.b")       -> the value's text | nil
 *   repair(bytes)           -> UTF-8
 *   base64_put(bytes)       -> text
 *   base64_take(text)       -> bytes, predicted number of bytes | nil if it is not valid
 *
 * Text that is not JSON gives nil and a message. */
#include "base/base64.h"
#include "base/json.h"
#include "support/ahtest.h"

#define BUFFER "ahtest.buffer"

enum { MAX_KEYS = 8 };

static int clear(lua_State *L)
{
    ah_buf *b = luaL_checkudata(L, 1, BUFFER);

    (void)ah_buf_ok(b); /* after a raised error the result was not checked */
    ah_buf_clear(b);
    return 0;
}

/* Pushes a buffer that Lua frees, even if an error is raised. */
static ah_buf *push_buffer(lua_State *L)
{
    ah_buf *b = lua_newuserdatauv(L, sizeof *b, 0); /* -- b */

    ah_buf_init(b, &ah_mem_libc, SIZE_MAX);
    if (luaL_newmetatable(L, BUFFER)) { /* -- b, metatable */
        lua_pushcfunction(L, clear);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2); /* -- b */
    return b;
}

static ah_slice slice_arg(lua_State *L, int i)
{
    ah_slice s;

    s.p = luaL_checklstring(L, i, &s.n);
    return s;
}

/* Reads the first argument; if it is not JSON, pushes nil and a message and returns false. */
static bool text_arg(lua_State *L, ah_slice *text)
{
    ah_err err = {0};

    *text = slice_arg(L, 1);
    if (ah_json_check_err(&ah_mem_libc, *text, "the text", &err) == AH_OK)
        return true;
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    return false;
}

static void push_slice(lua_State *L, ah_slice s) /* nil if it is absent */
{
    if (s.p)
        lua_pushlstring(L, s.p, s.n);
    else
        lua_pushnil(L);
}

static int canon(lua_State *L)
{
    ah_slice text;
    ah_buf *b;

    if (!text_arg(L, &text))
        return 2;
    b = push_buffer(L);
    if (ah_json_canon(&ah_mem_libc, text, b) != AH_OK)
        return luaL_error(L, "no memory for the canonical text");
    push_slice(L, ah_buf_slice(b));
    return 1;
}

static int hash(lua_State *L)
{
    ah_slice text;

    if (!text_arg(L, &text))
        return 2;
    lua_pushinteger(L, (lua_Integer)ah_json_hash(text));
    return 1;
}

static int walk(lua_State *L)
{
    static const char *const names[] = {
        [AH_JSON_NULL] = "null",     [AH_JSON_FALSE] = "false",
        [AH_JSON_TRUE] = "true",     [AH_JSON_NUMBER] = "number",
        [AH_JSON_STRING] = "string", [AH_JSON_KEY] = "key",
        [AH_JSON_ARRAY] = "array",   [AH_JSON_ARRAY_END] = "array end",
        [AH_JSON_OBJECT] = "object", [AH_JSON_OBJECT_END] = "object end",
    };
    ah_json_reader r;
    ah_json_token t;
    ah_slice text;

    if (!text_arg(L, &text))
        return 2;
    r = ah_json_read(text);
    lua_newtable(L); /* -- list */
    for (lua_Integer i = 1; (t = ah_json_next(&r)).kind != AH_JSON_END; i++) {
        lua_pushfstring(L, "%s%s ", t.escaped ? "escaped " : "", names[t.kind]);
        push_slice(L, t.raw);
        lua_concat(L, 2);      /* -- list, token */
        lua_rawseti(L, -2, i); /* -- list */
    }
    return 1;
}

static int member(lua_State *L)
{
    ah_slice text;

    if (!text_arg(L, &text))
        return 2;
    push_slice(L, ah_json_member(text, luaL_checkstring(L, 2)));
    return 1;
}

static int members(lua_State *L)
{
    ah_json_slot want[MAX_KEYS];
    ah_slice text, found[MAX_KEYS];
    int n = lua_gettop(L) - 1;
    bool is_object;

    luaL_argcheck(L, n <= MAX_KEYS, MAX_KEYS + 1, "too many keys");
    if (!text_arg(L, &text))
        return 2;
    for (int i = 0; i < n; i++)
        want[i] = (ah_json_slot){luaL_checkstring(L, i + 2), &found[i]};
    is_object = ah_json_members(text, want, (size_t)n);
    for (int i = 0; i < n; i++)
        push_slice(L, found[i]);
    lua_pushboolean(L, is_object);
    return n + 1;
}

static int repair(lua_State *L)
{
    ah_slice bytes = slice_arg(L, 1);
    ah_buf *b = push_buffer(L);

    ah_utf8_repair(bytes, b);
    push_slice(L, ah_buf_slice(b));
    return 1;
}

static int base64_put(lua_State *L)
{
    ah_slice bytes = slice_arg(L, 1);
    ah_buf *b = push_buffer(L);

    ah_base64_put(b, bytes);
    lua_pushlstring(L, b->len ? b->data : "", b->len);
    return 1;
}

static int base64_take(lua_State *L)
{
    ah_slice text = slice_arg(L, 1);
    ah_buf *b;

    if (!ah_base64_valid(text))
        return 0;
    b = push_buffer(L);
    ah_base64_take(text, b);
    lua_pushlstring(L, b->len ? b->data : "", b->len);
    lua_pushinteger(L, (lua_Integer)ah_base64_size(text));
    return 2;
}

void ahtest_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {{"canon", canon},
                                         {"hash", hash},
                                         {"walk", walk},
                                         {"member", member},
                                         {"members", members},
                                         {"repair", repair},
                                         {"base64_put", base64_put},
                                         {"base64_take", base64_take},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
