/* ah.http: requests of the script's own, for handlers that wait for other servers. */
#include <strings.h>

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_open.h"
#include "lua/lua_step.h"
#include "lua/lua_stream.h"
#include "lua/lua_task.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

static const char HTTP[] = "agenthost.http";

enum {
    MAX_HEADERS = 100,
    MAX_SCRATCH = 1 << 20,
    MAX_NETWORKS = 16,
    MAX_URL = 16 << 10,
    MAX_PIECE = 16 << 20,
    WHOLE = -1 /* not a kind of stream */
};

static const int64_t NO_LIMIT_MS = INT64_C(1000) * 1000 * 1000 * 1000;

typedef struct request {
    ah_task_waiter waiter;
    ah_lua *lua;
    ah_transfer *transfer;
    ah_job job;
    ah_buf lines; /* header lines, one after the other */
    ah_slice line[MAX_HEADERS];
    size_t n_lines;
    ah_addresses only;
    ah_network network[MAX_NETWORKS];
} request;

typedef struct fields {
    ah_slice url, method, body;
    ah_http_limits limits; /* 0: not given */
    size_t most;           /* bytes of a piece; 0: not given */
    int stream;            /* an ah_stream_kind, or WHOLE */
} fields;

static const ah_option http_rows[] = {
    {.name = "url",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .to = AH_TO_HELD(fields, url),
     .doc = "`http://` or `https://`"},
    {.name = "method",
     .kinds = AH_OPT_STRING,
     .otherwise = "`GET`, with a body `POST`",
     .to = AH_TO_HELD(fields, method),
     .doc = ""},
    {.name = "headers",
     .kinds = AH_OPT_TABLE,
     .type = "table<string, string>",
     .doc = "strings by name, 100 at most"},
    {.name = "body", .kinds = AH_OPT_STRING, .to = AH_TO_HELD(fields, body)},
    {.name = "timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "600; of a stream: none",
     .to = AH_TO_MS(fields, limits.total_ms),
     .doc = "time for the whole request"},
    {.name = "idle_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "300",
     .to = AH_TO_MS(fields, limits.idle_ms),
     .doc = "time without a byte sent or received"},
    {.name = "max_body",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "67108864; of a stream: none",
     .to = AH_TO_SIZE(fields, limits.body_bytes),
     .doc = "size of the response's body"},
    {.name = "stream",
     .kinds = AH_OPT_STRING,
     .words = "bytes lines sse",
     .to = AH_TO_WORD(fields, stream),
     .doc = "reads the body [in pieces](#a-response-in-pieces)"},
    {.name = "max_piece",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "16777216",
     .to = AH_TO_SIZE(fields, most),
     .doc = "size of one line or event of a stream"},
    {.name = "addresses",
     .kinds = AH_OPT_LIST,
     .otherwise = "any",
     .is = "list of strings",
     .type = "string[]",
     .doc = "the only addresses that are connected to"},
    {.name = "on_lost",
     .kinds = AH_OPT_STRING,
     .words = "tell retry",
     .otherwise = "`tell`; of `GET`, `HEAD`, `OPTIONS`, `PUT`, `DELETE`: `retry`",
     .doc = "in a [durable handler](durable.md#lost-steps): what to do if the program died while "
            "the request was under way"},
    {0},
};
const ah_subject ah_subject_http = {.what = "ah.http", .type = "ah.HttpRequest", .row = http_rows};

static void stop_request(ah_task_waiter *w)
{
    request *q = (request *)(void *)((char *)w - offsetof(request, waiter));

    ah_job_cancel(&q->job);
    ah_http_free_transfer(q->transfer);
    q->transfer = NULL;
}

static int request_gc(lua_State *L)
{
    request *q = luaL_checkudata(L, 1, HTTP);

    stop_request(&q->waiter);
    ah_buf_clear(&q->lines);
    return 0;
}

static void on_news(void *ud, ah_transfer *t)
{
    request *q = ud;

    (void)t;
    ah_job_post(q->lua->host, &q->job);
}

static void on_job(ah_job *job)
{
    request *q = (request *)(void *)((char *)job - offsetof(request, job));

    if (ah_transfer_ended(q->transfer, NULL))
        ah_task_waiter_done(&q->waiter);
}

/* Returns the key of the call whose handler asks, if the handler may begin again after the end of
 * its process (on_lost = "retry") and the request may change something; else NULL. */
static const ah_text *key_of(lua_State *L, ah_slice method)
{
    static const char *const changing[] = {"POST", "PUT", "PATCH", "DELETE", NULL};
    const ah_task *t = ah_lua_of(L)->actor;
    const ah_call *call = t && !t->over && t->overlay ? t->overlay->owner : NULL;
    const char *const *m = changing;

    while (*m && !ah_slice_is(method, *m))
        m++;
    return *m && call && call->tool && call->tool->on_lost == AH_LOST_RETRY ? call->key : NULL;
}

static bool has_header(const request *q, const char *name, size_t n)
{
    const char *at = q->lines.data;
    bool has = false;

    for (size_t i = 0; i < q->n_lines && !has; at += q->line[i++].n)
        has = q->line[i].n > n && at[n] == ':' && strncasecmp(at, name, n) == 0;
    return has;
}

