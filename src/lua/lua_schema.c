/* ah.schema: JSON Schema for scripts, and the short forms.
 *
 * An object (metatable "agenthost.schema") is a userdata that owns one reference to an ah_schema.
 * lua/agenthost/short.lua expands short forms; it is loaded on first use and kept in the registry.
 * Values are passed as JSON text. schema/schema.c has the rules. */
#include "lua/lua_schema.h"

#include "base/near.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_modules.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"
#include "lua/lua_watch.h"
#include "lua/lua_words.h"

#define SCHEMA  "agenthost.schema"
#define SCRATCH "agenthost.schema.scratch"

enum {
    MAX_VALUE = 64 << 20, /* bytes of a value given to validate */
    MAX_WORDS = 4096      /* bytes of the texts about coercion */
};

/* Their addresses are the registry keys of the expander and its inverse. */
static const char expander_key, describer_key;

/* Compiling, for C */

static ah_status compile(const ah_mem *mem, ah_slice text, const ah_schema_options *o,
                         ah_schema **out, ah_err *err)
{
    ah_status st = ah_json_check_err(mem, text, "schema", err);

    if (st == AH_OK)
        return ah_schema_compile_with(mem, text, o, out, err);
    if (st != AH_NOMEM && err)
        err->status = AH_PROMPT_VALIDATION;
    return st == AH_NOMEM ? st : AH_PROMPT_VALIDATION;
}

static ah_status compile_value(lua_State *L, int idx, const ah_mem *mem, const ah_schema_options *o,
                               ah_schema **out, ah_err *err)
{
    ah_err inner;
    ah_buf text;
    ah_status st;

    ah_buf_init(&text, mem, MAX_VALUE);
    st = ah_lua_to_json(L, idx, mem, &text, &inner);
    if (st == AH_OK)
        st = ah_schema_compile_with(mem, ah_buf_slice(&text), o, out, err);
    else if (st == AH_NOMEM)
        ah_err_nomem(err);
    else
        st = ah_err_set(err, AH_PROMPT_VALIDATION, "schema: %s", inner.message);
    ah_buf_clear(&text);
    return st;
}

/* Returns the schema of an ah.schema or an ah.type, borrowed; NULL for anything else. */
static ah_schema *schema_at(lua_State *L, int idx)
{
    ah_schema **box = luaL_testudata(L, idx, SCHEMA);
    const ah_lua_type *type = box ? NULL : ah_lua_to_type(L, idx);

    if (type)
        return type->schema;
    return box ? *box : NULL;
}

static ah_status compile_any(lua_State *L, int idx, const ah_mem *mem, const ah_schema_options *o,
                             ah_schema **out, ah_err *err)
{
    ah_schema *s;
    ah_slice text;

    if (!lua_checkstack(L, LUA_MINSTACK))
        return ah_err_nomem(err);
    switch (lua_type(L, idx)) {
    case LUA_TUSERDATA:
        if (!(s = schema_at(L, idx)))
            break;
        if (o->n || o->formats || o->any_keywords)
            return compile(mem, ah_text_slice(ah_schema_text(s)), o, out, err);
        *out = ah_schema_ref(s);
        return AH_OK;
    case LUA_TSTRING:
        text.p = lua_tolstring(L, idx, &text.n);
        return compile(mem, text, o, out, err);
    case LUA_TTABLE:
    case LUA_TBOOLEAN:
        return compile_value(L, idx, mem, o, out, err);
    default:
        break;
    }
    return ah_err_set(
        err, AH_PROMPT_VALIDATION,
        "schema: expected a table, a string of JSON, an ah.schema or an ah.type, got %s",
        luaL_typename(L, idx));
}

ah_status ah_lua_schema(lua_State *L, int idx, const ah_mem *mem, ah_schema **out, ah_err *err)
{
    ah_schema_options none = {.cache = &ah_lua_of(L)->host->schemas};

    return compile_any(L, idx, mem, &none, out, err);
}

/* Short forms */

/* ah.nearest(word, names) -> name or nil. The name of which the word is a foreign name comes
 * first. */
