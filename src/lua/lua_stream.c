/* The response of ah.http { stream = ... }: its head as soon as that has arrived, then its body in
 * pieces on request. At most WINDOW bytes that were not requested are taken from the network. The
 * loop cuts received bytes into lines or events, so a reader is woken once per piece. */
#include "lua/lua_stream.h"

#include "io/address.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_task.h"
#include "wire/sse.h"

static const char STREAM[] = "agenthost.stream";

enum {
    WINDOW = 256 << 10,
    MOST_BYTES = 64 << 10, /* of one piece of bytes */
    HEADERS = 1,           /* user values */
    FAILURE = 2,
    MAX_NETWORKS = 16
};

typedef struct stream {
    ah_lua_object held;
    ah_lua *lua;
    ah_transfer *transfer;
    ah_job job;
    ah_task_waiter *reader; /* the wait for the next piece or the head; NULL: none */
    ah_stream_kind kind;
    size_t body_most; /* of read_all */
    ah_buf sent;      /* the body of the request */
    ah_addresses only;
    ah_network network[MAX_NETWORKS];
    int status; /* of the head; 0: not received */
    ah_sse sse;
    ah_buf name, data; /* of the piece that is arriving or complete */
    bool whole;        /* the piece is complete */
    bool begun;        /* a piece was requested */
    bool all;          /* the whole body is one piece */
    bool over;         /* nothing comes after the present data */
    ah_err err;        /* reason of the early end, when over */
} stream;

/* The userdata for Lua. */
typedef struct box {
    stream *s; /* NULL: never made */
} box;

/* One wait of one reader. */
typedef struct reading {
    ah_task_waiter waiter;
    stream *s;
} reading;

static const char READING[] = "agenthost.stream.reading";

static reading *reading_of(ah_task_waiter *w)
{
    return (reading *)(void *)((char *)w - offsetof(reading, waiter));
}

/* -- its life ------------------------------------------------------------------------------ */

/* Nothing more is received; complete data stay. */
static void stop(stream *s)
{
    ah_job_cancel(&s->job);
    ah_http_free_transfer(s->transfer);
    s->transfer = NULL;
    s->over = true;
}

static void free_stream(ah_lua_object *o)
{
    stream *s = (stream *)(void *)((char *)o - offsetof(stream, held));

    ah_lua_let_go(o);
    if (s->reader)
        reading_of(s->reader)->s = NULL;
    stop(s);
    ah_sse_clear(&s->sse);
    (void)ah_buf_ok(&s->sent);
    ah_buf_clear(&s->sent);
    (void)ah_buf_ok(&s->name);
    ah_buf_clear(&s->name);
    (void)ah_buf_ok(&s->data);
    ah_buf_clear(&s->data);
    ah_free(&s->lua->mem, s);
}

static void wake(stream *s)
{
    ah_task_waiter *w = s->reader;

    s->reader = NULL;
    if (w)
        ah_task_waiter_done(w);
}

static void leave(ah_task_waiter *w)
{
    reading *r = reading_of(w);

    if (r->s && r->s->reader == w)
        r->s->reader = NULL;
    r->s = NULL;
}

static int reading_gc(lua_State *L)
{
    leave(&((reading *)luaL_checkudata(L, 1, READING))->waiter);
    return 0;
}

static int stream_gc(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, STREAM);
    stream *s = b->s;

    b->s = NULL;
    if (s)
        free_stream(&s->held);
    return ah_lua_retire(L);
}

/* -- pieces ---------------------------------------------------------------------------------- */

static void fail(stream *s, const ah_err *err)
{
    s->err = *err;
    ah_secrets_redact_err(&s->lua->host->secrets, &s->err);
    ah_buf_reset(&s->data, 0);
    stop(s);
}

static void fail_large(stream *s)
{
    ah_err err;

    if (s->data.status == AH_NOMEM)
        ah_err_nomem(&err);
    else
        ah_err_set(&err, AH_HTTP, "a %s of the response is larger than %zu bytes (limit %s)",
                   s->all ? "body" : "line", s->data.max, s->all ? "max_body" : "max_piece");
    (void)ah_buf_ok(&s->data);
    fail(s, &err);
}

static void take(stream *s, size_t n)
{
    ah_buf_add(&s->data, ah_transfer_body(s->transfer).p, n);
    ah_transfer_took(s->transfer, n);
    if (!ah_buf_ok(&s->data))
        fail_large(s);
}

