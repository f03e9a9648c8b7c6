/* Queues of events. A queue is allocated by us and held by the host, since an agent and its queues
 * may be collected in any order, and not every finalizer is called when memory is out. */
#include "lua/lua_events.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_observe.h"
#include "lua/lua_options.h"
#include "lua/lua_task.h"

static const char EVENTS[] = "agenthost.events", WAIT[] = "agenthost.events_wait";

enum { MAX_BYTES = 16 << 20, DEFAULT_EVENTS = 1000, MOST_EVENTS = 1000 * 1000 };

/* A copy of an event. The texts follow the fields. */
typedef struct node {
    struct node *next, *before;
    ah_notice notice;
    int64_t dropped; /* events dropped just before this one */
    size_t bytes;
    ah_field field[];
} node;

typedef struct ah_event_queue queue;

/* One wait for the next event. Its user value keeps the object of the queue. */
typedef struct wait {
    ah_task_waiter waiter;
    queue *of; /* NULL: the wait has ended */
    struct wait *next, **link;
    bool idle; /* it has ended because nothing can emit an event any more */
} wait;

struct ah_event_queue {
    ah_lua_object held;
    ah_lua *lua;
    ah_event_hub *hub; /* NULL: no event comes any more */
    queue *next, **link;
    unsigned types;
    size_t max, n, bytes;
    node *first, *last;
    int64_t dropped, missed; /* in all; since the last event that was queued */
    wait *waits;
};

typedef struct box {
    queue *q; /* NULL: not made */
} box;

/* -- waits ------------------------------------------------------------------------------------- */

static void unlink_wait(wait *x)
{
    if (!x->of)
        return;
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    x->of = NULL;
}

static void leave_wait(ah_task_waiter *w)
{
    unlink_wait((wait *)(void *)((char *)w - offsetof(wait, waiter)));
}

static void end_wait(wait *x)
{
    unlink_wait(x);
    ah_task_waiter_done(&x->waiter);
}

static void end_idle(ah_task_waiter *w)
{
    wait *x = (wait *)(void *)((char *)w - offsetof(wait, waiter));

    x->idle = true;
    end_wait(x);
}

static int wait_gc(lua_State *L)
{
    unlink_wait(luaL_checkudata(L, 1, WAIT));
    return ah_lua_retire(L);
}

/* Wakes all waits: a task that is woken may be stopped before it takes the event. */
static void wake(queue *q)
{
    while (q->waits)
        end_wait(q->waits);
}

/* -- events ------------------------------------------------------------------------------------ */

static node *copy_event(const ah_mem *mem, const ah_notice *e)
{
    size_t bytes = sizeof(node) + e->n * sizeof(ah_field);
    node *n;
    char *to;

    for (size_t i = 0; i < e->n; i++)
        bytes += e->field[i].s.n;
    if (!(n = ah_alloc(mem, bytes)))
        return NULL;
    n->bytes = bytes;
    n->notice = *e;
    n->notice.field = n->field;
    to = (char *)(n->field + e->n);
    for (size_t i = 0; i < e->n; i++) {
        ah_slice *s = &n->field[i].s;

        n->field[i] = e->field[i];
        if (!s->n)
            continue;
        memcpy(to, s->p, s->n);
        s->p = to;
        to += s->n;
    }
    return n;
}

static void take_out(queue *q, node *n)
{
    *(n->before ? &n->before->next : &q->first) = n->next;
    *(n->next ? &n->next->before : &q->last) = n->before;
    q->n--;
    q->bytes -= n->bytes;
}

static void append(queue *q, node *n)
{
    n->dropped = q->missed;
    q->missed = 0;
    n->before = q->last;
    *(q->last ? &q->last->next : &q->first) = n;
    q->last = n;
    q->n++;
    q->bytes += n->bytes;
}

static void drop_last(queue *q)
{
    node *n = q->last;

    take_out(q, n);
    q->missed += n->dropped + 1;
    q->dropped++;
    ah_free(&q->lua->mem, n);
}

