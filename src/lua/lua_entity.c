/* ah.entity { name, prefix, id, fields, stateless, find }: a class. Calling it makes its table
 * argument an instance. Class:tool declares which methods a model gets after a tool has returned an
 * instance (run/discover.h), and how they are announced. Calls of methods are in
 * lua_entity_call.c. */
#include "lua/lua_entity.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

static const char ENTITY[] = "agenthost.entity";
static const char NAMED[] =
    "agenthost.entities"; /* registry: name -> the latest class of this name */
static const char ID[] = "agenthost.entity.id";

static const char class_key; /* in an instance's metatable, its class */

enum { MAX_FIELDS = 1000, MAX_VALUE = 64 << 20 };

/* -- instances ---------------------------------------------------------------------------- */

static const ah_lua_entity *to_entity(lua_State *L, int idx)
{
    return luaL_testudata(L, idx, ENTITY);
}

const ah_lua_entity *ah_lua_push_entity_of(lua_State *L, int idx)
{
    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return NULL;
    lua_rawgetp(L, -1, &class_key); /* -- mt class: no other code has the key */
    if (to_entity(L, -1)) {         /* NULL after the finalizer of the class */
        lua_remove(L, -2);
        return to_entity(L, -1);
    }
    lua_pop(L, 2);
    return NULL;
}

const ah_lua_entity *ah_lua_push_entity_named(lua_State *L, ah_slice name)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, NAMED);
    lua_pushlstring(L, name.p, name.n);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    if (to_entity(L, -1))
        return to_entity(L, -1);
    lua_pop(L, 1);
    return NULL;
}

/* -- ids ------------------------------------------------------------------------------------- */

static ah_status no_id(const ah_entity_class *c, ah_err *err, const char *reason)
{
    ah_err_set(err, AH_INVALID_TOOL_PROVIDER, "@ToolProvider %s is invalid: %s", c->name->data,
               reason);
    ah_json_detail(err, "provider_class", ah_text_slice(c->name));
    ah_json_detail(err, "reason", ah_slice_of(reason));
    return AH_INVALID_TOOL_PROVIDER;
}

/* (class, instance) -- id: the field itself, or the result of a method or function. Returns true
 * (nil may be pushed for null), or false if there is no such field. */
static bool push_id(lua_State *L)
{
    bool function = lua_getiuservalue(L, 1, AH_ENTITY_ID_OF) == LUA_TFUNCTION;

    if (!function)
        lua_gettable(L, 2);
    if (lua_isnil(L, -1))
        return false;
    if (lua_isfunction(L, -1)) {
        lua_pushvalue(L, 2);
        lua_call(L, 1, 1);
    }
    return true;
}

/* Returns why the value on top is not a valid id, or NULL. */
static const char *fault_of(lua_State *L)
{
    ah_slice id;

    if (lua_isnil(L, -1) || (lua_islightuserdata(L, -1) && !lua_touserdata(L, -1)))
        return "Instance ID cannot be null";
    if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER)
        return lua_pushfstring(L, "Instance ID must be a string or a number, found a %s",
                               luaL_typename(L, -1));
    id.p = lua_tolstring(L, -1, &id.n);
    if (id.n >= 1 && id.n <= AH_ENTITY_ID && ah_utf8_valid(id) && !memchr(id.p, '\0', id.n))
        return NULL;
    return "Instance ID must be UTF-8 of 1 to 512 bytes, without NUL";
}

/* (class, instance, err) -- text, or nil with *err filled */
static int read_id(lua_State *L)
{
    const ah_entity_class *c = ((const ah_lua_entity *)lua_touserdata(L, 1))->core;
    const char *fault;

    if (push_id(L)) {
        fault = fault_of(L);
    } else {
        lua_getiuservalue(L, 1, AH_ENTITY_ID_OF);
        fault = lua_pushfstring(L, "missing instanceIdProperty: %s", lua_tostring(L, -1));
    }
    if (!fault)
        return 1;
    no_id(c, lua_touserdata(L, 3), fault);
    return 0;
}