static ah_slice unread(const stream *s)
{
    return s->transfer ? ah_transfer_body(s->transfer) : (ah_slice){"", 0};
}

static void cut_bytes(stream *s)
{
    size_t n = unread(s).n;

    s->whole = n > 0;
    take(s, n < MOST_BYTES ? n : MOST_BYTES);
}

/* Cuts a line, without its end "\n" or "\r\n". */
static void cut_line(stream *s)
{
    ah_slice in = unread(s);
    const char *eol = in.n ? memchr(in.p, '\n', in.n) : NULL;

    take(s, eol ? (size_t)(eol - in.p) : in.n);
    if (!eol || !s->transfer)
        return;
    ah_transfer_took(s->transfer, 1);
    if (s->data.len && s->data.data[s->data.len - 1] == '\r')
        ah_buf_reset(&s->data, s->data.len - 1);
    s->whole = true;
}

static ah_status on_event(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    stream *s = ud;

    ah_buf_put(&s->name, event);
    ah_buf_put(&s->data, data);
    s->whole = ah_buf_ok(&s->name) && ah_buf_ok(&s->data);
    return s->whole ? AH_OK : ah_err_nomem(err);
}

/* Events are emitted at the end of a line: if fed line by line, no event overwrites another. */
static size_t line_of(ah_slice in)
{
    size_t n = 0;

    while (n < in.n && in.p[n] != '\n' && in.p[n] != '\r')
        n++;
    return n < in.n ? n + 1 : n;
}

static void cut_event(stream *s)
{
    ah_status st = AH_OK;
    ah_err err;

    for (ah_slice in = unread(s); in.n && !s->whole && st == AH_OK; in = unread(s)) {
        size_t n = line_of(in);

        st = ah_sse_feed(&s->sse, (ah_slice){in.p, n}, on_event, s, &err);
        ah_transfer_took(s->transfer, n);
    }
    if (st != AH_OK)
        fail(s, &err);
}

/* The body has ended: the rest without an end of its own is a piece, too, if all was received. */
static void cut_rest(stream *s, ah_err *err)
{
    if (err->status == AH_OK && s->kind == AH_STREAM_SSE && !s->all)
        err->status = ah_sse_end(&s->sse, on_event, s, err);
    else if (err->status == AH_OK)
        s->whole = s->all || s->data.len > 0;
    if (err->status != AH_OK)
        fail(s, err);
    else
        stop(s);
}

static void cut(stream *s)
{
    if (s->all)
        take(s, unread(s).n);
    else if (s->kind == AH_STREAM_BYTES)
        cut_bytes(s);
    else if (s->kind == AH_STREAM_LINES)
        cut_line(s);
    else
        cut_event(s);
}

/* True if the reader can get a result: a piece or the end. */
static bool advance(stream *s)
{
    ah_err err;

    if (!s->whole && !s->over)
        cut(s);
    if (!s->whole && !s->over && ah_transfer_ended(s->transfer, &err) && unread(s).n == 0)
        cut_rest(s, &err);
    return s->whole || s->over;
}

/* True if the head has arrived, or will not. */
static bool take_head(stream *s)
{
    ah_err err;

    s->status = ah_transfer_status(s->transfer);
    if (!s->status && ah_transfer_ended(s->transfer, &err))
        fail(s, &err);
    return s->status || s->over;
}

static void on_job(ah_job *job)
{
    stream *s = (stream *)(void *)((char *)job - offsetof(stream, job));

    if (s->reader && (s->status ? advance(s) : take_head(s)))
        wake(s);
}

static void on_news(void *ud, ah_transfer *t)
{
    stream *s = ud;

    (void)t;
    ah_job_post(s->lua->host, &s->job);
}

/* -- reading ----------------------------------------------------------------------------------- */

static stream *check(lua_State *L)
{
    ah_lua_of(L); /* raises if the host has freed it */
    return ((box *)luaL_checkudata(L, 1, STREAM))->s;
}

