/* Asks one policy at a time; run/gate.c decides which is next and what its verdict does. A kept
 * policy is a table { before, after, shadow, name, self }. Its functions are called, not resumed:
 * they never wait. */
#include "lua/lua_policy.h"

#include "lua/lua_fields.h"
#include "lua/lua_hooks.h"
#include "lua/lua_host.h"
#include "lua/lua_moment.h"
#include "lua/lua_result.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"

enum { MAX_CHANGED = 16 << 20, MAX_POINTER = 4 << 10 };

typedef struct asked {
    ah_lua_hooks *hooks;
    ah_moment moment;
    size_t i;
    const ah_outcome *o; /* NULL: before the handler */
    ah_slice words;
    ah_ruling *out;
    bool there;
} asked;

/* -- reading policies -------------------------------------------------------------------------- */

/* -- ... item kept: copies the function in the item's field, if there is one */
static bool keep_function(lua_State *L, const char *what, int at, const char *field)
{
    int type = lua_getfield(L, -2, field);

    if (type != LUA_TFUNCTION && type != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE, "%s: policies[%d]: `%s` must be a function, found a %s", what, at,
                     field, lua_typename(L, type));
    lua_setfield(L, -2, field);
    return type == LUA_TFUNCTION;
}

/* -- ... item kept */
static void keep_table(lua_State *L, const char *what, int at)
{
    bool before = keep_function(L, what, at, "before"), after = keep_function(L, what, at, "after");
    bool named = lua_getfield(L, -2, "name") == LUA_TSTRING;

    if (!before && !after)
        ah_lua_raise(
            L, AH_USAGE,
            "%s: policies[%d] must be a function, or a table with a function `before`, `after` "
            "or both; found a table with neither",
            what, at);
    lua_setfield(L, -2, named ? "name" : "nameless");
    lua_getfield(L, -2, "shadow");
    if (!lua_isnil(L, -1) && !lua_isboolean(L, -1))
        ah_lua_raise(L, AH_USAGE, "%s: policies[%d]: `shadow` must be a boolean, found a %s", what,
                     at, luaL_typename(L, -1));
    lua_setfield(L, -2, "shadow");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "self");
}

void ah_lua_read_policies(lua_State *L, const char *what, lua_Integer n)
{
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        int type = lua_geti(L, -2, i); /* -- list kept item */

        lua_createtable(L, 0, 5);
        if (type == LUA_TFUNCTION) {
            lua_pushvalue(L, -2);
            lua_setfield(L, -2, "before");
        } else if (type == LUA_TTABLE) {
            keep_table(L, what, (int)i);
        } else {
            ah_lua_raise(
                L, AH_USAGE,
                "%s: policies[%d] must be a function or a table { before, after, shadow }, "
                "found a %s",
                what, (int)i, lua_typename(L, type));
        }
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
    }
    lua_remove(L, -2);
}

/* -- reading verdicts ------------------------------------------------------------------------- */

static int mistake(lua_State *L, int idx, const char *expected)
{
    return ah_lua_raise(L, AH_USAGE, "it returned %s%s%s; it returns %s",
                        lua_type(L, idx) == LUA_TSTRING ? "\"" : "a ",
                        lua_type(L, idx) == LUA_TSTRING ? lua_tostring(L, idx)
                                                        : luaL_typename(L, idx),
                        lua_type(L, idx) == LUA_TSTRING ? "\"" : "", expected);
}

/* Appends the reason at idx, or else `otherwise`. */
static void take_why(lua_State *L, int idx, ah_ruling *r, const char *otherwise)
{
    if (!ah_lua_put_reason(L, idx, &r->why))
        ah_buf_str(&r->why, otherwise);
    if (!ah_buf_ok(&r->why))
        ah_lua_raise_nomem(L);
}

