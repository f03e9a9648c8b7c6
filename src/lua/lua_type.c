/* ah.type { name, fields | schema, render }: a class of values. Calling it checks a table, fills in
 * defaults and returns an instance: a table of data with the class's metatable, by which C
 * recognises it. Instances may be changed; a tool's result and a slice check them again and keep
 * them as JSON. */
#include "lua/lua_type.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_schema.h"
#include "lua/lua_value.h"
#include "lua/lua_watch.h"
#include "lua/lua_options.h"

static const char TYPE[] = "agenthost.type";
static const char CHECK[] = "agenthost.type.check";

static const char class_key; /* in an instance's metatable, its class */

enum { MAX_NAME = 64, MAX_VALUE = 64 << 20, INSTANCE_META = 1, RENDER = 2 /* user values */ };

const ah_lua_type *ah_lua_to_type(lua_State *L, int idx)
{
    const ah_lua_type *t = luaL_testudata(L, idx, TYPE);

    return t && t->schema ? t : NULL;
}

const ah_lua_type *ah_lua_push_type_of(lua_State *L, int idx)
{
    const ah_lua_type *t;

    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return NULL;
    lua_rawgetp(L, -1, &class_key); /* -- mt class */
    lua_remove(L, -2);
    if (!(t = ah_lua_to_type(L, -1)))
        lua_pop(L, 1);
    return t;
}

void ah_lua_make_instance(lua_State *L, int idx)
{
    lua_getiuservalue(L, idx, INSTANCE_META);
    lua_setmetatable(L, -2);
}

bool ah_lua_push_type_render(lua_State *L, int idx)
{
    if (lua_getiuservalue(L, idx, RENDER) == LUA_TFUNCTION)
        return true;
    lua_pop(L, 1);
    return false;
}

/* -- instances ----------------------------------------------------------------------------- */

/* C memory of a check, in a userdata so that a raise frees it. */
typedef struct check {
    ah_buf in, out;
    ah_faults faults;
} check;

static int clear_check(lua_State *L)
{
    check *c = luaL_checkudata(L, 1, CHECK);

    ah_buf_clear(&c->in);
    ah_buf_clear(&c->out);
    ah_faults_clear(&c->faults);
    return 0;
}

static check *push_check(lua_State *L)
{
    const ah_mem *mem = &ah_lua_of(L)->mem;
    check *c = lua_newuserdatauv(L, sizeof *c, 0);

    ah_buf_init(&c->in, mem, MAX_VALUE);
    ah_buf_init(&c->out, mem, MAX_VALUE);
    ah_faults_init(&c->faults, mem);
    luaL_setmetatable(L, CHECK);
    lua_toclose(L, -1);
    return c;
}

static int refuse(lua_State *L, const ah_lua_type *t, check *c)
{
    ah_buf_reset(&c->out, 0);
    ah_faults_print(&c->faults, &c->out);
    return ah_lua_raise(L, AH_TOOL_VALIDATION, "%s: %.*s", t->name->data,
                        AH_FMT(ah_buf_slice(&c->out)));
}

/* Plan { ... }: returns an instance, or raises tool_validation. */
static int type_call(lua_State *L)
{
    const ah_lua_type *t = luaL_checkudata(L, 1, TYPE);
    const ah_check_options options = {
        .extra = AH_EXTRA_FORBID, .empty_lists = true, .interrupt = &ah_lua_of(L)->interrupt};
    ah_status st;
    ah_err err;
    check *c;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    c = push_check(L);
    if (ah_lua_to_json(L, 2, c->in.mem, &c->in, &err) != AH_OK)
        return err.status == AH_NOMEM
                   ? ah_lua_raise_nomem(L)
                   : ah_lua_raise(L, AH_TOOL_VALIDATION, "%s: %s", t->name->data, err.message);
    st = ah_schema_check_with(t->schema, ah_buf_slice(&c->in), &options, &c->faults, &c->out);
    if (st == AH_CANCELLED)
        return ah_watch_raise(L, (ah_slice){NULL, 0});
    if (st != AH_OK)
        return ah_lua_raise_nomem(L);
    if (c->faults.n)
        return refuse(L, t, c);
    ah_lua_push_json(L, ah_buf_slice(&c->out));
    ah_lua_make_instance(L, 1);
    return 1;
}

