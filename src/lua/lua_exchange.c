/* The exchange as an object, and the task that writes into it; see lua_exchange.h. A task that
 * waits for the results of its calls is between two exchanges of one run: it continues with the
 * second, or is ended if there is none. */
#include "lua/lua_exchange.h"

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"

static const char EXCHANGE[] = "agenthost.exchange";

enum { MAX_PIECE = 64 << 20 };

/* An exchange as the adapter's function sees it. */
struct ah_lua_exchange {
    ah_exchange *x; /* NULL: it is over, or waits for the results of calls */
    ah_task *task;
    ah_lua_adapter *of;
    const ah_wire *wire;   /* of its conversation; only compared */
    int64_t run;           /* number of its run */
    uint64_t head;         /* hash of the request before the entries when it began */
    ah_task_waiter waiter; /* for the results of calls */
    bool over;             /* it cannot continue */
    ah_lua_exchange *next; /* in of->paused */
};

/* -- the exchange as an object ----------------------------------------------------------- */

static ah_lua_exchange *check_open(lua_State *L)
{
    ah_lua_exchange *e = luaL_checkudata(L, 1, EXCHANGE);

    if (!e->x)
        ah_lua_raise(L, AH_USAGE, "exchange: it is over");
    return e;
}

static ah_exchange *check_exchange(lua_State *L)
{
    return check_open(L)->x;
}

/* x:request(): the request, decoded. */
static int exchange_request(lua_State *L)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PIECE);
    ah_exchange *x = check_exchange(L);
    ah_slice body[3];
    size_t n = ah_wire_body(ah_run_cfg(ah_driver_run_run(x->of))->wire, body);

    for (size_t i = 0; i < n; i++)
        ah_buf_put(b, body[i]);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    ah_buf_clear(b); /* at once instead of at the next collection: it may be large */
    return 1;
}

/* x:write(piece): writes one piece, a table as in wire/scripted.c. */
static int exchange_write(lua_State *L)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PIECE);
    ah_exchange *x = check_exchange(L);
    ah_err err;

    if (ah_lua_to_json(L, 2, b->mem, b, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_buf_char(b, '\n');
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    ah_exchange_feed(x, ah_buf_slice(b));
    ah_buf_clear(b);
    return 0;
}

/* x:line(text): writes a line in the wire that the adapter reads. */
static int exchange_line(lua_State *L)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PIECE);
    ah_exchange *x = check_exchange(L);
    ah_slice line;

    line.p = luaL_checklstring(L, 2, &line.n);
    if (memchr(line.p, '\n', line.n))
        return ah_lua_raise(L, AH_USAGE,
                            "out:line: one line at a time; this has an end of line in it");
    ah_buf_put(b, line);
    ah_buf_char(b, '\n');
    if (!ah_buf_ok(b))
        return b->status == AH_NOMEM ? ah_lua_raise_nomem(L)
                                     : ah_lua_raise(L, AH_USAGE, "out:line: more than 64 MiB");
    ah_exchange_feed(x, ah_buf_slice(b));
    ah_buf_clear(b);
    return 0;
}

/* x:warn(text): emits a `warning` event of the run. */
static int exchange_warn(lua_State *L)
{
    ah_exchange *x = check_exchange(L);
    ah_slice text;

    text.p = luaL_checklstring(L, 2, &text.n);
    ah_run_warn(ah_driver_run_run(x->of), text);
    return 0;
}

/* x:fail(failure): ends the exchange with a failure, a table as in wire/scripted.c. */
static int exchange_fail(lua_State *L)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PIECE);
    ah_lua_exchange *e = check_open(L);
    ah_exchange *x = e->x;
    int64_t retry_after;
    ah_err err;

    if (ah_lua_to_json(L, 2, b->mem, b, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    ah_scripted_failure(b->mem, ah_buf_slice(b), &retry_after, &err);
    ah_buf_clear(b);
    ah_run_advise(ah_driver_run_run(x->of), x->id, retry_after);
    e->x = NULL;
    ah_exchange_end(x, &err);
    return 0;
}

/* x:raw(bytes): passes bytes of the answer unchanged, for tests of cut and broken answers. */
static int exchange_raw(lua_State *L)
{
    ah_exchange *x = check_exchange(L);
    ah_slice bytes;

    bytes.p = luaL_checklstring(L, 2, &bytes.n);
    ah_exchange_feed(x, bytes);
    return 0;
}

/* x:conversation(): a value that identifies the conversation, for use as a key. */
static int exchange_conversation(lua_State *L)
{
    const ah_lua_exchange *e = luaL_checkudata(L, 1, EXCHANGE);

    lua_pushlightuserdata(L, (void *)(uintptr_t)e->wire);
    return 1;
}

/* x:cancelled(): true if the answer is no longer wanted. */
static int exchange_cancelled(lua_State *L)
{
    const ah_lua_exchange *e = luaL_checkudata(L, 1, EXCHANGE);
    ah_host *host = e->of->lua->host;
    ah_status why;

    lua_pushboolean(L, e->over || ah_driver_run_ended(host, e->run, ah_host_now(host), &why) != 0);
    return 1;
}

/* -- notifying ----------------------------------------------------------------------------- */

static int call_told(lua_State *L)
{
    const ah_lua_adapter *a = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, a->told);
    lua_pushstring(L, lua_touserdata(L, 2));
    lua_pushvalue(L, 3);
    lua_call(L, 2, 0);
    return 0;
}