ah_status ah_lua_entity_id(ah_lua *h, lua_State *L, int class, int idx, ah_text **out, ah_err *err)
{
    const ah_lua_entity *e = lua_touserdata(L, class);
    char why[sizeof err->message];
    ah_status st;
    ah_slice id;

    if (!lua_checkstack(L, 4))
        return ah_err_nomem(err);
    lua_pushcfunction(L, read_id);
    lua_pushvalue(L, class < 0 ? class - 1 : class);
    lua_pushvalue(L, idx < 0 ? idx - 2 : idx);
    lua_pushlightuserdata(L, err);
    st = ah_lua_call_as(h, AH_CALLEE_ID, L, 3, 1, err);
    if (st != AH_OK) {
        memcpy(why, err->message, sizeof why);
        return st == AH_NOMEM ? st : no_id(e->core, err, why);
    }
    id.p = lua_tolstring(L, -1, &id.n);
    if (!id.p)
        st = AH_INVALID_TOOL_PROVIDER;
    else if (!(*out = ah_text_new(&h->mem, id)))
        st = ah_err_nomem(err);
    lua_pop(L, 1);
    return st;
}

/* -- the entities of a value ------------------------------------------------------------------ */

/* Pushes the item at place *at of the value at idx and advances *at; false: no such place. */
static bool push_next(lua_State *L, int idx, size_t *at)
{
    if (ah_lua_push_entity_of(L, idx)) {
        lua_pop(L, 1);
        lua_pushvalue(L, idx);
        return (*at)++ == 0;
    }
    if (!lua_istable(L, idx))
        return false;
    if (lua_rawgeti(L, idx, (lua_Integer)++ * at) != LUA_TNIL)
        return true;
    lua_pop(L, 1);
    return false;
}

/* Arguments and results of ah_lua_next_entity, passed to `look`. */
typedef struct looking {
    ah_lua *lua;
    int ref;
    size_t *at;
    ah_entity *out;
    ah_err *err;
    ah_status st;
} looking;

static int look(lua_State *L)
{
    looking *l = lua_touserdata(L, 1);
    const ah_lua_entity *e = NULL;

    lua_rawgeti(L, LUA_REGISTRYINDEX, l->ref); /* -- l value */
    while (!e && push_next(L, 2, l->at))       /* -- l value item class */
        if (!(e = ah_lua_push_entity_of(L, 3)) || !e->core->n) {
            lua_settop(L, 2);
            e = NULL;
        }
    if (!e)
        return 0;
    if ((l->st = ah_lua_entity_id(l->lua, L, 4, 3, &l->out->id, l->err)) != AH_OK)
        return 0;
    l->out->instance = ah_lua_live(L, 3);
    if (!l->out->instance.vt)
        return ah_lua_raise_nomem(L);
    l->out->of = ah_entity_class_ref(e->core);
    return 0;
}

ah_status ah_lua_next_entity(ah_lua *h, int ref, size_t *at, ah_entity *out, ah_err *err)
{
    looking l = {h, ref, at, out, err, AH_OK};
    ah_status st;

    if (!lua_checkstack(h->caller, 4))
        return ah_err_nomem(err);
    lua_pushcfunction(h->caller, look);
    lua_pushlightuserdata(h->caller, &l);
    st = ah_lua_call(h, h->caller, 1, 0, err);
    st = st == AH_OK ? l.st : st;
    if (st != AH_OK)
        ah_entity_clear(out);
    return st;
}

/* -- tools of a class -------------------------------------------------------------------------- */

/* Finds the function that the table at 3 names or contains, and makes it a member of the class at
 * 1; pushes the name of the member. */
static void push_member(lua_State *L)
{
    bool named = lua_getfield(L, 3, "method") != LUA_TNIL;

    lua_getiuservalue(L, 1, AH_ENTITY_MEMBERS); /* -- method members */
    if (named) {
        luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING, 2, "field 'method' must be a string");
        lua_pushvalue(L, -2);
        if (lua_rawget(L, -2) != LUA_TFUNCTION)
            ah_lua_raise(L, AH_PROMPT_VALIDATION, "entity:tool: the class has no method '%s'",
                         lua_tostring(L, -3));
        lua_setfield(L, 3, "handler");
        lua_pushvalue(L, -2);
        return;
    }
    if (lua_getfield(L, 3, "name") != LUA_TSTRING || lua_getfield(L, 3, "handler") != LUA_TFUNCTION)
        ah_lua_raise(
            L, AH_PROMPT_VALIDATION,
            "entity:tool: give a name and a handler (function(self, args, ctx)), or method, the "
            "name of a function of the class");
    lua_pushvalue(L, -2);
}

