/* ctx:ask: a handler waits for its ask as for any other event. The ask is closed with its call; a
 * later response fails with the error that it is over. */
#include "lua/lua_ask.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_front.h"
#include "lua/lua_hooks.h"
#include "lua/lua_now.h"
#include "lua/lua_schema.h"
#include "lua/lua_step.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"
#include "run/history.h"

static const char ASKER[] = "agenthost.asker", CALL[] = "agenthost.call";

enum { MAX_RESPONSE = 16 << 20, MOST_SECONDS = 1000000000 };

/* A wait for one response, in a userdata. */
typedef struct asker {
    ah_task_waiter waiter;
    ah_host *host;
    ah_ask_item *ask; /* NULL: not open yet, or over */
    ah_recorded_ask recorded;
    bool late; /* its time was over before this process opened it */
    ah_schema *schema;
    ah_text *value; /* the response or the default */
    ah_ask_how how;
    double timeout;
    char id[AH_ASK_ID];
} asker;

/* -- calls ------------------------------------------------------------------------------- */

void ah_lua_push_call(lua_State *L, const ah_call *call, ah_slice args)
{
    ah_slice parent = ah_text_slice(call->parent_call);

    lua_createtable(L, 0, 8);
    lua_pushlstring(L, call->slot->id->data, call->slot->id->len);
    lua_setfield(L, -2, "id");
    lua_pushlstring(L, call->slot->name->data, call->slot->name->len);
    lua_setfield(L, -2, "name");
    ah_lua_push_json(L, args);
    lua_setfield(L, -2, "arguments");
    if (parent.p) {
        lua_pushlstring(L, parent.p, parent.n);
        lua_setfield(L, -2, "parent_call");
    }
    luaL_setmetatable(L, CALL);
}

