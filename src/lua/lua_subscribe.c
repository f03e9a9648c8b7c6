/* Subscriptions. In a call, a subscription begins or ends at once, since observers change nothing;
 * both are undone if the call fails. So a subscription counts the calls that have ended it. */
#include "lua/lua_subscribe.h"

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_now.h"
#include "lua/lua_type.h"

/* A subscription is a table of: */
enum {
    TYPE = 1, /* the name, or false: all */
    FN,
    ENDED, /* number of calls that have ended it */
    OF     /* its dispatcher */
};

static const char changes_key; /* key of the participant: one for all dispatchers */

typedef struct change {
    struct change *next;
    int ref; /* the subscription; LUA_NOREF: no change */
    bool ends;
} change;

typedef struct changes {
    ah_participant part;
    ah_lua *lua;
    change *first;
} changes;

bool ah_lua_push_subscriber(lua_State *L, int type)
{
    int top = lua_gettop(L);
    bool wanted;

    lua_rawgeti(L, top, ENDED);
    lua_rawgeti(L, top, TYPE);
    wanted = lua_tointeger(L, top + 1) == 0 && (!lua_toboolean(L, -1) || lua_rawequal(L, -1, type));
    lua_settop(L, top);
    if (wanted)
        lua_rawgeti(L, top, FN);
    return wanted;
}

/* -- lists -------------------------------------------------------------------------------- */

/* Pushes a copy of the list at -1 without `skip`; returns its length. -- list copy */
static lua_Integer copy_without(lua_State *L, const void *skip)
{
    lua_Integer n = luaL_len(L, -1), to = 0;

    lua_createtable(L, (int)n + 1, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, -2, i);
        if (lua_topointer(L, -1) == skip)
            lua_pop(L, 1);
        else
            lua_seti(L, -2, ++to);
    }
    return to;
}

/* (subscription): removes it from its list; repeated calls have no effect. */
static int take_out(lua_State *L)
{
    ah_dispatcher *d;

    lua_settop(L, 1);
    luaL_checkstack(L, 8, "subscriptions");
    lua_rawgeti(L, 1, OF);
    d = luaL_checkudata(L, 2, AH_DISPATCHER);
    lua_getiuservalue(L, 2, 1);
    d->subscribers = copy_without(L, lua_topointer(L, 1));
    lua_setiuservalue(L, 2, 1);
    return 0;
}

/* -- in a call ------------------------------------------------------------------------------ */

/* Changes the count of the subscription on top. The slot exists, so nothing is allocated. */
static void count_end(lua_State *L, int by)
{
    lua_rawgeti(L, -1, ENDED);
    lua_pushinteger(L, lua_tointeger(L, -1) + by);
    lua_rawseti(L, -3, ENDED);
    lua_pop(L, 1);
}

static void count_back(ah_lua *h, const change *c)
{
    lua_rawgeti(h->caller, LUA_REGISTRYINDEX, c->ref);
    count_end(h->caller, c->ends ? -1 : 1);
    lua_pop(h->caller, 1);
}

/* Removes the subscription from its list. When out of memory, it stays in the list and is not
 * called. */
static void forget(ah_lua *h, const change *c)
{
    ah_err ignored;

    lua_pushcfunction(h->caller, take_out);
    lua_rawgeti(h->caller, LUA_REGISTRYINDEX, c->ref);
    (void)ah_lua_call(h, h->caller, 1, 0, &ignored);
}

static void settle(changes *s, bool stands)
{
    ah_lua *h = s->lua;
    bool room = lua_checkstack(h->caller, 6);

    for (change *c = s->first, *next; c; c = next) {
        next = c->next;
        if (room && c->ref != LUA_NOREF && !stands)
            count_back(h, c);
        if (room && c->ref != LUA_NOREF && c->ends == stands)
            forget(h, c);
        ah_lua_unref(h, &c->ref);
        ah_free(&h->mem, c);
    }
    ah_free(&h->mem, s);
}

static changes *join(ah_lua *h, ah_overlay *o, ah_err *err);