static int core_nearest(lua_State *L)
{
    ah_near near = {0};
    lua_Integer count;

    near.to.p = luaL_checklstring(L, 1, &near.to.n);
    luaL_checktype(L, 2, LUA_TTABLE);
    count = ah_lua_list_check(L, 2, "ah.nearest: the names");
    for (lua_Integer i = 1; i <= count; i++) {
        ah_slice name;

        if (lua_rawgeti(L, 2, i) != LUA_TSTRING)
            return luaL_error(L, "ah.nearest: names[%d]: expected a string, found %s", (int)i,
                              luaL_typename(L, -1));

        name.p = lua_tolstring(L, -1, &name.n);
        if (ah_word_means(near.to, name))
            return 1;
        ah_near_offer(&near, name);
        lua_pop(L, 1); /* the table keeps it */
    }
    if (near.best.p)
        lua_pushlstring(L, near.best.p, near.best.n);
    else
        lua_pushnil(L);
    return 1;
}

/* decode(json) -> true, value; or false */
static int core_decode(lua_State *L)
{
    ah_json_fault fault;
    ah_slice text;
    ah_status st;

    text.p = luaL_checklstring(L, 1, &text.n);
    if ((st = ah_json_check(&ah_lua_of(L)->mem, text, AH_JSON_MAX_DEPTH, &fault)) == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushboolean(L, st == AH_OK);
    if (!lua_toboolean(L, -1))
        return 1;
    ah_lua_push_json(L, text);
    return 2;
}

/* schema(v) -> its JSON Schema as a Lua value; nil if v is not a schema */
static int core_schema(lua_State *L)
{
    ah_schema *s = schema_at(L, 1);

    if (s)
        ah_lua_push_json(L, ah_text_slice(ah_schema_text(s)));
    else
        lua_pushnil(L);
    return 1;
}

/* encode(v) -> JSON */
static int core_encode(lua_State *L);

/* -- the result of the chunk of this name, which is loaded at the first call */
static void push_chunk(lua_State *L, const char *name, const void *key)
{
    static const luaL_Reg core[] = {{"nearest", core_nearest},
                                    {"decode", core_decode},
                                    {"encode", core_encode},
                                    {"schema", core_schema},
                                    {NULL, NULL}};

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TFUNCTION)
        return;
    lua_pop(L, 1);
    ah_lua_push_chunk(L, name);
    luaL_newlib(L, core);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* (params) -- schema table; its errors have no position */
static int expand(lua_State *L)
{
    push_chunk(L, "agenthost.short", &expander_key);
    lua_insert(L, 1);
    lua_pushinteger(L, 0);
    lua_call(L, 2, 1);
    return 1;
}

ah_status ah_lua_short_schema(lua_State *L, int idx, const ah_mem *mem, ah_schema **out,
                              ah_err *err)
{
    int top = lua_gettop(L), rc;
    ah_status st;

    idx = lua_absindex(L, idx);
    if (!lua_checkstack(L, LUA_MINSTACK))
        return ah_err_nomem(err);
    lua_pushcfunction(L, expand);
    lua_pushvalue(L, idx);
    rc = lua_pcall(L, 1, 1, 0);
    if (rc == LUA_OK)
        st = ah_lua_schema(L, -1, mem, out, err);
    else if (rc == LUA_ERRMEM)
        st = ah_err_nomem(err);
    else
        st = ah_err_set(err, AH_PROMPT_VALIDATION, "%s",
                        lua_isstring(L, -1) ? lua_tostring(L, -1)
                                            : "the short forms raised no message");
    lua_settop(L, top);
    return st;
}

/* Objects */

/* -- an empty box, pushed before there is a schema, which then cannot be lost */
static ah_schema **push_box(lua_State *L)
{
    ah_schema **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = NULL;
    luaL_setmetatable(L, SCHEMA);
    return box;
}

void ah_lua_push_schema(lua_State *L, ah_schema *schema)
{
    *push_box(L) = ah_schema_ref(schema);
}

void ah_lua_read_params(lua_State *L, int idx, const char *what, const ah_mem *mem, ah_schema **out)
{
    int top = lua_gettop(L);
    bool shortly = lua_getfield(L, idx, "params") != LUA_TNIL,
         fully = lua_getfield(L, idx, "schema") != LUA_TNIL;
    ah_status st = AH_OK;
    ah_err err;

    if (shortly && fully)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "%s: params (the short form) and schema (JSON Schema): give one of them",
                     what);
    if (shortly)
        st = ah_lua_short_schema(L, -2, mem, out, &err);
    else if (fully)
        st = ah_lua_schema(L, -1, mem, out, &err);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_settop(L, top);
}

