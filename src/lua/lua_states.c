/* States of objects. An entity is known by its class and id, a resource by its name. */
#include "lua/lua_states.h"

#include "lua/lua_entity.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_value.h"
#include "run/recorder.h"
#include "run/run.h"

enum { MAX_STATE = 64 << 20 };

static const char WARNED[] = "agenthost.states.warned"; /* registry: objects and classes, weak */

/* -- the list -------------------------------------------------------------------------------- */

static const ah_mem *mem_of(const ah_lua_states *s)
{
    return &s->lua->mem;
}

/* Returns the place of the object's state, or n. */
static size_t find(const ah_lua_states *s, ah_slice class_name, ah_slice id)
{
    size_t i = 0;

    while (i < s->n && !(ah_slice_eq(ah_text_slice(s->item[i].id), id) &&
                         ah_slice_eq(ah_text_slice(s->item[i].class_name), class_name)))
        i++;
    return i;
}

void ah_lua_state_item_clear(ah_lua_state_item *i)
{
    ah_text_set(&i->class_name, NULL);
    ah_text_set(&i->id, NULL);
    ah_text_set(&i->state, NULL);
}

void ah_lua_states_clear(ah_lua_states *s)
{
    for (size_t i = 0; i < s->n; i++)
        ah_lua_state_item_clear(&s->item[i]);
    if (s->lua)
        ah_free(mem_of(s), s->item);
    *s = (ah_lua_states){.lua = s->lua};
}

/* Adds the item, which it takes. Returns false when out of memory. */
static bool add(ah_lua_states *s, ah_lua_state_item i)
{
    ah_lua_state_item *list = NULL;

    if (i.class_name && i.id && i.state)
        list = ah_grow(mem_of(s), s->item, &s->cap, s->n + 1, sizeof *list);
    if (!list) {
        ah_lua_state_item_clear(&i);
        return false;
    }
    s->item = list;
    s->item[s->n++] = i;
    return true;
}

ah_status ah_lua_states_take(ah_lua_states *s, const ah_fold *f, ah_err *err)
{
    bool ok = true;

    for (size_t i = 0; i < f->n_states && ok; i++) {
        const ah_fold_state *from = &f->state[i];

        if (from->state)
            ok = add(s, (ah_lua_state_item){ah_text_ref(from->class_name), ah_text_ref(from->id),
                                            ah_text_ref(from->state), .due = true});
    }
    return ok ? AH_OK : ah_err_nomem(err);
}

bool ah_lua_keep_state(ah_lua_states *s, const ah_lua_state_item *i)
{
    size_t at = find(s, ah_text_slice(i->class_name), ah_text_slice(i->id));

    if (!i->state && at < s->n) {
        ah_lua_state_item_clear(&s->item[at]);
        s->item[at] = s->item[--s->n];
    }
    if (!i->state)
        return true;
    if (at == s->n)
        return add(s, (ah_lua_state_item){ah_text_ref(i->class_name), ah_text_ref(i->id),
                                          ah_text_ref(i->state), .due = i->due});
    ah_text_set(&s->item[at].state, ah_text_ref(i->state));
    s->item[at].due = i->due;
    return true;
}

ah_lua_states *ah_lua_states_of(const ah_call *call)
{
    const ah_run *run = call ? call->run : NULL;

    for (; run; run = ah_run_around(run))
        if (ah_run_cfg(run)->recorder)
            return ah_run_cfg(run)->recorder->changed_ud;
    return NULL;
}

static void put_item(const ah_lua_state_item *i, ah_buf *out)
{
    ah_buf_str(out, "{\"class\":");
    ah_json_put_string(out, ah_text_slice(i->class_name));
    ah_json_add_string(out, "id", ah_text_slice(i->id));
    if (i->state)
        ah_json_add(out, "state", ah_text_slice(i->state));
    ah_buf_str(out, i->not_found ? ",\"find\":false}" : "}");
}

