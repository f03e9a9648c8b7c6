/* The event loop and HTTP for specs, without anything that knows agents.
 *
 *   ahtest.http { url =, method =, headers = { "Name: value" }, body = string or list of up to
 *     four, limits = { connect_ms =, idle_ms =, total_ms =, header_bytes =, body_bytes = } } -> {
 *     status, headers = list of { name, value }, header = { [lower-case name] = value }, body,
 *     news = number of notices, error = { status, message, retryable, http_status, reason } }
 *     or nil, error if the request could not be started
 *   ahtest.http_client { fail_from =, fail_at = } -> client: start(opts) -> transfer, wait(ms) ->
 *     bool, close() -> blocks still allocated; transfer: ended(), status(), pending() (bytes),
 *     take([n]), result(), free(). fail_at: this allocation fails; fail_from: this one and all
 *     later ones.
 *   ahtest.http_version() -> "7.88.1"
 *   ahtest.record_clean(body, key) -> the body as a recording keeps it
 *   ahtest.address_is_public("10.0.0.1") -> boolean
 *   ahtest.loop { clock = ms } -> loop: now() set_clock(ms) wait(ms) wake() wake_later(ms)
 *     signal_later(ms, wake) fd() timeout() watch(fd, "r"|"w"|"rw"|"", fn) timer(fn) close();
 *     timer: set(at) unset() is_set()
 *   ahtest.pipe() -> read end, write end; fd_write, fd_read, fd_close, fd_readable(fd, ms)
 *
 * Lua functions called from the loop run protected; wait raises their first error. */
#include "base/json.h"
#include "support/ahtest.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "host/recording.h"
#include "io/http_transfer.h"
#include "io/loop.h"

#define CLIENT   "ahtest.http_client"
#define TRANSFER "ahtest.http_transfer"
#define LOOP     "ahtest.loop"
#define TIMER    "ahtest.timer"

enum { MAX_HEADERS = 64, MAX_PARTS = 4 };

/* ---- an allocator that counts and fails ---- */

typedef struct counter {
    ah_mem mem;
    long live, calls, fail_at, fail_from; /* 0: never */
} counter;

static void *counted_realloc(void *ud, void *ptr, size_t size)
{
    counter *c = ud;
    void *p;

    if (size) {
        c->calls++;
        if (c->calls == c->fail_at || (c->fail_from && c->calls >= c->fail_from))
            return NULL;
    }
    p = ah_mem_libc.fn(NULL, ptr, size);
    if (!size)
        c->live--;
    else if (!ptr && p)
        c->live++;
    return p;
}

static long int_field(lua_State *L, int table, const char *name, long def)
{
    long v = def;

    if (lua_istable(L, table)) {
        lua_getfield(L, table, name);
        v = (long)luaL_optinteger(L, -1, def);
        lua_pop(L, 1);
    }
    return v;
}

static void counter_init(lua_State *L, counter *c, int opts)
{
    *c = (counter){.mem = {counted_realloc, c},
                   .fail_at = int_field(L, opts, "fail_at", 0),
                   .fail_from = int_field(L, opts, "fail_from", 0)};
}

/* ---- http ---- */

typedef struct transfer transfer;

typedef struct client {
    counter counter;
    ah_loop *loop;
    ah_http *http;
    transfer *first;
} client;

/* User value 1: the client; 2: the list of body strings, which are borrowed. */
struct transfer {
    client *client;
    transfer *next;
    ah_transfer *t;
    lua_Integer news;
};

static void push_error(lua_State *L, const ah_err *err)
{
    ah_slice reason = ah_json_detail_of(err, "reason");

    lua_createtable(L, 0, 4);
    lua_pushstring(L, ah_status_name(err->status));
    lua_setfield(L, -2, "status");
    lua_pushstring(L, err->message);
    lua_setfield(L, -2, "message");
    lua_pushboolean(L, err->retryable);
    lua_setfield(L, -2, "retryable");
    lua_pushinteger(L, err->http_status);
    lua_setfield(L, -2, "http_status");
    lua_pushlstring(L, reason.p ? reason.p : "", reason.n);
    lua_setfield(L, -2, "reason");
}

static int fail(lua_State *L, const ah_err *err)
{
    lua_pushnil(L);
    push_error(L, err);
    return 2;
}

