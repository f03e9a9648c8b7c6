/* Error objects: the second value of `nil, err`, errors of declarations, and errors that handlers
 * raise with error(ah.error { ... }). */
#include "lua/lua_error.h"

#include <stdarg.h>

#include "lua/lua_state.h"
#include "lua/lua_value.h"

static const char ERROR[] = "agenthost.error";

enum { MAX_POSITIONS = 250 }; /* more than the possible nesting of coroutines */

static void set_string(lua_State *L, const char *name, ah_slice s)
{
    lua_pushlstring(L, s.p ? s.p : "", s.n);
    lua_setfield(L, -2, name);
}

static void set_details(lua_State *L, ah_slice details)
{
    ah_lua_push_json(L, details); /* -- e details */
    lua_pushnil(L);
    while (lua_next(L, -2)) { /* -- e details k v */
        lua_pushvalue(L, -2);
        lua_insert(L, -2); /* -- e details k k v */
        lua_settable(L, -5);
    }
    lua_pop(L, 1);
}

void ah_lua_push_error(lua_State *L, const ah_err *err)
{
    lua_createtable(L, 0, 6); /* -- e */
    set_string(L, "code", ah_slice_of(ah_status_name(err->status)));
    set_string(L, "message", ah_slice_of(err->message));
    if (ah_phase_name(err->phase))
        set_string(L, "phase", ah_slice_of(ah_phase_name(err->phase)));
    lua_pushboolean(L, err->retryable);
    lua_setfield(L, -2, "retryable");
    if (err->http_status) {
        lua_pushinteger(L, err->http_status);
        lua_setfield(L, -2, "status");
    }
    if (err->details[0])
        set_details(L, ah_slice_of(err->details));
    luaL_setmetatable(L, ERROR);
}

bool ah_lua_push_message(lua_State *L, int idx)
{
    bool is;

    idx = lua_absindex(L, idx);
    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return false;
    luaL_getmetatable(L, ERROR);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    if (!is)
        return false;
    lua_pushliteral(L, "message");
    if (lua_rawget(L, idx) == LUA_TSTRING)
        return true;
    lua_pop(L, 1);
    return false;
}

void ah_lua_where(lua_State *co, char *out, size_t size)
{
    lua_Debug ar;

    for (int level = 0; lua_getstack(co, level, &ar); level++) {
        lua_getinfo(co, "Sl", &ar);
        if (ar.currentline > 0 && strncmp(ar.source, "=agenthost", 10) != 0) {
            ah_print(out, size, "%s:%d", ar.short_src, ar.currentline);
            return;
        }
    }
}

void ah_lua_defined(lua_State *L, int idx, char *out, size_t size)
{
    lua_Debug ar;

    lua_pushvalue(L, idx);
    lua_getinfo(L, ">S", &ar);
    if (ar.linedefined > 0)
        ah_print(out, size, "%s:%d", ar.short_src, ar.linedefined);
    else
        ah_print(out, size, "%s", ar.short_src);
}

bool ah_lua_push_place(lua_State *L)
{
    lua_Debug ar;

    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0 && strncmp(ar.source, "=agenthost", 10) != 0) {
            lua_pushfstring(L, "%s:%d", ar.short_src, ar.currentline);
            return true;
        }
    }
    return false;
}

/* Pushes "script.lua:12: ", or "" if no code of a script runs. */
static void push_where(lua_State *L)
{
    if (!ah_lua_push_place(L)) {
        lua_pushliteral(L, "");
        return;
    }
    lua_pushliteral(L, ": ");
    lua_concat(L, 2);
}

/* For AH_NOMEM raises the string that Lua keeps for memory errors: the caught status is LUA_ERRMEM,
 * and raising takes no memory. */
int ah_lua_raise_err(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    ah_lua_push_error(L, err); /* -- e */
    push_where(L);             /* -- e where */
    lua_pushstring(L, err->message);
    lua_concat(L, 2);
    lua_setfield(L, -2, "message");
    return lua_error(L);
}

int ah_lua_raise(lua_State *L, ah_status st, const char *fmt, ...)
{
    ah_err err;
    va_list ap;

    va_start(ap, fmt);
    ah_err_vset(&err, st, fmt, ap);
    va_end(ap);
    return ah_lua_raise_err(L, &err);
}

/* -- reading raised values -------------------------------------------------------------- */

/* Returns the message behind one "chunk:line: " at its beginning. */
static const char *past_one(const char *s)
{
    const char *colon = s;

    while ((colon = strchr(colon, ':'))) {
        const char *p = colon + 1;

        while (*p >= '0' && *p <= '9')
            p++;
        if (p > colon + 1 && p[0] == ':' && p[1] == ' ')
            return p + 2;
        if (memchr(s, '\n', (size_t)(colon - s)))
            return s;
        colon++;
    }
    return s;
}

/* Skips all positions: each coroutine.wrap that an error passes adds one. */
static const char *past_position(const char *s)
{
    const char *next = past_one(s);

    for (int i = 0; next != s && i < MAX_POSITIONS; i++) {
        s = next;
        next = past_one(s);
    }
    return s;
}

/* Pushes a field of that type by raw access if it is present. Finds the key by going through the
 * table, since creating the key string could allocate. */
