/* A front end is a function that gets an ask, as a task of the run that asks. It may wait, and is
 * stopped when the ask is closed. Its result is its response; without a result it may respond
 * later. One that fails is ignored, with a warning. */
#include "lua/lua_front.h"

#include "lua/lua_agent.h"
#include "lua/lua_approve.h"
#include "lua/lua_lost_ask.h"
#include "lua/lua_ask.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_value.h"

enum { MAX_RESPONSE = 16 << 20, MAX_WORDS = AH_MAX_MESSAGE + 256 };

typedef struct offer offer;

typedef struct front {
    offer *of;
    ah_task *task;        /* NULL: it has ended */
    char where[AH_PLACE]; /* position of the function */
} front;

/* An ask that is offered to front ends; freed with the ask. */
struct offer {
    ah_lua *lua;
    ah_ask_item *ask;
    int passed;   /* number of runs asked, from the inside out */
    bool program; /* the program has been asked */
    bool held;    /* a responder may still respond later */
    bool busy;    /* code of the script may run: freeing waits for its end */
    bool gone;    /* the ask was left while busy */
    front *item;  /* of the run that is asked now */
    size_t n, working;
};

static void ask_next(offer *o);

/* -- the ask as a front end sees it -------------------------------------------------------- */

/* -- nil err */
static int refused(lua_State *L, const ah_err *err)
{
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

/* Responds to the ask with the values from `first` on, if it is still open after they are read,
 * which may run code of the script. -- true, or nil err */
static int respond(lua_State *L, ah_ask_kind kind, ah_slice id, int first)
{
    ah_host *h = ah_lua_of(L)->host;
    ah_ask_item *ask;
    ah_status st;
    ah_err err;
    ah_buf *b;

    if (lua_isnoneornil(L, first))
        return ah_lua_raise(L, AH_USAGE, "a response is missing (null is ah.null)");
    b = ah_lua_push_buf(L, MAX_RESPONSE);
    lua_insert(L, first);
    st = ah_lua_read_response(L, kind, first + 1, b, &err);
    if (st == AH_OK && !(ask = ah_ask_find(h, id, &err)))
        st = err.status;
    else if (st == AH_OK)
        st = ah_ask_respond(ask, ah_buf_slice(b), ah_slice_of(AH_BY_FRONT), &err);
    ah_buf_clear(b);
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (st != AH_OK)
        return refused(L, &err);
    lua_pushboolean(L, true);
    return 1;
}

/* ask:respond(value); the ask's id is the upvalue */
static int ask_respond(lua_State *L)
{
    ah_ask_item *ask;
    ah_slice id;
    ah_err err;

    id.p = lua_tolstring(L, lua_upvalueindex(1), &id.n);
    if (lua_type(L, 1) != LUA_TTABLE)
        return ah_lua_raise(L, AH_USAGE, "call it as ask:respond(value)");
    ask = ah_ask_find(ah_lua_of(L)->host, id, &err);
    return ask ? respond(L, ask->def.kind, id, 2) : refused(L, &err);
}

/* A secret shows no default, which is as secret as the response. */
static void push_ask(lua_State *L, const ah_ask_item *ask)
{
    lua_createtable(L, 0, 12);
    lua_pushstring(L, ask->id);
    lua_setfield(L, -2, "id");
    lua_pushstring(L, ah_ask_kind_name(ask->def.kind));
    lua_setfield(L, -2, "kind");
    lua_pushlstring(L, ask->question->data, ask->question->len);
    lua_setfield(L, -2, "question");
    ah_lua_push_json(L, ah_text_slice(ask->schema));
    lua_setfield(L, -2, "schema");
    ah_lua_push_call(L, ask->def.call, ah_text_slice(ask->args));
    lua_setfield(L, -2, "call");
    lua_pushinteger(L, ah_run_cfg(ask->def.call->run)->id);
    lua_setfield(L, -2, "run");
    ah_lua_set_shown(L, ask, false);
    if (ask->otherwise && !ask->def.secret) {
        ah_lua_push_json(L, ah_text_slice(ask->otherwise));
        lua_setfield(L, -2, "default");
    }
    if (ask->def.timeout_ms) {
        lua_pushnumber(L, (double)ask->def.timeout_ms / 1000);
        lua_setfield(L, -2, "timeout");
    }
    if (ask->def.secret) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "secret");
    }
    lua_pushstring(L, ask->id);
    lua_pushcclosure(L, ask_respond, 1);
    lua_setfield(L, -2, "respond");
}