static ah_schema *check_self(lua_State *L)
{
    ah_schema **box = luaL_checkudata(L, 1, SCHEMA);

    luaL_argcheck(L, *box, 1, "a schema that is gone");
    return *box;
}

static int gc_schema(lua_State *L)
{
    ah_schema **box = luaL_checkudata(L, 1, SCHEMA);

    ah_schema_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
}

static int raise(lua_State *L, const ah_err *err)
{
    return err->status == AH_NOMEM ? ah_lua_raise_nomem(L) : luaL_error(L, "%s", err->message);
}

static int short_schema(lua_State *L)
{
    ah_err err;
    ah_schema **box;

    luaL_checkany(L, 1);
    box = push_box(L);
    if (ah_lua_short_schema(L, 1, &ah_lua_of(L)->mem, box, &err) != AH_OK)
        return raise(L, &err);
    return 1;
}

static int schema_text(lua_State *L)
{
    ah_slice text = ah_text_slice(ah_schema_text(check_self(L)));

    lua_pushlstring(L, text.p, text.n);
    return 1;
}

static int schema_tostring(lua_State *L)
{
    lua_pushliteral(L, "ah.schema ");
    schema_text(L);
    lua_concat(L, 2);
    return 1;
}

/* Validating */

/* C memory of a check, in a userdata so that a raise frees it. */
typedef struct scratch {
    ah_buf in, out;
    ah_buf words; /* texts about coercion */
    ah_faults faults;
} scratch;

static int gc_scratch(lua_State *L)
{
    scratch *w = luaL_checkudata(L, 1, SCRATCH);

    ah_buf_clear(&w->in);
    ah_buf_clear(&w->out);
    ah_buf_clear(&w->words);
    ah_faults_clear(&w->faults);
    return 0;
}

static scratch *push_scratch(lua_State *L)
{
    const ah_mem *mem = &ah_lua_of(L)->mem;
    scratch *w = lua_newuserdatauv(L, sizeof *w, 0);

    ah_buf_init(&w->in, mem, MAX_VALUE);
    ah_buf_init(&w->out, mem, MAX_VALUE);
    ah_buf_init(&w->words, mem, MAX_WORDS);
    ah_faults_init(&w->faults, mem);
    luaL_setmetatable(L, SCRATCH);
    return w;
}

static void push_slice(lua_State *L, ah_slice s)
{
    lua_pushlstring(L, s.p, s.n);
}

/* Replaces the value on top by its JSON text. */
static void text_of_document(lua_State *L)
{
    ah_schema **box = luaL_testudata(L, -1, SCHEMA);
    ah_err err;
    ah_buf *b;

    if (box && *box) {
        push_slice(L, ah_text_slice(ah_schema_text(*box)));
    } else if (lua_type(L, -1) == LUA_TSTRING) {
        ah_slice text = {.p = lua_tostring(L, -1), .n = (size_t)lua_rawlen(L, -1)};

        if (ah_json_check_err(&ah_lua_of(L)->mem, text, "a document", &err) != AH_OK)
            raise(L, &err);
        return;
    } else {
        b = &push_scratch(L)->in;
        if (ah_lua_to_json(L, -2, b->mem, b, &err) != AH_OK)
            raise(L, &err);
        push_slice(L, ah_buf_slice(b));
        ah_buf_clear(b);
        lua_remove(L, -2);
    }
    lua_remove(L, -2);
}

static lua_Integer count_members(lua_State *L, int idx)
{
    lua_Integer n = 0;

    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
        n++;
    return n;
}

/* (documents) -- a value that keeps the texts */
static void read_documents(lua_State *L, ah_schema_options *o)
{
    int from = lua_gettop(L), kept;
    size_t n = (size_t)count_members(L, from);
    ah_schema_document *list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 1);

    lua_newtable(L);
    kept = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
        ah_schema_document *d = list + o->n;

        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "ah.schema: documents are named by their URI, got a %s",
                       luaL_typename(L, -2));
        text_of_document(L);
        d->text.p = lua_tolstring(L, -1, &d->text.n);
        d->uri.p = lua_tolstring(L, -2, &d->uri.n);
        lua_pushvalue(L, -1);
        lua_rawseti(L, kept, (lua_Integer)++o->n);
    }
    lua_setiuservalue(L, kept - 1, 1);
    o->documents = list;
}

