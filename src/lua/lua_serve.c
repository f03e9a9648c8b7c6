/* ah.serve { listen, on_request }: requests arrive in the loop; each is a task that runs the
 * script's function, whose result or writes are the answer. If a client is gone, its task is
 * stopped. An open server keeps itself alive until it is closed, so a script need not hold it. */
#include "lua/lua_serve.h"

#include "io/http_names.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_open.h"
#include "lua/lua_options.h"
#include "lua/lua_step.h"
#include "lua/lua_task.h"

static const char SERVER[] = "agenthost.server";
static const char RESPONSE[] = "agenthost.response";
static const char WRITING[] = "agenthost.response.writing";
static const char WAITING[] = "agenthost.server.waiting";

enum { MAX_NAMES = 64, NAMES_BYTES = 16 << 10, SHUT_MS = 2000 };

enum { HANDLER = 1, REFUSER }; /* the functions of a server, as its user values */

/* Options of a server, except functions and names. */
typedef struct fields {
    ah_slice listen; /* Lua's; valid while the server is opened */
    ah_server_limits limits;
    size_t requests;
    size_t memory;   /* bytes of memory for a handler */
    int64_t work_ms; /* time at work of a handler, per piece */
} fields;

static const fields usual = {.requests = 128, .memory = AH_TOOL_MEMORY};

typedef struct server server;

/* A request in progress, or waiting for a free place. */
typedef struct work {
    server *s;
    ah_hit *hit;
    ah_task *task;          /* NULL: none yet */
    ah_job job;             /* for: written bytes were taken, or the client is gone */
    ah_task_waiter *writer; /* the wait for that; NULL: none */
    struct box *box;        /* the object of its handler; NULL: none yet */
    int ref;                /* keeps that object */
    bool started;
    bool refused;              /* a refused request: takes no place of max_requests */
    struct work *next, **link; /* in order of arrival */
} work;

/* The object of a request for Lua. */
typedef struct box {
    work *w; /* NULL: it is over */
} box;

typedef struct writing {
    ah_task_waiter waiter;
    work *w;
} writing;

/* One wait for the end of a server. */
typedef struct waiting {
    ah_task_waiter waiter;
    ah_timer timer;
    struct waiting *next, **link;
} waiting;

struct server {
    ah_lua_object held;
    ah_lua *lua;
    ah_server *http; /* NULL: closed, or never open */
    ah_job job;
    int ref; /* its object, while it is open */
    work *first, **last;
    size_t active; /* handlers running */
    fields fields;
    bool closing, ended;
    waiting *waits;
    ah_buf text; /* text of the names */
    ah_slice host[MAX_NAMES], origin[MAX_NAMES];
    ah_server_names names;
    ah_buf url;
};

/* The object of a server for Lua. */
typedef struct handle {
    server *s;
} handle;

/* -- works ------------------------------------------------------------------------------------ */

static writing *writing_of(ah_task_waiter *w)
{
    return (writing *)(void *)((char *)w - offsetof(writing, waiter));
}

static void wake_writer(work *w)
{
    ah_task_waiter *waiter = w->writer;

    w->writer = NULL;
    if (!waiter)
        return;
    writing_of(waiter)->w = NULL;
    ah_task_waiter_done(waiter);
}

/* Frees the work, whose task is over or was never made. Bytes already written are still sent. */
static void end_work(work *w)
{
    server *s = w->s;

    wake_writer(w);
    ah_job_cancel(&w->job);
    if (w->box)
        w->box->w = NULL;
    ah_lua_unref(s->lua, &w->ref);
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    else
        s->last = w->link;
    s->active -= w->started && !w->refused;
    ah_hit_free(w->hit);
    ah_free(&s->lua->mem, w);
    if (s->http)
        ah_job_post(s->lua->host, &s->job);
}

static void stop_work(work *w)
{
    ah_task *t = w->task;

    w->task = NULL;
    end_work(w);
    if (t)
        ah_task_stop(t);
}

