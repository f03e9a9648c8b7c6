/* Encodings and hashes of bytes: ah.sha256, ah.hmac, ah.base64, ah.base64url, ah.random_bytes. */
#include <stdint.h>

#include "base/base64.h"
#include "io/random.h"
#include "base/sha256.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_open.h"
#include "lua/lua_value.h"
#include "lua/lua_watch.h"

enum { MAX_RANDOM = 64 << 10, PIECE = 1 << 20 /* bytes between two looks at the clock */ };

/* Only strings: Lua would also take numbers, and 1 and 1.0 would be two different texts. */
static ah_slice text_at(lua_State *L, int idx, const char *what, const char *name)
{
    ah_slice s;

    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: %s must be a string, found %s", what, name,
                     lua_isnone(L, idx) ? "nothing" : luaL_typename(L, idx));
    s.p = lua_tolstring(L, idx, &s.n);
    return s;
}

/* -- hashes ------------------------------------------------------------------------------ */

/* True if the hash is requested as bytes. */
static bool as_bytes(lua_State *L, int idx, const char *what)
{
    ah_slice form;

    if (lua_isnoneornil(L, idx))
        return false;
    form = text_at(L, idx, what, "the form");
    if (!ah_slice_is(form, "hex") && !ah_slice_is(form, "bytes"))
        ah_lua_raise(L, AH_USAGE, "%s: the form must be \"hex\" or \"bytes\", found \"%.*s\"", what,
                     AH_FMT(form));
    return ah_slice_is(form, "bytes");
}

static int push_hash(lua_State *L, const unsigned char hash[AH_SHA256_BYTES], bool bytes)
{
    char hex[AH_SHA256_HEX];

    ah_sha256_hex(hash, hex);
    if (bytes)
        lua_pushlstring(L, (const char *)hash, AH_SHA256_BYTES);
    else
        lua_pushlstring(L, hex, sizeof hex);
    return 1;
}

/* Returns the next bytes of a long text, and *rest without them. Raises if the time of the current
 * code is over. */
static ah_slice next_piece(lua_State *L, const char *what, ah_slice *rest)
{
    ah_slice piece = {rest->p, rest->n < PIECE ? rest->n : PIECE};

    rest->p += piece.n;
    rest->n -= piece.n;
    if (rest->n && ah_interrupted(&ah_lua_of(L)->interrupt))
        ah_watch_raise(L, ah_slice_of(what));
    return piece;
}

/* ah.sha256(text, form) */
static int sha256(lua_State *L)
{
    ah_slice text = text_at(L, 1, "ah.sha256", "the text");
    bool bytes = as_bytes(L, 2, "ah.sha256");
    unsigned char hash[AH_SHA256_BYTES];
    ah_sha256 s;

    ah_sha256_begin(&s);
    while (text.n)
        ah_sha256_add(&s, next_piece(L, "ah.sha256", &text));
    ah_sha256_end(&s, hash);
    return push_hash(L, hash, bytes);
}

/* ah.hmac(key, text, form): with SHA-256. */
static int hmac(lua_State *L)
{
    ah_slice key = text_at(L, 1, "ah.hmac", "the key"), text = text_at(L, 2, "ah.hmac", "the text");
    bool bytes = as_bytes(L, 3, "ah.hmac");
    unsigned char hash[AH_SHA256_BYTES];
    ah_hmac h;

    ah_hmac_begin(&h, key);
    while (text.n)
        ah_hmac_add(&h, next_piece(L, "ah.hmac", &text));
    ah_hmac_end(&h, hash);
    return push_hash(L, hash, bytes);
}

/* -- base64 ------------------------------------------------------------------------------ */

/* One of the two alphabets, an upvalue of its functions. */
typedef struct alphabet {
    const char *name, *encode, *decode;
    void (*put)(ah_buf *out, ah_slice bytes);
    const char *(*fault)(ah_slice text, size_t *at);
} alphabet;

static const alphabet alphabets[] = {
    {"base64", "ah.base64.encode", "ah.base64.decode", ah_base64_put, ah_base64_fault},
    {"base64url", "ah.base64url.encode", "ah.base64url.decode", ah_base64url_put,
     ah_base64url_fault}};

static const alphabet *alphabet_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* -- buffer    for a text of that many bytes; freed when the function ends */
static ah_buf *push_room(lua_State *L, size_t bytes)
{
    ah_buf *b = ah_lua_push_buf(L, bytes > SIZE_MAX / 2 ? SIZE_MAX : 2 * bytes + 4);

    lua_toclose(L, -1);
    return b;
}

static int push_whole(lua_State *L, const ah_buf *b)
{
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    return 1;
}

static int encode(lua_State *L)
{
    const alphabet *a = alphabet_of(L);
    ah_slice bytes = text_at(L, 1, a->encode, "the text");
    ah_buf *b = push_room(L, bytes.n);

    a->put(b, bytes);
    return push_whole(L, b);
}

/* Returns the bytes, or nil and a message. */
static int decode(lua_State *L)
{
    const alphabet *a = alphabet_of(L);
    ah_slice text = text_at(L, 1, a->decode, "the text");
    size_t at;
    const char *fault = a->fault(text, &at);
    ah_buf *b;

    if (fault) {
        luaL_pushfail(L);
        lua_pushfstring(L, "the text is not %s: %s, at byte %I", a->name, fault,
                        (LUAI_UACINT)at + 1);
        return 2;
    }
    b = push_room(L, text.n);
    ah_base64_take(text, b);
    return push_whole(L, b);
}

/* -- random bytes -------------------------------------------------------------------------- */

/* ah.random_bytes(n): also raises if the system has no random bytes, so that no script continues
 * without them. */
static int random_bytes(lua_State *L)
{
    lua_Integer n = 0;
    int whole = 0;
    luaL_Buffer b;
    ah_err err;

    if (lua_type(L, 1) == LUA_TNUMBER)
        n = lua_tointegerx(L, 1, &whole);
    if (!whole || n < 1 || n > MAX_RANDOM)
        ah_lua_raise(L, AH_USAGE,
                     "ah.random_bytes: n must be a whole number from 1 to %d, found %s", MAX_RANDOM,
                     lua_type(L, 1) == LUA_TNUMBER ? lua_tostring(L, 1) : luaL_typename(L, 1));
    if (ah_random_bytes(luaL_buffinitsize(L, &b, (size_t)n), (size_t)n, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    luaL_pushresultsize(&b, (size_t)n);
    return 1;
}

static void open_alphabet(lua_State *L, const alphabet *a)
{
    static const luaL_Reg functions[] = {{"encode", encode}, {"decode", decode}, {NULL, NULL}};

    luaL_newlibtable(L, functions);
    lua_pushlightuserdata(L, (void *)(uintptr_t)a);
    luaL_setfuncs(L, functions, 1);
    lua_setfield(L, -2, a->name);
}

void ah_lua_open_bytes(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"sha256", sha256}, {"hmac", hmac}, {"random_bytes", random_bytes}, {NULL, NULL}};

    for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++)
        open_alphabet(L, &alphabets[i]);
    luaL_setfuncs(L, functions, 0);
}