static void free_transfer(transfer *t)
{
    ah_http_free_transfer(t->t);
    t->t = NULL;
}

static int client_close(lua_State *L)
{
    client *c = luaL_checkudata(L, 1, CLIENT);

    for (; c->first; c->first = c->first->next)
        free_transfer(c->first);
    ah_http_free(c->http);
    ah_loop_free(c->loop);
    c->http = NULL;
    c->loop = NULL;
    lua_pushinteger(L, c->counter.live);
    return 1;
}

static int http_client(lua_State *L)
{
    client *c = lua_newuserdatauv(L, sizeof *c, 0);
    ah_err err;

    *c = (client){0};
    counter_init(L, &c->counter, 1);
    luaL_setmetatable(L, CLIENT);
    if (ah_loop_new(&c->counter.mem, NULL, NULL, &c->loop, &err) != AH_OK ||
        ah_http_new(&c->counter.mem, c->loop, NULL, NULL, &c->http, &err) != AH_OK)
        return fail(L, &err);
    return 1;
}

static client *check_client(lua_State *L)
{
    client *c = luaL_checkudata(L, 1, CLIENT);

    luaL_argcheck(L, c->http != NULL, 1, "closed");
    return c;
}

static transfer *check_transfer(lua_State *L)
{
    transfer *t = luaL_checkudata(L, 1, TRANSFER);

    luaL_argcheck(L, t->t != NULL, 1, "freed");
    return t;
}

static ah_slice slice_at(lua_State *L, int index)
{
    ah_slice s;

    s.p = luaL_checklstring(L, index, &s.n);
    return s;
}

/* Reads the list's strings; they are valid as long as the list. */
static size_t read_list(lua_State *L, int list, ah_slice *out, size_t max)
{
    size_t n = (size_t)luaL_len(L, list);

    if (n > max)
        luaL_error(L, "at most %d items", (int)max);
    for (size_t i = 0; i < n; i++) {
        lua_geti(L, list, (lua_Integer)i + 1);
        out[i] = slice_at(L, -1);
        lua_pop(L, 1);
    }
    return n;
}

/* -- field as a list: a table unchanged, a string as its only item, nil as an empty list */
static void push_list(lua_State *L, int opts, const char *field)
{
    if (lua_getfield(L, opts, field) == LUA_TTABLE)
        return;
    lua_newtable(L);
    if (!lua_isnil(L, -2)) {
        lua_pushvalue(L, -2);
        lua_seti(L, -2, 1);
    }
    lua_remove(L, -2);
}

static ah_http_limits read_limits(lua_State *L, int opts)
{
    ah_http_limits l;
    int t;

    lua_getfield(L, opts, "limits");
    t = lua_gettop(L);
    l = (ah_http_limits){
        .connect_ms = int_field(L, t, "connect_ms", 0),
        .idle_ms = int_field(L, t, "idle_ms", 0),
        .total_ms = int_field(L, t, "total_ms", 0),
        .header_bytes = (size_t)int_field(L, t, "header_bytes", 0),
        .body_bytes = (size_t)int_field(L, t, "body_bytes", 0),
    };
    lua_pop(L, 1);
    return l;
}

static void on_news(void *ud, ah_transfer *t)
{
    transfer *mine = ud;

    (void)t;
    mine->news++;
}

/* The client at 1, the options at 2 -> transfer, or nil, error */
static int client_start(lua_State *L)
{
    client *c = check_client(L);
    ah_slice headers[MAX_HEADERS];
    ah_http_request req = {.headers = headers};
    transfer *t;
    ah_err err;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    push_list(L, 2, "headers"); /* 3 */
    push_list(L, 2, "body");    /* 4 */
    req.n_headers = read_list(L, 3, headers, MAX_HEADERS);
    req.n_body = read_list(L, 4, req.body, MAX_PARTS);
    req.limits = read_limits(L, 2);
    lua_getfield(L, 2, "url");
    req.url = luaL_optstring(L, -1, NULL);
    lua_getfield(L, 2, "method");
    req.method = luaL_optstring(L, -1, req.n_body ? "POST" : "GET");
    t = lua_newuserdatauv(L, sizeof *t, 2);
    *t = (transfer){.client = c};
    luaL_setmetatable(L, TRANSFER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 4);
    lua_setiuservalue(L, -2, 2);
    if (ah_http_start(c->http, &req, on_news, t, &t->t, &err) != AH_OK)
        return fail(L, &err);
    t->next = c->first;
    c->first = t;
    return 1;
}

