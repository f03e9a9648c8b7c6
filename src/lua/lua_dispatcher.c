/* session.dispatcher: publish and subscribe. Values that a handler publishes are kept in its call's
 * overlay and delivered after the commit; outside of handlers they are delivered at once.
 * Subscribers observe: their error becomes a warning. */
#include <stdio.h>

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_now.h"
#include "lua/lua_observe.h"
#include "lua/lua_session.h"
#include "lua/lua_subscribe.h"
#include "lua/lua_type.h"
#include "lua/lua_value.h"

static const char outbox_key; /* key of the participant: one outbox serves all dispatchers */

enum { MAX_MESSAGES = 65536 /* published in one call */ };

typedef struct message {
    struct message *next;
    int ref; /* reference: { dispatcher, value, type } */
} message;

typedef struct outbox {
    ah_participant part;
    ah_lua *lua;
    size_t n;
    message *first, **last;
} outbox;

void ah_lua_push_dispatcher(lua_State *L)
{
    ah_dispatcher *d = lua_newuserdatauv(L, sizeof *d, 1);

    *d = (ah_dispatcher){0};
    luaL_setmetatable(L, AH_DISPATCHER);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
}

bool ah_lua_is_dispatcher(lua_State *L, int idx)
{
    return luaL_testudata(L, idx, AH_DISPATCHER) != NULL;
}

/* -- delivering ---------------------------------------------------------------------------- */

/* Destination of the warning that a subscriber failed. */
typedef struct delivery {
    ah_lua *lua;
    ah_run *run; /* NULL: outside of all runs */
} delivery;

static void warn(const delivery *d, const char *type, const ah_err *err)
{
    char words[1200];

    ah_print(words, sizeof words, "the subscriber of '%s' failed: %s", type, err->message);
    if (d->run)
        ah_run_warn(d->run, ah_slice_of(words));
    else
        ah_log_put(&d->lua->host->log, AH_LOG_WARNING, "%s", words);
}

/* With type and value on top (left there) and the list of subscribers below: calls the subscribers
 * of the type. The list is replaced, never changed, so the loop is safe. */
static void deliver(lua_State *L, const delivery *d)
{
    int list = lua_gettop(L) - 2;
    lua_Integer n = luaL_len(L, list);
    ah_err err;

    for (lua_Integer i = 1; i <= n; i++) { /* -- list type value */
        lua_geti(L, list, i);
        if (ah_lua_push_subscriber(L, list + 1)) {
            lua_pushvalue(L, list + 2);
            lua_pushvalue(L, list + 1);
            if (ah_lua_call_as(d->lua, AH_CALLEE_SUBSCRIBER, L, 2, 0, &err) != AH_OK)
                warn(d, lua_tostring(L, list + 1), &err);
        }
        lua_settop(L, list + 2);
    }
}

/* -- staging --------------------------------------------------------------------------------- */

static const ah_participant_vt outbox_vt;

static outbox *join(ah_lua *h, ah_overlay *o, ah_err *err)
{
    outbox *b = (outbox *)(void *)ah_overlay_part(o, &outbox_vt, &outbox_key, sizeof *b, err);

    if (b && !b->last)
        b->last = &b->first;
    if (b)
        b->lua = h;
    return b;
}

static void drop_outbox(ah_participant *p)
{
    outbox *b = (outbox *)(void *)p;
    ah_lua *h = b->lua;

    for (message *m = b->first, *next; m; m = next) {
        next = m->next;
        ah_lua_unref(h, &m->ref);
        ah_free(&h->mem, m);
    }
    ah_free(&h->mem, b);
}

static ah_status prepare_outbox(ah_participant *p, ah_overlay *below, ah_err *err)
{
    const outbox *b = (const outbox *)(const void *)p;
    outbox *to = below ? join(b->lua, below, err) : NULL;

    if (below && !to)
        return err->status;
    if (to && to->n + b->n > MAX_MESSAGES)
        return ah_err_set(err, AH_USAGE, "more than %d messages published in one call",
                          MAX_MESSAGES);
    return AH_OK;
}

static void commit_outbox(ah_participant *p, ah_overlay *below)
{
    outbox *b = (outbox *)(void *)p, *to = (outbox *)(void *)ah_overlay_find(below, &outbox_key);

    if (!to || !b->first)
        return;
    *to->last = b->first;
    to->last = b->last;
    to->n += b->n;
    b->first = NULL;
}

/* (delivery, message) */
static int deliver_message(lua_State *L)
{
    const delivery *d = lua_touserdata(L, 1);
    const message *m = lua_touserdata(L, 2);

    luaL_checkstack(L, 10, "delivering");
    lua_rawgeti(L, LUA_REGISTRYINDEX, m->ref);
    lua_getfield(L, 3, "dispatcher");
    lua_getiuservalue(L, 4, 1);
    lua_getfield(L, 3, "type");
    lua_getfield(L, 3, "value");
    deliver(L, d);
    return 0;
}

static void tell(const delivery *d, const message *m)
{
    lua_State *L = d->lua->caller;
    ah_err err;

    if (m->ref == LUA_NOREF || !lua_checkstack(L, 4))
        return;
    lua_pushcfunction(L, deliver_message);
    lua_pushlightuserdata(L, (void *)(uintptr_t)d);
    lua_pushlightuserdata(L, (void *)(uintptr_t)m);
    if (ah_lua_call(d->lua, L, 2, 0, &err) != AH_OK)
        warn(d, "?", &err);
}

