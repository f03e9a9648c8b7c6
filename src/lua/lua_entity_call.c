/* Calls of an entity's method: on the instance that is known, or on one that the class finds again.
 * During the call only this call and those around it may use the instance, which is restored if the
 * call fails (entities are changed in place). Values kept elsewhere, as in upvalues, are not
 * restored. */
#include "lua/lua_entity.h"
#include "lua/lua_error.h"
#include "lua/lua_states.h"
#include "lua/lua_tool.h"
#include "lua/lua_undo.h"
#include "run/discover.h"
#include "run/run.h"

enum {
    MAX_NODES = 10000, /* tables and members that are copied for each call */
    STEP = 3           /* per table in a copy: the table, its members, its metatable or false */
};

/* -- undo copies ------------------------------------------------------------------------- */

/* True for values that are not copied: other entities, and tables whose owner has protected them
 * with __metatable. */
static bool ends_at(lua_State *L, int t)
{
    bool closed;

    if (ah_lua_push_entity_of(L, t)) {
        lua_pop(L, 1);
        return true;
    }
    if (!lua_getmetatable(L, t))
        return false;
    lua_pushliteral(L, "__metatable");
    lua_rawget(L, -2);
    closed = !lua_isnil(L, -1);
    lua_pop(L, 2);
    return closed;
}

/* (instance, copy, seen): adds the table at t to the tables to be copied. */
static void add_table(lua_State *L, int t)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, 2);

    lua_pushvalue(L, t);
    lua_rawseti(L, 2, n + 1);
    lua_pushboolean(L, false); /* its members are not copied yet */
    lua_rawseti(L, 2, n + 2);
    if (!lua_getmetatable(L, t))
        lua_pushboolean(L, false);
    lua_rawseti(L, 2, n + 3);
    lua_pushvalue(L, t);
    lua_pushboolean(L, true);
    lua_rawset(L, 3);
}

/* Calls add_table if t is a table that is not in the copy yet. */
static void consider(lua_State *L, int t)
{
    bool seen;

    if (!lua_istable(L, t))
        return;
    lua_pushvalue(L, t);
    seen = lua_rawget(L, 3) != LUA_TNIL;
    lua_pop(L, 1);
    if (!seen && !ends_at(L, t))
        add_table(L, t);
}

/* (instance, copy, seen): copies the members of the table at place `at` of the copy; returns their
 * number. */
static int copy_members(lua_State *L, lua_Integer at)
{
    int n = 1;

    lua_rawgeti(L, 2, at);
    lua_newtable(L); /* -- t members */
    for (lua_pushnil(L); lua_next(L, 4); lua_pop(L, 1), n++) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, 5);
        consider(L, 6);
        consider(L, 7);
        if (n > MAX_NODES)
            break;
    }
    lua_settop(L, 5);
    lua_rawseti(L, 2, at + 1);
    lua_settop(L, 3);
    return n;
}

/* (instance) -- copy */
static int copy_instance(lua_State *L)
{
    int nodes = 0;

    luaL_checkstack(L, 12, "copy");
    lua_settop(L, 1);
    lua_newtable(L);
    lua_newtable(L); /* -- instance copy seen */
    add_table(L, 1);
    for (lua_Integer at = 1; at <= (lua_Integer)lua_rawlen(L, 2); at += STEP)
        if ((nodes += copy_members(L, at)) > MAX_NODES)
            return ah_lua_raise(
                L, AH_USAGE,
                "an entity %s holds more than %d values, too many to copy for each "
                "call: give it methods snapshot and restore, or declare stateless = true",
                ah_lua_push_entity_of(L, 1)->core->name->data, MAX_NODES);
    lua_settop(L, 2);
    return 1;
}

/* Restores the members first, so that a failure loses none; then removes members added since. */
static void set_back(lua_State *L, int t, int members)
{
    for (lua_pushnil(L); lua_next(L, members); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, t);
    }
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        if (lua_rawget(L, members) == LUA_TNIL) {
            lua_pushvalue(L, -3);
            lua_pushnil(L);
            lua_rawset(L, t);
        }
        lua_pop(L, 1);
    }
}

/* (instance, copy) */
static int restore_instance(lua_State *L)
{
    lua_settop(L, 2);
    for (lua_Integer at = 1; at <= (lua_Integer)lua_rawlen(L, 2); at += STEP) {
        lua_rawgeti(L, 2, at);
        lua_rawgeti(L, 2, at + 1);
        set_back(L, 3, 4);
        if (lua_rawgeti(L, 2, at + 2) != LUA_TTABLE) {
            lua_pop(L, 1);
            lua_pushnil(L);
        }
        lua_setmetatable(L, 3);
        lua_settop(L, 2);
    }
    return 0;
}