static int client_wait(lua_State *L)
{
    client *c = check_client(L);

    lua_pushboolean(L, ah_loop_wait(c->loop, (int)luaL_optinteger(L, 2, -1)));
    return 1;
}

static int transfer_free(lua_State *L)
{
    transfer *t = luaL_checkudata(L, 1, TRANSFER);
    transfer **p = &t->client->first;

    if (!t->t)
        return 0;
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
    free_transfer(t);
    return 0;
}

static int transfer_ended(lua_State *L)
{
    lua_pushboolean(L, ah_transfer_ended(check_transfer(L)->t, NULL));
    return 1;
}

static int transfer_status(lua_State *L)
{
    lua_pushinteger(L, ah_transfer_status(check_transfer(L)->t));
    return 1;
}

static int transfer_pending(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ah_transfer_body(check_transfer(L)->t).n);
    return 1;
}

static int transfer_take(lua_State *L)
{
    ah_transfer *t = check_transfer(L)->t;
    ah_slice s = ah_transfer_body(t);
    lua_Integer most = luaL_optinteger(L, 2, LUA_MAXINTEGER);
    size_t n = most < 0 || (lua_Unsigned)most > s.n ? s.n : (size_t)most;

    lua_pushlstring(L, s.p, n);
    ah_transfer_took(t, n);
    return 1;
}

static void push_lower(lua_State *L, ah_slice s)
{
    luaL_Buffer b;
    char *p = luaL_buffinitsize(L, &b, s.n);

    for (size_t i = 0; i < s.n; i++)
        p[i] = (char)tolower((unsigned char)s.p[i]);
    luaL_pushresultsize(&b, s.n);
}

/* -- list of { name, value }, map of lower-case name to value; also looks each name up */
static void push_headers(lua_State *L, const ah_transfer *t)
{
    ah_slice name, value, last;

    lua_newtable(L);
    lua_newtable(L);
    for (size_t i = 0; ah_transfer_header_at(t, i, &name, &value); i++) {
        lua_newtable(L);
        lua_pushlstring(L, name.p, name.n);
        lua_seti(L, -2, 1);
        lua_pushlstring(L, value.p, value.n);
        lua_seti(L, -2, 2);
        lua_seti(L, -3, (lua_Integer)i + 1);
        push_lower(L, name);
        last = ah_transfer_header(t, lua_tostring(L, -1));
        lua_pushlstring(L, last.p, last.n);
        lua_settable(L, -3);
    }
}

static int transfer_result(lua_State *L)
{
    const transfer *t = check_transfer(L);
    ah_slice body = ah_transfer_body(t->t);
    ah_err err;

    lua_newtable(L);
    lua_pushinteger(L, ah_transfer_status(t->t));
    lua_setfield(L, -2, "status");
    push_headers(L, t->t);
    lua_setfield(L, -3, "header");
    lua_setfield(L, -2, "headers");
    lua_pushlstring(L, body.p, body.n);
    lua_setfield(L, -2, "body");
    lua_pushinteger(L, t->news);
    lua_setfield(L, -2, "news");
    if (ah_transfer_ended(t->t, &err) && err.status != AH_OK) {
        push_error(L, &err);
        lua_setfield(L, -2, "error");
    }
    return 1;
}