/* The end of a run takes the place of the newest other event, so that a reader learns of it. */
static void put(queue *q, const ah_notice *e)
{
    bool full = q->n >= q->max || q->bytes > MAX_BYTES;
    node *n = NULL;

    if (full && e->type == AH_EVENT_DONE && q->last->notice.type != AH_EVENT_DONE) {
        drop_last(q);
        full = false;
    }
    if (!full && (n = copy_event(&q->lua->mem, e))) {
        append(q, n);
        wake(q);
    } else {
        q->missed++;
        q->dropped++;
    }
}

void ah_event_hub_put(ah_event_hub *hub, const ah_notice *e)
{
    for (queue *q = hub->first; q; q = q->next)
        if (q->types >> e->type & 1)
            put(q, e);
}

/* -- the life of a queue ----------------------------------------------------------------------- */

static void detach(queue *q)
{
    ah_event_hub *hub = q->hub;

    if (!hub)
        return;
    *q->link = q->next;
    if (q->next)
        q->next->link = q->link;
    q->hub = NULL;
    hub->types = 0;
    for (q = hub->first; q; q = q->next)
        hub->types |= q->types;
}

static void free_nodes(const ah_mem *mem, node *n)
{
    for (node *next; n; n = next) {
        next = n->next;
        ah_free(mem, n);
    }
}

static void free_queue(ah_lua_object *o)
{
    queue *q = (queue *)(void *)((char *)o - offsetof(queue, held));

    ah_lua_let_go(o);
    detach(q);
    while (q->waits)
        unlink_wait(q->waits);
    free_nodes(&q->lua->mem, q->first);
    ah_free(&q->lua->mem, q);
}

static void free_hub(ah_lua_object *o)
{
    ah_event_hub *hub = (ah_event_hub *)(void *)((char *)o - offsetof(ah_event_hub, held));

    ah_lua_let_go(o);
    while (hub->first)
        detach(hub->first);
    ah_free(&hub->lua->mem, hub);
}

void ah_event_hub_end(ah_event_hub *hub)
{
    while (hub && hub->first) {
        queue *q = hub->first;

        detach(q);
        wake(q);
    }
    if (hub)
        free_hub(&hub->held);
}

static queue *to_queue(lua_State *L)
{
    return ((box *)luaL_checkudata(L, 1, EVENTS))->q;
}

static int events_gc(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, EVENTS);
    queue *q = b->q;

    b->q = NULL;
    if (q)
        free_queue(&q->held);
    return ah_lua_retire(L);
}

/* events:close(), and __close: no more events come; those that are queued can still be read. */
static int events_close(lua_State *L)
{
    queue *q = to_queue(L);

    detach(q);
    wake(q);
    return 0;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* (node) -- event */
static int push_node(lua_State *L)
{
    const node *n = lua_touserdata(L, 1);

    ah_lua_push_event(L, &n->notice);
    if (n->dropped) {
        lua_pushinteger(L, n->dropped);
        lua_setfield(L, -2, "dropped");
    }
    return 1;
}

static void put_back(queue *q, node *n)
{
    n->before = NULL;
    n->next = q->first;
    *(q->first ? &q->first->before : &q->last) = n;
    q->first = n;
    q->n++;
    q->bytes += n->bytes;
}

/* Pushing may run finalizers, which may read the queue; without memory for it, the event is the
 * next one again. */
static void push_first(lua_State *L, queue *q)
{
    node *n = q->first;

    lua_pushcfunction(L, push_node);
    lua_pushlightuserdata(L, n);
    take_out(q, n);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        put_back(q, n);
        lua_error(L);
    }
    ah_free(&q->lua->mem, n);
}

