/* Undo copies let an object that is changed in place take part in a transaction (seed 002, Runtime
 * Dispatch: snapshot, restore on failure). Only one call at a time may use such an object, together
 * with the calls around it. Each of them has a copy of its own, so that the failure of a nested
 * call undoes only that call. Objects that isolate their changes (overlays of a file system) are
 * not copied here. */
#include "lua/lua_undo.h"

#include <stdio.h>

#include "lua/lua_entity.h"
#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_states.h"

typedef struct ah_undo ah_undo;
struct ah_undo {
    ah_participant part; /* key: the object's address */
    ah_lua *lua;
    ah_undo *next, **link;   /* in lua->undos */
    int ref;                 /* { object, copy, restore, name }; LUA_NOREF: no copy yet */
    ah_lua_state_item state; /* for a store, read when the call is prepared; empty: none */
    bool noted;              /* it is recorded */
};

static const ah_participant_vt undo_vt;

static void free_undo(ah_undo *u)
{
    *u->link = u->next;
    if (u->next)
        u->next->link = u->link;
    ah_lua_unref(u->lua, &u->ref);
    ah_lua_state_item_clear(&u->state);
    ah_free(&u->lua->mem, u);
}

static void list_undo(ah_undo *u)
{
    u->next = u->lua->undos;
    u->link = &u->lua->undos;
    if (u->next)
        u->next->link = &u->next;
    u->lua->undos = u;
}

/* Finds or makes the undo of this object in the overlay. */
static ah_undo *join(ah_lua *h, ah_overlay *o, const void *object, ah_err *err)
{
    ah_undo *u = (ah_undo *)(void *)ah_overlay_part(o, &undo_vt, object, sizeof *u, err);

    if (!u || u->lua)
        return u;
    u->lua = h;
    u->ref = LUA_NOREF;
    list_undo(u);
    return u;
}

/* -- its end ------------------------------------------------------------------------------ */

static ah_status again_undo(ah_participant *p, ah_overlay *below, ah_err *err)
{
    const ah_undo *u = (const ah_undo *)(const void *)p;

    return !below || join(u->lua, below, p->key, err) ? AH_OK : err->status;
}

/* Reads the object's state for the run's agent. */
static void read_state(ah_undo *u)
{
    ah_call *call = u->part.in->owner;
    lua_State *L = u->lua->caller;
    int top = lua_gettop(L);
    ah_slice name;

    if (u->ref == LUA_NOREF || !ah_lua_states_of(call) || !lua_checkstack(L, 8))
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, u->ref);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 4); /* -- copied object name */
    name.p = lua_tolstring(L, -1, &name.n);
    ah_lua_read_state(L, u->lua, call, top + 2, name.n ? name : (ah_slice){NULL, 0}, &u->state);
    lua_settop(L, top);
}

static ah_status prepare_undo(ah_participant *p, ah_overlay *below, ah_err *err)
{
    ah_undo *u = (ah_undo *)(void *)p;

    if (!below && !u->state.id)
        read_state(u);
    return again_undo(p, below, err);
}

/* Moves the undo, whose object is free for other calls now, to those for the next record. */
static void wait_for_record(ah_undo *u, ah_lua_states *s)
{
    *u->link = u->next;
    if (u->next)
        u->next->link = u->link;
    ah_lua_unref(u->lua, &u->ref);
    u->next = s->changed;
    u->link = &s->changed;
    if (u->next)
        u->next->link = &u->next;
    s->changed = u;
}

/* Without a store the state is kept at once. */
static bool waits_for_record(const ah_undo *u, ah_lua_states *s)
{
    return u->state.id && !u->noted && (s->recorded || !ah_lua_keep_state(s, &u->state));
}

/* Passes the copy to the call around this one, unless that call has a copy: it is older. */
static void commit_undo(ah_participant *p, ah_overlay *below)
{
    ah_lua_states *s = below ? NULL : ah_lua_states_of(p->in->owner);
    ah_undo *u = (ah_undo *)(void *)p, *to = (ah_undo *)(void *)ah_overlay_find(below, p->key);

    if (to && to->ref == LUA_NOREF) {
        to->ref = u->ref;
        u->ref = LUA_NOREF;
    }
    if (s && waits_for_record(u, s))
        wait_for_record(u, s);
    else
        free_undo(u);
}

static int restore(lua_State *L)
{
    const ah_undo *u = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, u->ref);
    lua_geti(L, 2, 3); /* -- u copied restore */
    lua_geti(L, 2, 1);
    lua_geti(L, 2, 2);
    lua_call(L, 2, 0);
    return 0;
}

static void warn(const ah_undo *u, const ah_err *err)
{
    const ah_call *call = u->part.in->owner;
    char words[1200];

    ah_print(words, sizeof words, "an object could not be restored after a failed call: %s",
             err->message);
    if (call)
        ah_run_warn(call->run, ah_slice_of(words));
}

