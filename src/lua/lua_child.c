/* The life of a child process, and the waits for it: each wait is in the child's list, which is
 * checked at each news of the process. */
#include "lua/lua_child.h"

#include "base/seconds.h"
#include "lua/lua_error.h"

static const char WAITING[] = "agenthost.process.wait";

typedef struct object {
    ah_child *child;
} object;

static void stop_waiting(ah_child_wait *w)
{
    ah_timer_unset(&w->timer);
    ah_timer_unset(&w->stall);
    if (!w->link)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->link = NULL;
}

void ah_child_let_go(ah_child *c)
{
    ah_timer_unset(&c->patience);
    ah_process_free(c->p);
    c->p = NULL;
    ah_sandbox_close(&c->sandbox);
}

static void free_child(ah_child *c)
{
    while (c->waits)
        stop_waiting(c->waits);
    ah_child_let_go(c);
    ah_ends_clear(&c->errors);
    ah_buf_clear(&c->part);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    ah_free(&c->lua->mem, c);
}

static void free_children(ah_lua *h)
{
    while (h->children)
        free_child(h->children);
}

static void end_on_time(ah_timer *t)
{
    ah_process_stop(((ah_child *)(void *)((char *)t - offsetof(ah_child, patience)))->p);
}

ah_child *ah_child_new(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    object *o = lua_newuserdatauv(L, sizeof *o, 0);
    ah_child *c;

    o->child = NULL;
    luaL_setmetatable(L, AH_CHILD_OBJECT);
    if (!(c = ah_alloc(&h->mem, sizeof *c)))
        ah_lua_raise_nomem(L);
    *c =
        (ah_child){.lua = h, .patience.fn = end_on_time, .next = h->children, .link = &h->children};
    if (c->next)
        c->next->link = &c->next;
    h->children = c;
    h->end_children = free_children;
    ah_ends_init(&c->errors, &h->mem, 0, 0);
    ah_buf_init(&c->part, &h->mem, AH_CHILD_MOST_READ + 4 * AH_CHILD_PENDING);
    o->child = c;
    return c;
}

static int object_gc(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, AH_CHILD_OBJECT);

    if (o->child && ah_lua_known(L))
        free_child(o->child);
    o->child = NULL;
    return ah_lua_retire(L);
}

ah_child *ah_child_check(lua_State *L)
{
    ah_child *c = ((object *)luaL_checkudata(L, 1, AH_CHILD_OBJECT))->child;

    ah_lua_of(L); /* raises if the host is closed */
    if (!c)
        ah_lua_raise(L, AH_USAGE, "process: it was not started");
    return c;
}

ah_child *ah_child_of(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, AH_CHILD_OBJECT);

    return ah_lua_known(L) ? o->child : NULL;
}

int ah_child_fails(lua_State *L, const ah_err *err)
{
    if (err->status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

int ah_child_is_closed(lua_State *L, const ah_child *c)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE, "'%s' is closed", c->name);
    return ah_child_fails(L, &err);
}

int ah_child_push_late(lua_State *L, const ah_child *c, const char *awaited)
{
    ah_err err;

    ah_err_set(&err, AH_DEADLINE, "'%s' has not %s in the time that was given", c->name, awaited);
    ah_lua_push_error(L, &err);
    return 2;
}

/* -- waiting ----------------------------------------------------------------------------------- */

static bool came(const ah_child_wait *w)
{
    const ah_child *c = w->of;

    if (w->late || w->stalled || !c->p)
        return true;
    switch (w->need) {
    case AH_CHILD_OUTPUT:
        return c->closing || ah_process_output(c->p, AH_STDOUT).n > 0 ||
               ah_process_at_end(c->p, AH_STDOUT);
    case AH_CHILD_WRITTEN:
        return ah_process_written(c->p) >= w->end || !ah_process_has_input(c->p);
    case AH_CHILD_END:
        break;
    }
    return c->ended;
}

void ah_child_wake(ah_child *c)
{
    ah_child_wait *w = c->waits, *next;

    for (; w; w = next) {
        next = w->next;
        if (!came(w))
            continue;
        stop_waiting(w);
        ah_task_waiter_done(&w->waiter);
    }
}

static void leave(ah_task_waiter *waiter)
{
    stop_waiting((ah_child_wait *)(void *)((char *)waiter - offsetof(ah_child_wait, waiter)));
}

static int waiting_gc(lua_State *L)
{
    stop_waiting(luaL_checkudata(L, 1, WAITING));
    return 0;
}

static void on_late(ah_timer *t)
{
    ah_child_wait *w = (ah_child_wait *)(void *)((char *)t - offsetof(ah_child_wait, timer));

    w->late = true;
    ah_child_wake(w->of);
}