/* Sends one request on a loop of its own. The garbage collector closes the client. */
static int http(lua_State *L)
{
    transfer *t;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushcfunction(L, client_start);
    lua_pushcfunction(L, http_client);
    lua_call(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_call(L, 2, 2);
    if (lua_isnil(L, 2))
        return 2;
    t = luaL_checkudata(L, 2, TRANSFER);
    while (!ah_transfer_ended(t->t, NULL))
        ah_loop_wait(t->client->loop, -1);
    lua_pushcfunction(L, transfer_result);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    return 1;
}

static int http_version(lua_State *L)
{
    lua_pushstring(L, ah_http_version());
    return 1;
}

/* ---- the loop ---- */

typedef struct loop_box {
    counter counter;
    ah_loop *loop;
    int64_t clock;
    lua_State *L; /* during wait */
    int calls;    /* registry: fd or timer -> function */
    bool failed;  /* the first error of a callback is in calls[0] */
} loop_box;

/* User value 1: the loop. */
typedef struct timer_box {
    ah_timer timer;
    loop_box *owner;
} timer_box;

static int64_t told_clock(void *ud)
{
    return ((loop_box *)ud)->clock;
}

static int new_loop(lua_State *L)
{
    loop_box *b = lua_newuserdatauv(L, sizeof *b, 0);
    long clock = int_field(L, 1, "clock", -1);
    ah_err err;

    *b = (loop_box){.clock = clock, .calls = LUA_NOREF};
    counter_init(L, &b->counter, 1);
    luaL_setmetatable(L, LOOP);
    lua_newtable(L);
    b->calls = luaL_ref(L, LUA_REGISTRYINDEX);
    if (ah_loop_new(&b->counter.mem, clock < 0 ? NULL : told_clock, b, &b->loop, &err) != AH_OK)
        return fail(L, &err);
    return 1;
}

static loop_box *check_loop(lua_State *L)
{
    loop_box *b = luaL_checkudata(L, 1, LOOP);

    luaL_argcheck(L, b->loop != NULL, 1, "closed");
    return b;
}

/* Unsets timers that are still set; the list of callbacks has them. */
static int loop_close(lua_State *L)
{
    loop_box *b = luaL_checkudata(L, 1, LOOP);

    if (b->loop) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, b->calls);
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
            if (lua_islightuserdata(L, -2))
                ah_timer_unset(lua_touserdata(L, -2));
        ah_loop_free(b->loop);
        luaL_unref(L, LUA_REGISTRYINDEX, b->calls);
        b->loop = NULL;
    }
    lua_pushinteger(L, b->counter.live);
    return 1;
}

/* callbacks, function, arguments -- callbacks; keeps the first error */
static void call_back(loop_box *b, int nargs)
{
    lua_State *L = b->L;

    if (lua_pcall(L, nargs, 0, 0) == LUA_OK)
        return;
    if (!b->failed) {
        lua_rawseti(L, -2, 0);
        b->failed = true;
        return;
    }
    lua_pop(L, 1);
}

static void on_timer(ah_timer *timer)
{
    loop_box *b = ((timer_box *)(void *)timer)->owner;

    lua_rawgeti(b->L, LUA_REGISTRYINDEX, b->calls);
    lua_rawgetp(b->L, -1, timer);
    call_back(b, 0);
    lua_pop(b->L, 1);
}

static void on_fd(void *ud, int fd, int events)
{
    static const char *const names[] = {"", "r", "w", "rw"};
    loop_box *b = ud;

    lua_rawgeti(b->L, LUA_REGISTRYINDEX, b->calls);
    lua_rawgeti(b->L, -1, fd + 1); /* index 0 has the error */
    lua_pushinteger(b->L, fd);
    lua_pushstring(b->L, names[events]);
    call_back(b, 2);
    lua_pop(b->L, 1);
}

static int loop_wait(lua_State *L)
{
    loop_box *b = check_loop(L);
    lua_State *outer = b->L;
    bool called;

    luaL_checkstack(L, 20, "loop");
    b->L = L;
    called = ah_loop_wait(b->loop, (int)luaL_optinteger(L, 2, -1));
    b->L = outer;
    if (b->failed) {
        b->failed = false;
        lua_rawgeti(L, LUA_REGISTRYINDEX, b->calls);
        lua_rawgeti(L, -1, 0);
        return lua_error(L);
    }
    lua_pushboolean(L, called);
    return 1;
}

/* loop, fd, "rw", function -> true, or nil, error */
static int loop_watch(lua_State *L)
{
    loop_box *b = check_loop(L);
    int fd = (int)luaL_checkinteger(L, 2);
    const char *s = luaL_checkstring(L, 3);
    int events = (strchr(s, 'r') ? AH_IN : 0) | (strchr(s, 'w') ? AH_OUT : 0);
    ah_err err;

    lua_settop(L, 4);
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->calls);
    lua_pushvalue(L, 4);
    lua_rawseti(L, -2, fd + 1);
    if (ah_loop_watch(b->loop, fd, events, on_fd, b, &err) != AH_OK)
        return fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

