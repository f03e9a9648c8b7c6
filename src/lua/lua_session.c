/* ah.session: the object of a session and its slices. The state is in the core (state/session.h).
 * This file has the classes of values and the functions that reduce, and chooses the overlay:
 * changes by a handler are made in its call's. */
#include "lua/lua_session.h"

#include "base/near.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_named.h"
#include "lua/lua_now.h"
#include "lua/lua_staged.h"
#include "lua/lua_step.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"
#include "state/visibility.h"
#include "lua/lua_options.h"

static const char SESSION[] = "agenthost.session";
static const char SLICE[] = "agenthost.slice";

static const char objects_key; /* registry: ah_session * -> its object, weak */

/* User values of a session's object. */
enum {
    FAMILY = 1, /* table of a session and its children: name -> class; "slice event" -> function */
    PARENT = 2, /* the parent's object; for a view, the session that it shows */
    DISPATCHER = 3
};

typedef struct box {
    ah_session *s;
    bool read_only;
} box;

typedef struct slice {
    int id;
    bool read_only;
} slice; /* user value 1: the session's object */

static box *check_box(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, SESSION);

    luaL_argcheck(L, b->s, 1, "a session that is gone");
    return b;
}

/* In a replay, no record of the conversation says what a named session had. */
static void check_replay(lua_State *L, const ah_session *s)
{
    if (ah_lua_named_session(ah_lua_of(L), s))
        ah_lua_no_replay(L, "a named session");
}

static ah_session *check_session(lua_State *L)
{
    ah_session *s = check_box(L)->s;

    check_replay(L, s);
    return s;
}

/* Raises if changes of the session cannot be recorded any more. */
static void check_recorded(lua_State *L, const ah_session *s)
{
    ah_err err;

    if (ah_lua_named_state(ah_lua_of(L), s, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* A change outside of calls is recorded at once, where the session has a store. */
static void changed(lua_State *L, const ah_overlay *o)
{
    if (!o)
        ah_lua_named_note(ah_lua_of(L), NULL, false);
}

static ah_session *check_writable(lua_State *L)
{
    box *b = check_box(L);

    if (b->read_only)
        ah_lua_raise(L, AH_USAGE, "session: this view is read-only");
    check_replay(L, b->s);
    ah_lua_no_change(L);
    check_recorded(L, b->s);
    return b->s;
}

ah_session *ah_lua_to_session(lua_State *L, int idx)
{
    box *b = luaL_testudata(L, idx, SESSION);

    return b && !b->read_only ? b->s : NULL;
}

void ah_lua_push_family(lua_State *L, int session)
{
    lua_getiuservalue(L, session, FAMILY);
}

void ah_lua_push_dispatcher_of(lua_State *L, int session)
{
    lua_getiuservalue(L, session, DISPATCHER);
}

/* -- making sessions ----------------------------------------------------------------------- */

/* -- box, empty */
static box *push_box(lua_State *L)
{
    box *b = lua_newuserdatauv(L, sizeof *b, 3);

    *b = (box){0};
    luaL_setmetatable(L, SESSION);
    return b;
}

/* Registers the box on top as the object of its session. */
static void enter(lua_State *L, const box *b)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &objects_key);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, b->s); /* -- box objects */
    lua_pop(L, 1);
}

/* Sets the session of the box on top: a child of that of `parent`, if that is an object, else a new
 * one. */
static void fill_box(lua_State *L, box *b, int parent)
{
    box *of = parent ? luaL_checkudata(L, parent, SESSION) : NULL;

    if (!(b->s = ah_session_new(&ah_lua_of(L)->mem, of ? of->s : NULL)))
        ah_lua_raise_nomem(L);
    if (of) {
        lua_getiuservalue(L, parent, FAMILY);
        lua_pushvalue(L, parent);
        lua_setiuservalue(L, -3, PARENT);
    } else {
        lua_newtable(L);
    }
    lua_setiuservalue(L, -2, FAMILY);
    enter(L, b);
}

ah_session *ah_lua_push_new_session(lua_State *L)
{
    box *b = push_box(L);

    fill_box(L, b, 0);
    ah_lua_push_dispatcher(L);
    lua_setiuservalue(L, -2, DISPATCHER);
    return b->s;
}

