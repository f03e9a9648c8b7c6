/* Requests as tables, and answers of handlers, whole or in pieces. */
#include "lua/lua_serve.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_options.h"
#include "lua/lua_value.h"

enum { MAX_JSON = 64 << 20, MAX_EVENT = 64 << 20, REFUSAL_BODY = AH_REFUSAL_BYTES / 2 };

static const char WHAT[] = "ah.serve: an answer";

/* -- the request ------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes escapes once; invalid ones are unchanged. */
static void push_decoded(lua_State *L, ah_slice s, bool form)
{
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (size_t i = 0; i < s.n; i++) {
        int high = s.p[i] == '%' && i + 2 < s.n ? hex(s.p[i + 1]) : -1;
        int low = high >= 0 ? hex(s.p[i + 2]) : -1;

        if (low >= 0) {
            luaL_addchar(&b, (char)(high << 4 | low));
            i += 2;
        } else {
            luaL_addchar(&b, form && s.p[i] == '+' ? ' ' : s.p[i]);
        }
    }
    luaL_pushresult(&b);
}

/* -- table name value -- table    adds the value to those of that name */
static void add_value(lua_State *L)
{
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -4) == LUA_TNIL) { /* -- table name value nil */
        lua_pop(L, 1);
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -2);
        lua_rawset(L, -6);
    } /* -- table name value list */
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 2);
}

static void push_lower(lua_State *L, ah_slice s)
{
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (size_t i = 0; i < s.n; i++)
        luaL_addchar(&b, (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32 : s.p[i]));
    luaL_pushresult(&b);
}

static void push_headers(lua_State *L, const ah_hit *hit)
{
    ah_slice name, value;

    lua_newtable(L);
    for (size_t i = 0; ah_hit_header_at(hit, i, &name, &value); i++) {
        push_lower(L, name);
        lua_pushlstring(L, value.p, value.n);
        add_value(L);
    }
}

static ah_slice until(ah_slice s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return (ah_slice){s.p, at ? (size_t)(at - s.p) : s.n};
}

static ah_slice behind(ah_slice s, ah_slice part)
{
    size_t n = part.n < s.n ? part.n + 1 : s.n;

    return (ah_slice){s.p + n, s.n - n};
}

static void push_query(lua_State *L, ah_slice query)
{
    lua_newtable(L);
    while (query.n) {
        ah_slice pair = until(query, '&'), name = until(pair, '=');

        query = behind(query, pair);
        if (!pair.n)
            continue;
        push_decoded(L, name, true);
        push_decoded(L, behind(pair, name), true);
        add_value(L);
    }
}

/* Returns the path, also of "http://host/path", as proxies are asked. */
static ah_slice path_of(ah_slice target)
{
    ah_slice path = until(target, '?');

    for (size_t i = 0; path.n && *path.p != '/' && i + 2 < path.n; i++)
        if (memcmp(path.p + i, "://", 3) == 0) {
            ah_slice rest = {path.p + i + 3, path.n - i - 3}, name = until(rest, '/');

            return name.n < rest.n ? (ah_slice){rest.p + name.n, rest.n - name.n}
                                   : ah_slice_of("/");
        }
    return path;
}

static void push_head(lua_State *L, const ah_hit *hit)
{
    ah_slice target = ah_hit_target(hit);

    luaL_checkstack(L, 12, "a request");
    lua_createtable(L, 0, 8);
    lua_pushstring(L, ah_hit_method(hit));
    lua_setfield(L, -2, "method");
    lua_pushlstring(L, target.p, target.n);
    lua_setfield(L, -2, "target");
    push_decoded(L, path_of(target), false);
    lua_setfield(L, -2, "path");
    push_query(L, behind(target, until(target, '?')));
    lua_setfield(L, -2, "query");
    push_headers(L, hit);
    lua_setfield(L, -2, "headers");
    lua_pushstring(L, ah_hit_remote(hit));
    lua_setfield(L, -2, "remote");
}

void ah_lua_push_hit(lua_State *L, const ah_hit *hit)
{
    ah_slice body = ah_hit_body(hit);

    push_head(L, hit);
    lua_pushlstring(L, body.p, body.n);
    lua_setfield(L, -2, "body");
}

void ah_lua_push_refused(lua_State *L, const ah_hit *hit)
{
    ah_refusal r = ah_hit_refusal(hit);

    lua_createtable(L, 0, 2);
    lua_pushinteger(L, r.status);
    lua_setfield(L, -2, "status");
    lua_pushstring(L, r.why);
    lua_setfield(L, -2, "message");
    push_head(L, hit);
}

/* -- the answer -------------------------------------------------------------------------------- */

typedef struct head {
    int status;
    double length; /* -1: not known */
} head;