/* The error text is for the operator of the server; the client does not get it. */
static void fail_work(work *w, const char *why)
{
    ah_slice target = ah_hit_target(w->hit);
    const char *query = target.n ? memchr(target.p, '?', target.n) : NULL;

    if (query)
        target.n = (size_t)(query - target.p);
    ah_log_put(&w->s->lua->host->log, AH_LOG_WARNING, "ah.serve: %s of %s %.*s failed: %s",
               w->refused ? "on_refusal" : "the handler", ah_hit_method(w->hit), AH_FMT(target),
               why);
    if (w->refused || ah_hit_begun(w->hit)) {
        ah_hit_break(w->hit);
    } else {
        static const char words[] = "Internal Server Error\n";

        ah_hit_forget_headers(w->hit);
        ah_hit_add_header(w->hit, ah_slice_of("Content-Type"),
                          ah_slice_of("text/plain; charset=utf-8"));
        ah_hit_begin(w->hit, 500, sizeof words - 1);
        ah_hit_write(w->hit, ah_slice_of(words));
        ah_hit_end(w->hit);
    }
    w->task = NULL;
    end_work(w);
}

/* Like a tool's handler, this one may return nil and a message. */
static void settled(ah_task *t, int n)
{
    lua_State *L = t->lua->caller;
    work *w = t->ud;

    if (n > 1 && lua_isnil(L, -n) && !lua_isnil(L, 1 - n)) {
        lua_pushvalue(L, 1 - n);
        lua_error(L);
    }
    if (n == 0) {
        lua_pushnil(L);
        n = 1;
    }
    if (!ah_hit_begun(w->hit))
        ah_lua_answer(L, -n, w->hit);
    else
        ah_hit_end(w->hit);
    w->task = NULL;
    end_work(w);
}

/* For a memory limit the error has more facts than the raised value. */
static void failed(ah_task *t, const ah_err *err)
{
    fail_work(t->ud,
              t->failure && !ah_fence_counted(&t->fence)->asked ? t->failure->data : err->message);
    ah_text_set(&t->failure, NULL);
}

/* -- request response */
static void push_asked(lua_State *L, work *w)
{
    box *b;

    ah_lua_push_hit(L, w->hit);
    ah_hit_drop_body(w->hit);
    b = lua_newuserdatauv(L, sizeof *b, 0);
    b->w = w;
    luaL_setmetatable(L, RESPONSE);
    lua_pushvalue(L, -1);
    w->ref = ah_lua_ref(L);
    w->box = b;
}

/* (work) */
static int make_task(lua_State *L)
{
    work *w = lua_touserdata(L, 1);
    const fields *f = &w->s->fields;
    ah_task *t;

    lua_rawgeti(L, LUA_REGISTRYINDEX, w->s->ref);
    lua_getiuservalue(L, -1, w->refused ? REFUSER : HANDLER); /* -- w s f */
    if (w->refused)
        ah_lua_push_refused(L, w->hit);
    else
        push_asked(L, w);
    t = ah_task_new(w->s->lua, L, 2, NULL); /* -- w s */
    t->fence.memory = f->memory;
    t->fence.advice = ", and memory = bytes of ah.serve sets another one";
    t->watch.work_ms = f->work_ms ? f->work_ms : t->watch.work_ms;
    t->watch.advice = "; work_timeout = seconds of ah.serve sets another limit";
    t->settled = settled;
    t->failed = failed;
    t->ud = w;
    w->task = t;
    return 0;
}

static void start_work(work *w)
{
    ah_lua *h = w->s->lua;
    ah_err err;

    w->started = true;
    w->s->active += !w->refused;
    lua_pushcfunction(h->caller, make_task);
    lua_pushlightuserdata(h->caller, w);
    if (ah_lua_call(h, h->caller, 1, 0, &err) == AH_OK ||
        w->task) /* the task exists, even if making it took too long */
        ah_task_begin(w->task);
    else
        fail_work(w, err.message);
}

/* Called when bytes of a response were taken or its client is gone. A handler whose whole response
 * was sent continues its other work. */
static void on_work(ah_job *job)
{
    work *w = (work *)(void *)((char *)job - offsetof(work, job));

    if (ah_hit_over(w->hit) && !ah_hit_out(w->hit))
        stop_work(w);
    else if (ah_hit_taken(w->hit))
        wake_writer(w);
}

/* -- callbacks of the server, in the loop ------------------------------------------------------ */