void ah_lua_print_states(const ah_lua_states *s, ah_buf *out)
{
    ah_buf_char(out, '[');
    for (size_t i = 0; i < s->n; i++) {
        ah_buf_str(out, i ? "," : "");
        put_item(&s->item[i], out);
    }
    ah_buf_char(out, ']');
}

/* -- reading and setting the state of an object ------------------------------------------------ */

/* Pushes the two methods of the object at idx, or nothing. */
static bool push_own_methods(lua_State *L, int idx)
{
    int top = lua_gettop(L);

    if (lua_getfield(L, idx, "snapshot") == LUA_TFUNCTION &&
        lua_getfield(L, idx, "restore") == LUA_TFUNCTION)
        return true;
    lua_settop(L, top);
    return false;
}

/* Pushes the list `state` of the class of the object at idx, or nothing. */
static bool push_names(lua_State *L, int idx)
{
    int top = lua_gettop(L);

    if (ah_lua_push_entity_of(L, idx) && lua_getiuservalue(L, -1, AH_ENTITY_STATE) == LUA_TTABLE) {
        lua_replace(L, top + 1);
        return true;
    }
    lua_settop(L, top);
    return false;
}

/* (object) -- state; nothing if it has none that can be recorded */
static int read_state(lua_State *L)
{
    lua_settop(L, 1);
    if (push_own_methods(L, 1)) { /* -- object snapshot restore */
        lua_pop(L, 1);
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        return 1;
    }
    if (!push_names(L, 1))
        return 0;
    lua_newtable(L); /* -- object names state */
    for (lua_Integer i = 1; lua_rawgeti(L, 2, i) != LUA_TNIL; i++) {
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        lua_rawset(L, 3);
    }
    lua_settop(L, 3);
    return 1;
}

/* (object, state) */
static void set_state(lua_State *L, int object, int state)
{
    if (push_own_methods(L, object)) {
        lua_remove(L, -2);
        lua_pushvalue(L, object);
        lua_pushvalue(L, state);
        lua_call(L, 2, 0);
        return;
    }
    if (!push_names(L, object) || !lua_istable(L, state))
        return;
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        lua_pushvalue(L, -1);
        lua_pushvalue(L, -1);
        lua_rawget(L, state);
        lua_rawset(L, object);
        lua_pop(L, 1);
    }
}

void ah_lua_restore_state(lua_State *L, ah_lua_states *s, ah_slice class_name, ah_slice id, int idx)
{
    int top = lua_gettop(L);
    size_t at = s ? find(s, class_name, id) : 0;

    if (!s || at == s->n || !s->item[at].due)
        return;
    luaL_checkstack(L, 8, "restore");
    ah_lua_push_json(L, ah_text_slice(s->item[at].state));
    set_state(L, idx, top + 1);
    if ((at = find(s, class_name, id)) < s->n)
        s->item[at].due = false;
    lua_settop(L, top);
}

/* -- changes ---------------------------------------------------------------------------------- */

typedef struct reading {
    ah_call *call;
    ah_slice name;
    ah_lua_state_item *out;
} reading;

/* True the first time for the key on top (popped). */
static bool is_news(lua_State *L)
{
    bool known;

    if (!luaL_getsubtable(L, LUA_REGISTRYINDEX, WARNED)) {
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
    }
    lua_insert(L, -2); /* -- warned key */
    lua_pushvalue(L, -1);
    known = lua_rawget(L, -3) != LUA_TNIL;
    lua_pop(L, 1);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return !known;
}

/* Warns once for each class, or for each object without a class. */
static void warn_lost(lua_State *L, const reading *w, const char *why)
{
    const ah_lua_entity *e = ah_lua_push_entity_of(L, 1);
    char words[600];

    if (!e)
        lua_pushvalue(L, 1);
    if (!ah_lua_states_of(w->call)->recorded || !is_news(L))
        return;
    if (e)
        ah_print(words, sizeof words, "The state of entities '%s' is lost with the process: %s",
                 e->core->name->data, why);
    else
        ah_print(words, sizeof words,
                 "The state of an enlisted object is lost with the process: %s", why);
    ah_run_warn(w->call->run, ah_slice_of(words));
}