static ah_text *to_json(lua_State *L, int idx, const char *what)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_CHANGED);
    ah_text *t = NULL;
    ah_err err;

    if (ah_lua_to_json(L, idx, b->mem, b, &err) != AH_OK)
        ah_lua_raise(L, err.status, "%s: %s", what, err.message);
    if (ah_text_from_buf(b, what, &t, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_buf_clear(b);
    lua_pop(L, 1);
    return t;
}

static void read_before(lua_State *L, ah_ruling *r)
{
    static const char expected[] =
        "nil or \"allow\"; \"deny\" or \"ask\", and why; or \"rewrite\" and a table of arguments";
    int word = lua_gettop(L) - 1, second = word + 1;
    const char *said = lua_type(L, word) == LUA_TSTRING ? lua_tostring(L, word) : "";

    if (lua_isnil(L, word) || strcmp(said, "allow") == 0) {
        r->verdict = AH_VERDICT_ALLOW;
    } else if (strcmp(said, "ask") == 0) {
        take_why(L, second, r, "a policy wants it approved");
        r->verdict = AH_VERDICT_ASK;
    } else if (strcmp(said, "deny") == 0) {
        take_why(L, second, r, "a policy denies it");
        r->verdict = AH_VERDICT_DENY;
    } else if (strcmp(said, "rewrite") == 0 && lua_istable(L, second)) {
        r->json = to_json(L, second, "the arguments of \"rewrite\"");
        r->verdict = AH_VERDICT_REWRITE;
    } else if (strcmp(said, "rewrite") == 0) {
        ah_lua_raise(L, AH_USAGE, "\"rewrite\" needs a table of arguments, found a %s",
                     luaL_typename(L, second));
    } else {
        mistake(L, word, expected);
    }
}

/* -- results ----------------------------------------------------------------------------------- */

static ah_text *text_of(lua_State *L, ah_slice s)
{
    ah_text *t = s.p ? ah_text_new(&ah_lua_of(L)->mem, s) : NULL;

    if (s.p && !t)
        ah_lua_raise_nomem(L);
    return t;
}

/* Reads the result at idx as a handler's return value. */
static void read_replacement(lua_State *L, int idx, ah_ruling *r)
{
    const ah_lua_type *type;
    ah_lua_result *res;

    if (lua_isnil(L, idx))
        ah_lua_raise(L, AH_USAGE, "\"replace\" needs the new result");
    res = lua_newuserdatauv(L, sizeof *res, 0);
    ah_lua_result_read(L, idx, 1, res);
    if (!res->o.success && res->o.failure == AH_FAILED_RAISED)
        ah_lua_raise(L, AH_USAGE, "the result of \"replace\": %s", res->err.message);
    r->success = res->o.success;
    r->exclude = res->o.exclude_value;
    r->json = text_of(L, res->o.value);
    r->message = text_of(L, res->o.message);
    r->images = text_of(L, res->o.images);
    if (res->at && (type = ah_lua_push_type_of(L, res->at)))
        r->type = text_of(L, ah_text_slice(type->name));
    ah_lua_result_clear(res);
    r->verdict = AH_VERDICT_REPLACE;
}

/* Pushes one step of a pointer, unescaped; returns the rest of the pointer. */
static ah_slice push_step(lua_State *L, ah_slice p)
{
    char name[MAX_POINTER];
    size_t n = 0, at = 1;

    for (; at < p.n && p.p[at] != '/' && n < sizeof name; at++) {
        bool escaped = p.p[at] == '~' && at + 1 < p.n && (p.p[at + 1] == '0' || p.p[at + 1] == '1');

        name[n++] = escaped ? (p.p[at + 1] == '0' ? '~' : '/') : p.p[at];
        at += escaped;
    }
    lua_pushlstring(L, name, n);
    return (ah_slice){p.p + at, p.n - at};
}

/* -- ... container step: replaces the step by the key of an existing member; false: there is
 * none */
static bool find_member(lua_State *L)
{
    lua_Integer index;
    int is = 0;

    if (!lua_istable(L, -2))
        return false;
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) != LUA_TNIL) { /* of an object */
        lua_pop(L, 1);
        return true;
    }
    lua_pop(L, 1);
    index = lua_tointegerx(L, -1, &is);
    if (!is || lua_rawgeti(L, -2, index + 1) == LUA_TNIL)
        return false;
    lua_pop(L, 2);
    lua_pushinteger(L, index + 1); /* of a list */
    return true;
}