#define STATUS_ROW(words)                                                                          \
    {                                                                                              \
        .name = "status", .kinds = AH_OPT_INTEGER, .least = 200, .most = 599, .otherwise = "200",  \
        .to = AH_TO_INT(head, status), .doc = (words)                                              \
    }
#define HEADERS_ROW                                                                                \
    {                                                                                              \
        .name = "headers", .kinds = AH_OPT_TABLE, .type = "table<string, string|string[]>",        \
        .doc = "strings by name, or lists of strings for several of a name"                        \
    }

static const ah_option answer_rows[] = {
    STATUS_ROW("default for a [refused request](#refusals): the status of the refusal"),
    HEADERS_ROW,
    {.name = "body",
     .kinds = AH_OPT_STRING | AH_OPT_TABLE,
     .doc = "a string is sent as `text/plain` unless `headers` say otherwise, a table as JSON"},
    {0},
};
const ah_subject ah_subject_server_answer = {
    .what = WHAT, .type = "ah.ServerAnswer", .row = answer_rows};

static const ah_option head_rows[] = {
    STATUS_ROW(NULL),
    HEADERS_ROW,
    {.name = "length",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .unit = "bytes",
     .type = "integer",
     .to = AH_TO_DOUBLE(head, length),
     .doc = "size of the body, sent to the client. The rest of a longer body is dropped; a "
            "shorter one breaks off the response"},
    {0},
};
const ah_subject ah_subject_server_head = {
    .what = "response:begin", .type = "ah.ServerHead", .row = head_rows};

static bool is_type(ah_slice name)
{
    static const char type[] = "content-type";
    bool same = name.n == sizeof type - 1;

    for (size_t i = 0; same && i < name.n; i++)
        same = (name.p[i] | 0x20) == type[i];
    return same;
}

/* -- value    of the header of this name */
static void add_header(lua_State *L, ah_hit *hit, ah_slice name)
{
    ah_slice value;

    if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER)
        ah_lua_raise(L, AH_USAGE, "%s: header '%s' must be a string or a list of strings, found %s",
                     WHAT, name.p, luaL_typename(L, -1));
    value.p = lua_tolstring(L, -1, &value.n);
    if (!ah_hit_add_header(hit, name, value))
        ah_lua_raise(
            L, AH_USAGE,
            "%s: header '%s' cannot be sent: its name or value has bytes that no header has, it "
            "follows from the body or the connection, or there are too many",
            WHAT, name.p);
}

/* -- name value -- name    a list sets the header several times */
static void add_headers_of(lua_State *L, ah_hit *hit, ah_slice name)
{
    if (!lua_istable(L, -1)) {
        add_header(L, hit, name);
        lua_pop(L, 1);
        return;
    }
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        add_header(L, hit, name);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* Sets the headers; returns true if a content type is among them. */
static bool read_headers(lua_State *L, int idx, ah_hit *hit)
{
    bool typed = false;

    if (!ah_lua_field_push(L, idx, WHAT, "headers", LUA_TTABLE))
        return false;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        ah_slice name;

        if (lua_type(L, -2) != LUA_TSTRING)
            ah_lua_raise(L, AH_USAGE, "%s: headers must be values by name", WHAT);
        name.p = lua_tolstring(L, -2, &name.n);
        typed = typed || is_type(name);
        add_headers_of(L, hit, name);
    }
    lua_pop(L, 1);
    return typed;
}

static void add_type(lua_State *L, ah_hit *hit, const char *type)
{
    if (!ah_hit_add_header(hit, ah_slice_of("Content-Type"), ah_slice_of(type)))
        ah_lua_raise_nomem(L);
}