/* (class, declaration) -- class declaration copy: the copy is for ah_lua_push_method. */
static void copy_declaration(lua_State *L)
{
    lua_settop(L, 2);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, 3);
    }
}

/* Records the method's name at `key` for tool number n. */
static void note_method(lua_State *L, int key, size_t n)
{
    lua_getiuservalue(L, 1, AH_ENTITY_METHODS);
    lua_pushvalue(L, key);
    lua_rawseti(L, -2, (lua_Integer)n + 1);
    lua_pop(L, 1);
}

/* Pushes the tool that the copy at 3 declares. */
static ah_tool *push_tool(lua_State *L)
{
    ah_tool *t;

    lua_pushvalue(L, 1);
    lua_pushvalue(L, 3);
    lua_replace(L, 1); /* ah_lua_push_method reads the table at 1 */
    t = ah_lua_push_method(L, "entity:tool");
    lua_pushvalue(L, -2);
    lua_replace(L, 1);
    return t;
}

static const ah_option method_rows[] = {
    {.name = "name",
     .kinds = AH_OPT_ANY,
     .is = "string",
     .type = "string",
     .doc = "letters, digits, `_` and `-`; at most 48 characters together with the prefix"},
    {.name = "description",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .doc = "as in [`ah.tool`](tool.md#ahtool)"},
    {.name = "handler",
     .kinds = AH_OPT_ANY,
     .is = "function",
     .type = "fun(self: table, args: table, ctx: ah.Ctx?): any, string?",
     .doc = "`function(self, args, ctx)`; scripts can call it as a method of the instances, by "
            "that name"},
    {.name = "method",
     .kinds = AH_OPT_STRING,
     .doc = "in place of `handler`: the name of a method that the class already has; also the "
            "default of `name`"},
    {.name = "stateless",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .doc = "true: this method does not change the instance"},
    {0},
};
const ah_subject ah_subject_method = {.what = "entity:tool",
                                      .type = "ah.MethodConfig",
                                      .base = &ah_subject_tool_common,
                                      .declares = true,
                                      .row = method_rows};

/* Class:tool { name, description, params, handler = function(self, args, ctx) }, or with `method`
 * instead of the handler. Returns the class, so that declarations can be chained. */
