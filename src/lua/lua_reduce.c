/* Values of slices as Lua values, and reducers written in Lua. A reducer is called in protected
 * mode with a view of its slice, which records its changes. The core takes them only after the
 * reducer has returned. */
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_session.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"

static const char VIEW[] = "agenthost.view";
static const char LIST[] = "agenthost.list";

/* The slice as a reducer changes it. */
typedef struct view {
    int64_t number; /* of the reducer: the view is invalid after its return */
    ah_session *s;
    int slice;
    ah_list *list;
} view; /* user value 1: the family */

/* The Lua function of a reducer of the core. */
typedef struct reducer {
    ah_lua *lua;
    const ah_session *root;
    ah_text *key; /* in the family's table */
    int slice;
} reducer;

/* -- values ------------------------------------------------------------------------------- */

static void push_value_of(lua_State *L, int family, ah_slice type, ah_slice json)
{
    family = lua_absindex(L, family);
    luaL_checkstack(L, 6, "a value of a session");
    lua_pushlstring(L, type.p, type.n);
    lua_rawget(L, family);
    ah_lua_push_json(L, json); /* -- class v */
    if (ah_lua_to_type(L, -2) && lua_istable(L, -1))
        ah_lua_make_instance(L, -2);
    lua_remove(L, -2);
}

int ah_lua_push_latest(lua_State *L, int family, ah_slice type, const ah_cell *head)
{
    if (head)
        push_value_of(L, family, type, ah_text_slice(head->value));
    else
        lua_pushnil(L);
    return 1;
}

int ah_lua_push_all(lua_State *L, int family, ah_slice type, const ah_cell *head)
{
    size_t n = ah_list_length(head);

    lua_createtable(L, n < 1 << 20 ? (int)n : 1 << 20, 0);
    for (lua_Integer i = (lua_Integer)n; head; head = head->below, i--) {
        push_value_of(L, family, type, ah_text_slice(head->value));
        lua_rawseti(L, -2, i);
    }
    return 1;
}

/* Raises AH_TOOL_VALIDATION if the value at idx is of another class than the slice. */
static void check_class(lua_State *L, const ah_session *s, int id, int idx)
{
    const ah_lua_type *t = ah_lua_push_type_of(L, idx);
    ah_slice name = ah_session_name(s, id);

    if (!t)
        return;
    if (!ah_slice_eq(name, ah_text_slice(t->name)))
        ah_lua_raise(L, AH_TOOL_VALIDATION, "session: expected a value of type %.*s, found a %s",
                     AH_FMT(name), t->name->data);
    lua_pop(L, 1);
}

ah_text *ah_lua_session_value(lua_State *L, const ah_session *s, int id, int idx)
{
    ah_text *value = NULL;
    ah_buf *b;
    ah_err err;
    ah_status st;

    idx = lua_absindex(L, idx);
    luaL_checkany(L, idx);
    luaL_checkstack(L, 6, "a value of a session");
    check_class(L, s, id, idx);
    b = ah_lua_push_buf(L, AH_MAX_SESSION_VALUE);
    st = ah_lua_to_json(L, idx, b->mem, b, &err);
    if (st == AH_OK)
        st = ah_session_check(s, id, ah_buf_slice(b), &value, &err);
    ah_buf_clear(b);
    lua_pop(L, 1);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
    return value;
}

static int clear_list(lua_State *L)
{
    ah_list_set(luaL_checkudata(L, 1, LIST), NULL);
    return 0;
}

ah_list *ah_lua_push_list(lua_State *L)
{
    ah_list *list = lua_newuserdatauv(L, sizeof *list, 0);

    *list = (ah_list){.mem = &ah_lua_of(L)->mem};
    luaL_setmetatable(L, LIST);
    return list;
}

static void append(lua_State *L, ah_list *list, ah_text *value)
{
    bool ok = ah_list_append(list, value);

    ah_text_unref(value);
    if (!ok)
        ah_lua_raise_nomem(L);
}