bool ah_lua_push_entity_undo(lua_State *L, int idx)
{
    int top = lua_gettop(L);

    if (!ah_lua_push_entity_of(L, idx))
        return false;
    lua_settop(L, top);
    if (lua_getfield(L, idx, "snapshot") == LUA_TFUNCTION &&
        lua_getfield(L, idx, "restore") == LUA_TFUNCTION)
        return true;
    lua_settop(L, top);
    lua_pushcfunction(L, copy_instance);
    lua_pushcfunction(L, restore_instance);
    return true;
}

void ah_lua_push_entity_copied(lua_State *L, int copy)
{
    int top = lua_gettop(L), made = top + 1;

    luaL_checkstack(L, 8, "copy");
    lua_newtable(L); /* table -> new table */
    for (lua_Integer at = 1; at <= (lua_Integer)lua_rawlen(L, copy); at += STEP) {
        lua_rawgeti(L, copy, at);
        lua_newtable(L);
        lua_rawset(L, made);
    }
    for (lua_Integer at = 1; at <= (lua_Integer)lua_rawlen(L, copy); at += STEP) {
        lua_rawgeti(L, copy, at);
        lua_rawget(L, made);
        lua_rawgeti(L, copy, at + 1); /* -- made new members */
        for (lua_pushnil(L); lua_next(L, made + 2);) {
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            if (lua_rawget(L, made) == LUA_TNIL) {
                lua_pop(L, 1);
                lua_pushvalue(L, -2);
            }
            lua_rawset(L, made + 1);
            lua_pop(L, 1);
        }
        if (lua_rawgeti(L, copy, at + 2) == LUA_TTABLE)
            lua_setmetatable(L, made + 1);
        lua_settop(L, made);
    }
    lua_rawgeti(L, copy, 1);
    lua_rawget(L, made);
    lua_replace(L, made);
}

/* -- the call ------------------------------------------------------------------------------- */

static ah_call *check_call(lua_State *L)
{
    const ah_ctx *c = lua_touserdata(L, 2);

    if (!c->call) /* the call ended while the instance was being found */
        ah_lua_raise(L, AH_USAGE, "the call is over");
    return c->call;
}

/* Returns the number of the method in the instance's class, which may be a later class of the same
 * name than the tool's. */
static size_t number_in(lua_State *L, const ah_entity_class *c, const ah_tool *method)
{
    size_t i = 0;

    while (i < c->n && !ah_slice_eq(ah_text_slice(c->method[i]->name), ah_text_slice(method->name)))
        i++;
    if (i == c->n)
        ah_lua_raise(L, AH_USAGE, "the entity has no tool '%s' any more", method->name->data);
    return i;
}

static bool is_callable(lua_State *L, int idx)
{
    return lua_isfunction(L, idx) || luaL_getmetafield(L, idx, "__call") != LUA_TNIL;
}

/* With self at 3, class at 4, name on top: replaces the name by the method. Data of the instance
 * under the same name does not hide it. */
static void push_method(lua_State *L, const ah_call *call)
{
    int name = lua_gettop(L);

    lua_pushvalue(L, name);
    lua_gettable(L, 3);
    if (!is_callable(L, name + 1)) {
        lua_getiuservalue(L, 4, AH_ENTITY_MEMBERS);
        lua_pushvalue(L, name);
        lua_rawget(L, -2);
        lua_replace(L, name + 1);
        if (!is_callable(L, name + 1))
            ah_lua_raise(L, AH_USAGE, "the entity has no method any more for '%s'",
                         call->tool->name->data);
    }
    lua_settop(L, name + 1);
    lua_replace(L, name);
}

/* (args, ctx, self, class) */
static int call_method(lua_State *L)
{
    ah_call *call = check_call(L);
    size_t method = 0;
    const ah_entity_slot *f = ah_entity_slot_of(call, &method);
    const ah_lua_entity *e = lua_touserdata(L, 4);
    size_t n = number_in(L, e->core, f->of->method[method]);

    ah_lua_restore_state(L, ah_lua_states_of(call), ah_text_slice(f->of->name),
                         ah_text_slice(f->id), 3);
    lua_getiuservalue(L, 4, AH_ENTITY_METHODS);
    if (!e->core->method[n]->stateless)
        ah_lua_enlist(L, &call->overlay, 3, (ah_slice){NULL, 0});
    lua_rawgeti(L, 5, (lua_Integer)n + 1);
    push_method(L, call);
    lua_replace(L, 4);
    lua_settop(L, 4);
    lua_rotate(L, 3, 1); /* -- args ctx f self */
    lua_rotate(L, 1, 2); /* -- f self args ctx */
    lua_callk(L, 3, LUA_MULTRET, 0, ah_lua_handled);
    return ah_lua_handled(L, LUA_OK, 0);
}