static void drop_undo(ah_participant *p)
{
    ah_undo *u = (ah_undo *)(void *)p;
    lua_State *L = u->lua->caller;
    ah_err err;

    if (u->ref != LUA_NOREF && lua_checkstack(L, 4)) {
        lua_pushcfunction(L, restore);
        lua_pushlightuserdata(L, u);
        if (ah_lua_call_as(u->lua, AH_CALLEE_SNAPSHOT, L, 1, 0, &err) != AH_OK)
            warn(u, &err);
    }
    free_undo(u);
}

/* For the record of a finished call, whose object nothing else changes until the commit. */
static bool print_undo(ah_participant *p, const ah_staged_names *names, ah_buf *out)
{
    ah_undo *u = (ah_undo *)(void *)p;

    (void)names;
    if (!u->state.id)
        read_state(u);
    if (u->state.state)
        ah_lua_print_state(&u->state, out);
    return u->state.state || u->ref == LUA_NOREF;
}

static void show_undo(ah_participant *p, ah_change_list *l)
{
    const ah_undo *u = (const ah_undo *)(const void *)p;
    lua_State *L = u->lua->caller;
    int top = lua_gettop(L);
    ah_slice name;

    if (u->ref == LUA_NOREF || !lua_checkstack(L, 12))
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, u->ref);
    lua_rawgeti(L, top + 1, 1);
    lua_rawgeti(L, top + 1, 2);
    lua_rawgeti(L, top + 1, 4); /* -- copied object copy name */
    name.p = lua_tolstring(L, -1, &name.n);
    ah_lua_show_state(L, u->lua, top + 2, top + 3, name.n ? name : (ah_slice){NULL, 0}, l);
    lua_settop(L, top);
}

static const ah_participant_vt undo_vt = {.prepare = prepare_undo,
                                          .again = again_undo,
                                          .commit = commit_undo,
                                          .drop = drop_undo,
                                          .list = AH_STAGED_ENTITIES,
                                          .print = print_undo,
                                          .show = show_undo};

/* -- after a restart ------------------------------------------------------------------------- */

static ah_text *text_of(const ah_mem *mem, ah_slice json)
{
    ah_text *t = NULL;
    ah_err ignored;
    ah_buf b;

    ah_buf_init(&b, mem, json.n);
    if (ah_json_string(json, &b))
        (void)ah_text_from_buf(&b, "a name", &t, &ignored);
    ah_buf_clear(&b);
    return t;
}

/* The object is not looked for: it gets its state when it is first used after the commit. So the
 * change is one of the list alone. */
static ah_status restage(ah_lua *h, ah_overlay *o, ah_slice class_name, ah_slice id, ah_slice state,
                         ah_err *err)
{
    ah_undo *u = ah_alloc(&h->mem, sizeof *u);
    ah_status st;

    if (!u)
        return ah_err_nomem(err);
    *u = (ah_undo){.part = {.vt = &undo_vt, .key = u}, .lua = h, .ref = LUA_NOREF};
    list_undo(u);
    u->state = (ah_lua_state_item){text_of(&h->mem, class_name), text_of(&h->mem, id),
                                   ah_text_new(&h->mem, state), .due = true};
    st = u->state.class_name && u->state.id && u->state.state ? AH_OK : ah_err_nomem(err);
    if (st == AH_OK)
        st = ah_overlay_join(o, &u->part, err);
    if (st != AH_OK)
        free_undo(u);
    return st;
}

ah_status ah_lua_restage_entity(void *ud, ah_call *call, ah_slice item, ah_err *err)
{
    const ah_lua_states *s = ah_lua_states_of(call);
    ah_slice class_name, id, state;
    const ah_json_slot want[] = {{"class", &class_name}, {"id", &id}, {"state", &state}};

    (void)ud;
    if (!ah_json_members(item, want, 3) || !state.p ||
        ah_json_kind_of(class_name) != AH_JSON_STRING || ah_json_kind_of(id) != AH_JSON_STRING)
        return ah_err_set(
            err, AH_STORE,
            "the record of what a call staged is damaged: an item of `entities` is no "
            "{ class, id, state }");
    if (!s)
        return ah_err_set(err, AH_CONFLICT,
                          "the call changed an entity, and this agent has no store");
    return restage(s->lua, &call->overlay, class_name, id, state, err);
}

/* -- for a store --------------------------------------------------------------------------- */

/* Records the states of calls that are prepared and whose commit waits. */
static bool put_prepared(ah_lua_states *s, bool first, ah_buf *out)
{
    for (ah_undo *u = s->lua->undos; u; u = u->next) {
        if (!u->part.prepared || u->noted || !u->state.id ||
            ah_lua_states_of(u->part.in->owner) != s)
            continue;
        if (!ah_lua_record_state(s, &u->state, first, out))
            out->status = AH_NOMEM;
        u->noted = true;
        first = false;
    }
    return first;
}

