/* Text from outside for the library's own programs, not for scripts: lines of JSON read without
 * decoding, messages of foreign failures adapted for our own, the environment, what the
 * program says about MCP servers. */
#include "base/excerpt.h"
#include "base/json.h"
#include "host/host.h"
#include "lua/lua_error.h"
#include "lua/lua_open.h"
#include "lua/lua_state.h"
#include "lua/lua_value.h"
#include "wire/full.h"

enum { MAX_EXCERPT = 64 << 10 };

extern char **environ;

static ah_slice check_slice(lua_State *L, int idx)
{
    ah_slice s;

    s.p = luaL_checklstring(L, idx, &s.n);
    return s;
}

static void push_slice(lua_State *L, ah_slice s)
{
    lua_pushlstring(L, s.p ? s.p : "", s.n);
}

/* Pushes a table: name -> JSON text of each member of the object. */
static void push_members(lua_State *L, ah_slice object)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token key = ah_json_next(&r);

    lua_newtable(L);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        push_slice(L, key.raw);
        push_slice(L, ah_json_skip(&r, ah_json_next(&r)));
        lua_rawset(L, -3);
    }
}

/* Pushes the fault of a text that is not a JSON object. The message quotes the text, so it is
 * replaced if the text contains a key, of which the quote might show a part. */
static void push_fault(lua_State *L, ah_slice text, const char *what, const char *message)
{
    if (!message)
        lua_pushfstring(L, "%s is no JSON object", what);
    else if (ah_secrets_in(&ah_lua_of(L)->host->secrets, text))
        lua_pushfstring(L, "%s is not JSON (not quoted: a key is in it)", what);
    else
        lua_pushstring(L, message);
}

/* ah._members(text, what): the members of an object, each as its JSON text, and true if strings in
 * it were cut within a character; nil and the reason if it is not a JSON object. `what` names the
 * text in the reason. Names are not decoded. */
static int members(lua_State *L)
{
    ah_slice text = check_slice(L, 1);
    const char *what = luaL_checkstring(L, 2);
    size_t halves = 0;
    ah_err err;
    ah_status st = ah_json_check_piece_err(&ah_lua_of(L)->mem, text, &halves, what, &err);

    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (st != AH_OK || ah_json_kind_of(text) != AH_JSON_OBJECT) {
        lua_pushnil(L);
        push_fault(L, text, what, st == AH_OK ? NULL : err.message);
        return 2;
    }
    push_members(L, text);
    lua_pushboolean(L, halves > 0);
    return 2;
}

/* ah._excerpt(text, most): one short line of the text, without secrets and terminal commands. */
static int excerpt(lua_State *L)
{
    ah_slice text = check_slice(L, 1);
    lua_Integer most = luaL_checkinteger(L, 2);
    ah_buf *b = ah_lua_push_buf(L, 2 * MAX_EXCERPT);

    luaL_argcheck(L, most > 0 && most <= MAX_EXCERPT, 2, "bytes");
    ah_excerpt(text, &ah_lua_of(L)->host->secrets, (size_t)most, b);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    push_slice(L, ah_buf_slice(b));
    ah_buf_clear(b);
    return 1;
}

/* ah._hide(text): keeps a secret as keys are kept (base/secret.h), so that no text that leaves the
 * host has it: it stays one until the host ends. */
static int hide(lua_State *L)
{
    if (!ah_secrets_keep(&ah_lua_of(L)->host->secrets, check_slice(L, 1)))
        return ah_lua_raise_nomem(L);
    return 0;
}

/* ah._full(status, text): what to do, window and used, if the text of a failure says that the
 * context is full; else nothing. */
static int full(lua_State *L)
{
    ah_full f =
        ah_full_judge_text(&ah_lua_of(L)->mem, (int)luaL_checkinteger(L, 1), check_slice(L, 2));

    if (f.status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (!f.is)
        return 0;
    lua_pushliteral(L, AH_FULL_ADVICE);
    lua_pushinteger(L, f.window);
    lua_pushinteger(L, f.used);
    return 3;
}

/* ah._variables(): name -> value. */
static int variables(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; environ && environ[i]; i++) {
        const char *equals = strchr(environ[i], '=');

        if (!equals)
            continue;
        lua_pushlstring(L, environ[i], (size_t)(equals - environ[i]));
        lua_pushstring(L, equals + 1);
        lua_rawset(L, -3);
    }
    return 1;
}

static int push_path(lua_State *L, const ah_text *path)
{
    lua_pushstring(L, path ? path->data : NULL);
    return 1;
}

/* ah._mcp_pins() -> the path of ah_config.mcp_pins; nil: none */
static int mcp_pins(lua_State *L)
{
    return push_path(L, ah_lua_of(L)->host->mcp_pins);
}

/* ah._mcp_logins() -> the path of ah_config.mcp_logins; nil: none */
static int mcp_logins(lua_State *L)
{
    return push_path(L, ah_lua_of(L)->host->mcp_logins);
}

void ah_lua_open_outside(lua_State *L)
{
    static const luaL_Reg functions[] = {{"_members", members},
                                         {"_excerpt", excerpt},
                                         {"_hide", hide},
                                         {"_full", full},
                                         {"_variables", variables},
                                         {"_mcp_pins", mcp_pins},
                                         {"_mcp_logins", mcp_logins},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