/* The option unknown_keywords: "refuse", which is the default, or "allow". */
static bool allows_unknown(lua_State *L, int arg)
{
    bool allow;

    lua_getfield(L, arg, "unknown_keywords");
    allow = lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "allow") == 0;
    if (!allow && !lua_isnil(L, -1) &&
        (lua_type(L, -1) != LUA_TSTRING || strcmp(lua_tostring(L, -1), "refuse") != 0))
        luaL_error(L, "ah.schema: unknown_keywords: expected \"allow\" or \"refuse\", got %s",
                   luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
    return allow;
}

/* Reads the options. Leaves on the stack the values that they point into. */
static void read_options(lua_State *L, int arg, ah_schema_options *o)
{
    if (lua_isnoneornil(L, arg))
        return;
    luaL_checktype(L, arg, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";

        if (strcmp(name, "documents") != 0 && strcmp(name, "formats") != 0 &&
            strcmp(name, "unknown_keywords") != 0)
            luaL_error(
                L,
                "ah.schema: unknown option '%s'; there are documents, formats and unknown_keywords",
                name);
    }
    o->any_keywords = allows_unknown(L, arg);
    lua_getfield(L, arg, "formats");
    o->formats = lua_toboolean(L, -1);
    if (lua_getfield(L, arg, "documents") == LUA_TTABLE)
        read_documents(L, o);
    else if (!lua_isnil(L, -1))
        luaL_error(L, "ah.schema: documents: expected a table, got a %s", luaL_typename(L, -1));
}

/* Compiles the schema at arg. In a schema by itself a default is only a note, as in the
 * specification. In a tool's schema it must conform, since a handler relies on it. */
static int compile_arg(lua_State *L, int arg)
{
    ah_schema_options o = {.any_defaults = true, .cache = &ah_lua_of(L)->host->schemas};
    ah_err err;
    ah_schema **box;

    luaL_checkany(L, arg);
    lua_settop(L, arg + 1);
    read_options(L, arg + 1, &o);
    box = push_box(L);
    if (compile_any(L, arg, &ah_lua_of(L)->mem, &o, box, &err) != AH_OK)
        return raise(L, &err);
    return 1;
}

static int call_schema(lua_State *L)
{
    return compile_arg(L, 2);
}

static int compile_schema(lua_State *L)
{
    return compile_arg(L, 1);
}

/* Answers */