/* Pushes the state of the object at 1 as JSON, or nil after a warning. */
static void push_state_json(lua_State *L, const reading *w)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_STATE);
    char why[sizeof((ah_err *)0)->message];
    ah_err err;

    lua_pushcfunction(L, read_state);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) {
        warn_lost(L, w,
                  ah_lua_push_entity_of(L, 1)
                      ? "its class names no fields as `state`, and has no snapshot and restore"
                      : "it has no snapshot and restore");
        lua_pushnil(L);
        return;
    }
    if (ah_lua_to_json(L, -1, b->mem, b, &err) != AH_OK) {
        memcpy(why, err.message, sizeof why);
        warn_lost(L, w, why);
        lua_pushnil(L);
        return;
    }
    lua_pushlstring(L, b->data, b->len);
    ah_buf_clear(b);
}

/* Takes class, id and the state on top (nil: none). */
static void take(lua_State *L, const reading *w, ah_slice class_name, ah_text *id)
{
    const ah_mem *mem = &ah_lua_of(L)->mem;
    ah_slice state;

    state.p = lua_tolstring(L, -1, &state.n);
    w->out->id = id;
    w->out->class_name = ah_text_new(mem, class_name);
    w->out->state = state.p ? ah_text_new(mem, state) : NULL;
    if (!w->out->id || !w->out->class_name || (state.p && !w->out->state))
        ah_lua_raise_nomem(L);
}

/* (object, reading) */
static int read_object(lua_State *L)
{
    const reading *w = lua_touserdata(L, 2);
    const ah_lua_entity *e;
    ah_text *id = NULL;
    ah_lua *h = ah_lua_of(L);
    ah_err err;

    luaL_checkstack(L, 16, "state");
    push_state_json(L, w);
    if ((e = ah_lua_push_entity_of(L, 1))) { /* -- object reading .. state class */
        if (ah_lua_entity_id(h, L, -1, 1, &id, &err) != AH_OK)
            return lua_isnil(L, -2) ? 0 : ah_lua_raise_err(L, &err);
        w->out->not_found = lua_getiuservalue(L, -1, AH_ENTITY_FIND) == LUA_TNIL;
        lua_pop(L, 2);
        take(L, w, ah_text_slice(e->core->name), id);
    } else if (w->name.p) {
        take(L, w, ah_slice_of(AH_RESOURCE_CLASS), ah_text_new(&h->mem, w->name));
    } else if (!lua_isnil(L, -1)) {
        warn_lost(L, w, "it was enlisted without a name");
    }
    return 0;
}

void ah_lua_read_state(lua_State *L, ah_lua *h, ah_call *call, int idx, ah_slice name,
                       ah_lua_state_item *out)
{
    reading w = {call, name, out};
    char words[1200];
    ah_err err;

    lua_pushcfunction(L, read_object);
    lua_pushvalue(L, idx < 0 ? idx - 1 : idx);
    lua_pushlightuserdata(L, &w);
    if (ah_lua_call_as(h, AH_CALLEE_SNAPSHOT, L, 2, 0, &err) == AH_OK)
        return;
    ah_lua_state_item_clear(out);
    if (!ah_lua_states_of(call)->recorded)
        return;
    ah_print(words, sizeof words, "the state of an object was not recorded: %s", err.message);
    ah_run_warn(call->run, ah_slice_of(words));
}

void ah_lua_print_state(const ah_lua_state_item *i, ah_buf *out)
{
    put_item(i, out);
}

bool ah_lua_record_state(ah_lua_states *s, const ah_lua_state_item *i, bool first, ah_buf *out)
{
    ah_buf_str(out, first ? "" : ",");
    ah_lua_print_state(i, out);
    return ah_lua_keep_state(s, i);
}