static int entity_tool(lua_State *L)
{
    ah_lua_entity *e = luaL_checkudata(L, 1, ENTITY);
    bool stateless;
    ah_tool *t;
    ah_err err;

    ah_options_read(L, 2, &ah_subject_method, NULL);
    copy_declaration(L);
    lua_getfield(L, 2, "stateless");
    stateless = lua_toboolean(L, -1);
    lua_pop(L, 1);
    push_member(L);
    lua_replace(L, 4); /* -- class declaration copy key */
    lua_settop(L, 4);
    if (lua_getfield(L, 3, "name") == LUA_TNIL) {
        lua_pushvalue(L, 4);
        lua_setfield(L, 3, "name");
    }
    t = push_tool(L);
    t->stateless = stateless || e->stateless;
    note_method(L, 4, e->core->n);
    if (ah_entity_class_add(e->core, t, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_getiuservalue(L, 1, AH_ENTITY_MEMBERS);
    lua_pushvalue(L, 4);
    lua_getfield(L, 3, "handler");
    lua_rawset(L, -3);
    lua_settop(L, 1);
    return 1;
}

/* -- members of a class ------------------------------------------------------------------------ */

static int entity_index(lua_State *L)
{
    const ah_lua_entity *e = luaL_checkudata(L, 1, ENTITY);
    ah_slice key = {NULL, 0};

    if (lua_type(L, 2) == LUA_TSTRING)
        key.p = lua_tolstring(L, 2, &key.n);
    if (ah_slice_is(key, "tool"))
        lua_pushcfunction(L, entity_tool);
    else if (ah_slice_is(key, "name"))
        lua_pushstring(L, e->core->name->data);
    else if (ah_slice_is(key, "prefix"))
        lua_pushstring(L, e->core->prefix->data);
    else {
        lua_getiuservalue(L, 1, AH_ENTITY_MEMBERS);
        lua_pushvalue(L, 2);
        lua_rawget(L, -2);
    }
    return 1;
}

/* True for a metamethod that a script may set in the metatable of instances. */
static bool is_metamethod(const char *key)
{
    static const char *const free_ones[] = {"__tostring", "__eq",     "__lt",   "__le",
                                            "__call",     "__concat", "__close"};

    for (size_t i = 0; i < sizeof free_ones / sizeof *free_ones; i++)
        if (strcmp(key, free_ones[i]) == 0)
            return true;
    return false;
}

/* function Class:foo() ... end, and Class.__tostring = function ... */
static int entity_newindex(lua_State *L)
{
    const char *key;

    luaL_checkudata(L, 1, ENTITY);
    key = luaL_checkstring(L, 2);
    if (strcmp(key, "tool") == 0 || strcmp(key, "name") == 0 || strcmp(key, "prefix") == 0)
        return ah_lua_raise(L, AH_USAGE, "entity: '%s' of a class cannot be set", key);
    if (strncmp(key, "__", 2) == 0 && !is_metamethod(key))
        return ah_lua_raise(L, AH_USAGE, "entity: metamethod '%s' cannot be set", key);
    lua_getiuservalue(L, 1, strncmp(key, "__", 2) == 0 ? AH_ENTITY_META : AH_ENTITY_MEMBERS);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
    return 0;
}

/* Class(data): the same table, which becomes an instance. Class(nil) is nil. */
static int entity_call(lua_State *L)
{
    const ah_lua_entity *e = luaL_checkudata(L, 1, ENTITY), *of;

    lua_settop(L, 2);
    if (lua_isnil(L, 2))
        return 1;
    if (!lua_istable(L, 2))
        return ah_lua_raise(L, AH_USAGE, "%s: expected a table, found a %s", e->core->name->data,
                            luaL_typename(L, 2));
    of = ah_lua_push_entity_of(L, 2);
    lua_settop(L, 2);
    if (of != e && lua_getmetatable(L, 2))
        return ah_lua_raise(L, AH_USAGE, "%s: the table has a metatable already%s%s",
                            e->core->name->data, of ? ", that of the entity " : "",
                            of ? of->core->name->data : "");
    lua_getiuservalue(L, 1, AH_ENTITY_META);
    lua_setmetatable(L, 2);
    lua_settop(L, 2);
    return 1;
}

static int entity_gc(lua_State *L)
{
    ah_lua_entity *e = luaL_checkudata(L, 1, ENTITY);

    ah_entity_class_unref(e->core);
    e->core = NULL;
    return ah_lua_retire(L);
}

static int entity_tostring(lua_State *L)
{
    const ah_lua_entity *e = luaL_checkudata(L, 1, ENTITY);

    lua_pushfstring(L, "entity %s", e->core->name->data);
    return 1;
}

static int instance_tostring(lua_State *L)
{
    const ah_lua_entity *e = ah_lua_push_entity_of(L, 1);
    ah_err err;
    ah_buf *b;

    if (!e)
        return luaL_error(L, "not an instance");
    b = ah_lua_push_buf(L, MAX_VALUE);
    lua_toclose(L, -1);
    if (ah_lua_to_json(L, 1, b->mem, b, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    lua_pushfstring(L, "%s ", e->core->name->data);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    lua_concat(L, 2);
    return 1;
}

/* -- ah.entity --------------------------------------------------------------------------------- */

/* Declaration at 1, class at 2. */
static void set_metatable_of_instances(lua_State *L, const ah_lua_entity *e)
{
    lua_createtable(L, 0, 4);
    lua_pushstring(L, e->core->name->data);
    lua_setfield(L, -2, "__name");
    lua_pushcfunction(L, instance_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_setiuservalue(L, 2, AH_ENTITY_MEMBERS);
    lua_pushvalue(L, 2);
    lua_rawsetp(L, -2, &class_key);
    ah_lua_set_json(L, ah_lua_put_entity);
    lua_setiuservalue(L, 2, AH_ENTITY_META);
}

static void read_id_of(lua_State *L)
{
    int type = lua_getfield(L, 1, "id");

    if (type == LUA_TNIL)
        lua_pushliteral(L, "id");
    else if (type != LUA_TSTRING && type != LUA_TFUNCTION)
        ah_lua_raise(
            L, AH_PROMPT_VALIDATION,
            "ah.entity: field 'id' must be the name of a field or method, or a function, found "
            "a %s",
            luaL_typename(L, -1));
    lua_setiuservalue(L, 2, AH_ENTITY_ID_OF);
    lua_settop(L, 2);
}

/* Keeps a copy of the list of names without repetitions as a user value, so that a script cannot
 * change it. */
static void read_fields(lua_State *L, const char *field, int value)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, 1, "ah.entity", field, &n))
        return;
    if (n > MAX_FIELDS)
        ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.entity: %s: at most %d", field, MAX_FIELDS);
    lua_createtable(L, (int)n, 0);
    lua_newtable(L); /* -- list own seen */
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_geti(L, -3, i) != LUA_TSTRING)
            ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.entity: %s[%d] must be a string", field,
                         (int)i);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL)
            ah_lua_raise(L, AH_PROMPT_VALIDATION, "ah.entity: %s[%d]: '%s' is listed twice", field,
                         (int)i, lua_tostring(L, -2));
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -4, i);
        lua_pushboolean(L, true);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    lua_setiuservalue(L, 2, value);
    lua_settop(L, 2);
}