/* Calls the adapter's `told` function, which drops the data that it keeps for the conversation.
 * what: "stopped", "failed" or "over". A NULL w means all conversations. */
static void tell(ah_lua_adapter *a, const char *what, const ah_wire *w)
{
    lua_State *L = a->lua->caller;

    if (a->told == LUA_NOREF || !lua_checkstack(L, 4))
        return;
    lua_pushcfunction(L, call_told);
    lua_pushlightuserdata(L, a);
    lua_pushlightuserdata(L, (void *)(uintptr_t)what);
    if (w)
        lua_pushlightuserdata(L, (void *)(uintptr_t)w);
    else
        lua_pushnil(L);
    ah_lua_call(a->lua, L, 3, 0, NULL);
}

void ah_lua_exchange_leave(ah_scripted *s, const ah_wire *w)
{
    ah_lua_exchange_rest(s, w);
    tell((ah_lua_adapter *)s, "over", w);
}

/* -- waiting for results ------------------------------------------------------------------- */

static void unlink_paused(ah_lua_exchange *e)
{
    ah_lua_exchange **link = &e->of->paused;

    while (*link && *link != e)
        link = &(*link)->next;
    if (*link)
        *link = e->next;
}

static ah_lua_exchange *from_waiter(ah_task_waiter *w)
{
    return (ah_lua_exchange *)(void *)((char *)w - offsetof(ah_lua_exchange, waiter));
}

static void left(ah_task_waiter *w)
{
    unlink_paused(from_waiter(w));
}

static int go_on(lua_State *L, int status, lua_KContext ctx)
{
    const ah_lua_exchange *e = lua_touserdata(L, 1);

    (void)status;
    (void)ctx;
    if (e->over)
        return ah_lua_raise(L, AH_CANCELLED, "out:results: the run is over");
    return 0;
}

/* x:pause(): completes a message with calls. Returns with the exchange that has their results. */
static int exchange_pause(lua_State *L)
{
    ah_lua_exchange *e = check_open(L);
    ah_exchange *x = e->x;
    ah_run *run = ah_driver_run_run(x->of);
    int answered = ah_run_iterations(run);

    lua_settop(L, 1);
    ah_lua_can_await(L);
    e->waiter = (ah_task_waiter){.within = x->of, .leave = left};
    e->next = e->of->paused;
    e->of->paused = e;
    e->x = NULL;
    ah_exchange_end(x, NULL);
    if (ah_run_iterations(run) == answered) {
        unlink_paused(e);
        return ah_lua_raise(L, AH_PROVIDER, "out:results: the message was not one");
    }
    return ah_lua_await(L, &e->waiter, 0, go_on);
}

/* Ends a paused exchange whose results will not come. */
static void give_up(ah_lua_exchange *e)
{
    unlink_paused(e);
    e->over = true;
    if (e->task->running) /* it drives below us: its wait fails when that returns */
        ah_task_waiter_done(&e->waiter);
    ah_task_stop(e->task);
    tell(e->of, "stopped", e->wire);
}

static ah_lua_exchange *find_paused(const ah_lua_adapter *a, const ah_wire *w)
{
    ah_lua_exchange *e = a->paused;

    while (e && e->wire != w)
        e = e->next;
    return e;
}

void ah_lua_exchange_rest(ah_scripted *s, const ah_wire *w)
{
    ah_lua_exchange *e = find_paused((ah_lua_adapter *)s, w);

    if (e)
        give_up(e);
}

void ah_lua_exchange_release(ah_lua_adapter *a)
{
    while (a->paused)
        give_up(a->paused);
    tell(a, "over", NULL);
}

/* -- starting and stopping ----------------------------------------------------------------- */

static void end_exchange(ah_task *t, const ah_err *err)
{
    ah_lua_exchange *e = t->ud;
    ah_exchange *x = e->x;

    e->x = NULL;
    if (x)
        ah_exchange_end(x, err);
}