ah_session *ah_lua_push_session_copy(lua_State *L, int idx)
{
    box *from = luaL_checkudata(L, idx, SESSION), *b;

    idx = lua_absindex(L, idx);
    b = push_box(L);
    if (!(b->s = ah_session_copy(from->s)))
        ah_lua_raise_nomem(L);
    for (int i = FAMILY; i <= PARENT; i++) {
        lua_getiuservalue(L, idx, i);
        lua_setiuservalue(L, -2, i);
    }
    ah_lua_push_dispatcher(L);
    lua_setiuservalue(L, -2, DISPATCHER);
    enter(L, b);
    return b->s;
}

void ah_lua_push_session(lua_State *L, const ah_session *s)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &objects_key);
    lua_rawgetp(L, -1, s);
    lua_remove(L, -2);
}

static int session_gc(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, SESSION);
    const ah_lua *h = ah_lua_known(L);

    if (h && b->s && !b->read_only)
        ah_lua_named_close(ah_lua_named_session(h, b->s));
    ah_session_unref(b->s);
    b->s = NULL;
    return ah_lua_retire(L);
}

/* session:child(): reads through to this session, writes its own values. */
static int session_child(lua_State *L)
{
    box *b;

    check_writable(L);
    lua_settop(L, 1);
    b = push_box(L);
    fill_box(L, b, 1);
    lua_getiuservalue(L, 1, DISPATCHER);
    lua_setiuservalue(L, -2, DISPATCHER);
    return 1;
}

/* session:view(): the same session, read-only. */
static int session_view(lua_State *L)
{
    ah_session *s = check_session(L);
    box *b = push_box(L);

    b->s = ah_session_ref(s);
    b->read_only = true;
    for (int i = FAMILY; i <= DISPATCHER; i++) {
        lua_getiuservalue(L, 1, i);
        lua_setiuservalue(L, -2, i);
    }
    return 1;
}

/* -- types ------------------------------------------------------------------------------------ */

static int unknown_type(lua_State *L, const ah_session *s, ah_slice name, const char *what)
{
    static const char *const methods[] = {"register",   "reduce",  "dispatch", "snapshot",
                                          "restore",    "child",   "view",     "parent",
                                          "dispatcher", "changes", NULL};
    ah_near near = {.to = name};

    for (int i = 0; methods[i] && strcmp(what, "slice") == 0; i++)
        ah_near_offer(&near, ah_slice_of(methods[i]));
    for (int i = 0; i < ah_session_types(s); i++)
        ah_near_offer(&near, ah_session_name(s, i));
    if (near.best.p)
        return ah_lua_raise(L, AH_USAGE, "session: there is no %s '%.*s' (did you mean '%.*s'?)",
                            what, AH_FMT(name), AH_FMT(near.best));
    return ah_lua_raise(L, AH_USAGE,
                        "session: there is no %s '%.*s' here; session:register(type) makes one",
                        what, AH_FMT(name));
}

/* Returns the slice of a class or of the name of a type. */
static int find_slice(lua_State *L, const ah_session *s, int idx)
{
    const ah_lua_type *t = ah_lua_to_type(L, idx);
    ah_slice name = {NULL, 0};
    int id;

    if (t)
        name = ah_text_slice(t->name);
    else if (lua_type(L, idx) == LUA_TSTRING)
        name.p = lua_tolstring(L, idx, &name.n);
    else
        ah_lua_raise(L, AH_USAGE, "session: a slice is named by its type, found a %s",
                     luaL_typename(L, idx));
    id = ah_session_find(s, name);
    if (id < 0 || !ah_session_has_slice(s, id))
        unknown_type(L, s, name, "slice");
    return id;
}

static bool is_method(lua_State *L, const char *name)
{
    bool is = strcmp(name, "parent") == 0 || strcmp(name, "dispatcher") == 0;

    luaL_getmetatable(L, SESSION);
    lua_getfield(L, -1, "methods");
    is = lua_getfield(L, -1, name) != LUA_TNIL || is;
    lua_pop(L, 3);
    return is;
}