/* Registers the class as the one that is found by its name. */
static void enter_by_name(lua_State *L, const ah_lua_entity *e)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, NAMED);
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, e->core->name->data);
    lua_settop(L, 2);
}

typedef struct entity_fields {
    ah_slice name, prefix;
    bool stateless;
} entity_fields;

static const ah_option entity_rows[] = {
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .otherwise = "`unknown`",
     .to = AH_TO_HELD(entity_fields, name),
     .doc = "1 to 64 letters, digits and `_`; used in events, errors and saved conversations"},
    {.name = "prefix",
     .kinds = AH_OPT_STRING,
     .otherwise = "the name in lower case; `tool` without one",
     .to = AH_TO_HELD(entity_fields, prefix),
     .doc = "the beginning of the tools' names: 1 to 24 letters, digits, `_` and `-`; not "
            "`planning` and not beginning with `planning_`"},
    {.name = "id",
     .kinds = AH_OPT_ANY,
     .otherwise = "`\"id\"`",
     .is = "string or function",
     .type = "string|fun(self: table): string|number",
     .doc = "name of a field or method, or `function(self)`, which [cannot "
            "wait](waiting.md#what-may-wait); its value, a number or 1 to 512 bytes, identifies an "
            "instance"},
    {.name = "fields",
     .kinds = AH_OPT_LIST,
     .otherwise = "all that do not begin with `_`",
     .is = "list of strings",
     .type = "string[]",
     .doc = "the fields that a model [sees](entities.md#what-a-model-sees)"},
    {.name = "state",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .doc = "the fields that a [store](stores.md#entities-and-resources) keeps; or give the class "
            "methods `snapshot` and `restore`"},
    {.name = "stateless",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(entity_fields, stateless),
     .doc = "true: no method changes an instance, and no call [locks, copies and "
            "restores](entities.md#state) it"},
    {.name = "find",
     .kinds = AH_OPT_FUNCTION,
     .type = "fun(id: string): table?",
     .doc = "`function(id)`: returns the instance with this id, a plain table that becomes an "
            "instance, or nil; may wait"},
    {0},
};
const ah_subject ah_subject_entity = {
    .what = "ah.entity", .type = "ah.EntityConfig", .declares = true, .row = entity_rows};

static int new_entity(lua_State *L)
{
    entity_fields f = {.name = AH_LIT("unknown")};
    ah_lua_entity *e;
    ah_err err;

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_entity, &f);
    e = lua_newuserdatauv(L, sizeof *e, AH_ENTITY_VALUES); /* -- t class */
    *e = (ah_lua_entity){0};
    luaL_setmetatable(L, ENTITY);
    e->stateless = f.stateless;
    if (!f.prefix.p && lua_getfield(L, 1, "name") == LUA_TNIL)
        f.prefix = ah_slice_of("tool");
    lua_settop(L, 2);
    if (ah_entity_class_new(&ah_lua_of(L)->mem, f.name, f.prefix, &ah_lua_entity_vt, &e->core,
                            &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    read_id_of(L);
    read_fields(L, "fields", AH_ENTITY_FIELDS);
    read_fields(L, "state", AH_ENTITY_STATE);
    e->core->finds = lua_getfield(L, 1, "find") != LUA_TNIL;
    lua_setiuservalue(L, 2, AH_ENTITY_FIND);
    lua_newtable(L);
    lua_setiuservalue(L, 2, AH_ENTITY_METHODS);
    set_metatable_of_instances(L, e);
    enter_by_name(L, e);
    return 1;
}

/* ah.is_provider(value): true if the class of the value has tools. */
static int is_provider(lua_State *L)
{
    const ah_lua_entity *e;

    luaL_checkany(L, 1);
    e = ah_lua_push_entity_of(L, 1);
    lua_pushboolean(L, e && e->core->n);
    return 1;
}

/* (instance, class, id, list) -- the same, with tool number i appended to the list */
static void put_tool(lua_State *L, const ah_entity_class *c, size_t i, ah_slice stem)
{
    const ah_tool *t = c->method[i];
    char name[AH_ENTITY_TOOL_NAME];
    ah_slice said = ah_entity_tool_name(c, i, stem, name);

    lua_createtable(L, 0, 4);
    lua_pushlstring(L, said.p, said.n);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, t->name->data);
    lua_setfield(L, -2, "method");
    ah_lua_push_json(L, ah_json_member(ah_text_slice(t->spec), "description"));
    lua_setfield(L, -2, "description");
    ah_lua_push_json(L, ah_json_member(ah_text_slice(t->spec), "parameters"));
    lua_setfield(L, -2, "params");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
}