static void tell_all(ah_participant *p, ah_overlay *below)
{
    const outbox *b = (const outbox *)(const void *)p;
    const ah_call *call = p->in->owner;
    delivery d = {b->lua, call ? call->run : NULL};

    (void)below;
    for (const message *m = b->first; m; m = m->next)
        tell(&d, m);
    drop_outbox(p);
}

static const ah_participant_vt outbox_vt = {
    .prepare = prepare_outbox, .commit = commit_outbox, .committed = tell_all, .drop = drop_outbox};

static message *new_message(lua_State *L, ah_overlay *o)
{
    ah_lua *h = ah_lua_of(L);
    ah_err err;
    outbox *b = join(h, o, &err);
    message *m;

    if (!b)
        ah_lua_raise_err(L, &err);
    if (b->n == MAX_MESSAGES)
        ah_lua_raise(L, AH_USAGE, "more than %d messages published in one call", MAX_MESSAGES);
    if (!(m = ah_alloc(&h->mem, sizeof *m)))
        ah_lua_raise_nomem(L);
    *m = (message){.ref = LUA_NOREF};
    *b->last = m;
    b->last = &m->next;
    b->n++;
    return m;
}

/* -- publish ----------------------------------------------------------------------------------- */

/* -- type, class or nil */
static void push_type(lua_State *L, int idx)
{
    const ah_lua_type *t = ah_lua_push_type_of(L, idx);

    if (t) {
        lua_pushstring(L, t->name->data);
        lua_insert(L, -2);
        return;
    }
    if (!lua_istable(L, idx) || lua_getfield(L, idx, "type") != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE,
                     "publish: expected an instance of a type, or a table with a field "
                     "'type', found a %s",
                     luaL_typename(L, idx));
    lua_pushnil(L);
}

/* Pushes a copy of the value at idx as data: later changes of the value are not published. */
static void push_copy(lua_State *L, int idx, int class)
{
    ah_buf *b = ah_lua_push_buf(L, AH_MAX_SESSION_VALUE);
    ah_err err;

    if (ah_lua_to_json(L, idx, b->mem, b, &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_USAGE, "publish: %s", err.message);
    ah_lua_push_json(L, ah_buf_slice(b));
    if (!lua_isnil(L, class))
        ah_lua_make_instance(L, class);
    ah_buf_clear(b);
    lua_remove(L, -2);
}

/* Stages a message: dispatcher, type and value from `from` on. */
static void stage(lua_State *L, ah_overlay *o, int from)
{
    message *m = new_message(L, o);

    lua_createtable(L, 0, 3);
    lua_pushvalue(L, from);
    lua_setfield(L, -2, "dispatcher");
    lua_pushvalue(L, from + 1);
    lua_setfield(L, -2, "type");
    lua_pushvalue(L, from + 2);
    lua_setfield(L, -2, "value");
    m->ref = ah_lua_ref(L);
}

void ah_lua_publish(lua_State *L, int at, int idx)
{
    delivery d = {ah_lua_of(L), NULL};
    ah_overlay *o = ah_lua_overlay(L);
    int top = lua_gettop(L);

    ah_lua_no_change(L);
    luaL_checkstack(L, 16, "publish");
    idx = lua_absindex(L, idx);
    lua_pushvalue(L, at);
    push_type(L, idx);          /* -- dispatcher type class */
    push_copy(L, idx, top + 3); /* -- dispatcher type class value */
    lua_remove(L, top + 3);     /* -- dispatcher type value */
    if (o) {
        stage(L, o, top + 1);
    } else {
        lua_getiuservalue(L, top + 1, 1);
        lua_replace(L, top + 1); /* -- list type value */
        deliver(L, &d);
    }
    lua_settop(L, top);
}

static int dispatcher_publish(lua_State *L)
{
    luaL_checkudata(L, 1, AH_DISPATCHER);
    luaL_checkany(L, 2);
    ah_lua_publish(L, 1, 2);
    return 0;
}

typedef struct told {
    ah_run *run;
    const ah_notice *e;
} told;

/* (delivery, event) */
static int deliver_event(lua_State *L)
{
    const delivery *d = lua_touserdata(L, 1);
    const told *t = lua_touserdata(L, 2);

    luaL_checkstack(L, 10, "delivering");
    ah_lua_push_session(L, ah_run_cfg(t->run)->session);
    if (!ah_lua_to_session(L, 3))
        return 0;
    ah_lua_push_dispatcher_of(L, 3);
    if (((ah_dispatcher *)luaL_checkudata(L, 4, AH_DISPATCHER))->subscribers == 0)
        return 0;
    lua_getiuservalue(L, 4, 1);
    lua_pushstring(L, ah_event_name(t->e->type));
    ah_lua_push_event(L, t->e);
    deliver(L, d);
    return 0;
}

void ah_lua_publish_event(ah_lua *h, ah_run *run, const ah_notice *e)
{
    delivery d = {h, run};
    told t = {run, e};
    ah_err err;

    if (!h->subscribed || !lua_checkstack(h->caller, 4))
        return;
    lua_pushcfunction(h->caller, deliver_event);
    lua_pushlightuserdata(h->caller, &d);
    lua_pushlightuserdata(h->caller, &t);
    if (ah_lua_call(h, h->caller, 2, 0, &err) != AH_OK)
        warn(&d, ah_event_name(e->type), &err);
}

void ah_lua_open_dispatcher(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"publish", dispatcher_publish}, {"subscribe", ah_lua_subscribe}, {NULL, NULL}};

    luaL_newmetatable(L, AH_DISPATCHER);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "dispatcher");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