bool ah_child_is_read(const ah_child *c)
{
    const ah_child_wait *w = c->waits;

    while (w && w->need != AH_CHILD_OUTPUT)
        w = w->next;
    return w != NULL;
}

/* The process has stalled if its output buffer is full and no task has read for stall_ms. */
static void on_stall(ah_timer *t)
{
    ah_child_wait *w = (ah_child_wait *)(void *)((char *)t - offsetof(ah_child_wait, stall));
    ah_child *c = w->of;

    if (c->p && ah_process_output(c->p, AH_STDOUT).n >= AH_CHILD_PENDING && !ah_child_is_read(c) &&
        w->seen == c->taken) {
        w->stalled = true;
        ah_child_wake(c);
        return;
    }
    w->seen = c->taken;
    ah_timer_set(c->lua->host->loop, t, ah_host_now(c->lua->host) + c->stall_ms);
}

/* -- waiting    It keeps the object at 1. */
ah_child_wait *ah_child_push_wait(lua_State *L, ah_child *c, ah_child_need need)
{
    ah_child_wait *w = lua_newuserdatauv(L, sizeof *w, 1);

    *w = (ah_child_wait){.of = c,
                         .need = need,
                         .timer.fn = on_late,
                         .stall.fn = on_stall,
                         .for_ms = -1,
                         .bytes = AH_CHILD_MAX_LINE};
    luaL_setmetatable(L, WAITING);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return w;
}

int ah_child_await(lua_State *L, int at, ah_child_wait *w, lua_KFunction k)
{
    ah_child *c = w->of;
    int64_t now = ah_host_now(c->lua->host);

    luaL_checkstack(L, 8, "waiting");
    ah_lua_can_await(L);
    lua_pushvalue(L, at);
    w->waiter = (ah_task_waiter){.leave = leave};
    ah_task_waiter_keep(L, &w->waiter);
    lua_pop(L, 1);
    w->next = c->waits;
    w->link = &c->waits;
    if (w->next)
        w->next->link = &w->next;
    c->waits = w;
    if (w->until)
        ah_timer_set(c->lua->host->loop, &w->timer, w->until);
    if (w->need != AH_CHILD_OUTPUT && !w->discard) {
        w->seen = c->taken;
        ah_timer_set(c->lua->host->loop, &w->stall, now + c->stall_ms);
    }
    return ah_lua_await(L, &w->waiter, at, k);
}

/* -- news -------------------------------------------------------------------------------------- */

static void take_errors(ah_child *c)
{
    ah_slice s = ah_process_output(c->p, AH_STDERR);

    if (s.n == 0)
        return;
    ah_ends_put(&c->errors, s);
    ah_process_take(c->p, AH_STDERR, s.n);
}

void ah_child_drop_output(ah_child *c)
{
    size_t n = ah_process_output(c->p, AH_STDOUT).n;

    c->taken += (int64_t)n;
    ah_process_take(c->p, AH_STDOUT, n);
}

static bool is_dropped(const ah_child *c)
{
    const ah_child_wait *w = c->waits;

    while (w && !w->discard)
        w = w->next;
    return c->closing || w;
}

void ah_child_news(void *ud, ah_process *p)
{
    ah_child *c = ud;

    take_errors(c);
    if (is_dropped(c))
        ah_child_drop_output(c);
    if (!c->ended && ah_process_ended(p, &c->result)) {
        c->ended = true;
        ah_timer_unset(&c->patience);
    }
    ah_child_wake(c);
}

/* -- options ----------------------------------------------------------------------------------- */

static const ah_option time_rows[] = {
    {.name = "timeout",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .unit = "seconds",
     .to = AH_TO_MS(ah_child_wait, for_ms),
     .doc = "time to wait before the method [fails](processes.md#methods)"},
    {0},
};
const ah_subject ah_subject_process_time = {
    .what = "process:write", .type = "ah.TimeOption", .row = time_rows};

/* A timeout of 0 is over at once; `until` = 0 would mean none. */
void ah_child_set_time(ah_child_wait *w)
{
    w->late = w->stalled = false;
    w->until =
        w->for_ms < 0 ? 0 : ah_host_now(w->of->lua->host) + w->for_ms + (w->for_ms > 0 ? 0 : -1);
}

void ah_child_options(lua_State *L, int idx, const char *what, const ah_subject *s,
                      ah_child_wait *w)
{
    if (lua_isnoneornil(L, idx))
        return;
    ah_options_read_as(L, idx, s, what, w);
    ah_child_set_time(w);
}

void ah_lua_open_child(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", object_gc}, {NULL, NULL}};
    static const luaL_Reg waiting_meta[] = {{"__gc", waiting_gc}, {NULL, NULL}};

    luaL_newmetatable(L, AH_CHILD_OBJECT);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, WAITING);
    luaL_setfuncs(L, waiting_meta, 0);
    lua_pop(L, 2);
}