static int id_gc(lua_State *L)
{
    ah_text_set(luaL_checkudata(L, 1, ID), NULL);
    return 0;
}

/* ah.tools_of(instance): a list of { name, description, params, method }, as in a conversation in
 * which no other id leads to the same name. */
static int tools_of(lua_State *L)
{
    const ah_lua_entity *e;
    ah_text **id;
    ah_buf *stem;
    ah_err err;

    lua_settop(L, 1);
    e = ah_lua_push_entity_of(L, 1);
    if (!e)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.tools_of: expected an instance of an entity, found a %s",
                            luaL_typename(L, 1));
    id = lua_newuserdatauv(L, sizeof(ah_text *), 0);
    *id = NULL;
    luaL_setmetatable(L, ID); /* -- instance class id */
    if (ah_lua_entity_id(ah_lua_of(L), L, 2, 1, id, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    stem = ah_lua_push_buf(L, 2 * AH_ENTITY_ID);
    ah_entity_stem(e->core, ah_text_slice(*id), 1, stem);
    if (!ah_buf_ok(stem))
        return ah_lua_raise_nomem(L);
    lua_newtable(L);
    for (size_t i = 0; i < e->core->n; i++)
        put_tool(L, e->core, i, ah_buf_slice(stem));
    return 1;
}

/* Pushes { name, prefix, find, class, tools, methods } for the class at idx: its tools, which take
 * no id, and the name of each tool's method. `find` is nil if it has none. */
static void push_class(lua_State *L, int idx)
{
    const ah_entity_class *c = to_entity(L, idx)->core;

    lua_createtable(L, 0, 6);
    lua_pushstring(L, c->name->data);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, c->prefix->data);
    lua_setfield(L, -2, "prefix");
    lua_pushvalue(L, idx);
    lua_setfield(L, -2, "class");
    lua_getiuservalue(L, idx, AH_ENTITY_FIND);
    lua_setfield(L, -2, "find");
    lua_getiuservalue(L, idx, AH_ENTITY_METHODS);
    lua_setfield(L, -2, "methods");
    lua_createtable(L, (int)c->n, 0);
    for (size_t i = 0; i < c->n; i++) {
        ah_lua_push_tool(L, c->method[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "tools");
}

/* ah._entities(): the classes by their names. */
static int entities(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, NAMED);
    for (lua_pushnil(L); lua_next(L, 2); lua_settop(L, 3)) { /* -- classes named name class */
        if (!to_entity(L, 4))
            continue;
        lua_pushvalue(L, 3);
        push_class(L, 4);
        lua_rawset(L, 1);
    }
    lua_settop(L, 1);
    return 1;
}

void ah_lua_open_entity(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", entity_gc},
                                    {"__call", entity_call},
                                    {"__index", entity_index},
                                    {"__newindex", entity_newindex},
                                    {"__tostring", entity_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg id_meta[] = {{"__gc", id_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"entity", new_entity},
                                         {"is_provider", is_provider},
                                         {"tools_of", tools_of},
                                         {"_entities", entities},
                                         {NULL, NULL}};

    luaL_newmetatable(L, ENTITY);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, ID);
    luaL_setfuncs(L, id_meta, 0);
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
}