static ah_refusal judge(void *ud, const ah_hit *hit)
{
    const server *s = ud;
    size_t hosts, origins;
    ah_slice host = ah_hit_header(hit, "Host", &hosts),
             origin = ah_hit_header(hit, "Origin", &origins);

    if (hosts > 1 || origins > 1)
        return (ah_refusal){400, "the request has more than one Host or Origin", 0};
    if (hosts && !ah_server_is_named(&s->names, host))
        return (ah_refusal){403, "this server does not answer to this Host", 0};
    if (origins && !ah_server_takes(&s->names, origin, host))
        return (ah_refusal){403, "this server does not answer to this Origin", 0};
    return (ah_refusal){0, NULL, 0};
}

static void asked(void *ud, ah_hit *hit)
{
    server *s = ud;
    work *w = ah_alloc(&s->lua->mem, sizeof *w);

    if (!w) {
        ah_hit_free(hit);
        return;
    }
    *w = (work){.s = s, .hit = hit, .job.fn = on_work, .ref = LUA_NOREF, .link = s->last};
    w->refused = ah_hit_refusal(hit).status != 0;
    *s->last = w;
    s->last = &w->next;
    ah_hit_set_owner(hit, w);
    ah_job_post(s->lua->host, &s->job);
}

static void moved(void *ud, ah_hit *hit)
{
    const server *s = ud;
    work *w = ah_hit_owner(hit);

    if (w)
        ah_job_post(s->lua->host, &w->job);
}

static void closed(void *ud)
{
    server *s = ud;

    s->ended = true;
    ah_job_post(s->lua->host, &s->job);
}

/* -- its life ---------------------------------------------------------------------------------- */

static void leave_waiting(waiting *w)
{
    ah_timer_unset(&w->timer);
    if (!w->link)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->link = NULL;
}

/* Returns the first request that may start now, or NULL. A refused one needs no free place. */
static work *next_work(const server *s)
{
    bool room = s->active < s->fields.requests;
    work *w = s->first;

    while (w && (w->started || !(room || w->refused)))
        w = w->next;
    return w;
}

static void finish(server *s)
{
    while (s->first)
        stop_work(s->first);
    ah_server_free(s->http);
    s->http = NULL;
    while (s->waits) {
        waiting *w = s->waits;

        leave_waiting(w);
        ah_task_waiter_done(&w->waiter);
    }
    ah_lua_unref(s->lua, &s->ref);
}

static void on_job(ah_job *job)
{
    server *s = (server *)(void *)((char *)job - offsetof(server, job));
    work *w;

    while (!s->ended && (w = next_work(s)))
        start_work(w);
    if (s->ended && s->http)
        finish(s);
}

/* Frees the server, when the host ends or after closing: no code of the script runs any more. */
static void drop(ah_lua_object *o)
{
    server *s = (server *)(void *)((char *)o - offsetof(server, held));
    work *next;

    ah_lua_let_go(o);
    ah_job_cancel(&s->job);
    ah_server_free(s->http);
    while (s->waits)
        leave_waiting(s->waits);
    for (work *w = s->first; w; w = next) {
        next = w->next;
        ah_job_cancel(&w->job);
        ah_hit_free(w->hit);
        ah_free(&s->lua->mem, w);
    }
    (void)ah_buf_ok(&s->text);
    ah_buf_clear(&s->text);
    (void)ah_buf_ok(&s->url);
    ah_buf_clear(&s->url);
    ah_free(&s->lua->mem, s);
}

/* If the server is still open, the host frees it, since the state is being closed. */
static int server_gc(lua_State *L)
{
    handle *p = luaL_checkudata(L, 1, SERVER);
    server *s = p->s;

    p->s = NULL;
    if (s && !s->http)
        drop(&s->held);
    return ah_lua_retire(L);
}

static server *check_server(lua_State *L)
{
    ah_lua_of(L);
    return ((handle *)luaL_checkudata(L, 1, SERVER))->s;
}

/* server:close(): the answer of the handler that calls it is still sent; other handlers are
 * stopped. */
static int server_close(lua_State *L)
{
    server *s = check_server(L);
    const ah_task *own = ah_lua_of(L)->running;
    work *w;

    if (s->closing || !s->http)
        return 0;
    s->closing = true;
    do {
        for (w = s->first; w && w->task && w->task == own; w = w->next)
            ;
        if (w)
            stop_work(w);
    } while (w);
    ah_server_shut(s->http, SHUT_MS);
    return 0;
}

/* -- server:wait ------------------------------------------------------------------------------- */