static ah_status prepare(ah_participant *p, ah_overlay *below, ah_err *err)
{
    return !below || join(((changes *)(void *)p)->lua, below, err) ? AH_OK : err->status;
}

static change **end_of(changes *s)
{
    change **last = &s->first;

    while (*last)
        last = &(*last)->next;
    return last;
}

static void commit(ah_participant *p, ah_overlay *below)
{
    changes *s = (changes *)(void *)p,
            *to = (changes *)(void *)ah_overlay_find(below, &changes_key);

    if (!to)
        return;
    *end_of(to) = s->first;
    s->first = NULL;
}

static void committed(ah_participant *p, ah_overlay *below)
{
    (void)below;
    settle((changes *)(void *)p, true);
}

static void drop(ah_participant *p)
{
    settle((changes *)(void *)p, false);
}

static const ah_participant_vt changes_vt = {
    .prepare = prepare, .commit = commit, .committed = committed, .drop = drop};

static changes *join(ah_lua *h, ah_overlay *o, ah_err *err)
{
    changes *s = (changes *)(void *)ah_overlay_part(o, &changes_vt, &changes_key, sizeof *s, err);

    if (s)
        s->lua = h;
    return s;
}

/* Records in the call that the subscription at idx begins or ends. After a raise nothing has
 * changed. */
static void note(lua_State *L, ah_overlay *o, int idx, bool ends)
{
    ah_lua *h = ah_lua_of(L);
    ah_err err;
    changes *s = join(h, o, &err);
    change *c;

    if (!s)
        ah_lua_raise_err(L, &err);
    if (!(c = ah_alloc(&h->mem, sizeof *c)))
        ah_lua_raise_nomem(L);
    *c = (change){.ref = LUA_NOREF, .ends = ends};
    *end_of(s) = c;
    lua_pushvalue(L, idx);
    c->ref = ah_lua_ref(L);
}

/* -- for scripts ------------------------------------------------------------------------------ */

/* Upvalue: the subscription. A second call has no effect. */
static int unsubscribe(lua_State *L)
{
    int at = lua_upvalueindex(1);
    ah_overlay *o = ah_lua_overlay(L);

    lua_settop(L, 0);
    lua_pushvalue(L, at);
    if (!o)
        return take_out(L);
    note(L, o, 1, true);
    count_end(L, 1);
    return 0;
}

/* -- the name of the type at 2, or false for all */
static void push_wanted(lua_State *L)
{
    const ah_lua_type *t = ah_lua_to_type(L, 2);

    if (t)
        lua_pushstring(L, t->name->data);
    else if (lua_isnil(L, 2))
        lua_pushboolean(L, false);
    else if (lua_type(L, 2) == LUA_TSTRING)
        lua_pushvalue(L, 2);
    else
        ah_lua_raise(L, AH_USAGE,
                     "subscribe: expected a type, the name of one, or nil for all, "
                     "found a %s",
                     luaL_typename(L, 2));
}

/* -- subscription */
static void push_subscription(lua_State *L)
{
    lua_createtable(L, OF, 0);
    push_wanted(L);
    lua_rawseti(L, -2, TYPE);
    lua_pushvalue(L, 3);
    lua_rawseti(L, -2, FN);
    lua_pushinteger(L, 0);
    lua_rawseti(L, -2, ENDED);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, OF);
}

int ah_lua_subscribe(lua_State *L)
{
    ah_dispatcher *d = luaL_checkudata(L, 1, AH_DISPATCHER);
    ah_overlay *o = ah_lua_overlay(L);
    lua_Integer n;

    luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 3);
    push_subscription(L); /* -- d type fn subscription */
    lua_pushvalue(L, 4);
    lua_pushcclosure(L, unsubscribe, 1);
    lua_getiuservalue(L, 1, 1);
    n = copy_without(L, NULL) + 1; /* -- d type fn subscription end list copy */
    lua_pushvalue(L, 4);
    lua_seti(L, -2, n);
    if (o)
        note(L, o, 4, false);
    lua_setiuservalue(L, 1, 1);
    d->subscribers = n;
    ah_lua_of(L)->subscribed = true;
    lua_settop(L, 5);
    return 1;
}