static void push_event(lua_State *L, const stream *s)
{
    ah_slice id = ah_buf_slice(&s->sse.id);

    lua_createtable(L, 0, 4);
    if (s->name.len)
        lua_pushlstring(L, ah_buf_slice(&s->name).p, s->name.len);
    else
        lua_pushliteral(L, "message");
    lua_setfield(L, -2, "event");
    lua_pushlstring(L, ah_buf_slice(&s->data).p, s->data.len);
    lua_setfield(L, -2, "data");
    if (id.n) {
        lua_pushlstring(L, id.p, id.n);
        lua_setfield(L, -2, "id");
    }
    if (s->sse.retry >= 0) {
        lua_pushinteger(L, s->sse.retry);
        lua_setfield(L, -2, "retry");
    }
}

/* Pushes the complete piece, and makes room for the next one. */
static void push_piece(lua_State *L, stream *s)
{
    if (s->kind == AH_STREAM_SSE && !s->all)
        push_event(L, s);
    else
        lua_pushlstring(L, ah_buf_slice(&s->data).p, s->data.len);
    s->whole = false;
    ah_buf_reset(&s->name, 0);
    ah_buf_reset(&s->data, 0);
}

/* -- nil, or nil err    always the same object */
static int push_end(lua_State *L, const stream *s)
{
    lua_pushnil(L);
    if (s->err.status == AH_OK)
        return 1;
    if (lua_getiuservalue(L, 1, FAILURE) == LUA_TNIL) {
        lua_pop(L, 1);
        ah_lua_push_error(L, &s->err);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, 1, FAILURE);
    }
    return 2;
}

/* The stream is at 1; it may have been closed meanwhile. */
static int read_end(lua_State *L, int status, lua_KContext ctx)
{
    stream *s = check(L);

    (void)status;
    (void)ctx;
    if (!s->whole)
        return push_end(L, s);
    push_piece(L, s);
    return 1;
}

/* -- r    for the next wait */
static ah_task_waiter *begin_wait(lua_State *L, stream *s)
{
    reading *r;

    if (s->reader)
        ah_lua_raise(L, AH_USAGE,
                     "ah.http: another task waits for this response; one at a time can");
    ah_lua_can_await(L);
    r = lua_newuserdatauv(L, sizeof *r, 0);
    *r = (reading){.waiter.leave = leave, .s = s};
    luaL_setmetatable(L, READING);
    ah_task_waiter_keep(L, &r->waiter);
    return s->reader = &r->waiter;
}

/* stream:read() -> the next piece; nil at the end; nil, err if the rest does not arrive */
static int stream_read(lua_State *L)
{
    stream *s = check(L);

    lua_settop(L, 1);
    s->begun = true;
    if (s->reader || !advance(s))
        return ah_lua_await(L, begin_wait(L, s), 0, read_end);
    return read_end(L, LUA_OK, 0);
}

/* stream:read_all() -> the body as one string; nil, err */
static int stream_read_all(lua_State *L)
{
    stream *s = check(L);

    if (s->begun && !s->all)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.http: read_all cannot follow read: pieces were read already");
    s->all = true;
    s->data.max = s->body_most;
    return stream_read(L);
}

/* stream:close(): drops a complete piece as well, and ends a reader's wait with an error. */
static int stream_close(lua_State *L)
{
    box *b = luaL_checkudata(L, 1, STREAM);
    stream *s = b->s;
    ah_err err;

    if (s && !(s->over && !s->whole)) {
        ah_err_set(&err, AH_CANCELLED, "ah.http: the response was closed before its end");
        s->whole = false;
        fail(s, &err);
        wake(s);
    }
    return 0;
}

/* Upvalue 1: the stream. */
static int next_piece(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    return stream_read(L);
}

/* for piece, err in stream:pieces() do */
static int stream_pieces(lua_State *L)
{
    luaL_checkudata(L, 1, STREAM);
    lua_settop(L, 1);
    lua_pushcclosure(L, next_piece, 1);
    return 1;
}

static void push_state(lua_State *L, const stream *s, const char *key)
{
    if (strcmp(key, "status") == 0)
        lua_pushinteger(L, s->status);
    else if (strcmp(key, "headers") == 0)
        lua_getiuservalue(L, 1, HEADERS);
    else if (strcmp(key, "last_event_id") == 0 && s->sse.id.len)
        lua_pushlstring(L, ah_buf_slice(&s->sse.id).p, s->sse.id.len);
    else if (strcmp(key, "retry") == 0 && s->sse.retry >= 0)
        lua_pushinteger(L, s->sse.retry);
    else if (strcmp(key, "err") == 0 && s->over && !s->whole)
        push_end(L, s);
    else
        lua_pushnil(L);
}