/* -- list of { pointer, rule, message } */
static void push_faults(lua_State *L, const ah_faults *f)
{
    lua_createtable(L, (int)f->n, 0);
    for (size_t i = 0; i < f->n; i++) {
        lua_createtable(L, 0, 3);
        push_slice(L, f->item[i].pointer);
        lua_setfield(L, -2, "pointer");
        push_slice(L, f->item[i].rule);
        lua_setfield(L, -2, "rule");
        push_slice(L, f->item[i].message);
        lua_setfield(L, -2, "message");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static int fail(lua_State *L, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_newtable(L);
    return 3;
}

static int core_encode(lua_State *L)
{
    scratch *w = push_scratch(L);
    ah_err err;

    if (ah_lua_to_json(L, 1, w->in.mem, &w->in, &err) != AH_OK)
        raise(L, &err);
    push_slice(L, ah_buf_slice(&w->in));
    ah_buf_clear(&w->in);
    return 1;
}

/* describe(v): the short form of any schema, or of a value that makes one */
static int describe(lua_State *L)
{
    ah_slice text;

    lua_settop(L, 1);
    compile_arg(L, 1); /* leaves nil at 2, and its own values above */
    text = ah_text_slice(ah_schema_text(*(ah_schema **)lua_touserdata(L, -1)));
    push_chunk(L, "agenthost.describe", &describer_key);
    ah_lua_push_json(L, text);
    lua_call(L, 1, 1);
    return 1;
}

/* Reads the third argument of validate: "schema", "forbid", or { extra = one of them, coerce and
 * null_absent = boolean }. */
static void read_check(lua_State *L, ah_check_options *o)
{
    static const char *const extras[] = {"schema", "forbid", NULL};
    static const ah_extra extra[] = {AH_EXTRA_SCHEMA, AH_EXTRA_FORBID};

    if (lua_istable(L, 3)) {
        for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
            const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";

            if (strcmp(name, "extra") != 0 && strcmp(name, "coerce") != 0 &&
                strcmp(name, "null_absent") != 0)
                luaL_error(L,
                           "validate: unknown option '%s'; there are extra, coerce and null_absent",
                           name);
        }
        lua_getfield(L, 3, "coerce");
        o->coerce = lua_toboolean(L, -1);
        lua_getfield(L, 3, "null_absent");
        o->null_absent = lua_toboolean(L, -1);
        lua_getfield(L, 3, "extra");
        lua_replace(L, 3);
        lua_pop(L, 2);
    }
    o->extra = extra[luaL_checkoption(L, 3, "schema", extras)];
}

/* Checks w->in; pushes the answer of validate and validate_text. */
static int answer(lua_State *L, const ah_schema *s, scratch *w, bool as_text)
{
    ah_check_options o = {.coerced = &w->words, .interrupt = &ah_lua_of(L)->interrupt};
    ah_status st;

    read_check(L, &o);
    st = ah_schema_check_with(s, ah_buf_slice(&w->in), &o, &w->faults, &w->out);
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (st == AH_CANCELLED) {
        ah_faults_print(&w->faults, &w->out);
        return ah_watch_raise(L, ah_buf_slice(&w->out));
    }
    if (st != AH_OK)
        return fail(L,
                    "the value with its defaults is larger than 64 MiB or deeper than 512 levels");
    if (w->faults.n == 0) {
        lua_pushboolean(L, true);
        if (as_text)
            push_slice(L, ah_buf_slice(&w->out));
        else
            ah_lua_push_json(L, ah_buf_slice(&w->out));
        if (!ah_buf_cut_short(&w->words))
            return ah_lua_raise_nomem(L);
        if (w->words.len == 0)
            return 2;
        push_slice(L, ah_buf_slice(&w->words));
        return 3;
    }
    lua_pushnil(L);
    ah_faults_print(&w->faults, &w->out);
    push_slice(L, ah_buf_slice(&w->out));
    push_faults(L, &w->faults);
    return 3;
}

/* The scratch is emptied at once, or by the collector after a raise. */
static int validate(lua_State *L, bool as_text)
{
    const ah_schema *s = check_self(L);
    ah_err err;
    ah_status st;
    scratch *w;
    int n;

    luaL_checkany(L, 2);
    lua_settop(L, 3);
    w = push_scratch(L); /* at 4 */
    if (as_text) {
        ah_slice text;

        text.p = luaL_checklstring(L, 2, &text.n);
        ah_buf_put(&w->in, text);
        st = ah_buf_ok(&w->in) ? ah_json_check_err(w->in.mem, text, "the value", &err)
                               : ah_buf_error(&w->in, "the value", &err);
    } else {
        st = ah_lua_to_json(L, 2, w->in.mem, &w->in, &err);
    }
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    n = st == AH_OK ? answer(L, s, w, as_text) : fail(L, err.message);
    ah_buf_clear(&w->in);
    ah_buf_clear(&w->out);
    ah_buf_clear(&w->words);
    ah_faults_clear(&w->faults);
    return n;
}

static int schema_validate(lua_State *L)
{
    return validate(L, false);
}

static int schema_validate_text(lua_State *L)
{
    return validate(L, true);
}

static void make_metatables(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", gc_schema}, {"__tostring", schema_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"validate", schema_validate},
                                       {"validate_text", schema_validate_text},
                                       {"text", schema_text},
                                       {NULL, NULL}};

    luaL_newmetatable(L, SCHEMA);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "schema");
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, SCHEMA);
    lua_setfield(L, -2, "__metatable");
    luaL_newmetatable(L, SCRATCH);
    lua_pushcfunction(L, gc_scratch);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 2);
}

void ah_lua_open_schema(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"compile", compile_schema}, {"describe", describe}, {"short", short_schema}, {NULL, NULL}};

    make_metatables(L);
    luaL_newlib(L, functions);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, call_schema);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "schema");
    lua_pushcfunction(L, core_nearest);
    lua_setfield(L, -2, "nearest");
}
