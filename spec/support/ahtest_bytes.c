/* Hashes of bytes that come in pieces, differences of texts, and secrets in JSON:
 *   sha256(piece, ...)        -> 32 bytes
 *   hmac(key, piece, ...)     -> 32 bytes
 *   diff(before, after, most) -> hunks, true if they were cut
 *   redact_json(json, key)    -> the text without the key */
#include "base/diff.h"
#include "base/secret.h"
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

static int diff(lua_State *L)
{
    ah_slice before = piece_at(L, 1), after = piece_at(L, 2);
    bool cut;
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, 64 << 20);
    cut = ah_diff(&ah_mem_libc, before, after, (size_t)luaL_checkinteger(L, 3), &b);
    lua_pushlstring(L, ah_buf_ok(&b) ? ah_buf_slice(&b).p : "", b.len);
    lua_pushboolean(L, cut);
    ah_buf_clear(&b);
    return 2;
}

static int redact_json(lua_State *L)
{
    ah_secrets secrets = {.mem = &ah_mem_libc};
    ah_slice in = piece_at(L, 1);
    ah_buf text;

    ah_buf_init(&text, &ah_mem_libc, SIZE_MAX);
    ah_buf_put(&text, in);
    if (ah_buf_ok(&text) && ah_secrets_keep(&secrets, piece_at(L, 2)))
        text.len = ah_secrets_redact_json(&secrets, text.data, text.len);
    lua_pushlstring(L, text.data, text.len);
    ah_buf_clear(&text);
    ah_secrets_clear(&secrets);
    return 1;
}

void ahtest_open_bytes(lua_State *L)
{
    static const luaL_Reg functions[] = {{"sha256", sha256},
                                         {"hmac", hmac},
                                         {"diff", diff},
                                         {"redact_json", redact_json},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