/* Pushes the body as text; a table as JSON. */
static const char *push_body(lua_State *L, int idx)
{
    int type = lua_getfield(L, idx, "body");
    ah_buf *b;
    ah_err err;

    if (type == LUA_TNIL) {
        lua_pushliteral(L, "");
        return NULL;
    }
    if (type == LUA_TSTRING)
        return "text/plain; charset=utf-8";
    b = ah_lua_push_buf(L, MAX_JSON);
    if (ah_lua_to_json(L, -2, b->mem, b, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    ah_buf_clear(b);
    return "application/json";
}

static void say_whole(lua_State *L, ah_hit *hit, int status)
{
    size_t n;
    const char *body = lua_tolstring(L, -1, &n);

    if (ah_hit_refusal(hit).status && n > REFUSAL_BODY)
        ah_lua_raise(L, AH_USAGE, "%s to a refused request may have %d bytes of body, found %d",
                     WHAT, REFUSAL_BODY, (int)n);
    ah_hit_begin(hit, status, (int64_t)n);
    if (!ah_hit_write(hit, (ah_slice){body, n}))
        ah_lua_raise_nomem(L);
    ah_hit_end(hit);
}

/* Returns the status of an answer that does not set one. */
static int usual_status(const ah_hit *hit)
{
    int refused = ah_hit_refusal(hit).status;

    return refused ? refused : 200;
}

static void answer_with_table(lua_State *L, int idx, ah_hit *hit)
{
    head h = {.status = usual_status(hit)};
    const char *type;
    bool typed;

    ah_options_read(L, idx, &ah_subject_server_answer, &h);
    typed = read_headers(L, idx, hit);
    type = push_body(L, idx);
    if (type && !typed)
        add_type(L, hit, type);
    say_whole(L, hit, h.status);
}

void ah_lua_answer(lua_State *L, int idx, ah_hit *hit)
{
    luaL_checkstack(L, 12, "an answer");
    idx = lua_absindex(L, idx);
    switch (lua_type(L, idx)) {
    case LUA_TTABLE:
        answer_with_table(L, idx, hit);
        return;
    case LUA_TNIL:
    case LUA_TNONE:
        if (ah_hit_refusal(hit).status)
            return;
        lua_pushliteral(L, "");
        say_whole(L, hit, 204);
        return;
    case LUA_TSTRING:
        add_type(L, hit, "text/plain; charset=utf-8");
        lua_pushvalue(L, idx);
        say_whole(L, hit, usual_status(hit));
        return;
    default:
        ah_lua_raise(L, AH_USAGE, "%s is { status, headers, body } or a text, found %s", WHAT,
                     luaL_typename(L, idx));
    }
}

void ah_lua_begin_answer(lua_State *L, int idx, ah_hit *hit, const char *type)
{
    head h = {.status = 200, .length = -1};
    bool typed = false;

    luaL_checkstack(L, 12, "an answer");
    if (!lua_isnoneornil(L, idx)) {
        ah_options_read(L, idx, &ah_subject_server_head, &h);
        typed = read_headers(L, idx, hit);
    }
    if (type && !typed)
        add_type(L, hit, type);
    ah_hit_begin(hit, h.status, (int64_t)h.length);
}

/* -- events ------------------------------------------------------------------------------------ */

typedef struct event {
    ah_slice name, data, id; /* .p NULL: not given */
    int retry;               /* -1: not given */
} event;

static const ah_option event_rows[] = {
    {.name = "event",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(event, name),
     .doc = "kind of the event, one line"},
    {.name = "data",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(event, data),
     .doc = "text of the event, of any number of lines"},
    {.name = "id",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(event, id),
     .doc = "one line; a client that reconnects sends the last one that it received"},
    {.name = "retry",
     .kinds = AH_OPT_INTEGER,
     .most = INT_MAX,
     .unit = "milliseconds",
     .to = AH_TO_INT(event, retry),
     .doc = "time after which a client that lost the connection reconnects"},
    {0},
};
const ah_subject ah_subject_server_event = {
    .what = "response:event", .type = "ah.ServerEvent", .row = event_rows};

static void put_field(ah_buf *b, const char *name, ah_slice value)
{
    ah_buf_fmt(b, "%s: ", name);
    ah_buf_put(b, value);
    ah_buf_char(b, '\n');
}

/* Appends a field of one line. */
static void put_line(lua_State *L, ah_buf *b, const char *name, ah_slice value)
{
    if (!value.p)
        return;
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] == '\n' || value.p[i] == '\r' || value.p[i] == '\0')
            ah_lua_raise(L, AH_USAGE, "response:event: %s must be one line", name);
    put_field(b, name, value);
}

/* Appends one field for each line of the data. */
static void put_data(ah_buf *b, ah_slice data)
{
    for (;;) {
        size_t n = 0;

        while (n < data.n && data.p[n] != '\n' && data.p[n] != '\r')
            n++;
        put_field(b, "data", (ah_slice){data.p, n});
        if (n == data.n)
            return;
        n += data.p[n] == '\r' && n + 1 < data.n && data.p[n + 1] == '\n' ? 2 : 1;
        data = (ah_slice){data.p + n, data.n - n};
    }
}

void ah_lua_push_sse(lua_State *L, int idx)
{
    event e = {.retry = -1};
    ah_buf *b;

    ah_options_read(L, idx, &ah_subject_server_event, &e);
    b = ah_lua_push_buf(L, MAX_EVENT);
    put_line(L, b, "event", e.name);
    put_line(L, b, "id", e.id);
    if (e.retry >= 0)
        ah_buf_fmt(b, "retry: %d\n", e.retry);
    if (e.data.p)
        put_data(b, e.data);
    ah_buf_char(b, '\n');
    if (!ah_buf_ok(b))
        ah_lua_raise(L, AH_USAGE, "response:event: the event is larger than %d MiB",
                     MAX_EVENT >> 20);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    ah_buf_clear(b);
}
