/* ahtest.wire_read, ahtest.wire_lower: the adapters of HTTP providers for the specs, without a run
 * and without a network.
 *
 *   wire_read(o) -> { entry = JSON | nil, text = shown so far, deltas = n, error = { code,
 *     message, status, retryable, details = JSON | "" } | nil, retry_after = ms }
 *   wire_lower(o, entries, ...) -> for each list of JSON entries, appended one after the
 *     other: { body = JSON, segments = { { kind, entry, bytes }, ... }, reason, at, url,
 *     headers = lines }
 *
 * o: provider ("openai"), model, base_url, key, stream, mode (of tool changes); for wire_read also
 * status, headers (lower-case names), body, cut (the body in two pieces), step (in pieces of so
 * many bytes), wall (ms). */
#include "support/ahtest.h"
#include "wire/lower.h"
#include "wire/prints.h"
#include "wire/providers.h"

#define PROBE "ahtest.wire"

typedef struct probe {
    ah_secrets secrets;
    ah_adapter *adapter;
    ah_transcript *transcript;
    ah_wire lowered;
    ah_assembly msg;
    ah_reader *reader;
    ah_text *entry;
    ah_buf shown;
    lua_Integer deltas;
    lua_State *L; /* its stack has the options at 1 and the headers at `headers` */
    int headers;
} probe;

static void drop(probe *p)
{
    if (p->reader)
        p->adapter->vt->close(p->reader);
    p->reader = NULL;
    ah_assembly_clear(&p->msg);
    ah_wire_clear(&p->lowered);
    ah_transcript_unref(p->transcript);
    p->transcript = NULL;
    ah_text_set(&p->entry, NULL);
    ah_adapter_unref(p->adapter);
    p->adapter = NULL;
    ah_secrets_clear(&p->secrets);
    ah_buf_clear(&p->shown);
}

static int clear(lua_State *L)
{
    drop(luaL_checkudata(L, 1, PROBE));
    return 0;
}

/* -- options ---------------------------------------------------------------------- */

static ah_slice text_option(lua_State *L, const char *name)
{
    ah_slice s = {NULL, 0};

    lua_getfield(L, 1, name);
    if (lua_type(L, -1) == LUA_TSTRING)
        s.p = lua_tolstring(L, -1, &s.n); /* the table keeps it alive */
    lua_pop(L, 1);
    return s;
}

static lua_Integer number_option(lua_State *L, const char *name, lua_Integer otherwise)
{
    lua_Integer n;

    lua_getfield(L, 1, name);
    n = luaL_optinteger(L, -1, otherwise);
    lua_pop(L, 1);
    return n;
}