static void on_time(ah_timer *timer)
{
    waiting *w = (waiting *)(void *)((char *)timer - offsetof(waiting, timer));

    leave_waiting(w);
    ah_task_waiter_done(&w->waiter);
}

static void leave_wait(ah_task_waiter *w)
{
    leave_waiting((waiting *)(void *)((char *)w - offsetof(waiting, waiter)));
}

static int waiting_gc(lua_State *L)
{
    leave_waiting(luaL_checkudata(L, 1, WAITING));
    return 0;
}

static int wait_end(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    lua_pushboolean(L, check_server(L)->http == NULL);
    return 1;
}

/* server:wait([seconds]) -> true when it is closed, false when the time is over */
static int server_wait(lua_State *L)
{
    server *s = check_server(L);
    double seconds = luaL_optnumber(L, 2, -1);
    waiting *w;

    if (!lua_isnoneornil(L, 2) && (!(seconds >= 0) || seconds > 1e9))
        return ah_lua_raise(L, AH_USAGE, "server:wait: seconds must be from 0 to 1e9");
    if (!s->http)
        return wait_end(L, LUA_OK, 0);
    lua_settop(L, 1);
    ah_lua_can_await(L);
    w = lua_newuserdatauv(L, sizeof *w, 0);
    *w = (waiting){.waiter.leave = leave_wait, .timer.fn = on_time};
    luaL_setmetatable(L, WAITING);
    ah_task_waiter_keep(L, &w->waiter);
    w->next = s->waits;
    w->link = &s->waits;
    if (w->next)
        w->next->link = &w->next;
    s->waits = w;
    if (seconds >= 0)
        ah_timer_set(s->lua->host->loop, &w->timer, ah_host_now(s->lua->host) + ah_ms_of(seconds));
    return ah_lua_await(L, &w->waiter, 0, wait_end);
}

/* -- the response object ----------------------------------------------------------------------- */

static work *check_work(lua_State *L)
{
    ah_lua_of(L);
    return ((box *)luaL_checkudata(L, 1, RESPONSE))->w;
}