void ah_lua_session_values(lua_State *L, const ah_session *s, int id, int idx, ah_list *list)
{
    lua_Integer n;

    idx = lua_absindex(L, idx);
    n = ah_lua_list_check(L, idx, "session: the values");
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, idx, i);
        append(L, list, ah_lua_session_value(L, s, id, -1));
        lua_pop(L, 1);
    }
}

/* -- views ------------------------------------------------------------------------------------ */

static view *check_view(lua_State *L)
{
    view *v = luaL_checkudata(L, 1, VIEW);

    if (v->number != ah_lua_of(L)->reducing)
        ah_lua_raise(L, AH_USAGE, "session: the reducer of this view has returned");
    return v;
}

/* -- ... family */
static int push_family(lua_State *L)
{
    lua_getiuservalue(L, 1, 1);
    return lua_gettop(L);
}

static int view_latest(lua_State *L)
{
    const view *v = check_view(L);

    return ah_lua_push_latest(L, push_family(L), ah_session_name(v->s, v->slice), v->list->head);
}

static int view_all(lua_State *L)
{
    const view *v = check_view(L);

    return ah_lua_push_all(L, push_family(L), ah_session_name(v->s, v->slice), v->list->head);
}

static int view_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ah_list_length(check_view(L)->list->head));
    return 1;
}

/* view:append(value), view:extend(list), view:replace(list), view:clear(): each returns the
 * view. */
static int view_append(lua_State *L)
{
    const view *v = check_view(L);

    append(L, v->list, ah_lua_session_value(L, v->s, v->slice, 2));
    lua_settop(L, 1);
    return 1;
}

static int view_extend(lua_State *L)
{
    const view *v = check_view(L);

    ah_lua_session_values(L, v->s, v->slice, 2, v->list);
    lua_settop(L, 1);
    return 1;
}

static int view_replace(lua_State *L)
{
    const view *v = check_view(L);
    ah_list *made = ah_lua_push_list(L);

    ah_lua_session_values(L, v->s, v->slice, 2, made);
    ah_list_set(v->list, ah_cell_ref(made->head));
    ah_list_set(made, NULL);
    lua_settop(L, 1);
    return 1;
}

static int view_clear(lua_State *L)
{
    ah_list_set(check_view(L)->list, NULL);
    lua_settop(L, 1);
    return 1;
}

/* -- calling ----------------------------------------------------------------------------------- */

typedef struct reducing {
    const reducer *r;
    const ah_session_event *event;
    ah_list *list;
} reducing;

static void push_view(lua_State *L, const reducing *now, ah_session *s, int family)
{
    view *v = lua_newuserdatauv(L, sizeof *v, 1);

    *v = (view){now->r->lua->reducing, s, now->r->slice, now->list};
    luaL_setmetatable(L, VIEW);
    lua_pushvalue(L, family);
    lua_setiuservalue(L, -2, 1);
}

static void push_session_event(lua_State *L, const ah_session_event *e, int family)
{
    lua_createtable(L, 0, 2);
    lua_pushlstring(L, e->type.p, e->type.n);
    lua_setfield(L, -2, "type");
    if (!e->value)
        return;
    push_value_of(L, family, e->type, ah_text_slice(e->value));
    lua_setfield(L, -2, "value");
}

/* Calls the reducer. Does nothing if no script holds the session any more, since the result would
 * not be visible. */
