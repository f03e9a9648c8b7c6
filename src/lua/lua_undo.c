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

typedef struct ah_undo ah_undo;
struct ah_undo {
    ah_participant part; /* key: the object's address */
    ah_lua *lua;
    ah_undo *next, **link; /* in lua->undos */
    int ref;               /* { object, copy, restore }; LUA_NOREF: no copy yet */
};

static const ah_participant_vt undo_vt;

static void free_undo(ah_undo *u)
{
    *u->link = u->next;
    if (u->next)
        u->next->link = u->link;
    ah_lua_unref(u->lua, &u->ref);
    ah_free(&u->lua->mem, u);
}

/* Finds or makes the undo of this object in the overlay. */
static ah_undo *join(ah_lua *h, ah_overlay *o, const void *object, ah_err *err)
{
    ah_undo *u = (ah_undo *)(void *)ah_overlay_part(o, &undo_vt, object, sizeof *u, err);

    if (!u || u->lua)
        return u;
    u->lua = h;
    u->ref = LUA_NOREF;
    u->next = h->undos;
    u->link = &h->undos;
    if (u->next)
        u->next->link = &u->next;
    h->undos = u;
    return u;
}

/* -- its end ------------------------------------------------------------------------------ */

static ah_status prepare_undo(ah_participant *p, ah_overlay *below, ah_err *err)
{
    const ah_undo *u = (const ah_undo *)(const void *)p;

    return !below || join(u->lua, below, p->key, err) ? AH_OK : err->status;
}

/* Passes the copy to the call around this one, unless that call has a copy: it is older. */
static void commit_undo(ah_participant *p, ah_overlay *below)
{
    ah_undo *u = (ah_undo *)(void *)p, *to = (ah_undo *)(void *)ah_overlay_find(below, p->key);

    if (to && to->ref == LUA_NOREF) {
        to->ref = u->ref;
        u->ref = LUA_NOREF;
    }
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

static const ah_participant_vt undo_vt = {
    .prepare = prepare_undo, .commit = commit_undo, .drop = drop_undo};

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

void ah_lua_enlist(lua_State *L, ah_overlay *o, int idx)
{
    ah_lua *h = ah_lua_of(L);
    const void *object = lua_topointer(L, idx);
    int top = lua_gettop(L);
    ah_undo *u;
    ah_err err;

    ah_lua_no_reducer(L);
    if (taken(h, o, object))
        ah_lua_raise(L, AH_USAGE,
                     "another call is at work on this object; tools that share it must not be "
                     "`parallel`");
    u = (ah_undo *)(void *)ah_overlay_find(o, object);
    if (u && u->ref != LUA_NOREF)
        return;
    lua_createtable(L, 3, 0);
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
