/* The owner's half of run/background.h, and the methods of agents. */
#include "lua/lua_background.h"

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_render.h"
#include "lua/lua_value.h"

static const char WAIT[] = "agenthost.wait";

/* agent:wait at work, in a userdata. */
typedef struct ah_wait {
    ah_task_waiter waiter;
    ah_timer timer;
    ah_lua_agent *agent; /* NULL: it is over */
    struct ah_wait *next;
    bool late;
} wait;

static ah_run *core_of(const ah_lua_run *r)
{
    return ah_driver_run_run(r->driven);
}

/* -- agent:wait, its end ----------------------------------------------------------------------- */

static void leave_list(wait *w)
{
    wait **at = w->agent ? &w->agent->background.waiting : NULL;

    ah_timer_unset(&w->timer);
    while (at && *at && *at != w)
        at = &(*at)->next;
    if (at && *at)
        *at = w->next;
    w->agent = NULL;
}

void ah_lua_background_wake(ah_lua_agent *a)
{
    wait *w;

    while ((w = a->background.waiting)) {
        leave_list(w);
        ah_task_waiter_done(&w->waiter);
    }
}

static void timed_out(ah_timer *timer)
{
    wait *w = (wait *)(void *)((char *)timer - offsetof(wait, timer));

    w->late = true;
    leave_list(w);
    ah_task_waiter_done(&w->waiter);
}

static void leave_wait(ah_task_waiter *waiter)
{
    leave_list((wait *)(void *)((char *)waiter - offsetof(wait, waiter)));
}

static int wait_gc(lua_State *L)
{
    leave_list(luaL_checkudata(L, 1, WAIT));
    return 0;
}

/* -- the calls of an agent --------------------------------------------------------------------- */

static size_t count(const ah_lua_agent *a)
{
    size_t n = 0;

    for (const ah_lua_run *r = a->background.first; r; r = r->next)
        n++;
    return n;
}

typedef struct beginning {
    ah_lua_agent *agent;
    const ah_call *call;
} beginning;

static int begin_call(lua_State *L)
{
    const beginning *b = lua_touserdata(L, 1);

    ah_lua_run_apart(L, b->agent, b->call, b->agent->background.last + 1);
    return 0;
}

static ah_status begin(void *ud, const ah_call *call, int64_t *ticket, ah_err *err)
{
    ah_lua_agent *a = ud;
    beginning b = {a, call};
    lua_State *L = a->lua->caller;
    ah_status st;

    if (count(a) >= AH_MAX_TICKETS)
        return ah_err_set(err, AH_BUDGET,
                          "%d background calls are outstanding, and there can be no more: wait for "
                          "their results",
                          AH_MAX_TICKETS);
    if (!lua_checkstack(L, 2))
        return ah_err_nomem(err);
    lua_pushcfunction(L, begin_call);
    lua_pushlightuserdata(L, &b);
    if ((st = ah_lua_call(a->lua, L, 1, 0, err)) == AH_OK)
        *ticket = ++a->background.last;
    return st;
}

static bool has(void *ud, const ah_run *run, bool at_work)
{
    const ah_lua_agent *a = ud;
    const ah_lua_run *r = a->background.first;

    while (r && (r->of != ah_run_cfg(run)->id || (at_work && r->ended)))
        r = r->next;
    return r != NULL;
}

/* Returns the call that has ended first, of those that were begun by the run of this number, or of
 * all (0); NULL: none. */
static ah_lua_run *next_held(const ah_lua_agent *a, int64_t of)
{
    ah_lua_run *first = NULL;

    for (ah_lua_run *r = a->background.first; r; r = r->next)
        if (r->ended && (!of || r->of == of) && (!first || r->ended < first->ended) &&
            !ah_driver_run_at_work(r->driven))
            first = r;
    return first;
}

static void take_all(ah_lua_agent *a, ah_run *into, int64_t of)
{
    ah_lua_run *r;

    a->busy++;
    while ((r = next_held(a, of))) {
        ah_background_take(core_of(r), into);
        ah_lua_run_free_apart(r, false);
    }
    a->busy--;
    ah_lua_background_wake(a);
}

static void take(void *ud, ah_run *into)
{
    take_all(ud, into, 0);
}

void ah_lua_background_take(ah_lua_agent *a)
{
    take_all(a, NULL, 0);
}