/* -- asking ----------------------------------------------------------------------------------- */

static void stop_fronts(offer *o)
{
    front *item = o->item;
    size_t n = o->n;

    o->item = NULL;
    o->n = o->working = 0;
    for (size_t i = 0; i < n; i++) {
        ah_task *t = item[i].task;

        item[i].task = NULL;
        if (t)
            ah_task_stop(t);
    }
    ah_free(&o->lua->mem, item);
}

static void free_offer(offer *o)
{
    stop_fronts(o);
    ah_free(&o->lua->mem, o);
}

static void left(void *ud)
{
    offer *o = ud;

    o->gone = true;
    if (!o->busy)
        free_offer(o);
}

/* Called before code of the script, which may close the ask. */
static void enter(offer *o)
{
    o->busy = true;
    ah_ask_pin(o->ask);
}

/* Called after it. Returns false if the ask is over; the offer is then freed. */
static bool go_on(offer *o)
{
    o->busy = false;
    if (ah_ask_unpin(o->ask))
        return true;
    free_offer(o);
    return false;
}

static void ended(offer *o)
{
    if (--o->working == 0)
        ask_next(o);
}

/* Ignores the front end, with a warning. The offer was entered. */
static void fails(front *f, const char *where, const ah_err *err)
{
    offer *o = f->of;
    char words[MAX_WORDS];

    ah_print(words, sizeof words, "%s: a front end did not respond: %s", where, err->message);
    if (!o->gone)
        ah_run_warn(o->ask->def.call->run, ah_slice_of(words));
    if (go_on(o))
        ended(o);
}

/* Takes the results of the front end on top. */
static void settled(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    int first = lua_gettop(L) - nresults + 1;
    front *f = t->ud;
    offer *o = f->of;
    ah_status st;
    ah_buf *b;
    ah_err err;

    f->task = NULL;
    if (nresults == 0 || lua_isnil(L, first)) {
        o->held = true;
        t->told = true;
        ended(o);
        return;
    }
    enter(o);
    b = ah_lua_push_buf(L, MAX_RESPONSE);
    lua_insert(L, first);
    st = ah_lua_read_response(L, o->ask->def.kind, first + 1, b, &err);
    t->told = true; /* nothing raises from here on */
    if (st == AH_OK && !o->gone)
        st = ah_ask_respond(o->ask, ah_buf_slice(b), ah_slice_of(AH_BY_FRONT), &err);
    ah_buf_clear(b);
    if (st == AH_OK)
        go_on(o);
    else
        fails(f, f->where, &err);
}

static void failed(ah_task *t, const ah_err *err)
{
    front *f = t->ud;
    char where[AH_PLACE];

    memcpy(where, f->where, sizeof where);
    ah_lua_where(t->co, where, sizeof where);
    f->task = NULL;
    if (!f->of->busy) /* else reading its results failed */
        enter(f->of);
    fails(f, where, err);
}

/* (offer, list): makes a task for each */
static int make_fronts(lua_State *L)
{
    offer *o = lua_touserdata(L, 1);
    size_t n = (size_t)luaL_len(L, 2);

    if (!(o->item = ah_alloc(&o->lua->mem, n * sizeof *o->item)))
        return ah_lua_raise_nomem(L);
    for (; o->n < n; o->n++) {
        front *f = &o->item[o->n];
        ah_task *t;

        lua_geti(L, 2, (lua_Integer)o->n + 1);
        f->of = o;
        ah_lua_defined(L, -1, f->where, sizeof f->where);
        push_ask(L, o->ask);
        t = ah_task_new(o->lua, L, 1, o->ask->def.of);
        t->settled = settled;
        t->failed = failed;
        t->ud = f;
        f->task = t;
    }
    return 0;
}

static void warn(const ah_ask_item *ask, const ah_err *err)
{
    char words[MAX_WORDS];

    ah_print(words, sizeof words, "the front ends cannot be asked: %s", err->message);
    ah_run_warn(ask->def.call->run, ah_slice_of(words));
}