/* (queue) -- queue wait */
static wait *push_wait(lua_State *L, queue *q)
{
    wait *x = lua_newuserdatauv(L, sizeof *x, 1);

    *x = (wait){.waiter = {.leave = leave_wait, .idle = end_idle, .by_code = "event"}};
    luaL_setmetatable(L, WAIT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    ah_task_waiter_keep(L, &x->waiter);
    x->of = q;
    x->next = q->waits;
    x->link = &q->waits;
    if (x->next)
        x->next->link = &x->next;
    q->waits = x;
    return x;
}

static int next_event(lua_State *L);

static int waited(lua_State *L, int status, lua_KContext ctx)
{
    const wait *x = lua_touserdata(L, 2);

    (void)status;
    (void)ctx;
    if (!x->idle)
        return next_event(L);
    lua_pushnil(L);
    return 1;
}

/* events(): waits for an event. nil: no more will come. */
static int next_event(lua_State *L)
{
    queue *q = to_queue(L);

    lua_settop(L, 1);
    if (q->first) {
        push_first(L, q);
        return 1;
    }
    if (!q->hub) {
        lua_pushnil(L);
        return 1;
    }
    ah_lua_can_await(L);
    return ah_lua_await(L, &push_wait(L, q)->waiter, 0, waited);
}

static int events_index(lua_State *L)
{
    const queue *q = to_queue(L);
    const char *name = luaL_tolstring(L, 2, NULL);

    if (strcmp(name, "dropped") == 0)
        lua_pushinteger(L, q->dropped);
    else if (strcmp(name, "close") == 0)
        lua_pushcfunction(L, events_close);
    else
        return ah_lua_raise(L, AH_USAGE, "a queue of events has no '%s': it has dropped, close",
                            name);
    return 1;
}

static int events_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)to_queue(L)->n);
    return 1;
}

/* -- agent:events ------------------------------------------------------------------------------ */

static const ah_option rows[] = {
    {.name = "max",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = MOST_EVENTS,
     .otherwise = "1000",
     .to = AH_TO_SIZE(queue, max),
     .doc = "largest number of events that wait to be read; they take at most 16 MiB"},
    {.name = "types",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "ah.EventType[]",
     .otherwise = "all",
     .doc = "types of events that are queued"},
    {0},
};
const ah_subject ah_subject_events = {.what = "agent:events",
                                      .type = "ah.EventsOptions",
                                      .doc = "a queue of the events of an agent",
                                      .row = rows};

static unsigned types_at(lua_State *L, int idx)
{
    unsigned types = 0;
    lua_Integer n;

    if (!ah_lua_field_list(L, idx, "agent:events", "types", &n))
        return ~0u;
    for (lua_Integer i = 1; i <= n; i++) {
        ah_slice name;

        if (lua_geti(L, -1, i) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "agent:events: types must be strings, found %s",
                         luaL_typename(L, -1));
        name.p = lua_tolstring(L, -1, &name.n);
        types |= 1u << ah_lua_event_type(L, name, "agent:events");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return types;
}

static queue *push_queue(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    box *b = lua_newuserdatauv(L, sizeof *b, 0);
    queue *q;

    b->q = NULL;
    if (!(q = ah_alloc(&h->mem, sizeof *q)))
        ah_lua_raise_nomem(L);
    *q = (queue){.held.drop = free_queue, .lua = h, .max = DEFAULT_EVENTS, .types = ~0u};
    b->q = q;
    ah_lua_hold(h, &q->held);
    luaL_setmetatable(L, EVENTS);
    return q;
}

static ah_event_hub *make_hub(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_event_hub *hub = ah_alloc(&h->mem, sizeof *hub);

    if (!hub)
        ah_lua_raise_nomem(L);
    *hub = (ah_event_hub){.held.drop = free_hub, .lua = h};
    ah_lua_hold(h, &hub->held);
    return hub;
}

static void attach(queue *q, ah_event_hub *hub)
{
    q->hub = hub;
    q->next = hub->first;
    q->link = &hub->first;
    if (q->next)
        q->next->link = &q->next;
    hub->first = q;
    hub->types |= q->types;
}

int ah_lua_push_events(lua_State *L, int idx, ah_event_hub **hub)
{
    queue *q = push_queue(L);
    int at = lua_gettop(L);

    if (!lua_isnoneornil(L, idx) && idx < at) {
        ah_options_read(L, idx, &ah_subject_events, q);
        q->types = types_at(L, idx);
    }
    if (!*hub)
        *hub = make_hub(L);
    attach(q, *hub);
    lua_settop(L, at);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushvalue(L, at);
    return 4;
}

void ah_lua_open_events(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", events_gc},    {"__close", events_close},
                                    {"__call", next_event}, {"__index", events_index},
                                    {"__len", events_len},  {NULL, NULL}};
    static const luaL_Reg wait_meta[] = {{"__gc", wait_gc}, {NULL, NULL}};

    luaL_newmetatable(L, EVENTS);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, WAIT);
    luaL_setfuncs(L, wait_meta, 0);
    lua_pop(L, 2);
}
