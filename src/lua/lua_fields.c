/* Tables with named fields, read strictly: a typing error in a declaration must not become a silent
 * default. */
#include "lua/lua_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/lent.h"
#include "base/near.h"
#include "lua/lua_error.h"
#include "lua/lua_value.h"
#include "lua/lua_words.h"

/* Returns the place of the key in the list, or -1. */
static int place_of(const char *const *known, ah_slice key)
{
    for (int i = 0; known[i]; i++)
        if (ah_slice_is(key, known[i]))
            return i;
    return -1;
}

enum {
    FEW_FIELDS = 16,  /* most fields that are listed if none is near */
    SHOWN_FIELDS = 2, /* most fields that show the form of a table */
    MAX_METHODS = 64
};

/* Pushes and returns " (did you mean 'a' or 'b'?)", with our names for a foreign name, else with
 * the nearest name by letters. If none is near, pushes nothing and returns NULL. */
static const char *push_meant(lua_State *L, const char *const *known, ah_slice key)
{
    const char *between = " (did you mean '", *meant;
    ah_near near = {.to = key};
    bool word = false;
    size_t at = 0;
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (; (meant = ah_word_next(key, known, &at)) != NULL; word = true, between = "' or '") {
        luaL_addstring(&b, between);
        luaL_addstring(&b, meant);
    }
    for (; !word && *known; known++)
        ah_near_offer(&near, ah_slice_of(*known));
    if (near.best.p) {
        luaL_addstring(&b, between);
        luaL_addlstring(&b, near.best.p, near.best.n);
    }
    luaL_addstring(&b, word || near.best.p ? "'?)" : "");
    luaL_pushresult(&b);
    if (word || near.best.p)
        return lua_tostring(L, -1);
    lua_pop(L, 1);
    return NULL;
}