/* -- changes so far ---------------------------------------------------------------------------- */

typedef struct showing {
    ah_slice name;
    ah_change_list *l;
} showing;

/* True if the key at the index is in the list at `names`; 0: every key is. */
static bool is_named(lua_State *L, int names, int key)
{
    lua_Integer n = names ? (lua_Integer)lua_rawlen(L, names) : 0;
    bool found = names == 0;

    for (lua_Integer i = 1; !found && i <= n; i++) {
        lua_rawgeti(L, names, i);
        found = lua_rawequal(L, -1, key);
        lua_pop(L, 1);
    }
    return found;
}

/* Appends the member whose key and value are on top, unless it cannot be JSON. */
static void put_member(lua_State *L, ah_buf *b)
{
    size_t before = b->len;
    ah_slice key;
    ah_err err;

    key.p = lua_tolstring(L, -2, &key.n);
    if (!ah_utf8_valid(key))
        return;
    ah_buf_str(b, before > 1 ? "," : "");
    ah_json_put_string(b, key);
    ah_buf_char(b, ':');
    if (ah_lua_to_json(L, -1, b->mem, b, &err) != AH_OK || !ah_buf_ok(b))
        ah_buf_reset(b, before);
}

/* Pushes a buffer with the fields of the table at t as JSON. */
static ah_buf *push_fields(lua_State *L, int t, int names)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_STATE);

    ah_buf_char(b, '{');
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && is_named(L, names, lua_gettop(L) - 1))
            put_member(L, b);
    ah_buf_char(b, '}');
    return b;
}

/* Pushes a buffer with the value at the index as JSON. */
static ah_buf *push_value(lua_State *L, int idx)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_STATE);
    ah_err err;

    if (ah_lua_to_json(L, idx, b->mem, b, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return b;
}

/* (object, copy): pushes buffers with both states. */
static void push_both(lua_State *L, ah_buf **before, ah_buf **after)
{
    int names;

    if (push_own_methods(L, 1)) { /* -- snapshot restore */
        lua_pop(L, 1);
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        *after = push_value(L, lua_gettop(L));
        *before = push_value(L, 2);
        return;
    }
    names = push_names(L, 1) ? lua_gettop(L) : 0;
    ah_lua_push_entity_copied(L, 2);
    *before = push_fields(L, lua_gettop(L), names);
    *after = push_fields(L, 1, names);
}

/* (object, copy, showing) */
static int show_object(lua_State *L)
{
    const showing *s = lua_touserdata(L, 3);
    const ah_lua_entity *e;
    ah_buf *before, *after;
    ah_slice id = s->name;
    ah_text *text = NULL;
    ah_err err;

    luaL_checkstack(L, 24, "state");
    push_both(L, &before, &after);
    if ((e = ah_lua_push_entity_of(L, 1))) {
        if (ah_lua_entity_id(ah_lua_of(L), L, lua_gettop(L), 1, &text, &err) != AH_OK)
            return ah_lua_raise_err(L, &err);
        id = ah_text_slice(text);
    }
    if (id.p && ah_buf_ok(before) && ah_buf_ok(after))
        ah_change_list_entity(s->l,
                              e ? ah_text_slice(e->core->name) : ah_slice_of(AH_RESOURCE_CLASS), id,
                              ah_buf_slice(before), ah_buf_slice(after));
    ah_text_unref(text);
    return 0;
}

void ah_lua_show_state(lua_State *L, ah_lua *h, int idx, int was, ah_slice name, ah_change_list *l)
{
    showing s = {name, l};
    ah_err ignored;

    lua_pushcfunction(L, show_object);
    lua_pushvalue(L, idx);
    lua_pushvalue(L, was);
    lua_pushlightuserdata(L, &s);
    (void)ah_lua_call_as(h, AH_CALLEE_SNAPSHOT, L, 3, 0, &ignored);
}