/* Makes the class at idx known to the session at 1. */
static int make_known(lua_State *L, ah_session *s, int idx)
{
    const ah_lua_type *t = ah_lua_to_type(L, idx);
    ah_err err;
    int id;

    if (!t)
        ah_lua_raise(L, AH_USAGE, "session: expected a type made by ah.type, found a %s",
                     luaL_typename(L, idx));
    if (is_method(L, t->name->data))
        ah_lua_raise(L, AH_USAGE,
                     "session: no type can be named '%s': sessions have a method or field "
                     "of that name",
                     t->name->data);
    if (ah_session_type(s, ah_text_slice(t->name), t->schema, &id, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_getiuservalue(L, 1, FAMILY);
    lua_pushvalue(L, idx);
    lua_setfield(L, -2, t->name->data);
    lua_pop(L, 1);
    return id;
}

typedef struct slice_fields {
    ah_policy policy;
    int keep; /* an ah_keep; -1: not given */
    ah_slice key;
} slice_fields;

static const ah_option slice_rows[] = {
    {.name = "policy",
     .kinds = AH_OPT_STRING,
     .words = "state log",
     .otherwise = "`\"state\"`",
     .to = AH_TO_WORD(slice_fields, policy),
     .doc = "`\"log\"`: outside of transactions"},
    {.name = "keep",
     .kinds = AH_OPT_STRING,
     .words = "append latest",
     .otherwise = "`\"append\"`",
     .to = AH_TO_WORD(slice_fields, keep),
     .doc = "keeps all dispatched values of its own type, or only the last one"},
    {.name = "key",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(slice_fields, key),
     .doc = "name of a field: a value replaces the one with an equal field; not beside `keep`"},
    {0},
};
const ah_subject ah_subject_slice = {
    .what = "session:register", .type = "ah.SliceOptions", .row = slice_rows};

static void read_options(lua_State *L, int idx, ah_slice_options *o)
{
    slice_fields f = {.policy = AH_POLICY_STATE, .keep = -1};

    ah_options_read(L, idx, &ah_subject_slice, &f);
    if (f.key.p && f.keep >= 0)
        ah_lua_raise(L, AH_USAGE, "session:register: keep and key: give one of them");
    if (f.key.p && (f.key.n == 0 || memchr(f.key.p, '\0', f.key.n)))
        ah_lua_raise(L, AH_USAGE, "session:register: key must be the name of a field");
    o->policy = f.policy;
    o->keep = f.key.p ? AH_KEEP_BY_KEY : f.keep < 0 ? AH_KEEP_APPEND : (ah_keep)f.keep;
    o->key = f.key;
}

/* Raises for a key that no value can have: it would replace nothing, without an error. */
static void check_key(lua_State *L, ah_slice key)
{
    const ah_lua_type *t = ah_lua_to_type(L, 2);
    ah_slice schema = ah_text_slice(ah_schema_text(t->schema));
    ah_slice members = ah_json_member(schema, "properties");

    if (key.p && members.p &&
        ah_slice_is(ah_json_member(schema, "additionalProperties"), "false") &&
        !ah_json_member(members, key.p).p)
        ah_lua_raise(L, AH_USAGE, "session:register: key: %s has no field '%s'", t->name->data,
                     key.p);
}

/* Gives the type a slice; a new one gets the values that a store has for it. */
static void keep(lua_State *L, ah_session *s, int id, const ah_slice_options *o)
{
    bool had = ah_session_has_slice(s, id);
    ah_err err;

    if (ah_session_keep(s, id, o, &err) != AH_OK ||
        (!had && ah_lua_named_fill(L, ah_session_root(s), id, &err) != AH_OK))
        ah_lua_raise_err(L, &err);
}

/* session:register(Type, { policy, keep | key }): adds a slice for values of the type. */
static int session_register(lua_State *L)
{
    ah_session *s = check_writable(L);
    ah_slice_options o = {0};
    bool given = !lua_isnoneornil(L, 3);
    int type;

    lua_settop(L, 3);
    if (given)
        read_options(L, 3, &o);
    type = make_known(L, s, 2);
    check_key(L, o.key);
    keep(L, s, type, given ? &o : NULL);
    lua_settop(L, 1);
    return 1;
}

/* session:reduce(Slice, EventType, function(view, event)) */
static int session_reduce(lua_State *L)
{
    ah_session *s = check_writable(L);
    lua_Debug ar;
    int id, event;

    luaL_checktype(L, 4, LUA_TFUNCTION);
    lua_settop(L, 4);
    lua_pushvalue(L, 4);
    lua_getinfo(L, ">u", &ar);
    if (ar.nparams > 2)
        return ah_lua_raise(L, AH_PROMPT_VALIDATION,
                            "session:reduce: reducers are function(view, event); this one has %d "
                            "parameters",
                            ar.nparams);
    id = make_known(L, s, 2);
    event = make_known(L, s, 3);
    keep(L, s, id, NULL);
    lua_getiuservalue(L, 1, FAMILY);
    lua_pushvalue(L, 4);
    ah_lua_set_reducer(L, s, 5, id, event);
    lua_settop(L, 1);
    return 1;
}

/* -- events and snapshots ---------------------------------------------------------------------- */

/* session:dispatch(value): passes an instance of a type to the reducers registered for it. */
static int session_dispatch(lua_State *L)
{
    ah_session *s = check_writable(L);
    ah_overlay *o = ah_lua_overlay(L);
    const ah_lua_type *t;
    ah_text *value;
    ah_status st;
    ah_err err;
    int id;

    lua_settop(L, 2);
    if (!(t = ah_lua_push_type_of(L, 2)))
        return ah_lua_raise(L, AH_USAGE,
                            "session:dispatch: expected an instance of a type, found a %s",
                            luaL_typename(L, 2));
    if ((id = ah_session_find(s, ah_text_slice(t->name))) < 0)
        return unknown_type(L, s, ah_text_slice(t->name), "type");
    value = ah_lua_session_value(L, s, id, 2);
    st = ah_session_dispatch(s, o, id, value, &err);
    ah_text_unref(value);
    changed(L, o);
    return st == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

/* session:snapshot(): JSON text of the state as seen by the caller. */
static int session_snapshot(lua_State *L)
{
    static const size_t most = (size_t)1 << 30;
    ah_session *s = check_session(L);
    ah_overlay *o = ah_lua_overlay(L);
    ah_buf *b = ah_lua_push_buf(L, most);
    ah_err err;

    lua_toclose(L, -1);
    ah_session_print(s, o, b);
    if (!ah_buf_ok(b)) {
        ah_buf_error(b, "the snapshot", &err);
        return ah_lua_raise_err(L, &err);
    }
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    return 1;
}

/* session:restore(text): true; or nil and an error, with nothing changed. */
static int session_restore(lua_State *L)
{
    ah_session *s = check_writable(L);
    ah_overlay *o = ah_lua_overlay(L);
    ah_slice text;
    ah_err err;

    text.p = luaL_checklstring(L, 2, &text.n);
    if (ah_session_restore(s, o, text, 0, &err) == AH_OK) {
        changed(L, o);
        lua_pushboolean(L, true);
        return 1;
    }
    if (err.status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

/* session:changes(snapshot): what the call of the handler has changed; or, with a snapshot, what
 * has changed since. Raises if the text is no snapshot. */
static int session_changes(lua_State *L)
{
    const ah_session *s = check_session(L);
    const ah_overlay *o = ah_lua_overlay(L);
    bool since = !lua_isnoneornil(L, 2);
    ah_change_list l;
    ah_slice text;
    ah_err err;

    if (since)
        text.p = luaL_checklstring(L, 2, &text.n);
    ah_lua_begin_changes(L, &l);
    if (!since)
        ah_session_show(s, o, &l);
    else if (ah_session_show_since(s, o, text, &l, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return ah_lua_end_changes(L, &l);
}

/* -- slices ------------------------------------------------------------------------------------ */

static void push_slice(lua_State *L, const box *b, int id)
{
    slice *sl = lua_newuserdatauv(L, sizeof *sl, 1);

    *sl = (slice){id, b->read_only};
    luaL_setmetatable(L, SLICE);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
}

/* Opens the slice at 1, and inserts the session's object at 2 and the family at 3. */
static slice *open_slice(lua_State *L, bool write, ah_session **s, ah_overlay **o)
{
    slice *sl = luaL_checkudata(L, 1, SLICE);

    if (write && sl->read_only)
        ah_lua_raise(L, AH_USAGE, "session: this view is read-only");
    if (write)
        ah_lua_no_change(L);
    lua_getiuservalue(L, 1, 1);
    lua_insert(L, 2);
    *s = ((box *)luaL_checkudata(L, 2, SESSION))->s;
    luaL_argcheck(L, *s, 1, "a slice of a session that is gone");
    check_replay(L, *s);
    if (write)
        check_recorded(L, *s);
    lua_getiuservalue(L, 2, FAMILY);
    lua_insert(L, 3);
    *o = ah_lua_overlay(L);
    return sl;
}

static int slice_latest(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, false, &s, &o);

    return ah_lua_push_latest(L, 3, ah_session_name(s, sl->id), ah_session_head(s, o, sl->id));
}

static int slice_all(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, false, &s, &o);

    return ah_lua_push_all(L, 3, ah_session_name(s, sl->id), ah_session_head(s, o, sl->id));
}

static int slice_len(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, false, &s, &o);

    lua_pushinteger(L, (lua_Integer)ah_list_length(ah_session_head(s, o, sl->id)));
    return 1;
}

/* slice:append(value): at the end, without the reducers. */
static int slice_append(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, true, &s, &o);
    ah_text *value = ah_lua_session_value(L, s, sl->id, 4);
    ah_err err;
    ah_status st = ah_session_append(s, o, sl->id, value, &err);

    ah_text_unref(value);
    changed(L, o);
    return st == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

/* slice:replace(list): replaces all values. */
static int slice_replace(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, true, &s, &o);
    ah_list *list = ah_lua_push_list(L);
    ah_cell *head;
    ah_status st;
    ah_err err;

    ah_lua_session_values(L, s, sl->id, 4, list);
    head = list->head;
    list->head = NULL;
    st = ah_session_set(s, o, sl->id, head, &err);
    changed(L, o);
    return st == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

static int slice_clear(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, true, &s, &o);
    ah_err err;
    ah_status st = ah_session_set(s, o, sl->id, NULL, &err);

    changed(L, o);
    return st == AH_OK ? 0 : ah_lua_raise_err(L, &err);
}

static int slice_tostring(lua_State *L)
{
    ah_session *s;
    ah_overlay *o;
    slice *sl = open_slice(L, false, &s, &o);

    lua_pushfstring(L, "slice %s, %d values", ah_session_name(s, sl->id).p,
                    (int)ah_list_length(ah_session_head(s, o, sl->id)));
    return 1;
}

/* -- the object -------------------------------------------------------------------------------- */

/* Pushes the parent's object, or nil; for a view, a view of it. */
static void push_parent(lua_State *L, const box *b)
{
    if (lua_getiuservalue(L, 1, PARENT) == LUA_TNIL || !b->read_only)
        return;
    lua_pushcfunction(L, session_view);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
}

/* session[Plan], session["Plan"], methods, dispatcher, parent */
static int session_index(lua_State *L)
{
    box *b = check_box(L);
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";

    if (luaL_getmetafield(L, 1, "methods") != LUA_TNIL && lua_getfield(L, -1, key) != LUA_TNIL)
        return 1;
    if (strcmp(key, "dispatcher") == 0)
        lua_getiuservalue(L, 1, DISPATCHER);
    else if (strcmp(key, "parent") == 0)
        push_parent(L, b);
    else
        push_slice(L, b, find_slice(L, b->s, 2));
    return 1;
}

static int session_tostring(lua_State *L)
{
    const box *b = check_box(L);

    lua_pushfstring(L, "session of %d types%s", ah_session_types(b->s),
                    b->read_only ? ", read-only" : "");
    return 1;
}

static void read_types(lua_State *L)
{
    lua_Integer n = lua_getfield(L, 1, "types") == LUA_TNIL ? 0 : luaL_len(L, -1);

    for (lua_Integer i = 1; i <= n; i++) { /* -- def session types */
        lua_pushcfunction(L, session_register);
        lua_pushvalue(L, 2);
        lua_geti(L, 3, i);
        lua_call(L, 2, 0);
    }
    lua_settop(L, 2);
}

static const ah_option session_rows[] = {
    {.name = "types",
     .kinds = AH_OPT_LIST,
     .is = "list of types",
     .type = "ah.Type[]",
     .doc = "each gets a slice with the default options of `register`"},
    {.name = "bus",
     .kinds = AH_OPT_OBJECT,
     .otherwise = "its own",
     .is = "dispatcher",
     .type = "ah.Dispatcher",
     .doc = "the dispatcher of another session, to share it"},
    {.name = "parent",
     .kinds = AH_OPT_OBJECT,
     .is = "session",
     .type = "ah.Session",
     .doc = "makes a child, as `parent:child()` does"},
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .doc = "by it a store [keeps](stores.md#shared-sessions-and-budgets) the session, for all "
            "agents that have it; 1 to 120 bytes without `/`"},
    {.name = "store",
     .kinds = AH_OPT_ANY,
     .otherwise = "that of the first agent that has it",
     .is = "path, store or table",
     .type = "string|ah.Store|ah.StoreConfig",
     .doc = "keeps the session; with `name`"},
    {0},
};
const ah_subject ah_subject_session = {
    .what = "ah.session", .type = "ah.SessionConfig", .row = session_rows};

/* -- def session. Reads `name` and `store`. */
static ah_status read_name(lua_State *L, ah_session *s, ah_err *err)
{
    ah_status st = AH_OK;
    ah_lua_named *n;
    ah_slice name;

    if (lua_getfield(L, 1, "store") != LUA_TNIL && lua_getfield(L, 1, "name") == LUA_TNIL)
        ah_lua_raise(L, AH_USAGE, "ah.session: a store keeps a session by its name: give `name`");
    lua_settop(L, 3);
    if (lua_getfield(L, 1, "name") != LUA_TNIL) {
        if (lua_getfield(L, 1, "parent") != LUA_TNIL)
            ah_lua_raise(L, AH_USAGE, "ah.session: a child has no name: name its parent");
        lua_pop(L, 1);
        name.p = lua_tolstring(L, -1, &name.n);
        n = ah_lua_named_new(L, "ah.session", name, s, NULL);
        if (!lua_isnil(L, 3))
            st = ah_lua_named_read(L, n, 3, err);
    }
    lua_settop(L, 2);
    return st;
}

/* ah.session { types, bus, parent, name, store }: a session; or nil and an error of the store */
static int new_session(lua_State *L)
{
    int parent = 0;
    ah_status st;
    ah_err err;
    box *b;

    if (lua_isnone(L, 1))
        lua_newtable(L);
    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_session, NULL);
    if (lua_getfield(L, 1, "parent") != LUA_TNIL) {
        if (!ah_lua_to_session(L, 2))
            return ah_lua_raise(L, AH_USAGE,
                                "ah.session: field 'parent' must be a session, found a %s",
                                luaL_typename(L, 2));
        parent = 2;
    }
    b = push_box(L); /* -- def parent session */
    fill_box(L, b, parent);
    if (lua_getfield(L, 1, "bus") == LUA_TNIL) {
        lua_pop(L, 1);
        if (parent)
            lua_getiuservalue(L, parent, DISPATCHER);
        else
            ah_lua_push_dispatcher(L);
    } else if (!ah_lua_is_dispatcher(L, -1)) {
        return ah_lua_raise(L, AH_USAGE,
                            "ah.session: field 'bus' must be a session's dispatcher, found a %s",
                            luaL_typename(L, -1));
    }
    lua_setiuservalue(L, 3, DISPATCHER);
    lua_remove(L, 2); /* -- def session */
    if (ah_visibility_register(b->s, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    read_types(L);
    if ((st = read_name(L, b->s, &err)) == AH_OK)
        return 1;
    if (st == AH_USAGE || st == AH_NOMEM)
        return ah_lua_raise_err(L, &err);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

static void new_class(lua_State *L, const char *name, const luaL_Reg *meta, const luaL_Reg *methods,
                      const char *as)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, meta, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    if (strcmp(as, "__index") == 0)
        ah_lua_methods_only(L, "slice");
    lua_setfield(L, -2, as);
    lua_pop(L, 1);
}

void ah_lua_open_session(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", session_gc},
                                    {"__index", session_index},
                                    {"__tostring", session_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"register", session_register},
                                       {"reduce", session_reduce},
                                       {"dispatch", session_dispatch},
                                       {"snapshot", session_snapshot},
                                       {"restore", session_restore},
                                       {"child", session_child},
                                       {"view", session_view},
                                       {"changes", session_changes},
                                       {NULL, NULL}};
    static const luaL_Reg slice_meta[] = {
        {"__len", slice_len}, {"__tostring", slice_tostring}, {NULL, NULL}};
    static const luaL_Reg slice_methods[] = {{"latest", slice_latest},
                                             {"all", slice_all},
                                             {"len", slice_len},
                                             {"append", slice_append},
                                             {"replace", slice_replace},
                                             {"clear", slice_clear},
                                             {NULL, NULL}};

    new_class(L, SESSION, meta, methods, "methods");
    new_class(L, SLICE, slice_meta, slice_methods, "__index");
    lua_newtable(L); /* -- ah objects */
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &objects_key);
    ah_lua_open_reduce(L);
    ah_lua_open_dispatcher(L);
    lua_pushcfunction(L, new_session);
    lua_setfield(L, -2, "session");
}