static bool flag(lua_State *L, const char *name)
{
    bool is;

    lua_getfield(L, 1, name);
    is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

/* Reads the options at 1 and pushes a probe with an adapter. */
static probe *push_probe(lua_State *L)
{
    probe *p =
        (luaL_checktype(L, 1, LUA_TTABLE), lua_newuserdatauv(L, sizeof *p, 0)); /* -- probe */
    ah_provider_options o = {.mem = &ah_mem_libc, .secrets = &p->secrets};
    ah_slice model = text_option(L, "model"), provider = text_option(L, "provider");
    ah_slice own = text_option(L, "wire"); /* the member of a record, in place of the others */
    ah_err err;

    *p = (probe){.secrets.mem = &ah_mem_libc, .L = L};
    ah_buf_init(&p->shown, &ah_mem_libc, SIZE_MAX);
    if (luaL_newmetatable(L, PROBE)) { /* -- probe metatable */
        lua_pushcfunction(L, clear);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2); /* -- probe */
    o.base_url = text_option(L, "base_url");
    o.api_key = text_option(L, "key");
    o.stream = flag(L, "stream");
    if (!model.p)
        model = ah_slice_of("test");
    o.tool_change_mode = text_option(L, "mode");
    if (!provider.p)
        provider = ah_slice_of("openai");
    if (own.p ? ah_prints_adapter(&ah_mem_libc, &p->secrets, own, &p->adapter, &err) != AH_OK
              : ah_provider_open(provider, model, &o, &p->adapter, &err) != AH_OK)
        luaL_error(L, "%s", err.message);
    if (!(p->transcript = ah_transcript_new(&ah_mem_libc)))
        luaL_error(L, "not enough memory");
    return p;
}

/* -- reading ------------------------------------------------------------------------ */

static void on_delta(void *ud, ah_slice text)
{
    probe *p = ud;

    p->deltas++;
    ah_buf_put(&p->shown, text);
}

static ah_slice header(const void *ud, const char *name)
{
    const probe *p = ud;
    ah_slice s = {NULL, 0};

    if (lua_getfield(p->L, p->headers, name) == LUA_TSTRING)
        s.p = lua_tolstring(p->L, -1, &s.n);
    lua_pop(p->L, 1);
    return s;
}

static ah_status feed(lua_State *L, probe *p, ah_err *err)
{
    ah_slice body = text_option(L, "body");
    size_t step = (size_t)number_option(L, "step", 1 << 30);
    size_t n = (size_t)number_option(L, "cut", (lua_Integer)step);
    ah_status st = AH_OK;

    while (st == AH_OK && body.n) {
        if (n > body.n)
            n = body.n;
        st = p->adapter->vt->feed(p->reader, (ah_slice){body.p, n}, err);
        body = (ah_slice){body.p + n, body.n - n};
        n = step;
    }
    return st;
}

static ah_status read_answer(lua_State *L, probe *p, ah_err *err)
{
    const ah_adapter_vt *vt = p->adapter->vt;
    ah_response_head head = {.status = (int)number_option(L, "status", 200),
                             .header = header,
                             .ud = p,
                             .wall_ms = number_option(L, "wall", 0)};
    ah_origin origin = ah_adapter_origin(p->adapter);
    ah_status st = vt->open(p->adapter, &p->msg, &p->reader, err);

    if (st == AH_OK)
        st = vt->head_came(p->reader, &head, err);
    if (st == AH_OK)
        st = feed(L, p, err);
    if (st == AH_OK)
        st = vt->end(p->reader, err);
    if (st == AH_OK)
        st = ah_assembly_entry(&p->msg, p->transcript, &origin, 0, &p->entry, err);
    return st;
}

static void push_error(lua_State *L, ah_status st, const ah_err *err)
{
    lua_createtable(L, 0, 5);
    lua_pushstring(L, err->details);
    lua_setfield(L, -2, "details");
    lua_pushstring(L, ah_status_name(st));
    lua_setfield(L, -2, "code");
    lua_pushstring(L, err->message);
    lua_setfield(L, -2, "message");
    lua_pushinteger(L, err->http_status);
    lua_setfield(L, -2, "status");
    lua_pushboolean(L, err->retryable);
    lua_setfield(L, -2, "retryable");
}

static int wire_read(lua_State *L)
{
    probe *p = push_probe(L); /* -- o probe */
    ah_err err = {0};
    ah_status st;

    lua_getfield(L, 1, "headers");
    if (!lua_istable(L, -1))
        lua_newtable(L);
    p->headers = lua_gettop(L); /* -- o probe headers */
    ah_assembly_init(&p->msg, &ah_mem_libc, &p->secrets, on_delta, p);
    st = read_answer(L, p, &err);
    lua_createtable(L, 0, 5); /* -- o probe headers result */
    lua_pushlstring(L, p->shown.data ? p->shown.data : "", p->shown.len);
    lua_setfield(L, -2, "text");
    lua_pushinteger(L, p->deltas);
    lua_setfield(L, -2, "deltas");
    lua_pushinteger(L, p->reader ? p->reader->retry_after_ms : -1);
    lua_setfield(L, -2, "retry_after");
    if (st == AH_OK)
        lua_pushlstring(L, p->entry->data, p->entry->len);
    else
        push_error(L, st, &err);
    lua_setfield(L, -2, st == AH_OK ? "entry" : "error");
    drop(p); /* freed at once, as a spec may read a thousand times */
    return 1;
}

/* -- lowering ------------------------------------------------------------------------- */

static ah_entry_kind kind_of(lua_State *L, ah_slice json)
{
    ah_slice type = ah_json_member(json, "type");
    int k = 0;

    while (k < AH_ENTRY_KINDS && !ah_json_string_is(type, ah_entry_name((ah_entry_kind)k)))
        k++;
    if (k == AH_ENTRY_KINDS)
        luaL_error(L, "no entry: %s", json.p);
    return (ah_entry_kind)k;
}

static void add_entries(lua_State *L, probe *p, int list)
{
    ah_err err;

    for (lua_Integer i = 1, n = luaL_len(L, list); i <= n; i++) {
        ah_slice json;

        lua_geti(L, list, i);
        json.p = luaL_checklstring(L, -1, &json.n);
        if (ah_json_check_err(&ah_mem_libc, json, "an entry", &err) != AH_OK ||
            ah_transcript_add(p->transcript, kind_of(L, json), ah_text_new(&ah_mem_libc, json),
                              &err) != AH_OK)
            luaL_error(L, "%s", err.message);
        lua_pop(L, 1);
    }
}

static void push_body(lua_State *L, const ah_wire *w)
{
    ah_slice part[3];
    size_t n = ah_wire_body(w, part);

    for (size_t i = 0; i < n; i++)
        lua_pushlstring(L, part[i].n ? part[i].p : "", part[i].n);
    lua_concat(L, (int)n);
}

static void push_segment(lua_State *L, const ah_wire *w, const ah_segment *s)
{
    static const char *const kinds[] = {"tool", "system", "entry", "deferred"};
    const ah_buf *in = s->kind == AH_SEGMENT_ENTRY ? &w->body : &w->head;

    lua_createtable(L, 0, 3);
    lua_pushstring(L, kinds[s->kind]);
    lua_setfield(L, -2, "kind");
    lua_pushinteger(L, (lua_Integer)s->entry);
    lua_setfield(L, -2, "entry");
    lua_pushlstring(L, in->data + s->at, s->n);
    lua_setfield(L, -2, "bytes");
}

static void push_around(lua_State *L, const ah_wire *w)
{
    ah_http_request req = {0};
    ah_buf scratch;
    ah_err err;

    ah_buf_init(&scratch, &ah_mem_libc, 1 << 20);
    if (w->adapter->vt->request(w->adapter, w, &scratch, &req, &err) != AH_OK)
        luaL_error(L, "%s", err.message);
    lua_pushstring(L, req.url);
    lua_setfield(L, -2, "url");
    lua_createtable(L, (int)req.n_headers, 0); /* -- request headers */
    for (size_t i = 0; i < req.n_headers; i++) {
        lua_pushlstring(L, req.headers[i].p, req.headers[i].n);
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "headers");
    ah_buf_clear(&scratch);
}

/* The members of a record `request`. */
static void push_prints(lua_State *L, ah_wire *w)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, SIZE_MAX);
    ah_buf_str(&b, "{\"request\":0");
    ah_prints_put(w, &b, NULL);
    ah_buf_char(&b, '}');
    if (!ah_buf_ok(&b))
        luaL_error(L, "not enough memory");
    lua_pushlstring(L, b.data, b.len);
    lua_setfield(L, -2, "prints");
    ah_buf_clear(&b);
}