/* Upvalue 1: the methods. */
static int stream_index(lua_State *L)
{
    static const char *const known[] = {"status", "headers", "err",      "last_event_id", "retry",
                                        "read",   "pieces",  "read_all", "close",         NULL};
    const stream *s = check(L);
    const char *key = luaL_checkstring(L, 2);

    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    for (size_t i = 0; known[i]; i++)
        if (strcmp(key, known[i]) == 0) {
            push_state(L, s, key);
            return 1;
        }
    return ah_lua_unknown(L, "response", known, ah_slice_of(key));
}

static int stream_tostring(lua_State *L)
{
    const stream *s = check(L);

    lua_pushfstring(L, "response %d (%s)", s->status, s->over ? "ended" : "open");
    return 1;
}

/* -- the request ------------------------------------------------------------------------------- */

/* -- stream */
static stream *push_stream(lua_State *L, size_t most)
{
    ah_lua *h = ah_lua_of(L);
    box *b = lua_newuserdatauv(L, sizeof *b, 2);
    stream *s;

    b->s = NULL;
    if (!(s = ah_alloc(&h->mem, sizeof *s)))
        ah_lua_raise_nomem(L);
    *s = (stream){.held.drop = free_stream, .lua = h, .job.fn = on_job};
    ah_buf_init(&s->sent, &h->mem, SIZE_MAX);
    ah_buf_init(&s->name, &h->mem, most);
    ah_buf_init(&s->data, &h->mem, most);
    ah_sse_init(&s->sse, &h->mem, most);
    s->sse.resumable = true;
    b->s = s;
    ah_lua_hold(h, &s->held);
    luaL_setmetatable(L, STREAM);
    return s;
}

/* Copies the values that the request borrows until it has ended. */
static ah_http_request copy_request(stream *s, const ah_http_request *from)
{
    ah_http_request req = *from;

    for (size_t i = 0; i < from->n_body; i++)
        ah_buf_put(&s->sent, from->body[i]);
    if (from->n_body) {
        req.n_body = 1;
        req.body[0] = ah_buf_slice(&s->sent);
    }
    if (from->only) {
        s->only = *from->only;
        if (s->only.n)
            memcpy(s->network, from->only->network, s->only.n * sizeof *s->network);
        s->only.network = s->network;
        req.only = &s->only;
    }
    req.limits.window_bytes = WINDOW;
    return req;
}

/* ctx: stack index of the stream. */
static int head_end(lua_State *L, int status, lua_KContext ctx)
{
    stream *s;

    (void)status;
    lua_settop(L, (int)ctx);
    lua_replace(L, 1);
    lua_settop(L, 1);
    s = check(L);
    if (!s->status)
        return push_end(L, s);
    ah_lua_push_http_headers(L, s->transfer);
    lua_setiuservalue(L, 1, HEADERS);
    return 1;
}

int ah_lua_stream(lua_State *L, const ah_http_request *from, ah_stream_kind kind, size_t most)
{
    ah_lua *h = ah_lua_of(L);
    stream *s = push_stream(L, most);
    int at = lua_gettop(L);
    ah_http_request req = copy_request(s, from);
    ah_http *http;
    ah_task_waiter *w;
    ah_err err;

    s->kind = kind;
    s->body_most = from->limits.body_bytes < ah_http_limits_default.body_bytes
                       ? from->limits.body_bytes
                       : ah_http_limits_default.body_bytes;
    if (!ah_buf_ok(&s->sent))
        return ah_lua_raise_nomem(L);
    w = begin_wait(L, s);
    if (ah_host_http(h->host, &http, &err) == AH_OK &&
        ah_http_start(http, &req, on_news, s, &s->transfer, &err) == AH_OK)
        return ah_lua_await(L, w, at, head_end);
    s->over = true;
    wake(s);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

void ah_lua_stream_class(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", stream_gc},
                                    {"__close", stream_close},
                                    {"__tostring", stream_tostring},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"read", stream_read},
                                       {"pieces", stream_pieces},
                                       {"read_all", stream_read_all},
                                       {"close", stream_close},
                                       {NULL, NULL}};
    static const luaL_Reg reading_meta[] = {{"__gc", reading_gc}, {NULL, NULL}};

    luaL_newmetatable(L, READING);
    luaL_setfuncs(L, reading_meta, 0);
    luaL_newmetatable(L, STREAM);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, stream_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 2);
}