/* True if the value at 3 is an instance of the same class and id; its class is then pushed. */
static bool is_the_one(lua_State *L, const ah_entity_slot *f)
{
    const ah_lua_entity *e = ah_lua_push_entity_of(L, 3);
    ah_text *id = NULL;
    bool same;
    ah_err err;

    if (!e || !ah_slice_eq(ah_text_slice(e->core->name), ah_text_slice(f->of->name)))
        return false;
    if (ah_lua_entity_id(ah_lua_of(L), L, 4, 3, &id, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    same = ah_slice_eq(ah_text_slice(id), ah_text_slice(f->id));
    ah_text_unref(id);
    return same;
}

/* Emits "x.lua:3: find of entity 'X' ..." as a warning of the run: the result for the model only
 * says that the entity is gone, which is not the cause. */
static void warn_of_find(lua_State *L, const ah_entity_slot *f, const char *what)
{
    const char *name = f->of->name->data;
    char words[600];
    lua_Debug ar;

    if (!ah_lua_push_entity_named(L, ah_text_slice(f->of->name)))
        return;
    if (lua_getiuservalue(L, -1, AH_ENTITY_FIND) == LUA_TFUNCTION) {
        lua_getinfo(L, ">S", &ar);
        ah_print(words, sizeof words, "%s:%d: find of entity '%s' %s", ar.short_src, ar.linedefined,
                 name, what);
        ah_run_warn(check_call(L)->run, ah_slice_of(words));
    }
    lua_settop(L, 3);
}

/* (args, ctx, result): makes a plain table an instance, as Class(table) does. */
static void make_found(lua_State *L, const ah_entity_slot *f)
{
    if (!lua_istable(L, 3) || lua_getmetatable(L, 3) ||
        !ah_lua_push_entity_named(L, ah_text_slice(f->of->name))) {
        lua_settop(L, 3);
        return;
    }
    lua_pushvalue(L, 3);
    lua_call(L, 1, 1);
    lua_replace(L, 3);
}

/* (args, ctx, result): takes the result of find if it is the entity; else emits a warning. */
static bool take_found(lua_State *L, const ah_entity_slot *f)
{
    char what[200];
    bool instance;

    if (lua_isnil(L, 3))
        return false;
    make_found(L, f);
    if (is_the_one(L, f)) {
        lua_settop(L, 4);
        return true;
    }
    instance = ah_lua_push_entity_of(L, 3) != NULL;
    lua_settop(L, 3);
    if (instance)
        ah_print(what, sizeof what, "returned another entity than %.100s", f->id->data);
    else
        ah_print(what, sizeof what, "must return nil, a table or an instance, found a %s%s",
                 luaL_typename(L, 3), lua_istable(L, 3) ? " with a metatable of its own" : "");
    warn_of_find(L, f, what);
    return false;
}

/* (args, ctx, result): the continuation behind the class's find. */
static int found_again(lua_State *L, int status, lua_KContext ctx)
{
    ah_entity_slot *f = ah_entity_slot_of(check_call(L), NULL);
    ah_value live;

    (void)status;
    (void)ctx;
    lua_settop(L, 3);
    if (!take_found(L, f)) {
        lua_pushnil(L);
        lua_pushfstring(L, "Tool '%s' was not run: %s", check_call(L)->tool->name->data,
                        f->gone->data);
        return 2;
    }
    live = ah_lua_live(L, 3);
    if (!live.vt)
        return ah_lua_raise_nomem(L);
    ah_entity_slot_bind(f, live);
    return call_method(L);
}

/* (args, ctx) */
static int enter(lua_State *L)
{
    const ah_entity_slot *f = ah_entity_slot_of(check_call(L), NULL);

    if (f->instance.vt) {
        ah_lua_push_live(L, &f->instance);
        ah_lua_push_entity_of(L, 3);
        return call_method(L);
    }
    if (!ah_lua_push_entity_named(L, ah_text_slice(f->of->name))) {
        lua_pushnil(L);
        return found_again(L, LUA_OK, 0);
    }
    if (lua_getiuservalue(L, 3, AH_ENTITY_FIND) == LUA_TFUNCTION) {
        lua_pushlstring(L, f->id->data, f->id->len);
        lua_replace(L, 3); /* -- args ctx id find */
        lua_insert(L, 3);
        lua_callk(L, 1, 1, 0, found_again);
    }
    return found_again(L, LUA_OK, 0);
}

static void start(ah_entity_slot *f, size_t method, ah_call *call)
{
    ah_lua_start_call(ah_lua_handler_of(f->of->method[method]), call, enter);
}

const ah_entity_vt ah_lua_entity_vt = {.start = start, .stop = ah_lua_stop_call};