static bool put_committed(ah_lua_states *s, bool first, ah_buf *out)
{
    while (s->changed) {
        if (!ah_lua_record_state(s, &s->changed->state, first, out))
            out->status = AH_NOMEM;
        free_undo(s->changed);
        first = false;
    }
    return first;
}

void ah_lua_put_changed(void *ud, ah_buf *out)
{
    size_t before = out->len;
    bool none;

    ah_buf_str(out, ",\"entities\":[");
    none = put_prepared(ud, put_committed(ud, true, out), out);
    if (ah_buf_ok(out) && none)
        out->len = before;
    else
        ah_buf_char(out, ']');
}

bool ah_lua_keep_changed(ah_lua_states *s)
{
    while (s->changed && ah_lua_keep_state(s, &s->changed->state))
        free_undo(s->changed);
    return !s->changed;
}

void ah_lua_forget_changed(ah_lua_states *s)
{
    while (s->changed)
        free_undo(s->changed);
}

/* -- its beginning -------------------------------------------------------------------------- */

/* Pushes the object's snapshot and restore. */
static void push_methods(lua_State *L, int idx)
{
    static const char *const methods[] = {"snapshot", "restore"};

    if (!lua_istable(L, idx) && luaL_getmetafield(L, idx, "__index") == LUA_TNIL)
        ah_lua_raise(L, AH_USAGE,
                     "ctx:enlist: expected an object with methods snapshot and "
                     "restore, found a %s",
                     luaL_typename(L, idx));
    for (int i = 0; i < 2; i++) {
        if (lua_getfield(L, idx, methods[i]) != LUA_TFUNCTION)
            ah_lua_raise(L, AH_USAGE, "ctx:enlist: the object has no method '%s'", methods[i]);
    }
}

static bool is_around(const ah_overlay *outer, const ah_overlay *o)
{
    while (o && o != outer)
        o = ah_overlay_below(o);
    return o != NULL;
}

static bool taken(const ah_lua *h, const ah_overlay *o, const void *object)
{
    for (const ah_undo *u = h->undos; u; u = u->next)
        if (u->part.key == object && u->ref != LUA_NOREF && !is_around(u->part.in, o))
            return true;
    return false;
}

/* Restores the recorded state of an instance, or of an object with a name. */
static void restore_known(lua_State *L, const ah_overlay *o, int idx, ah_slice name)
{
    ah_lua_states *s = ah_lua_states_of(o->owner);
    const ah_lua_entity *e = s ? ah_lua_push_entity_of(L, idx) : NULL;
    ah_text *id = NULL;
    ah_slice of;
    ah_err err;

    if (s && !e && name.p)
        ah_lua_restore_state(L, s, ah_slice_of(AH_RESOURCE_CLASS), name, idx);
    if (!e)
        return;
    if (ah_lua_entity_id(ah_lua_of(L), L, lua_gettop(L), idx, &id, &err) != AH_OK)
        return;                            /* without an id it has no recorded state */
    lua_pushlstring(L, id->data, id->len); /* held by the stack while the script restores */
    ah_text_unref(id);
    of.p = lua_tolstring(L, -1, &of.n);
    ah_lua_restore_state(L, s, ah_text_slice(e->core->name), of, idx);
}

void ah_lua_enlist(lua_State *L, ah_overlay *o, int idx, ah_slice name)
{
    ah_lua *h = ah_lua_of(L);
    const void *object = lua_topointer(L, idx);
    int top = lua_gettop(L);
    ah_undo *u;
    ah_err err;

    ah_lua_no_change(L);
    if (taken(h, o, object))
        ah_lua_raise(L, AH_USAGE,
                     "another call is at work on this object; tools that share it must not be "
                     "`parallel`");
    u = (ah_undo *)(void *)ah_overlay_find(o, object);
    if (u && u->ref != LUA_NOREF)
        return;
    restore_known(L, o, idx, name);
    lua_settop(L, top);
    lua_createtable(L, 4, 0);
    lua_pushlstring(L, name.p ? name.p : "", name.n);
    lua_seti(L, -2, 4);
    if (!ah_lua_push_entity_undo(L, idx))
        push_methods(L, idx); /* -- copied .. snapshot restore */
    lua_seti(L, top + 1, 3);
    lua_pushvalue(L, idx);
    lua_seti(L, top + 1, 1);
    lua_pushvalue(L, idx);
    if (ah_lua_call_as(h, AH_CALLEE_SNAPSHOT, L, 1, 1, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_seti(L, top + 1, 2);
    lua_settop(L, top + 1);
    if (!(u = join(h, o, object, &err)))
        ah_lua_raise_err(L, &err);
    u->ref = ah_lua_ref(L);
}