/* Removes from the value at idx the member that the pointer names; true if there was one. */
static bool redact_one(lua_State *L, int idx, ah_slice pointer)
{
    int top = lua_gettop(L);
    bool found = true;

    if (pointer.n > MAX_POINTER || (pointer.n && pointer.p[0] != '/'))
        ah_lua_raise(L, AH_USAGE,
                     "\"redact\" needs JSON pointers (\"/customer/name\"), found \"%.100s\"",
                     pointer.p);
    if (!pointer.n) {
        lua_pushliteral(L, "[redacted]");
        lua_replace(L, idx);
        return true;
    }
    lua_pushvalue(L, idx);
    while (found && pointer.n) {
        pointer = push_step(L, pointer); /* -- container step */
        if (!(found = find_member(L)))
            break;
        if (pointer.n) {
            lua_rawget(L, -2);
            lua_remove(L, -2);
        } else {
            lua_pushliteral(L, "[redacted]");
            lua_rawset(L, -3);
        }
    }
    lua_settop(L, top);
    return found;
}

/* Pushes and returns pointer number i of the list at idx. */
static ah_slice push_pointer(lua_State *L, int idx, lua_Integer i)
{
    ah_slice p;

    if (lua_geti(L, idx, i) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "\"redact\": pointer %d is a %s", (int)i, luaL_typename(L, -1));
    p.p = lua_tolstring(L, -1, &p.n);
    if (p.n > MAX_POINTER || (p.n && p.p[0] != '/'))
        ah_lua_raise(L, AH_USAGE,
                     "\"redact\" needs JSON pointers (\"/customer/name\"), found \"%.100s\"", p.p);
    return p;
}

/* Applies the list of pointers at idx. If none of them finds a member, the value is allowed
 * unchanged. */
static void redact(lua_State *L, int idx, const asked *a)
{
    bool found = false;
    lua_Integer n;
    int value;

    if (!lua_istable(L, idx))
        ah_lua_raise(L, AH_USAGE, "\"redact\" needs a list of JSON pointers, found a %s",
                     luaL_typename(L, idx));
    n = ah_lua_list_check(L, idx, "\"redact\"");
    ah_lua_push_json(L, a->o->value.p ? a->o->value : ah_slice_of("null"));
    value = lua_gettop(L);
    for (lua_Integer i = 1; i <= n; i++) {
        found |= redact_one(L, value, push_pointer(L, idx, i)) && a->o->value.p;
        lua_settop(L, value);
    }
    a->out->verdict = found ? AH_VERDICT_REDACT : AH_VERDICT_ALLOW;
    if (found)
        a->out->json = to_json(L, value, "the redacted value");
}

static void read_after(lua_State *L, const asked *a)
{
    static const char expected[] =
        "nil or \"keep\"; \"replace\" and a result; \"redact\" and a list of JSON "
        "pointers; \"block\" or \"ask\", and why";
    int word = lua_gettop(L) - 1, second = word + 1;
    const char *said = lua_type(L, word) == LUA_TSTRING ? lua_tostring(L, word) : "";

    if (lua_isnil(L, word) || strcmp(said, "keep") == 0) {
        a->out->verdict = AH_VERDICT_ALLOW;
    } else if (strcmp(said, "block") == 0) {
        take_why(L, second, a->out, "a policy blocks it");
        a->out->verdict = AH_VERDICT_BLOCK;
    } else if (strcmp(said, "ask") == 0) {
        take_why(L, second, a->out, "a policy wants its changes approved");
        a->out->verdict = AH_VERDICT_ASK;
    } else if (strcmp(said, "replace") == 0) {
        read_replacement(L, second, a->out);
    } else if (strcmp(said, "redact") == 0) {
        redact(L, second, a);
    } else {
        mistake(L, word, expected);
    }
}