static void push_request(lua_State *L, ah_wire *w, ah_break brk, size_t entry)
{
    lua_createtable(L, 0, 7); /* -- request */
    push_body(L, w);
    lua_setfield(L, -2, "body");
    push_prints(L, w);
    if (w->adapter->vt->request)
        push_around(L, w);
    lua_createtable(L, (int)(w->n_head + w->n_body), 0); /* -- request segments */
    for (size_t i = 0; i < w->n_head + w->n_body; i++) {
        push_segment(L, w, &w->segment[i]);
        lua_seti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "segments"); /* -- request */
    if (brk == AH_BREAK_NONE)
        return;
    lua_pushstring(L, ah_break_name(brk));
    lua_setfield(L, -2, "reason");
    lua_pushinteger(L, (lua_Integer)entry);
    lua_setfield(L, -2, "at");
}

static int wire_lower(lua_State *L)
{
    int last = lua_gettop(L);
    probe *p = push_probe(L);
    ah_break brk;
    size_t entry = 0;
    ah_err err;

    luaL_checkstack(L, last + 8, "requests");
    ah_wire_init(&p->lowered, &ah_mem_libc, p->adapter, p->transcript);
    for (int i = 2; i <= last; i++) {
        add_entries(L, p, i);
        if (ah_wire_update(&p->lowered, &brk, &entry, &err) != AH_OK)
            return luaL_error(L, "%s", err.message);
        push_request(L, &p->lowered, brk, entry);
    }
    return last - 1;
}

void ahtest_open_wire(lua_State *L)
{
    lua_pushcfunction(L, wire_read);
    lua_setfield(L, -2, "wire_read");
    lua_pushcfunction(L, wire_lower);
    lua_setfield(L, -2, "wire_lower");
}