/* Stops what is at work of the calls that the run of this number has begun; 0: of all. */
static void stop_all(ah_lua_agent *a, int64_t of, const char *why)
{
    ah_lua_run *r = a->background.first;

    while (r) {
        if (r->ended || (of && r->of != of) || ah_driver_run_at_work(r->driven)) {
            r = r->next;
            continue;
        }
        ah_driver_run_settle(r->driven, AH_CANCELLED, why);
        r = r->ended ? a->background.first : r->next;
    }
}

/* A run that is freed without a word takes its calls with it. */
static void drop_of(ah_lua_agent *a, int64_t of)
{
    ah_lua_run *r = a->background.first;

    while (r)
        if (of && r->of != of) {
            r = r->next;
        } else {
            ah_lua_run_free_apart(r, true);
            r = a->background.first;
        }
}

static void end(void *ud, ah_run *run)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    ah_lua_agent *a = ud;

    if (!cfg->on) {
        drop_of(a, cfg->id);
        return;
    }
    if (has(a, run, true))
        ah_run_warn(run, ah_slice_of("background calls were at work when the run ended, and were "
                                     "stopped"));
    stop_all(a, cfg->id, "the run ended");
    take_all(a, NULL, cfg->id);
}

static void ready(void *ud, ah_run *run)
{
    ah_lua_agent *a = ud;
    ah_lua_run *r = a->background.first;

    while (r && (!r->driven || core_of(r) != run))
        r = r->next;
    if (!r)
        return;
    r->ended = ++a->background.ended;
    ah_task_waiter_done(&r->waiter);
    if (ah_lua_agent_at_work(a))
        ah_driver_run_wake(ah_lua_agent_at_work(a));
    ah_lua_background_wake(a);
}

void ah_lua_background_init(ah_lua_agent *a)
{
    a->background.core = (ah_background){
        .begin = begin, .has = has, .take = take, .end = end, .ready = ready, .ud = a};
}

/* -- the end of the agent ---------------------------------------------------------------- */

void ah_lua_background_forget(ah_lua_run *r)
{
    ah_lua_run **at = &r->agent->background.first;

    while (*at && *at != r)
        at = &(*at)->next;
    if (*at)
        *at = r->next;
    r->next = NULL;
}

void ah_lua_background_close(lua_State *L, ah_lua_agent *a)
{
    for (const ah_lua_run *r = a->background.first; r; r = r->next)
        if (ah_driver_run_at_work(r->driven))
            ah_lua_raise(L, AH_USAGE,
                         "agent:close: a background call of the agent is at work in this code");
    a->busy++;
    stop_all(a, 0, "the conversation was closed");
    for (ah_lua_run *r = a->background.first; r; r = r->next)
        ah_background_drop(core_of(r));
    a->busy--;
}

void ah_lua_background_clear(ah_lua_agent *a)
{
    drop_of(a, 0);
    ah_lua_background_wake(a);
}

void ah_lua_background_untap(ah_lua_agent *a)
{
    for (ah_lua_run *r = a->background.first; r; r = r->next)
        r->tap = NULL;
}