/* Pushes and returns "; there are a, b", or "" for more than FEW_FIELDS. */
static const char *push_few(lua_State *L, const char *const *known)
{
    luaL_Buffer b;
    int n = 0;

    luaL_buffinit(L, &b);
    while (known[n])
        n++;
    for (int i = 0; n <= FEW_FIELDS && i < n; i++) {
        luaL_addstring(&b, i ? ", " : "; there are ");
        luaL_addstring(&b, known[i]);
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* Pushes and returns "{ input = ..., output = ... }", with the first fields. */
static const char *push_form(lua_State *L, const char *const *known)
{
    luaL_Buffer b;

    luaL_checkstack(L, 4, "fields");
    luaL_buffinit(L, &b);
    for (int i = 0; known[i] && i < SHOWN_FIELDS; i++) {
        luaL_addstring(&b, i ? ", " : "{ ");
        luaL_addstring(&b, known[i]);
        luaL_addstring(&b, " = ...");
    }
    luaL_addstring(&b, known[0] && known[1] && known[2] ? ", ... }" : " }");
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

int ah_lua_unknown(lua_State *L, const char *what, const char *const *known, ah_slice key)
{
    const char *field, *in = ah_word_inside(known, key, &field), *meant;

    luaL_checkstack(L, 6, what);
    if (in)
        ah_lua_raise(L, AH_USAGE, "%s: unknown field '%.*s'; it belongs in '%s': %s = { %s = ... }",
                     what, AH_FMT(key), in, in, field);
    if (!(meant = push_meant(L, known, key)))
        meant = push_few(L, known);
    return ah_lua_raise(L, AH_USAGE, "%s: unknown field '%.*s'%s", what, AH_FMT(key), meant);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* (methods, key), with the name of the class as upvalue */
static int missing_method(lua_State *L)
{
    const char *known[MAX_METHODS + 1];
    size_t n = 0;
    ah_slice key;

    for (lua_pushnil(L); lua_next(L, 1) && n < MAX_METHODS; lua_pop(L, 1))
        known[n++] = lua_tostring(L, -2); /* held by the table */
    known[n] = NULL;
    qsort(known, n, sizeof *known, compare_names);
    key.p = luaL_checklstring(L, 2, &key.n);
    return ah_lua_unknown(L, lua_tostring(L, lua_upvalueindex(1)), known, key);
}

void ah_lua_methods_only(lua_State *L, const char *what)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, what);
    lua_pushcclosure(L, missing_method, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

static void refuse_table(lua_State *L, int idx, const char *what)
{
    const char *found = luaL_typename(L, idx);

    if (strncmp(what, "ah.", 3) == 0)
        ah_lua_raise(L, AH_USAGE, "%s: expected a table of fields, found %s: write %s { ... }",
                     what, found, what);
    ah_lua_raise(L, AH_USAGE, "%s: expected a table of fields, found %s", what, found);
}

/* Returns the bit of the key at idx; 0 for a key of a list. Raises for an unknown key. */
static uint64_t check_key(lua_State *L, int idx, const char *what, const char *const *known,
                          bool list)
{
    ah_slice key;
    int at;

    if (lua_type(L, idx) == LUA_TSTRING) {
        key.p = lua_tolstring(L, idx, &key.n);
        if ((at = place_of(known, key)) < 0)
            ah_lua_unknown(L, what, known, key);
        return (uint64_t)1 << at;
    }
    if (!list && lua_isinteger(L, idx)) {
        ah_lua_raise(L, AH_USAGE, "%s: found a value without a name; write %s", what,
                     push_form(L, known));
    } else if (!list || !lua_isinteger(L, idx)) {
        ah_lua_raise(L, AH_USAGE, "%s: unexpected %s as key", what, luaL_typename(L, idx));
    }
    return 0;
}

/* Adds the fields that the table at idx inherits by its metatable to the table on top. Returns
 * their bits. */
static uint64_t add_inherited(lua_State *L, int idx, const char *const *known, bool list)
{
    lua_Integer n = list ? luaL_len(L, idx) : 0;
    int own = lua_gettop(L);
    uint64_t there = 0;

    for (int i = 0; known[i]; i++) {
        if (lua_getfield(L, own, known[i]) == LUA_TNIL &&
            lua_getfield(L, idx, known[i]) != LUA_TNIL) {
            lua_setfield(L, own, known[i]);
            there |= (uint64_t)1 << i;
        }
        lua_settop(L, own);
    }
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, own) + 1; i <= n; i++) {
        lua_geti(L, idx, i);
        lua_rawseti(L, own, i);
    }
    return there;
}

/* -- lists ------------------------------------------------------------------------------- */

/* Pushes the fault of the key on top, which is not a key of a list. */
static const char *push_wrong_key(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TSTRING)
        return lua_pushfstring(L, ": unexpected name '%s'; this is a list, { value, ... }",
                               lua_tostring(L, -1));
    if (lua_isinteger(L, -1))
        return lua_pushfstring(L, ": unexpected key %I; a list begins at 1",
                               (LUAI_UACINT)lua_tointeger(L, -1));
    return lua_pushfstring(L, ": unexpected %s as key; this is a list, { value, ... }",
                           luaL_typename(L, -1));
}

/* Pushes the fault of a list whose item `at` is nil. A constructor that fails returns nil, err: so
 * the message includes that of an error object at the next index. */
static const char *push_hole(lua_State *L, int idx, lua_Integer at)
{
    lua_pushfstring(L, "[%I] is nil", (LUAI_UACINT)at);
    lua_geti(L, idx, at + 1);
    if (ah_lua_push_message(L, lua_gettop(L))) {
        lua_pushfstring(L, "%s: %s", lua_tostring(L, -3), lua_tostring(L, -1));
        return lua_tostring(L, -1);
    }
    lua_pushfstring(L, "%s; a list has no holes", lua_tostring(L, -2));
    return lua_tostring(L, -1);
}

/* Returns the largest integer key of the table at idx. If a key cannot belong to a list, pushes the
 * fault and returns -1. Skips names if `named`. */
static lua_Integer last_key(lua_State *L, int idx, bool named)
{
    lua_Integer n = luaL_len(L, idx);

    for (lua_pushnil(L); lua_next(L, idx);) {
        lua_pop(L, 1); /* -- key */
        if (named && lua_type(L, -1) == LUA_TSTRING)
            continue;
        if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1) {
            push_wrong_key(L);
            return -1;
        }
        n = lua_tointeger(L, -1) > n ? lua_tointeger(L, -1) : n;
    }
    return n;
}