/* -- nil err */
static int push_gone(lua_State *L)
{
    ah_err err;

    ah_err_set(&err, AH_CANCELLED,
               "the request is over: its client is gone, its answer was aborted, or its handler "
               "has ended");
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

static void leave_write(ah_task_waiter *w)
{
    writing *own = writing_of(w);

    if (own->w && own->w->writer == w)
        own->w->writer = NULL;
    own->w = NULL;
}

static int writing_gc(lua_State *L)
{
    leave_write(&((writing *)luaL_checkudata(L, 1, WRITING))->waiter);
    return 0;
}

static int wait_taken(lua_State *L, work *w);

/* True while written bytes are on their way; for an ended answer, until all are sent. */
static bool is_going_out(const work *w)
{
    return ah_hit_begun(w->hit) && !ah_hit_over(w->hit) &&
           (ah_hit_ended(w->hit) || !ah_hit_taken(w->hit));
}

static bool is_lost(const work *w)
{
    return ah_hit_broken(w->hit) || (ah_hit_over(w->hit) && !ah_hit_out(w->hit));
}

static int write_end(lua_State *L, int status, lua_KContext ctx)
{
    work *w = check_work(L);

    (void)status;
    (void)ctx;
    if (!w || is_lost(w))
        return push_gone(L);
    if (is_going_out(w))
        return wait_taken(L, w);
    lua_pushboolean(L, 1);
    return 1;
}

static int wait_taken(lua_State *L, work *w)
{
    writing *own;

    lua_settop(L, 1);
    own = lua_newuserdatauv(L, sizeof *own, 0);
    *own = (writing){.waiter.leave = leave_write, .w = w};
    luaL_setmetatable(L, WRITING);
    ah_task_waiter_keep(L, &own->waiter);
    w->writer = &own->waiter;
    return ah_lua_await(L, &own->waiter, 0, write_end);
}

static void check_writer(lua_State *L, const work *w)
{
    if (w->writer)
        ah_lua_raise(L, AH_USAGE, "response: another task writes or waits; one at a time can");
}

/* Writes the text on top. type: the content type of an answer that has not begun. */
static int write_piece(lua_State *L, work *w, const char *type)
{
    ah_slice piece;

    check_writer(L, w);
    if (ah_hit_ended(w->hit))
        return ah_lua_raise(L, AH_USAGE, "response: it was closed: nothing more can be written");
    ah_lua_can_await(L);
    if (!ah_hit_begun(w->hit))
        ah_lua_begin_answer(L, lua_gettop(L) + 1, w->hit, type);
    piece.p = lua_tolstring(L, -1, &piece.n);
    if (!ah_hit_write(w->hit, piece))
        return ah_lua_raise_nomem(L);
    if (w->task)
        w->task->watch.us = 0; /* a handler may write for long: its limit is per piece */
    return write_end(L, LUA_OK, 0);
}

/* response:write(piece) -> true when it is taken; nil, err: the client is gone */
static int response_write(lua_State *L)
{
    work *w = check_work(L);

    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    return w ? write_piece(L, w, NULL) : push_gone(L);
}

/* response:event { event, data, id, retry }: the same */
static int response_event(lua_State *L)
{
    work *w = check_work(L);

    lua_settop(L, 2);
    ah_lua_push_sse(L, 2);
    return w ? write_piece(L, w, "text/event-stream") : push_gone(L);
}

/* response:begin { status, headers }: the head of an answer in pieces */
static int response_begin(lua_State *L)
{
    work *w = check_work(L);

    lua_settop(L, 2);
    if (!w)
        return push_gone(L);
    if (ah_hit_begun(w->hit))
        return ah_lua_raise(L, AH_USAGE, "response:begin: the answer has begun");
    ah_hit_forget_headers(w->hit);
    ah_lua_begin_answer(L, 2, w->hit, NULL);
    lua_pushboolean(L, 1);
    return 1;
}

/* response:wait() -> true when everything written is taken, or sent if the answer was ended; nil,
 * err: the client is gone */
static int response_wait(lua_State *L)
{
    work *w = check_work(L);

    lua_settop(L, 1);
    if (!w)
        return push_gone(L);
    check_writer(L, w);
    ah_lua_can_await(L);
    return write_end(L, LUA_OK, 0);
}

static int response_close(lua_State *L)
{
    work *w = check_work(L);

    if (!w)
        return 0;
    if (!ah_hit_begun(w->hit))
        ah_lua_begin_answer(L, lua_gettop(L) + 1, w->hit, NULL);
    ah_hit_end(w->hit);
    return 0;
}

/* response:abort(): closes the connection in the middle of the answer */
static int response_abort(lua_State *L)
{
    work *w = check_work(L);

    if (!w)
        return 0;
    if (!ah_hit_begun(w->hit))
        ah_hit_begin(w->hit, 500, -1);
    ah_hit_break(w->hit);
    return 0;
}

/* -- ah.serve ---------------------------------------------------------------------------------- */

static const ah_option serve_rows[] = {
    {.name = "on_request",
     .kinds = AH_OPT_FUNCTION,
     .needed = true,
     .type = "fun(request: ah.ServerRequest, response: ah.ServerResponse): any",
     .doc = "handler, called with a [request](#requests) and a [response](#responses)"},
    {.name = "on_refusal",
     .kinds = AH_OPT_FUNCTION,
     .type = "fun(refusal: ah.ServerRefusal, request: ah.ServerRequest): any",
     .doc = "makes the responses to requests that the server [refuses](#refusals)"},
    {.name = "listen",
     .kinds = AH_OPT_STRING,
     .otherwise = "`127.0.0.1:0`",
     .to = AH_TO_HELD(fields, listen),
     .doc = "an address and a port, such as `[::1]:8080`, `localhost:8080`. Port 0: any free one"},
    {.name = "hosts",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .doc = "further names that the server accepts as `Host`. `*`: any"},
    {.name = "origins",
     .kinds = AH_OPT_LIST,
     .is = "list of strings",
     .type = "string[]",
     .doc = "sites whose pages may send requests, such as `https://app.example`. `*`: any"},
    {.name = "max_requests",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "128",
     .to = AH_TO_SIZE(fields, requests),
     .doc = "handlers that run at once. Further requests wait"},
    {.name = "max_connections",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .most = 65536,
     .otherwise = "512",
     .to = AH_TO_SIZE(fields, limits.connections)},
    {.name = "max_header",
     .kinds = AH_OPT_INTEGER,
     .least = 256,
     .most = 262144,
     .unit = "bytes",
     .otherwise = "32768",
     .to = AH_TO_SIZE(fields, limits.header_bytes),
     .doc = "size of a request's target and headers"},
    {.name = "max_body",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "8388608",
     .to = AH_TO_SIZE(fields, limits.body_bytes),
     .doc = "size of a request's body"},
    {.name = "max_bodies",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "268435456, or twice `max_body`",
     .to = AH_TO_SIZE(fields, limits.bodies_bytes),
     .doc = "size of all bodies that no handler has yet"},
    {.name = "memory",
     .kinds = AH_OPT_NUMBER,
     .least = AH_TOOL_LEAST_MEMORY,
     .unit = "bytes",
     .otherwise = "268435456",
     .to = AH_TO_SIZE(fields, memory),
     .doc = "[memory](limits.md#memory) that one handler may take"},
    {.name = "work_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "10",
     .to = AH_TO_MS(fields, work_ms),
     .doc = "[time at work](limits.md#time) of a handler between two pieces that it writes"},
    {.name = "header_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "10",
     .to = AH_TO_MS(fields, limits.header_ms),
     .doc = "time for a new connection to send its first head"},
    {.name = "body_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "60",
     .to = AH_TO_MS(fields, limits.body_ms),
     .doc = "time from the head to the end of the body"},
    {.name = "idle_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "60",
     .to = AH_TO_MS(fields, limits.idle_ms),
     .doc = "time without reading or writing, and between two requests"},
    {0},
};
const ah_subject ah_subject_serve = {
    .what = "ah.serve", .type = "ah.ServerConfig", .row = serve_rows};

/* Reads a list of names, and copies them, since the judge cannot use Lua. */
static size_t read_names(lua_State *L, server *s, const char *name, ah_slice out[MAX_NAMES])
{
    lua_Integer n;

    if (!ah_lua_field_list(L, 1, "ah.serve", name, &n))
        return 0;
    if (n > MAX_NAMES)
        ah_lua_raise(L, AH_USAGE, "ah.serve: more than %d %s", MAX_NAMES, name);
    for (lua_Integer i = 1; i <= n; i++, lua_pop(L, 1)) {
        size_t at = s->text.len;

        lua_geti(L, -1, i);
        if (lua_type(L, -1) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "ah.serve: %s must be a list of strings", name);
        ah_buf_add(&s->text, lua_tostring(L, -1), (size_t)lua_rawlen(L, -1));
        out[i - 1] = (ah_slice){NULL, s->text.len - at};
    }
    lua_pop(L, 1);
    return (size_t)n;
}

/* Sets the slices of the names in the text, where they follow each other. */
static void place_names(server *s)
{
    const char *at = s->text.data;

    for (size_t i = 0; i < s->names.n_hosts; at += s->host[i++].n)
        s->host[i].p = at;
    for (size_t i = 0; i < s->names.n_origins; at += s->origin[i++].n)
        s->origin[i].p = at;
}

/* -- server    with the handler */
static server *push_server(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    handle *p = lua_newuserdatauv(L, sizeof *p, REFUSER);
    server *s;

    p->s = NULL;
    if (!(s = ah_alloc(&h->mem, sizeof *s)))
        ah_lua_raise_nomem(L);
    *s = (server){.held.drop = drop, .lua = h, .job.fn = on_job, .ref = LUA_NOREF};
    s->last = &s->first;
    ah_buf_init(&s->text, &h->mem, NAMES_BYTES);
    ah_buf_init(&s->url, &h->mem, NAMES_BYTES);
    p->s = s;
    ah_lua_hold(h, &s->held);
    luaL_setmetatable(L, SERVER);
    return s;
}

static void note_open(server *s)
{
    const char *address = ah_server_address(s->http);

    s->names.address = address;
    s->names.is_any = ah_server_is_any(s->http);
    ah_buf_fmt(&s->url, strchr(address, ':') ? "http://[%s]:%d" : "http://%s:%d", address,
               ah_server_port(s->http));
}

static ah_status open_server(server *s, bool refuses, ah_err *err)
{
    const ah_server_owner owner = {.judge = judge,
                                   .asked = asked,
                                   .refuses = refuses,
                                   .moved = moved,
                                   .closed = closed,
                                   .ud = s};
    ah_status st = ah_server_new(&s->lua->mem, s->lua->host->loop, s->fields.listen.p,
                                 &s->fields.limits, &owner, &s->http, err);

    if (st != AH_OK)
        return st;
    note_open(s);
    return ah_buf_ok(&s->url) ? AH_OK : ah_err_nomem(err);
}

static void read_fields(lua_State *L, fields *out)
{
    ah_server_limits *l = &out->limits;
    size_t bodies = ah_server_limits_default.bodies_bytes;

    *out = usual;
    out->listen = ah_slice_of("127.0.0.1:0");
    *l = ah_server_limits_default;
    l->bodies_bytes = 0;
    ah_options_read(L, 1, &ah_subject_serve, out);
    if (!l->bodies_bytes)
        l->bodies_bytes = l->body_bytes > bodies / 2 ? 2 * l->body_bytes : bodies;
}

/* ah.serve { listen, on_request, ... } -> server, or nil, err if it cannot listen */
static int ah_serve(lua_State *L)
{
    server *s;
    bool refuses;
    ah_err err;

    ah_lua_no_step(L, "ah.serve");
    lua_settop(L, 1);
    s = push_server(L); /* -- t s */
    read_fields(L, &s->fields);
    lua_getfield(L, 1, "on_request");
    lua_setiuservalue(L, 2, HANDLER);
    refuses = lua_getfield(L, 1, "on_refusal") != LUA_TNIL;
    lua_setiuservalue(L, 2, REFUSER);
    s->names.n_hosts = read_names(L, s, "hosts", s->host);
    s->names.n_origins = read_names(L, s, "origins", s->origin);
    s->names.host = s->host;
    s->names.origin = s->origin;
    if (s->text.status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (!ah_buf_ok(&s->text))
        return ah_lua_raise(L, AH_USAGE, "ah.serve: hosts and origins are too long");
    place_names(s);
    lua_pushvalue(L, 2);
    s->ref = ah_lua_ref(L);
    if (open_server(s, refuses, &err) == AH_OK)
        return 1;
    ah_lua_unref(s->lua, &s->ref);
    if (err.status == AH_USAGE)
        return ah_lua_raise(L, AH_USAGE, "ah.serve: listen: %s", err.message);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

/* Upvalue 1: the methods. */
static int server_index(lua_State *L)
{
    static const char *const known[] = {"url", "address", "port", "close", "wait", NULL};
    const server *s = check_server(L);
    const char *key = luaL_checkstring(L, 2);

    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    if (strcmp(key, "url") == 0)
        lua_pushlstring(L, ah_buf_slice(&s->url).p, s->url.len);
    else if (strcmp(key, "address") == 0 && s->http)
        lua_pushstring(L, ah_server_address(s->http));
    else if (strcmp(key, "port") == 0 && s->http)
        lua_pushinteger(L, ah_server_port(s->http));
    else if (strcmp(key, "address") == 0 || strcmp(key, "port") == 0)
        lua_pushnil(L);
    else
        return ah_lua_unknown(L, "server", known, ah_slice_of(key));
    return 1;
}

static int server_tostring(lua_State *L)
{
    const server *s = check_server(L);

    lua_pushfstring(L, "server %s", s->http && !s->closing ? "" : "(closed) ");
    lua_pushlstring(L, ah_buf_slice(&s->url).p, s->url.len);
    lua_concat(L, 2);
    return 1;
}

static void open_response(lua_State *L)
{
    static const luaL_Reg methods[] = {{"begin", response_begin},
                                       {"write", response_write},
                                       {"event", response_event},
                                       {"wait", response_wait},
                                       {"close", response_close},
                                       {"abort", response_abort},
                                       {NULL, NULL}};
    static const luaL_Reg meta[] = {{"__gc", writing_gc}, {NULL, NULL}};

    luaL_newmetatable(L, WRITING);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, RESPONSE);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "response");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 2);
}

void ah_lua_open_serve(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", server_gc},
                                    {"__close", server_close},
                                    {"__tostring", server_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"close", server_close}, {"wait", server_wait}, {NULL, NULL}};
    static const luaL_Reg waiting_meta[] = {{"__gc", waiting_gc}, {NULL, NULL}};

    open_response(L);
    luaL_newmetatable(L, WAITING);
    luaL_setfuncs(L, waiting_meta, 0);
    luaL_newmetatable(L, SERVER);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, server_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 2);
    lua_pushcfunction(L, ah_serve);
    lua_setfield(L, -2, "serve");
}