/* Adds the header by which the other side knows a request that it has had already. */
static void add_key(request *q, const ah_text *key)
{
    static const char NAME[] = "Idempotency-Key";
    size_t at = q->lines.len;

    if (!key || q->n_lines == MAX_HEADERS || !ah_buf_ok(&q->lines) ||
        has_header(q, NAME, sizeof NAME - 1))
        return;
    ah_buf_fmt(&q->lines, "%s: %s", NAME, key->data);
    q->line[q->n_lines++] = (ah_slice){NULL, q->lines.len - at};
}

/* Reads headers = { ["X-Name"] = "value" }, sent sorted by name so that requests are the same. */
static void read_headers(lua_State *L, request *q, const ah_text *key)
{
    bool given = lua_getfield(L, 1, "headers") != LUA_TNIL;

    for (lua_pushnil(L); given && lua_next(L, -2); lua_pop(L, 1)) {
        size_t at = q->lines.len;

        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "ah.http: headers must be strings by name");
        if (q->n_lines == MAX_HEADERS)
            ah_lua_raise(L, AH_USAGE, "ah.http: more than %d headers", MAX_HEADERS);
        ah_buf_add(&q->lines, lua_tostring(L, -2), (size_t)lua_rawlen(L, -2));
        ah_buf_str(&q->lines, ": ");
        ah_buf_add(&q->lines, lua_tostring(L, -1), (size_t)lua_rawlen(L, -1));
        q->line[q->n_lines++] = (ah_slice){NULL, q->lines.len - at};
    }
    lua_settop(L, 2);
    add_key(q, key);
    for (size_t i = 0, at = 0; i < q->n_lines; at += q->line[i++].n)
        q->line[i].p = q->lines.data + at;
}

/* Reads addresses = { "public", "10.0.0.0/8" }: only these are connected to. Returns false without
 * the field: any address is allowed. */
static bool read_addresses(lua_State *L, request *q)
{
    lua_Integer n;

    if (!ah_lua_field_list(L, 1, "ah.http", "addresses", &n))
        return false;
    q->only.network = q->network;
    for (lua_Integer i = 1; i <= n; i++, lua_pop(L, 1)) {
        ah_slice s;

        lua_geti(L, -1, i);
        if (lua_type(L, -1) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "ah.http: addresses must be a list of strings");
        s.p = lua_tolstring(L, -1, &s.n);
        if (ah_slice_is(s, "public"))
            q->only.public = true;
        else if (q->only.n == MAX_NETWORKS)
            ah_lua_raise(L, AH_USAGE, "ah.http: more than %d addresses", MAX_NETWORKS);
        else if (!ah_network_parse(s, &q->network[q->only.n++]))
            ah_lua_raise(
                L, AH_USAGE,
                "ah.http: addresses: '%s' is neither \"public\" nor a network such as 10.0.0.0/8",
                s.p);
    }
    lua_pop(L, 1);
    return true;
}

/* A stream has no limits of time and body size by default; its reader limits what is kept. */
static ah_http_limits limits_of(const fields *f)
{
    ah_http_limits limits = f->limits;

    if (f->stream != WHOLE && !limits.total_ms)
        limits.total_ms = NO_LIMIT_MS;
    if (f->stream != WHOLE && !limits.body_bytes)
        limits.body_bytes = SIZE_MAX / 4;
    return limits;
}

void ah_lua_push_http_headers(lua_State *L, const ah_transfer *t)
{
    ah_slice name, value;

    lua_newtable(L);
    for (size_t i = 0; ah_transfer_header_at(t, i, &name, &value); i++) {
        luaL_Buffer b;

        luaL_buffinit(L, &b);
        for (size_t k = 0; k < name.n; k++)
            luaL_addchar(&b,
                         (char)(name.p[k] >= 'A' && name.p[k] <= 'Z' ? name.p[k] + 32 : name.p[k]));
        luaL_pushresult(&b);
        lua_pushlstring(L, value.p, value.n);
        lua_rawset(L, -3);
    }
}

/* -- response, or nil err */
static int push_response(lua_State *L, const request *q)
{
    ah_slice body;
    ah_err err;

    ah_transfer_ended(q->transfer, &err);
    if (err.status != AH_OK) {
        lua_pushnil(L);
        ah_secrets_redact_err(&q->lua->host->secrets, &err);
        ah_lua_push_error(L, &err);
        return 2;
    }
    body = ah_transfer_body(q->transfer);
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, ah_transfer_status(q->transfer));
    lua_setfield(L, -2, "status");
    lua_pushlstring(L, body.p ? body.p : "", body.n);
    lua_setfield(L, -2, "body");
    ah_lua_push_http_headers(L, q->transfer);
    lua_setfield(L, -2, "headers");
    return 1;
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    request *q = luaL_checkudata(L, (int)ctx, HTTP);
    int n = push_response(L, q);

    (void)status;
    stop_request(&q->waiter); /* its handle is free for the next request */
    return n;
}