static void settled(ah_task *t, int nresults)
{
    (void)nresults;
    end_exchange(t, NULL);
}

static void failed(ah_task *t, const ah_err *err)
{
    const ah_lua_exchange *at = t->ud;
    ah_err e = *err;

    tell(at->of, "failed", at->wire);
    if (e.phase != AH_PHASE_REQUEST) {
        if (e.status == AH_INTERNAL || e.status == AH_USAGE)
            e.status = AH_PROVIDER;
        e.phase = AH_PHASE_RESPONSE;
    }
    end_exchange(t, &e);
}

static ah_slice header(const void *ud, const char *name)
{
    (void)ud;
    return ah_slice_of(strcmp(name, "content-type") == 0 ? "application/x-ndjson" : NULL);
}

/* Emits the response head that a reader of a provider's wire needs. */
static void tell_head(const ah_lua_adapter *a, ah_exchange *x)
{
    ah_response_head head = {
        .status = 200, .header = header, .wall_ms = ah_host_wall(a->lua->host)};

    if (a->reads)
        ah_run_head(ah_driver_run_run(x->of), x->id, &head);
}

static uint64_t head_of(const ah_wire *w)
{
    return ah_slice_hash(ah_buf_slice(&w->head));
}

static int make_task(lua_State *L)
{
    ah_exchange *x = lua_touserdata(L, 1);
    const ah_run_config *cfg = ah_run_cfg(ah_driver_run_run(x->of));
    ah_lua_adapter *a = (ah_lua_adapter *)cfg->adapter;
    ah_lua_exchange *e = lua_newuserdatauv(L, sizeof *e, 0); /* -- x e */
    ah_task *t;

    *e = (ah_lua_exchange){
        .x = x, .of = a, .wire = cfg->wire, .run = cfg->id, .head = head_of(cfg->wire)};
    luaL_setmetatable(L, EXCHANGE);
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->ref);
    lua_pushvalue(L, 2); /* -- x e f e */
    t = ah_task_new(a->lua, L, 1, x->of);
    ah_task_keep(L, t);
    t->settled = settled;
    t->failed = failed;
    t->ud = e;
    e->task = t;
    x->task = e;
    return 0;
}

/* Starts in a job, since an answer must not come while the exchange is being started. */
static void start_task(ah_lua_adapter *a, ah_exchange *x)
{
    ah_lua *h = a->lua;
    lua_State *L = h->caller;
    ah_err err;

    lua_pushcfunction(L, make_task);
    lua_pushlightuserdata(L, x);
    tell_head(a, x);
    if (ah_lua_call(h, L, 1, 0, &err) == AH_OK)
        ah_job_post(h->host, &((ah_lua_exchange *)x->task)->task->job);
    else
        ah_exchange_end(x, &err);
}

/* True if the paused exchange may continue in this run: only in its own, and, if a change of tools
 * restarts the conversation, only with the same tools. */
static bool may_go_on(const ah_lua_exchange *e, const ah_run_config *cfg)
{
    bool restarts = cfg->adapter->tool_change_mode == AH_TOOLS_RESTART;

    return e->run == cfg->id && (!restarts || e->head == head_of(cfg->wire));
}

void ah_lua_exchange_start(ah_scripted *s, ah_exchange *x)
{
    ah_lua_adapter *a = (ah_lua_adapter *)s;
    const ah_run_config *cfg = ah_run_cfg(ah_driver_run_run(x->of));
    ah_lua_exchange *e = find_paused(a, cfg->wire);

    if (e && may_go_on(e, cfg)) {
        unlink_paused(e);
        e->x = x;
        x->task = e;
        e->task->watch.us = 0; /* each answer has its own time */
        tell_head(a, x);
        ah_task_waiter_done(&e->waiter);
        return;
    }
    if (e)
        give_up(e);
    start_task(a, x);
}

void ah_lua_exchange_stop(ah_scripted *s, ah_exchange *x)
{
    ah_lua_exchange *e = x->task;

    if (!e || e->x != x)
        return;
    e->x = NULL;
    e->over = true;
    ah_task_stop(e->task);
    tell((ah_lua_adapter *)s, "stopped", e->wire);
}

void ah_lua_open_exchange(lua_State *L)
{
    static const luaL_Reg methods[] = {{"request", exchange_request},
                                       {"write", exchange_write},
                                       {"raw", exchange_raw},
                                       {"line", exchange_line},
                                       {"warn", exchange_warn},
                                       {"fail", exchange_fail},
                                       {"pause", exchange_pause},
                                       {"conversation", exchange_conversation},
                                       {"cancelled", exchange_cancelled},
                                       {NULL, NULL}};

    luaL_newmetatable(L, EXCHANGE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