/* Returns the number of values; or pushes the fault and returns -1. */
static lua_Integer measure(lua_State *L, int idx, bool named)
{
    lua_Integer n;

    luaL_checkstack(L, 8, "a list");
    if (!lua_istable(L, idx) || (!named && ah_lua_is_object(L, idx))) {
        lua_pushfstring(L, ": expected a list, { value, ... }, found %s",
                        lua_istable(L, idx) ? "an object" : luaL_typename(L, idx));
        return -1;
    }
    n = last_key(L, idx, named);
    for (lua_Integer i = 1; i <= n; i++, lua_pop(L, 1)) {
        if (lua_geti(L, idx, i) != LUA_TNIL)
            continue;
        push_hole(L, idx, i);
        return -1;
    }
    return n;
}

lua_Integer ah_lua_list_check(lua_State *L, int idx, const char *what)
{
    lua_Integer n = measure(L, lua_absindex(L, idx), false);

    if (n < 0)
        ah_lua_raise(L, AH_USAGE, "%s%s", what, lua_tostring(L, -1));
    return n;
}

bool ah_lua_field_list(lua_State *L, int idx, const char *what, const char *name, lua_Integer *n)
{
    if (!ah_lua_field_push(L, idx, what, name, LUA_TTABLE))
        return false;
    lua_pushfstring(L, "%s: %s", what, name);
    *n = ah_lua_list_check(L, -2, lua_tostring(L, -1));
    lua_pop(L, 1);
    return true;
}

const char *ah_lua_list_fault(lua_State *L, int idx)
{
    return measure(L, lua_absindex(L, idx), false) < 0 ? lua_tostring(L, -1) : NULL;
}

/* -- tables ------------------------------------------------------------------------------ */

uint64_t ah_lua_fields_check(lua_State *L, int idx, const char *what, const char *const *known,
                             bool list)
{
    uint64_t there = 0;

    idx = lua_absindex(L, idx);
    if (lua_type(L, idx) != LUA_TTABLE)
        refuse_table(L, idx, what);
    luaL_checkstack(L, 6, what);
    lua_createtable(L, list ? (int)lua_rawlen(L, idx) : 0, 0);
    lua_pushnil(L);
    while (lua_next(L, idx)) { /* -- own key value */
        there |= check_key(L, -2, what, known, list);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    if (lua_getmetatable(L, idx)) {
        lua_pop(L, 1);
        there |= add_inherited(L, idx, known, list);
    }
    lua_replace(L, idx);
    if (list && measure(L, idx, true) < 0)
        ah_lua_raise(L, AH_USAGE, "%s%s", what, lua_tostring(L, -1));
    return there;
}

/* Returns the kind of the value on top: "agenthost.tool" rather than "userdata". May push. */
static const char *kind_of(lua_State *L)
{
    const char *kind = luaL_typename(L, -1);

    if (lua_type(L, -1) == LUA_TUSERDATA && luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
        kind = lua_tostring(L, -1);
    return kind;
}

static int wrong(lua_State *L, const char *what, const char *name, const char *wanted)
{
    return ah_lua_raise(L, AH_USAGE, "%s: field '%s' must be %s, found %s", what, name, wanted,
                        kind_of(L));
}

bool ah_lua_field_string(lua_State *L, int idx, const char *what, const char *name, ah_slice *out)
{
    int type = lua_getfield(L, idx, name);

    if (type != LUA_TNIL && type != LUA_TSTRING)
        wrong(L, what, name, "a string");
    if (type == LUA_TSTRING) {
        out->p = lua_tolstring(L, -1, &out->n);
        *out = ah_lend(*out);
    }
    lua_pop(L, 1);
    return type == LUA_TSTRING;
}

bool ah_lua_field_push(lua_State *L, int idx, const char *what, const char *name, int type)
{
    int found = lua_getfield(L, idx, name);

    if (found == LUA_TNIL) {
        lua_pop(L, 1);
        return false;
    }
    if (found != type)
        wrong(L, what, name, type == LUA_TTABLE ? "a table, { ... }" : "a function");
    return true;
}