/* -- asking ------------------------------------------------------------------------------------ */

/* { success, content, value } */
static void push_result(lua_State *L, const asked *a)
{
    lua_createtable(L, 0, 3);
    lua_pushboolean(L, a->o->success);
    lua_setfield(L, -2, "success");
    lua_pushlstring(L, a->words.p ? a->words.p : "", a->words.n);
    lua_setfield(L, -2, "content");
    if (a->o->value.p)
        ah_lua_push_json(L, a->o->value);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, "value");
}

/* -- ... policy function: sets the name for warnings and events */
static void name_policy(lua_State *L, ah_ruling *r)
{
    bool named = lua_getfield(L, -2, "name") == LUA_TSTRING;

    if (named)
        ah_print(r->policy, sizeof r->policy, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    if (!named)
        ah_lua_defined(L, -1, r->policy, sizeof r->policy);
}

/* -- ... policy function: pushes the policy's table if the function has a parameter for it, as
 * methods do. Returns the number of values pushed. */
static int push_self(lua_State *L, int arguments)
{
    lua_Debug about;

    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &about);
    if (about.nparams <= arguments)
        return 0;
    if (lua_getfield(L, -2, "self") != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    return 0;
}

/* (asked) */
static int ask(lua_State *L)
{
    asked *a = lua_touserdata(L, 1);
    int arguments = a->o ? 2 : 1;

    lua_rawgeti(L, LUA_REGISTRYINDEX, a->hooks->policies);
    if (lua_rawgeti(L, -1, (lua_Integer)a->i + 1) != LUA_TTABLE)
        return 0;
    a->there = true;
    lua_getfield(L, -1, "shadow");
    a->out->shadow = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (lua_getfield(L, -1, a->o ? "after" : "before") == LUA_TNIL)
        return 0;
    name_policy(L, a->out);
    arguments += push_self(L, arguments);
    ah_lua_push_moment(L, &a->moment);
    if (a->o)
        push_result(L, a);
    lua_call(L, arguments, 2);
    if (a->o)
        read_after(L, a);
    else
        read_before(L, a->out);
    return 0;
}

/* A policy that fails denies the call, or blocks the result. */
static void fail_closed(const asked *a, const ah_err *err)
{
    ah_ruling *r = a->out;

    ah_buf_reset(&r->why, 0);
    ah_buf_str(&r->why, "a policy failed");
    ah_text_set(&r->json, NULL);
    r->failed = true;
    r->verdict = a->o ? AH_VERDICT_BLOCK : AH_VERDICT_DENY;
    ah_print(r->failure, sizeof r->failure, "%s", err->message);
    if (!*r->policy)
        ah_print(r->policy, sizeof r->policy, "%zu", a->i + 1);
}

static bool ask_policy(asked *a)
{
    ah_lua *h = a->hooks->lua;
    lua_State *L = h->caller;
    ah_status st = AH_NOMEM;
    ah_err err;

    if (lua_checkstack(L, 4)) {
        lua_pushcfunction(L, ask);
        lua_pushlightuserdata(L, a);
        st = ah_lua_call_as(h, AH_CALLEE_POLICY, L, 1, 0, &err);
    } else {
        ah_err_nomem(&err);
    }
    ah_lua_end_moment(&a->moment);
    if (st == AH_OK)
        return a->there;
    fail_closed(a, &err);
    return true;
}

bool ah_lua_policy_before(void *ud, ah_run *of, const ah_call *call, size_t i, ah_ruling *out)
{
    asked a = {
        .hooks = ud, .moment = {.run = of ? of : call->run, .call = call}, .i = i, .out = out};

    return ask_policy(&a);
}

bool ah_lua_policy_after(void *ud, ah_run *of, const ah_call *call, size_t i, const ah_outcome *o,
                         ah_slice words, ah_ruling *out)
{
    asked a = {.hooks = ud,
               .moment = {.run = of ? of : call->run, .call = call},
               .i = i,
               .o = o,
               .words = words,
               .out = out};

    return ask_policy(&a);
}
