/* Hashes of bytes that come in pieces:
 *   sha256(piece, ...)    -> 32 bytes
 *   hmac(key, piece, ...) -> 32 bytes */
#include "base/sha256.h"
#include "support/ahtest.h"

static ah_slice piece_at(lua_State *L, int idx)
{
    ah_slice s;

    s.p = luaL_checklstring(L, idx, &s.n);
    return s;
}

static int sha256(lua_State *L)
{
    unsigned char hash[AH_SHA256_BYTES];
    ah_sha256 s;

    ah_sha256_begin(&s);
    for (int i = 1; i <= lua_gettop(L); i++)
        ah_sha256_add(&s, piece_at(L, i));
    ah_sha256_end(&s, hash);
    lua_pushlstring(L, (const char *)hash, sizeof hash);
    return 1;
}

static int hmac(lua_State *L)
{
    unsigned char hash[AH_SHA256_BYTES];
    ah_hmac h;

    ah_hmac_begin(&h, piece_at(L, 1));
    for (int i = 2; i <= lua_gettop(L); i++)
        ah_hmac_add(&h, piece_at(L, i));
    ah_hmac_end(&h, hash);
    lua_pushlstring(L, (const char *)hash, sizeof hash);
    return 1;
}

void ahtest_open_bytes(lua_State *L)
{
    static const luaL_Reg functions[] = {{"sha256", sha256}, {"hmac", hmac}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