/* loop, function -> timer */
static int loop_timer(lua_State *L)
{
    loop_box *b = check_loop(L);
    timer_box *t;

    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    t = lua_newuserdatauv(L, sizeof *t, 1);
    *t = (timer_box){.timer = {.fn = on_timer}, .owner = b};
    luaL_setmetatable(L, TIMER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 3, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->calls);
    lua_pushvalue(L, 2);
    lua_rawsetp(L, -2, t);
    lua_pushvalue(L, 3);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3); /* alive as long as the loop is open */
    lua_settop(L, 3);
    return 1;
}

static int timer_set(lua_State *L)
{
    timer_box *t = luaL_checkudata(L, 1, TIMER);

    ah_timer_set(t->owner->loop, &t->timer, luaL_checkinteger(L, 2));
    return 0;
}

static int timer_unset(lua_State *L)
{
    ah_timer_unset(&((timer_box *)luaL_checkudata(L, 1, TIMER))->timer);
    return 0;
}

static int timer_is_set(lua_State *L)
{
    lua_pushboolean(L, ((timer_box *)luaL_checkudata(L, 1, TIMER))->timer.loop != NULL);
    return 1;
}

static int loop_now(lua_State *L)
{
    lua_pushinteger(L, ah_loop_now(check_loop(L)->loop));
    return 1;
}

static int loop_set_clock(lua_State *L)
{
    check_loop(L)->clock = luaL_checkinteger(L, 2);
    return 0;
}

static int loop_wake(lua_State *L)
{
    ah_loop_wake(check_loop(L)->loop);
    return 0;
}

static int loop_fd(lua_State *L)
{
    lua_pushinteger(L, ah_loop_fd(check_loop(L)->loop));
    return 1;
}

static int loop_timeout(lua_State *L)
{
    lua_pushinteger(L, ah_loop_timeout(check_loop(L)->loop));
    return 1;
}

/* ---- wake-ups from another thread or a signal ---- */

typedef struct later {
    ah_loop *loop; /* NULL: the signal does not wake the loop */
    long ms;
    bool by_signal;
    pthread_t to;
} later;

static void nap(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (info->si_value.sival_ptr)
        ah_loop_wake(info->si_value.sival_ptr);
}

static void *wake_up(void *arg)
{
    later l = *(later *)arg;

    ah_free(&ah_mem_libc, arg);
    nap(l.ms);
    if (l.by_signal)
        sigqueue(getpid(), SIGUSR1, (union sigval){.sival_ptr = l.loop});
    else
        ah_loop_wake(l.loop);
    return NULL;
}

/* The new thread blocks all signals. */
static int start_later(lua_State *L, later l)
{
    later *arg = ah_alloc(&ah_mem_libc, sizeof *arg);
    sigset_t all, old;
    pthread_t id;

    if (!arg)
        return luaL_error(L, "out of memory");
    *arg = l;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&id, NULL, wake_up, arg) == 0)
        pthread_detach(id);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return 0;
}

static int loop_wake_later(lua_State *L)
{
    return start_later(L,
                       (later){.loop = check_loop(L)->loop, .ms = (long)luaL_checkinteger(L, 2)});
}

/* loop, ms, true if the handler wakes the loop */
static int loop_signal_later(lua_State *L)
{
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    later l = {.ms = (long)luaL_checkinteger(L, 2), .by_signal = true};

    if (lua_toboolean(L, 3))
        l.loop = check_loop(L)->loop;
    sigaction(SIGUSR1, &sa, NULL);
    return start_later(L, l);
}

/* ---- descriptors ---- */

static int make_pipe(lua_State *L)
{
    int ends[2];

    if (pipe(ends) != 0)
        return luaL_error(L, "pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        lua_pushinteger(L, ends[i]);
    }
    return 2;
}

static int fd_write(lua_State *L)
{
    ah_slice s = slice_at(L, 2);

    lua_pushinteger(L, write((int)luaL_checkinteger(L, 1), s.p, s.n));
    return 1;
}