void ah_lua_background_lost(lua_State *L, ah_lua_agent *a, const char *why)
{
    ah_err err;

    if (ah_tickets_close(a->transcript, why, ah_host_wall(a->lua->host), &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    a->background.last = ah_tickets_last(a->transcript);
}

/* -- methods --------------------------------------------------------------------------------- */

static int fail(lua_State *L, ah_status st, const char *message)
{
    ah_err err;

    ah_err_set(&err, st, "%s", message);
    return ah_lua_fail(L, &err);
}

/* Begins to wait until the time (loop clock; -1: without limit): pushes the wait and lists it. */
static wait *push_wait(lua_State *L, ah_lua_agent *a, int64_t until)
{
    wait *w = lua_newuserdatauv(L, sizeof *w, 0);

    *w = (wait){.timer.fn = timed_out};
    w->waiter.leave = leave_wait;
    w->waiter.by_code = "a background result";
    luaL_setmetatable(L, WAIT);
    ah_task_waiter_keep(L, &w->waiter);
    w->agent = a;
    w->next = a->background.waiting;
    a->background.waiting = w;
    if (until >= 0)
        ah_timer_set(a->lua->host->loop, &w->timer, until);
    return w;
}

/* (agent, until, wait or nil): looks at what there is, again after each thing that happens. A run
 * at work may take the results, or begin more calls. */
static int waited(lua_State *L, int status, lua_KContext ctx)
{
    ah_lua_agent *a = lua_touserdata(L, 1);
    const wait *w = lua_touserdata(L, 3);
    bool busy = a->current || a->busy;

    (void)status;
    (void)ctx;
    if (a->closed)
        return fail(L, AH_USAGE, "agent:wait: the agent was closed");
    if (!busy && next_held(a, 0))
        return ah_lua_run_on(L);
    if (w && w->late)
        return fail(L, AH_DEADLINE, "agent:wait: the time is over, and no result has come");
    if (!busy && !a->background.first)
        return fail(L, AH_USAGE, "agent:wait: there is nothing to wait for");
    lua_settop(L, 2);
    return ah_lua_await(L, &push_wait(L, a, lua_tointeger(L, 2))->waiter, 0, waited);
}

static bool is_within(const ah_driver_run *d, const ah_lua_run *r)
{
    return d && r && r->driven && !r->ended && ah_driver_run_within(d, r->driven);
}

/* Raises if the code is part of a run of the agent or of one of its background calls, which cannot
 * end before it. */
static void check_apart(lua_State *L, const ah_lua_agent *a)
{
    const ah_task *t = ah_lua_of(L)->running;
    const ah_driver_run *of = t ? t->job.of : NULL;
    bool within = a->busy || is_within(of, a->current);

    for (const ah_lua_run *r = a->background.first; r && !within; r = r->next)
        within = is_within(of, r);
    if (within)
        ah_lua_raise(L, AH_USAGE,
                     "agent:wait: this code is part of a run of the agent, which gets "
                     "the results");
}

/* agent:wait(seconds): waits for a background result and runs the model with it; the reply, or nil
 * and an error. */
static int agent_wait(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    double seconds = luaL_optnumber(L, 2, -1);
    int64_t until = -1;

    if (!lua_isnoneornil(L, 2) && !(seconds >= 0 && seconds <= 1e9))
        return ah_lua_raise(L, AH_USAGE, "agent:wait: seconds must be from 0 to 1e9");
    check_apart(L, a);
    ah_lua_can_await(L);
    ah_lua_can_run(L, true);
    if (seconds >= 0)
        until = ah_host_now(a->lua->host) + ah_ms_of(seconds);
    lua_settop(L, 1);
    lua_pushinteger(L, until);
    lua_pushnil(L);
    return waited(L, LUA_OK, 0);
}

/* Pushes { ticket, name, arguments, since, done }. */
static void push_one(lua_State *L, const ah_lua_run *r)
{
    const ah_call *c = ah_background_call(core_of(r));
    ah_host *host = r->agent->lua->host;
    int64_t since = ah_host_wall(host) - (ah_host_now(host) - c->started);

    lua_createtable(L, 0, 5);
    lua_pushinteger(L, r->ticket);
    lua_setfield(L, -2, "ticket");
    lua_pushlstring(L, c->slot->name->data, c->slot->name->len);
    lua_setfield(L, -2, "name");
    ah_lua_push_said(L, c);
    lua_setfield(L, -2, "arguments");
    lua_pushnumber(L, (double)since / 1000);
    lua_setfield(L, -2, "since");
    lua_pushboolean(L, r->ended != 0);
    lua_setfield(L, -2, "done");
}

/* agent:background(): the outstanding calls, in the order of their tickets. */
static int agent_background(lua_State *L)
{
    const ah_lua_agent *a = ah_lua_check_agent(L);
    lua_Integer n = (lua_Integer)count(a);

    lua_createtable(L, (int)n, 0);
    for (const ah_lua_run *r = a->background.first; r; r = r->next) {
        push_one(L, r);
        lua_seti(L, -2, n--);
    }
    return 1;
}

/* agent:cancel_background(ticket): stops the call; true, or nil and an error. */
static int agent_cancel_background(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);
    lua_Integer ticket = luaL_checkinteger(L, 2);
    ah_lua_run *r = a->background.first;
    ah_err err;

    while (r && (r->ticket != ticket || r->ended))
        r = r->next;
    if (!r) {
        ah_err_set(&err, AH_USAGE, "agent:cancel_background: no call with ticket %lld is at work",
                   (long long)ticket);
        return ah_lua_fail(L, &err);
    }
    ah_driver_run_settle(r->driven, AH_CANCELLED, "the script cancelled it");
    lua_pushboolean(L, true);
    return 1;
}

void ah_lua_open_background(lua_State *L)
{
    static const luaL_Reg methods[] = {{"wait", agent_wait},
                                       {"background", agent_background},
                                       {"cancel_background", agent_cancel_background},
                                       {NULL, NULL}};

    luaL_newmetatable(L, WAIT);
    lua_pushcfunction(L, wait_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    ah_lua_agent_methods(L, methods);
}