/* Starts the front ends of one run as jobs, in their order. Returns false if they cannot be asked,
 * so that others are; on true the offer may be freed. */
static bool begin_fronts(offer *o, int list)
{
    lua_State *L = o->lua->caller;
    ah_status st = AH_NOMEM;
    ah_err err;

    ah_err_nomem(&err);
    stop_fronts(o);
    enter(o);
    if (lua_checkstack(L, 4)) {
        lua_pushcfunction(L, make_fronts);
        lua_pushlightuserdata(L, o);
        lua_rawgeti(L, LUA_REGISTRYINDEX, list);
        st = ah_lua_call(o->lua, L, 2, 0, &err);
    }
    if (st != AH_OK && !o->gone)
        warn(o->ask, &err);
    if (!go_on(o))
        return true;
    if (st != AH_OK) {
        stop_fronts(o);
        return false;
    }
    o->working = o->n;
    for (size_t i = 0; i < o->n; i++)
        ah_job_post(o->lua->host, &o->item[i].task->job);
    return o->n > 0;
}

static void ask_next(offer *o)
{
    const ah_driver_run *of = o->ask->def.of;

    for (int i = 0; of && i < o->passed; i++)
        of = ah_driver_run_parent(of);
    for (; of; of = ah_driver_run_parent(of)) {
        const ah_lua_agent *a = ah_lua_agent_of(of);

        o->passed++;
        if (a && a->fronts != LUA_NOREF && begin_fronts(o, a->fronts))
            return;
    }
    if (o->lua->host->cfg.asks && !o->program) {
        o->program = o->ask->offered = o->held = true;
        return;
    }
    if (!o->held)
        ah_ask_give_up(o->ask);
}

void ah_lua_offer(ah_lua *h, ah_ask_item *ask)
{
    offer *o = ah_alloc(&h->mem, sizeof *o);
    ah_err err;

    if (!o) {
        ah_ask_pin(ask);
        ah_err_nomem(&err);
        warn(ask, &err);
        if (ah_ask_unpin(ask))
            ah_ask_give_up(ask);
        return;
    }
    *o = (offer){.lua = h, .ask = ask};
    ask->offer = o;
    ask->left = left;
    ask_next(o);
}

/* -- attaching --------------------------------------------------------------------------------- */

/* agent:on_ask(function(ask)): gets asks of the agent's runs from now on, and of nested runs
 * without a front end of their own. */
static int agent_on_ask(lua_State *L)
{
    ah_lua_agent *a = ah_lua_check_agent(L);

    if (lua_type(L, 2) != LUA_TFUNCTION)
        return ah_lua_raise(L, AH_USAGE,
                            "agent:on_ask: a front end is a function of an ask, found %s",
                            luaL_typename(L, 2));
    lua_settop(L, 2);
    ah_lua_add_front(L, a);
    return 0;
}

/* agent:respond(id, value): true, or nil and an error. */
static int agent_respond(lua_State *L)
{
    const ah_lua_agent *a = ah_lua_check_agent(L);
    ah_driver_run *at_work = ah_lua_agent_at_work(a);
    ah_ask_item *ask;
    ah_slice id;
    ah_err err;

    id.p = luaL_checklstring(L, 2, &id.n);
    ask = ah_ask_find(a->lua->host, id, &err);
    if (!ask)
        return refused(L, &err);
    if (!at_work || !ah_driver_run_within(ask->def.of, at_work)) {
        ah_err_set(&err, AH_USAGE, "%.*s is not asked in a run of this agent", AH_FMT(id));
        return refused(L, &err);
    }
    return respond(L, ask->def.kind, id, 3);
}

void ah_lua_open_front(lua_State *L)
{
    static const ah_lua_runs runs = {.ask = ah_lua_approve,
                                     .stop_asking = ah_lua_stop_approving,
                                     .ask_lost = ah_lua_ask_lost,
                                     .stop_ask_lost = ah_lua_stop_ask_lost,
                                     .push_reply = ah_lua_push_reply_so_far};
    static const luaL_Reg methods[] = {
        {"on_ask", agent_on_ask}, {"respond", agent_respond}, {NULL, NULL}};

    ah_lua_of(L)->runs = &runs;
    ah_lua_agent_methods(L, methods);
}