/* call:changes(); the list is the upvalue */
static int shown_changes(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

void ah_lua_set_shown(lua_State *L, const ah_ask_item *ask, bool method)
{
    if (!ask->changes)
        return;
    lua_pushlstring(L, ask->result->data, ask->result->len);
    lua_setfield(L, -2, "result");
    ah_lua_push_json(L, ah_text_slice(ask->changes));
    if (method)
        lua_pushcclosure(L, shown_changes, 1);
    lua_setfield(L, -2, "changes");
}

static int call_index(lua_State *L)
{
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";

    if (strcmp(key, "tool") == 0)
        return ah_lua_raise(L, AH_USAGE, "a call's tool is call.name");
    if (strcmp(key, "call_id") == 0)
        return ah_lua_raise(L, AH_USAGE, "a call's id is call.id");
    lua_pushnil(L);
    return 1;
}

/* -- responses ------------------------------------------------------------------------------ */

static ah_status refuse(lua_State *L, int idx, const char *before, ah_err *err)
{
    return ah_err_set(
        err, AH_USAGE,
        "an approval is true, or true and a table of other arguments; false, or false and "
        "why; found %s%s",
        before, luaL_typename(L, idx));
}

static void put_text(lua_State *L, int idx, ah_buf *out)
{
    ah_buf *why = ah_lua_push_buf(L, AH_MAX_REASON + 128);

    luaL_checkstack(L, 8, "a response");
    if (ah_lua_put_reason(L, idx, why)) {
        ah_buf_str(out, ",\"why\":");
        if (!ah_buf_ok(why))
            ah_lua_raise_nomem(L);
        ah_json_put_string(out, ah_buf_slice(why));
    }
    ah_buf_clear(why);
}

/* The first value is a boolean; later values never turn false into true. */
static ah_status read_approval(lua_State *L, int first, ah_buf *out, ah_err *err)
{
    bool yes = lua_toboolean(L, first);
    int second = lua_gettop(L) > first ? lua_type(L, first + 1) : LUA_TNIL;
    ah_status st = AH_OK;

    ah_buf_str(out, yes ? "{\"approved\":true" : "{\"approved\":false");
    if (yes && second == LUA_TTABLE) {
        ah_buf_str(out, ",\"arguments\":");
        st = ah_lua_to_json(L, first + 1, out->mem, out, err);
    } else if (!yes || second == LUA_TSTRING) {
        if (second != LUA_TNIL)
            put_text(L, first + 1, out);
    } else if (second != LUA_TNIL) {
        st = refuse(L, first + 1, "true and a ", err);
    }
    ah_buf_char(out, '}');
    return st;
}

ah_status ah_lua_read_response(lua_State *L, ah_ask_kind kind, int first, ah_buf *out, ah_err *err)
{
    int type = lua_type(L, first);
    ah_status st;

    if (kind == AH_ASK_APPROVAL && type == LUA_TBOOLEAN)
        st = read_approval(L, first, out, err);
    else if (kind == AH_ASK_APPROVAL && type != LUA_TTABLE)
        st = refuse(L, first, "a ", err);
    else
        st = ah_lua_to_json(L, first, out->mem, out, err);
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the response", err);
    return st;
}

/* -- ctx:ask --------------------------------------------------------------------------------- */

static void closed(void *ud, const ah_ask_end *end)
{
    bool response = end->how == AH_ASK_ANSWERED || end->how == AH_ASK_DEFAULTED;
    asker *w = ud;

    if (end->how == AH_ASK_CANCELLED || end->how == AH_ASK_PARKED)
        ah_call_unpark(&w->recorded);
    else
        ah_call_asked(&w->recorded, response ? "response" : "timeout", end->value, end->by);
    w->ask = NULL;
    w->how = end->how;
    if (end->value.p)
        w->value =
            ah_text_new(w->host->mem, end->value); /* without memory: NULL, which is reported */
    ah_task_waiter_done(&w->waiter);
}

/* Closes the ask when its call is over. */
static void leave(ah_task_waiter *waiter)
{
    asker *w = (asker *)(void *)((char *)waiter - offsetof(asker, waiter));
    ah_ask_end end = {.how = AH_ASK_CANCELLED};

    if (w->ask && w->recorded.number && ah_run_unsettled(w->recorded.call->run))
        end.how = AH_ASK_PARKED;
    if (w->ask)
        ah_ask_close_as(w->ask, &end);
}

/* An ask whose time was over before this process began ends by its timer. */
static bool park(void *ud)
{
    asker *w = ud;

    return w->late || ah_call_park(&w->recorded);
}

static int asker_gc(lua_State *L)
{
    asker *w = luaL_checkudata(L, 1, ASKER);

    if (w->ask) { /* only if the state is being closed: otherwise the wait keeps it */
        ah_call_unpark(&w->recorded);
        ah_ask_drop(w->ask);
    }
    w->ask = NULL;
    ah_schema_unref(w->schema);
    w->schema = NULL;
    ah_text_set(&w->value, NULL);
    return 0;
}

static void read_schema(lua_State *L, asker *w)
{
    ah_schema_options options = {.cache = &w->host->schemas};
    ah_err err;

    ah_lua_read_params(L, 2, "ctx:ask", w->host->mem, &w->schema);
    if (!w->schema && ah_schema_compile_with(w->host->mem, ah_slice_of("{\"type\":\"string\"}"),
                                             &options, &w->schema, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* Pushes and returns the default as the schema completes it; .p NULL: none. */
static ah_slice read_default(lua_State *L, asker *w)
{
    const ah_check_options options = {.extra = AH_EXTRA_FORBID, .empty_lists = true};
    ah_buf *json = ah_lua_push_buf(L, MAX_RESPONSE), *full = ah_lua_push_buf(L, MAX_RESPONSE),
           *words = ah_lua_push_buf(L, AH_MAX_MESSAGE / 2);
    ah_faults faults;
    ah_status st;
    ah_err err;

    if (lua_getfield(L, 2, "default") == LUA_TNIL)
        return (ah_slice){NULL, 0};
    if (ah_lua_to_json(L, -1, json->mem, json, &err) != AH_OK)
        ah_lua_raise(L, AH_USAGE, "ctx:ask: default: %s", err.message);
    if (!ah_buf_ok(json))
        ah_lua_raise_nomem(L);
    ah_faults_init(&faults, json->mem);
    st = ah_schema_check_with(w->schema, ah_buf_slice(json), &options, &faults, full);
    if (st == AH_OK && faults.n)
        ah_faults_print(&faults, words);
    ah_faults_clear(&faults);
    if (st != AH_OK || !ah_buf_cut_short(words))
        ah_lua_raise_nomem(L);
    if (words->len)
        ah_lua_raise(L, AH_USAGE, "ctx:ask: the default does not match the schema: %.*s",
                     AH_FMT(ah_buf_slice(words)));
    return ah_buf_slice(full->len ? full : json);
}

typedef struct ask_fields {
    ah_slice question;
    double timeout;
    bool secret;
} ask_fields;

static const ah_option ask_rows[] = {
    {.name = "question",
     .kinds = AH_OPT_STRING,
     .needed = true,
     .to = AH_TO_HELD(ask_fields, question),
     .doc = "the text for the person"},
    {.name = "schema",
     .kinds = AH_OPT_ANY,
     .is = "table, string or schema",
     .type = "table|string|ah.Schema",
     .doc = "JSON Schema of the response; by default a string"},
    {.name = "params",
     .kinds = AH_OPT_ANY,
     .is = "table",
     .type = "table<string, any>",
     .doc = "several values at once, in [short form](tool.md#short-forms); in place of `schema`"},
    {.name = "default",
     .kinds = AH_OPT_ANY,
     .is = "any",
     .type = "any",
     .doc = "the response if there is no other; must match the schema"},
    {.name = "timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .most = MOST_SECONDS,
     .unit = "seconds",
     .is = "number of seconds",
     .to = AH_TO_DOUBLE(ask_fields, timeout),
     .doc = "after this time the response is the default; without one, the ask fails. The "
            "`timeout` of the tool still applies"},
    {.name = "secret",
     .kinds = AH_OPT_BOOLEAN,
     .to = AH_TO_BOOL(ask_fields, secret),
     .doc =
         "true: the response (such as a password) and the default appear in no event and no log"},
    {0},
};
const ah_subject ah_subject_ask = {
    .what = "ctx:ask", .type = "ah.AskConfig", .doc = "of a person", .row = ask_rows};

static void read_ask(lua_State *L, asker *w, ah_ask_def *def)
{
    ask_fields f = {.timeout = w->timeout};

    ah_options_read(L, 2, &ah_subject_ask, &f);
    def->question = f.question;
    def->secret = f.secret;
    w->timeout = f.timeout;
    if (!def->question.n)
        ah_lua_raise(L, AH_USAGE,
                     "ctx:ask: field 'question' is empty: it says what a person is asked");
    if (!ah_utf8_valid(def->question))
        ah_lua_raise(L, AH_USAGE, "ctx:ask: field 'question' is not UTF-8");
    read_schema(L, w);
    def->otherwise = read_default(L, w);
    def->schema = w->schema;
    def->timeout_ms = ah_ms_of(w->timeout);
}

/* -- nil err */
static int fail(lua_State *L, const asker *w)
{
    ah_err err;

    if (w->how == AH_ASK_TIMEOUT)
        ah_err_set(&err, AH_DEADLINE, "no response to %s within %g seconds", w->id, w->timeout);
    else if (w->how == AH_ASK_DENIED)
        ah_err_set(&err, AH_WAITING,
                   "no front end can respond to %s: give the run `asks = function(ask)`, attach a "
                   "front end with agent:on_ask, or give the ask a default",
                   w->id);
    else
        ah_err_set(&err, AH_CANCELLED, "%s was cancelled", w->id);
    err.phase = AH_PHASE_TOOL;
    if (w->how == AH_ASK_DENIED)
        ah_print(err.details, sizeof err.details, "{\"asks\":[\"%s\"]}", w->id);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    asker *w = luaL_checkudata(L, (int)ctx, ASKER);

    (void)status;
    if (w->how != AH_ASK_ANSWERED && w->how != AH_ASK_DEFAULTED)
        return fail(L, w);
    if (!w->value)
        return ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_text_slice(w->value));
    ah_text_set(&w->value, NULL);
    return 1;
}

/* -- in a durable handler: the ask is that of a step, which is in the journal -- */

/* Returns what an earlier process recorded of the step's ask, or NULL. */
static const ah_step_history *history_of(const ah_call *call, const ah_text *step)
{
    return call->past && step ? ah_call_history_step(call->past, ah_text_slice(step)) : NULL;
}

static int push_declined(lua_State *L)
{
    ah_err err;

    ah_err_set(&err, AH_CANCELLED, "the ask was declined: the user has said something else");
    err.phase = AH_PHASE_TOOL;
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

/* Pushes the response that was recorded while no process was at work, or nil and an error. Returns
 * the number of values; 0: there is none. */
static int push_response(lua_State *L, const ah_step_history *past)
{
    ah_slice closed = past && past->ask ? ah_text_slice(past->response) : (ah_slice){NULL, 0};
    ah_slice response = ah_json_member(closed, "response");

    if (response.p)
        ah_lua_push_json(L, response);
    else if (ah_json_string_is(ah_json_member(closed, "how"), "declined"))
        return push_declined(L);
    return response.p != NULL;
}

/* Returns the recorded end of the ask's time, ms since the epoch; 0: none is recorded. */
static int64_t recorded_until(const ah_step_history *past)
{
    ah_slice until = past ? ah_json_member(ah_text_slice(past->ask), "until") : (ah_slice){0};
    ah_json_num n;

    return until.p && ah_json_number(until, &n) && n.is_int ? n.i : 0;
}

/* Records the ask. Its time runs from its first opening, in whichever process that was. */
static void record(asker *w, const ah_ask_def *def, const ah_text *step)
{
    ah_asked asked = {.kind = "question",
                      .question = def->question,
                      .schema = ah_text_slice(w->ask->schema),
                      .otherwise = def->otherwise,
                      .step = ah_text_slice(step)};

    if (def->timeout_ms)
        asked.until = ah_host_wall(w->host) + def->timeout_ms;
    ah_call_asks(def->call, &asked, &w->recorded);
    w->ask->recorded = w->recorded.number;
}

/* Sets the time that is left for the ask. */
static void set_time(asker *w, ah_ask_def *def, const ah_step_history *past)
{
    int64_t until = recorded_until(past), now = ah_host_wall(w->host);

    w->late = until && until <= now;
    if (until)
        def->timeout_ms = until > now ? until - now : 1;
}

int ah_lua_ctx_ask(lua_State *L)
{
    ah_call *call = ah_lua_check_call(L, 1);
    ah_lua *h = ah_lua_of(L);
    ah_ask_def def = {.kind = AH_ASK_QUESTION, .call = call, .closed = closed};
    const ah_text *step = ah_lua_step_key(L, 3);
    const ah_step_history *past = history_of(call, step);
    int n = push_response(L, past);
    asker *w;
    ah_err err;

    if (n)
        return n;
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    if (ah_lua_durable(L))
        return ah_lua_through_step(L, "ask", ah_lua_ctx_ask);
    w = lua_newuserdatauv(L, sizeof *w, 0);
    *w = (asker){.waiter.leave = leave, .host = h->host};
    luaL_setmetatable(L, ASKER);
    w->recorded.call = call;
    read_ask(L, w, &def);
    set_time(w, &def, past);
    def.park = step ? park : NULL;
    ah_lua_can_await(L);
    def.of = h->running ? h->running->job.of : ah_run_owner(call->run);
    def.ud = w;
    w->waiter.within = def.of;
    lua_pushvalue(L, 3);
    ah_task_waiter_keep(L, &w->waiter);
    if (ah_ask_open(h->host, &def, &w->ask, &err) != AH_OK) {
        ah_task_waiter_done(&w->waiter);
        return ah_lua_raise_err(L, &err);
    }
    memcpy(w->id, w->ask->id, sizeof w->id);
    if (step)
        record(w, &def, step);
    ah_ask_tell(w->ask);
    if (w->ask)
        ah_lua_offer(h, w->ask);
    return ah_lua_await(L, &w->waiter, 3, finish);
}

void ah_lua_open_ask(lua_State *L)
{
    static const luaL_Reg asker_meta[] = {{"__gc", asker_gc}, {NULL, NULL}};
    static const luaL_Reg call_meta[] = {{"__index", call_index}, {NULL, NULL}};

    luaL_newmetatable(L, ASKER);
    luaL_setfuncs(L, asker_meta, 0);
    luaL_newmetatable(L, CALL);
    luaL_setfuncs(L, call_meta, 0);
    lua_pop(L, 2);
}