/* Pushes nil if there is nothing to read. */
static int fd_read(lua_State *L)
{
    char bytes[4096];
    ssize_t n = read((int)luaL_checkinteger(L, 1), bytes, sizeof bytes);

    if (n < 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, bytes, (size_t)n);
    return 1;
}

static int fd_close(lua_State *L)
{
    close((int)luaL_checkinteger(L, 1));
    return 0;
}

static int fd_readable(lua_State *L)
{
    struct pollfd p = {.fd = (int)luaL_checkinteger(L, 1), .events = POLLIN};

    lua_pushboolean(L, poll(&p, 1, (int)luaL_optinteger(L, 2, 0)) == 1);
    return 1;
}

/* ---- opening ---- */

static const luaL_Reg client_methods[] = {
    {"start", client_start}, {"wait", client_wait},     {"close", client_close},
    {"__gc", client_close},  {"__close", client_close}, {NULL, NULL},
};

static const luaL_Reg transfer_methods[] = {
    {"ended", transfer_ended},     {"status", transfer_status},
    {"pending", transfer_pending}, {"take", transfer_take},
    {"result", transfer_result},   {"free", transfer_free},
    {"__gc", transfer_free},       {NULL, NULL},
};

static const luaL_Reg loop_methods[] = {
    {"now", loop_now},
    {"set_clock", loop_set_clock},
    {"wait", loop_wait},
    {"wake", loop_wake},
    {"wake_later", loop_wake_later},
    {"signal_later", loop_signal_later},
    {"fd", loop_fd},
    {"timeout", loop_timeout},
    {"watch", loop_watch},
    {"timer", loop_timer},
    {"close", loop_close},
    {"__gc", loop_close},
    {"__close", loop_close},
    {NULL, NULL},
};

static const luaL_Reg timer_methods[] = {
    {"set", timer_set},
    {"unset", timer_unset},
    {"is_set", timer_is_set},
    {NULL, NULL},
};

/* ahtest.setenv(name, value): a nil value removes the variable. */
static int set_environment(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1), *value = luaL_optstring(L, 2, NULL);

    if ((value ? setenv(name, value, 1) : unsetenv(name)) != 0)
        return luaL_error(L, "cannot set %s", name);
    return 0;
}

static int address_is_public(lua_State *L)
{
    const char *text = luaL_checkstring(L, 1);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    bool is_four = inet_pton(AF_INET, text, &four.sin_addr) == 1;

    luaL_argcheck(L, is_four || inet_pton(AF_INET6, text, &six.sin6_addr) == 1, 1, "no address");
    lua_pushboolean(L, ah_address_is_public(is_four ? (const struct sockaddr *)&four
                                                    : (const struct sockaddr *)&six));
    return 1;
}

static int record_clean(lua_State *L)
{
    ah_secrets secrets = {.mem = &ah_mem_libc};
    ah_slice in, key;
    ah_buf body;
    bool ok;

    in.p = luaL_checklstring(L, 1, &in.n);
    key.p = luaL_checklstring(L, 2, &key.n);
    ah_buf_init(&body, &ah_mem_libc, SIZE_MAX);
    ah_buf_put(&body, in);
    ok = ah_secrets_keep(&secrets, key) && ah_recording_clean(&ah_mem_libc, &secrets, &body);
    lua_pushlstring(L, ok ? ah_buf_slice(&body).p : "", ok ? body.len : 0);
    ah_buf_clear(&body);
    ah_secrets_clear(&secrets);
    return ok ? 1 : luaL_error(L, "not enough memory");
}

static const luaL_Reg functions[] = {
    {"record_clean", record_clean},
    {"address_is_public", address_is_public},
    {"setenv", set_environment},
    {"http", http},
    {"http_client", http_client},
    {"http_version", http_version},
    {"loop", new_loop},
    {"pipe", make_pipe},
    {"fd_write", fd_write},
    {"fd_read", fd_read},
    {"fd_close", fd_close},
    {"fd_readable", fd_readable},
    {NULL, NULL},
};

static void register_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 1);
}

void ahtest_open_http(lua_State *L)
{
    register_type(L, CLIENT, client_methods);
    register_type(L, TRANSFER, transfer_methods);
    register_type(L, LOOP, loop_methods);
    register_type(L, TIMER, timer_methods);
    luaL_setfuncs(L, functions, 0);
}