static bool has_nul(ah_slice s)
{
    return s.n && memchr(s.p, '\0', s.n);
}

/* -- nil err    for a request that cannot be made */
static int impossible(lua_State *L, const char *why)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE, "%s", why);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

/* -- t */
static int make_request(lua_State *L, bool unseen)
{
    ah_lua *h = ah_lua_of(L);
    fields f = {.stream = WHOLE};
    ah_http_request req = {.unseen = unseen};
    ah_http *http;
    request *q;
    ah_err err;

    ah_options_read(L, 1, &ah_subject_http, &f); /* -- t */
    if (f.most && f.stream == WHOLE)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.http: max_piece is for a response that is read in pieces: "
                            "give stream = \"lines\" or \"sse\"");
    if (!f.method.p)
        f.method = ah_slice_of(f.body.p ? "POST" : "GET");
    if (has_nul(f.url) || has_nul(f.method))
        return impossible(L, "ah.http: a URL or method with a NUL byte in it cannot be requested");
    ah_lua_can_await(L);
    q = lua_newuserdatauv(L, sizeof *q, 0); /* -- t q */
    *q = (request){.waiter.leave = stop_request, .lua = h, .job.fn = on_job};
    ah_buf_init(&q->lines, &h->mem, MAX_SCRATCH);
    luaL_setmetatable(L, HTTP);
    read_headers(L, q, key_of(L, f.method));
    if (read_addresses(L, q))
        req.only = &q->only;
    req.limits = limits_of(&f);
    req.method = f.method.p;
    req.url = f.url.p;
    req.headers = q->line;
    req.n_headers = q->n_lines;
    req.body[0] = f.body;
    req.n_body = f.body.p != NULL;
    if (!ah_buf_ok(&q->lines))
        return ah_lua_raise_nomem(L);
    if (f.stream != WHOLE)
        return ah_lua_stream(L, &req, (ah_stream_kind)f.stream, f.most ? f.most : MAX_PIECE);
    ah_task_waiter_keep(L, &q->waiter);
    if (ah_host_http(h->host, &http, &err) != AH_OK ||
        ah_http_start(http, &req, on_news, q, &q->transfer, &err) != AH_OK) {
        ah_task_waiter_done(&q->waiter);
        lua_pushnil(L);
        ah_lua_push_error(L, &err);
        return 2;
    }
    return ah_lua_await(L, &q->waiter, lua_gettop(L), finish);
}

/* ah.http { url, method, headers, body, timeout, max_body, stream }: { status, headers, body }, or
 * with `stream` an object of lua_stream.c. Returns nil and an error if no complete response arrived
 * (for a stream: no head). Follows no redirects. */
static int ah_http_call(lua_State *L)
{
    lua_settop(L, 1);
    if (ah_lua_durable(L))
        return ah_lua_through_step(L, "http", ah_http_call);
    return make_request(L, false);
}

/* ah._http_unseen: the same, but neither a recording nor a journal has the request. */
static int http_unseen(lua_State *L)
{
    lua_settop(L, 1);
    return make_request(L, true);
}

/* ah._url(url, base) -> { url, scheme, host, port } as a request reads it; or nil, err. */
static int read_url(lua_State *L)
{
    size_t n;
    const char *url = luaL_checklstring(L, 1, &n), *base = luaL_optstring(L, 2, NULL);
    ah_url u = {.port = 0};
    ah_buf *b = ah_lua_push_buf(L, MAX_URL);
    ah_err err;

    if (has_nul((ah_slice){url, n}))
        err.status = ah_err_set(&err, AH_USAGE, "a URL holds no NUL");
    else {
        u.whole = *b;
        err.status = ah_http_read_url(url, base, &u, &err);
        *b = u.whole;
    }
    if (err.status == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (err.status != AH_OK) {
        lua_pushnil(L);
        ah_lua_push_error(L, &err);
        return 2;
    }
    lua_createtable(L, 0, 4);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    lua_setfield(L, -2, "url");
    lua_pushstring(L, u.tls ? "https" : "http");
    lua_setfield(L, -2, "scheme");
    lua_pushstring(L, u.host);
    lua_setfield(L, -2, "host");
    lua_pushinteger(L, u.port);
    lua_setfield(L, -2, "port");
    return 1;
}

/* ah._is_network(text): true if the text is allowed in `addresses`. */
static int is_network(lua_State *L)
{
    ah_network n;
    ah_slice s;

    s.p = luaL_checklstring(L, 1, &s.n);
    lua_pushboolean(L, ah_network_parse(s, &n));
    return 1;
}

void ah_lua_open_http(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", request_gc}, {NULL, NULL}};

    luaL_newmetatable(L, HTTP);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
    ah_lua_stream_class(L);
    lua_pushcfunction(L, is_network);
    lua_setfield(L, -2, "_is_network");
    lua_pushcfunction(L, read_url);
    lua_setfield(L, -2, "_url");
    lua_pushcfunction(L, ah_http_call);
    lua_setfield(L, -2, "http");
    lua_pushcfunction(L, http_unseen);
    lua_setfield(L, -2, "_http_unseen");
}