static bool push_raw(lua_State *L, int idx, const char *name, int type)
{
    idx = lua_absindex(L, idx);
    if (!lua_checkstack(L, 3))
        return false;
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        if (lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == type &&
            !strcmp(lua_tostring(L, -2), name)) {
            lua_remove(L, -2);
            return true;
        }
        lua_pop(L, 1);
    }
    return false;
}

/* Returns a string field by raw access; it is valid as long as the table holds it. */
static const char *raw_string(lua_State *L, int idx, const char *name)
{
    const char *s = NULL;

    if (push_raw(L, idx, name, LUA_TSTRING)) {
        s = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    return s;
}

static ah_phase phase_of(const char *name)
{
    int p = AH_PHASE_RESPONSE;

    while (p > AH_PHASE_NONE && (!name || strcmp(ah_phase_name((ah_phase)p), name) != 0))
        p--;
    return (ah_phase)p;
}

static void read_object(lua_State *L, int idx, bool placed, ah_err *err)
{
    const char *code = raw_string(L, idx, "code"), *message = raw_string(L, idx, "message");
    ah_status st = ah_status_from_code(ah_slice_of(code));
    const char *reason;

    ah_err_set(err, st == AH_OK ? AH_INTERNAL : st, "%s",
               !message ? "error object without a message"
               : placed ? message
                        : past_position(message));
    err->phase = phase_of(raw_string(L, idx, "phase"));
    if ((reason = raw_string(L, idx, "reason")) && ah_utf8_valid(ah_slice_of(reason)))
        ah_json_detail(err, "reason", ah_slice_of(reason));
    if (push_raw(L, idx, "retryable", LUA_TBOOLEAN)) {
        err->retryable = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    if (push_raw(L, idx, "status", LUA_TNUMBER)) {
        err->http_status = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
}

static void read_error(lua_State *L, int idx, bool placed, ah_err *err)
{
    int type = lua_type(L, idx);

    if (type == LUA_TSTRING)
        ah_err_set(err, AH_INTERNAL, "%s",
                   placed ? lua_tostring(L, idx) : past_position(lua_tostring(L, idx)));
    else if (type == LUA_TTABLE)
        read_object(L, idx, placed, err);
    else
        ah_err_set(err, AH_INTERNAL, "a %s was raised as error", lua_typename(L, type));
}

void ah_lua_read_error(lua_State *L, int idx, ah_err *err)
{
    read_error(L, idx, false, err);
}

void ah_lua_read_placed(lua_State *L, int idx, ah_err *err)
{
    read_error(L, idx, true, err);
}

/* -- ah.error ------------------------------------------------------------------------------ */

static int error_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_getfield(L, 1, "code");
    lua_getfield(L, 1, "message");
    lua_pushfstring(L, "%s: %s", luaL_tolstring(L, 2, NULL), luaL_tolstring(L, 3, NULL));
    return 1;
}

/* True also for the group: `deadline` and `budget` are kinds of prompt_evaluation (seed 002,
 * Adapter Behavior). */
static int error_is(lua_State *L)
{
    const char *asked = luaL_checkstring(L, 2), *code;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "code");
    code = lua_tostring(L, -1);
    lua_pushboolean(L,
                    code && (strcmp(code, asked) == 0 || (strcmp(asked, "prompt_evaluation") == 0 &&
                                                          (strcmp(code, "deadline_exceeded") == 0 ||
                                                           strcmp(code, "budget_exceeded") == 0))));
    return 1;
}

/* ah.error { code, message, ... } or ah.error(message): an object to raise or return. */
static int new_error(lua_State *L)
{
    const char *code;

    if (lua_type(L, 1) == LUA_TSTRING) {
        lua_newtable(L);
        lua_pushvalue(L, 1);
        lua_setfield(L, -2, "message");
        lua_replace(L, 1);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_getfield(L, 1, "code");
    code = luaL_optstring(L, -1, "internal");
    if (ah_status_from_code(ah_slice_of(code)) == AH_OK)
        return ah_lua_raise(L, AH_USAGE, "ah.error: '%s' is no error code", code);
    lua_pushstring(L, code);
    lua_setfield(L, 1, "code");
    if (lua_getfield(L, 1, "message") != LUA_TSTRING)
        return ah_lua_raise(L, AH_USAGE, "ah.error: message must be a string");
    lua_settop(L, 1);
    luaL_setmetatable(L, ERROR);
    return 1;
}

/* The upvalues are the methods, the object and the list of their names. */
static int find_method(lua_State *L)
{
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    return ah_lua_raise(L, AH_USAGE, "%s has no '%s': it has %s",
                        lua_tostring(L, lua_upvalueindex(2)), luaL_tolstring(L, 2, NULL),
                        lua_tostring(L, lua_upvalueindex(3)));
}

void ah_lua_methods(lua_State *L, const char *name, const luaL_Reg *methods, const char *object,
                    const char *list)
{
    luaL_newmetatable(L, name);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_pushstring(L, object);
    lua_pushstring(L, list);
    lua_pushcclosure(L, find_method, 3);
    lua_setfield(L, -2, "__index");
}

void ah_lua_error_class(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__tostring", error_tostring}, {NULL, NULL}};

    luaL_newmetatable(L, ERROR);
    luaL_setfuncs(L, meta, 0);
    lua_newtable(L);
    lua_pushcfunction(L, error_is);
    lua_setfield(L, -2, "is");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void ah_lua_open_error(lua_State *L)
{
    lua_pushcfunction(L, new_error);
    lua_setfield(L, -2, "error");
}