static int instance_tostring(lua_State *L)
{
    const ah_lua_type *t = ah_lua_push_type_of(L, 1); /* -- v class */
    ah_err err;
    ah_buf *b;

    if (!t)
        return luaL_error(L, "not an instance");
    b = ah_lua_push_buf(L, MAX_VALUE);
    lua_toclose(L, -1);
    if (ah_lua_to_json(L, 1, b->mem, b, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_pushfstring(L, "%s ", t->name->data);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    lua_concat(L, 2);
    return 1;
}

/* -- classes ------------------------------------------------------------------------------- */

static bool name_char(char c, bool first)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (!first && c >= '0' && c <= '9');
}

static void read_name(lua_State *L, ah_slice name, ah_lua_type *t)
{
    bool ok = name.n >= 1 && name.n <= MAX_NAME;
    for (size_t i = 0; ok && i < name.n; i++)
        ok = name_char(name.p[i], i == 0);
    if (!ok)
        ah_lua_raise(
            L, AH_PROMPT_VALIDATION,
            "ah.type: name must be 1 to %d of a-z, A-Z, 0-9 and _ that begin with no digit, "
            "found '%.*s'",
            MAX_NAME, AH_FMT(name));
    if (!(t->name = ah_text_new(&ah_lua_of(L)->mem, name)))
        ah_lua_raise_nomem(L);
}

static void read_schema(lua_State *L, ah_lua_type *t)
{
    const ah_mem *mem = &ah_lua_of(L)->mem;
    bool fields = lua_getfield(L, 1, "fields") != LUA_TNIL,
         schema = lua_getfield(L, 1, "schema") != LUA_TNIL;
    ah_err err;
    ah_status st;

    if (fields == schema)
        ah_lua_raise(L, AH_PROMPT_VALIDATION,
                     "ah.type: give fields (the short form) or schema (JSON Schema), one of them");
    st = fields ? ah_lua_short_schema(L, -2, mem, &t->schema, &err)
                : ah_lua_schema(L, -1, mem, &t->schema, &err);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
    if (!ah_schema_is_object(t->schema))
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.type: the schema of %s must have type object",
                     t->name->data);
    lua_pop(L, 2);
}

/* Called with the class on top. */
static void set_instance_meta(lua_State *L, const ah_lua_type *t)
{
    lua_createtable(L, 0, 3); /* -- class mt */
    lua_pushstring(L, t->name->data);
    lua_setfield(L, -2, "__name");
    lua_pushcfunction(L, instance_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, &class_key);
    lua_setiuservalue(L, -2, INSTANCE_META); /* -- class */
}

typedef struct type_fields {
    ah_slice name;
} type_fields;

static const ah_option type_rows[] = {
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .to = AH_TO_HELD(type_fields, name),
     .doc = "1 to 64 of `a-z`, `A-Z`, `0-9` and `_`, not beginning with a digit"},
    {.name = "fields",
     .kinds = AH_OPT_ANY,
     .is = "table",
     .type = "table<string, any>",
     .doc = "in [short form](tool.md#short-forms); either this or `schema`"},
    {.name = "schema",
     .kinds = AH_OPT_ANY,
     .is = "table, JSON text or schema",
     .type = "table|string|ah.Schema",
     .doc = "JSON Schema of type `object`"},
    {.name = "render",
     .kinds = AH_OPT_FUNCTION,
     .otherwise = "as JSON",
     .type = "fun(value: table): string",
     .doc = "`function(value)`: returns the text that the model sees for a tool's value"},
    {0},
};
const ah_subject ah_subject_type = {
    .what = "ah.type", .type = "ah.TypeConfig", .declares = true, .row = type_rows};

static int new_type(lua_State *L)
{
    type_fields f = {0};
    ah_lua_type *t;

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_type, &f);
    t = lua_newuserdatauv(L, sizeof *t, 2); /* -- def class */
    *t = (ah_lua_type){0};
    luaL_setmetatable(L, TYPE);
    read_name(L, f.name, t);
    read_schema(L, t);
    lua_getfield(L, 1, "render");
    lua_setiuservalue(L, -2, RENDER);
    set_instance_meta(L, t);
    return 1;
}

static int type_gc(lua_State *L)
{
    ah_lua_type *t = luaL_checkudata(L, 1, TYPE);

    ah_text_set(&t->name, NULL);
    ah_schema_unref(t->schema);
    t->schema = NULL;
    return ah_lua_retire(L);
}

static int type_index(lua_State *L)
{
    static const char *const known[] = {"name", "schema", NULL};
    const ah_lua_type *t = luaL_checkudata(L, 1, TYPE);
    const char *key = luaL_checkstring(L, 2);

    if (strcmp(key, "name") == 0)
        lua_pushstring(L, t->name->data);
    else if (strcmp(key, "schema") == 0)
        ah_lua_push_schema(L, t->schema);
    else
        return ah_lua_unknown(L, "type", known, ah_slice_of(key));
    return 1;
}

static int type_tostring(lua_State *L)
{
    const ah_lua_type *t = luaL_checkudata(L, 1, TYPE);

    lua_pushfstring(L, "type %s", t->name->data);
    return 1;
}

void ah_lua_open_type(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", type_gc},
                                    {"__call", type_call},
                                    {"__index", type_index},
                                    {"__tostring", type_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg check_meta[] = {
        {"__gc", clear_check}, {"__close", clear_check}, {NULL, NULL}};

    luaL_newmetatable(L, TYPE);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, CHECK);
    luaL_setfuncs(L, check_meta, 0);
    lua_pop(L, 2);
    lua_pushcfunction(L, new_type);
    lua_setfield(L, -2, "type");
}