static int call_reducer(lua_State *L)
{
    reducing *now = lua_touserdata(L, 1);
    ah_session *s;

    ah_lua_push_session(L, now->r->root);
    if (!(s = ah_lua_to_session(L, 2)))
        return 0;
    ah_lua_push_family(L, 2); /* -- now session family */
    if (lua_getfield(L, 3, now->r->key->data) != LUA_TFUNCTION)
        return 0;
    push_view(L, now, s, 3);
    lua_pushvalue(L, -1);
    lua_insert(L, 4); /* -- now session family view f view */
    push_session_event(L, now->event, 3);
    lua_call(L, 2, 1);
    if (!lua_isnil(L, -1) && !lua_rawequal(L, -1, 4))
        luaL_error(L,
                   "a reducer changes its view (view:append(value) ...) and returns the view "
                   "or nothing; it returned a %s",
                   luaL_typename(L, -1));
    return 0;
}

static ah_status reduce(void *ud, ah_slice slice, const ah_session_event *e, ah_list *list,
                        ah_err *err)
{
    const reducer *r = ud;
    reducing now = {r, e, list};
    int64_t outer = r->lua->reducing; /* a finalizer may end a run while another reducer runs */
    lua_State *L = r->lua->caller;
    ah_err inner;
    ah_status st;

    if (!lua_checkstack(L, 4))
        return ah_err_nomem(err);
    r->lua->reducing = ++r->lua->reductions;
    lua_pushcfunction(L, call_reducer);
    lua_pushlightuserdata(L, &now);
    st = ah_lua_call_as(r->lua, AH_CALLEE_REDUCER, L, 1, 0, &inner);
    r->lua->reducing = outer;
    if (st == AH_OK || inner.status == AH_NOMEM)
        return st == AH_OK ? AH_OK : ah_err_nomem(err);
    return ah_err_set(err, inner.status, "the reducer of %.*s for %.*s failed: %s", AH_FMT(slice),
                      AH_FMT(e->type), inner.message);
}

/* -- registering ------------------------------------------------------------------------------- */

static void release_reducer(void *p)
{
    reducer *r = p;

    ah_text_unref(r->key);
    ah_free(&r->lua->mem, r);
}

static reducer *new_reducer(ah_lua *h, ah_session *s, int slice, int event)
{
    ah_slice a = ah_session_name(s, slice), b = ah_session_name(s, event);
    reducer *r = ah_alloc(&h->mem, sizeof *r);
    ah_buf key;

    if (!r)
        return NULL;
    *r = (reducer){.lua = h, .root = ah_session_root(s), .slice = slice};
    ah_buf_init(&key, &h->mem, 256);
    ah_buf_fmt(&key, "%.*s %.*s", AH_FMT(a), AH_FMT(b)); /* no name of a type contains a blank */
    ah_text_from_buf(&key, "key", &r->key, NULL);
    ah_buf_clear(&key);
    if (r->key)
        return r;
    ah_free(&h->mem, r);
    return NULL;
}

void ah_lua_set_reducer(lua_State *L, ah_session *s, int family, int slice, int event)
{
    static const struct ah_value_vt vt = {.release = release_reducer};
    reducer *r = new_reducer(ah_lua_of(L), s, slice, event);
    ah_err err;
    char key[160];

    if (!r)
        ah_lua_raise_nomem(L);
    memcpy(key, r->key->data, r->key->len + 1); /* two names of at most 64 bytes */
    if (ah_session_reduce(s, slice, event, reduce, (ah_value){&vt, r}, &err) != AH_OK) {
        release_reducer(r);
        ah_lua_raise_err(L, &err);
    }
    lua_setfield(L, family, key);
}

void ah_lua_open_reduce(lua_State *L)
{
    static const luaL_Reg methods[] = {{"latest", view_latest}, {"all", view_all},
                                       {"len", view_len},       {"append", view_append},
                                       {"extend", view_extend}, {"replace", view_replace},
                                       {"clear", view_clear},   {NULL, NULL}};
    static const luaL_Reg list_meta[] = {{"__gc", clear_list}, {NULL, NULL}};

    luaL_newmetatable(L, VIEW);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "view");
    lua_setfield(L, -2, "__index");
    luaL_newmetatable(L, LIST);
    luaL_setfuncs(L, list_meta, 0);
    lua_pop(L, 2);
}
