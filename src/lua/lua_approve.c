/* Approvals are asks: `approve` of the script decides first, then the front ends. The run gets the
 * verdict in a job of its own, so that a responder never calls into the middle of the run. */
#include "lua/lua_approve.h"

#include "lua/lua_ask.h"
#include "lua/lua_error.h"
#include "lua/lua_front.h"
#include "lua/lua_hooks.h"
#include "lua/lua_host.h"
#include "lua/lua_value.h"

enum { MAX_RESPONSE = 16 << 20 };

/* One call that waits for an approval. */
typedef struct approval {
    ah_lua *lua;
    ah_call *call;
    ah_ask_item *ask; /* NULL: closed */
    ah_recorded_ask recorded;
    ah_task *task;  /* `approve`, while it runs */
    ah_text *said;  /* the response; NULL: there is none */
    ah_text *words; /* reason of the refusal without a response */
    ah_job job;
    char where[AH_PLACE]; /* position of `approve` */
} approval;

static void free_approval(approval *a)
{
    a->call->task = NULL;
    ah_call_unpark(&a->recorded);
    ah_job_cancel(&a->job);
    ah_text_unref(a->said);
    ah_text_unref(a->words);
    ah_free(&a->lua->mem, a);
}

/* -- the verdict ---------------------------------------------------------------------------- */

/* Appends a text of a checked response, or nothing. */
static void unquote(ah_slice value, ah_buf *out)
{
    if (value.p)
        ah_json_string(value, out);
}

static void tell_run(ah_job *job)
{
    approval *a = (approval *)(void *)((char *)job - offsetof(approval, job));
    ah_task *late = a->task; /* another responder was faster */
    ah_slice said = ah_text_slice(a->said), args = ah_json_member(said, "arguments");
    bool yes = ah_slice_is(ah_json_member(said, "approved"), "true");
    ah_lua *h = a->lua;
    ah_call *call = a->call;
    ah_text *kept = a->said, *words = a->words;
    ah_buf why;

    a->said = a->words = NULL;
    free_approval(a);
    if (late)
        ah_task_stop(late);
    ah_buf_init(&why, &h->mem, MAX_RESPONSE);
    unquote(ah_json_member(said, "why"), &why);
    ah_call_approved(call, yes, args,
                     said.p  ? (ah_buf_ok(&why) ? ah_buf_slice(&why) : ah_slice_of("out of memory"))
                     : words ? ah_text_slice(words)
                             : ah_slice_of("out of memory"),
                     ah_host_now(h->host));
    ah_driver_run_wake(ah_run_owner(call->run));
    ah_buf_clear(&why);
    ah_text_unref(kept);
    ah_text_unref(words);
}

/* Makes the refusal for the model if no responder exists. */
static ah_text *no_responder(const approval *a)
{
    ah_slice reason = ah_text_slice(a->ask->question);
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, reason.n + 1024);
    ah_buf_put(&b, reason);
    ah_buf_str(&b, " (it needs an approval, and this run has neither `approve` nor a front end of "
                   "agent:on_ask; continue without this call)");
    ah_text_from_buf(&b, "why", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

static void closed(void *ud, const ah_ask_end *end)
{
    approval *a = ud;

    bool over = end->how == AH_ASK_CANCELLED || end->how == AH_ASK_PARKED; /* with its call */

    if (end->how == AH_ASK_ANSWERED)
        a->said = ah_text_new(&a->lua->mem, end->value); /* without memory: not approved */
    else if (!over)
        a->words = end->why.p ? ah_text_new(&a->lua->mem, end->why) : no_responder(a);
    if (!over)
        ah_call_asked(&a->recorded, end->how == AH_ASK_ANSWERED ? "response" : "declined",
                      end->value, end->by);
    a->ask = NULL;
    if (!over)
        ah_job_post(a->lua->host, &a->job);
}

static bool park(void *ud)
{
    return ah_call_park(&((approval *)ud)->recorded);
}

/* -- `approve` --------------------------------------------------------------------------------- */

/* Refuses the call, since `approve` failed without a decision. */
static void refuse(approval *a, const char *where, const ah_err *err)
{
    ah_ask_end end = {.how = AH_ASK_DENIED,
                      .why = AH_LIT("the approval function failed"),
                      .by = AH_LIT(AH_BY_SCRIPT)};
    char words[AH_MAX_MESSAGE + AH_PLACE + 64];

    ah_print(words, sizeof words, "%s: `approve` failed, and the call is not approved: %s", where,
             err->message);
    ah_run_warn(a->call->run, ah_slice_of(words));
    if (a->ask)
        ah_ask_close_as(a->ask, &end);
}

/* Results: true[, arguments or text]; false[, reason]; nil to ask the others. A table alone is no
 * decision. */
static void decided(ah_task *t, int nresults)
{
    lua_State *L = t->lua->caller;
    int first = lua_gettop(L) - nresults + 1;
    approval *a = t->ud;
    ah_status st;
    ah_buf *b;
    ah_err err;

    a->task = NULL;
    if (nresults == 0 || lua_isnil(L, first)) {
        t->told = true;
        if (a->ask)
            ah_lua_offer(a->lua, a->ask);
        return;
    }
    b = ah_lua_push_buf(L, MAX_RESPONSE);
    lua_insert(L, first);
    if (lua_istable(L, first + 1))
        st = ah_err_set(&err, AH_USAGE,
                        "it returns true and a table of other arguments, found a table alone");
    else
        st = ah_lua_read_response(L, AH_ASK_APPROVAL, first + 1, b, &err);
    t->told = true; /* nothing raises from here on */
    if (!a->ask)    /* a metamethod has let another responder decide */
        st = AH_OK;
    else if (st == AH_OK)
        st = ah_ask_respond(a->ask, ah_buf_slice(b), ah_slice_of(AH_BY_SCRIPT), &err);
    ah_buf_clear(b);
    if (st != AH_OK)
        refuse(a, a->where, &err);
}

static void failed(ah_task *t, const ah_err *err)
{
    approval *a = t->ud;
    char where[AH_PLACE];

    memcpy(where, a->where, sizeof where);
    ah_lua_where(t->co, where, sizeof where);
    a->task = NULL;
    if (a->ask)
        refuse(a, where, err);
}

/* (approval, approve): makes a task for approve { id, name, arguments, parent_call, reason, run,
 * result, changes } */
static int make_task(lua_State *L)
{
    approval *a = lua_touserdata(L, 1);
    const ah_ask_item *ask = a->ask; /* pinned: a finalizer may close it */
    ah_task *t;

    ah_lua_defined(L, 2, a->where, sizeof a->where);
    lua_pushlstring(L, ask->question->data, ask->question->len);
    lua_insert(L, 2);
    ah_lua_push_call(L, a->call, ah_text_slice(ask->args));
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "reason");
    lua_pushinteger(L, ah_run_cfg(a->call->run)->id);
    lua_setfield(L, -2, "run");
    ah_lua_set_shown(L, ask, true);
    t = ah_task_new(a->lua, L, 1, ah_run_owner(a->call->run));
    t->settled = decided;
    t->failed = failed;
    t->ud = a;
    a->task = t;
    return 0;
}

static void begin(approval *a, int approve)
{
    lua_State *L = a->lua->caller;
    ah_ask_item *ask = a->ask;
    ah_err err;

    ah_err_nomem(&err);
    ah_ask_pin(ask);
    if (lua_checkstack(L, 4)) {
        lua_pushcfunction(L, make_task);
        lua_pushlightuserdata(L, a);
        lua_rawgeti(L, LUA_REGISTRYINDEX, approve);
        ah_lua_call(a->lua, L, 2, 0, &err);
    }
    (void)ah_ask_unpin(ask);
    if (a->task && a->ask) /* the task exists, even if making it took too long */
        ah_task_begin(a->task);
    else if (a->ask)
        refuse(a, "approve", &err);
}

/* -- for the run ------------------------------------------------------------------------------- */

static ah_status open_ask(ah_lua *h, ah_call *call, ah_slice why, approval **out, ah_err *err)
{
    ah_ask_def def = {.kind = AH_ASK_APPROVAL,
                      .call = call,
                      .of = ah_run_owner(call->run),
                      .question = why,
                      .closed = closed,
                      .park = park};
    approval *a = ah_alloc(&h->mem, sizeof *a);
    ah_asked asked;
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    *a = (approval){.lua = h, .call = call, .job = {.fn = tell_run, .of = def.of}};
    def.ud = a;
    if ((st = ah_ask_open(h->host, &def, &a->ask, err)) != AH_OK) {
        ah_free(&h->mem, a);
        return st;
    }
    asked = (ah_asked){.kind = "approval", .question = why};
    if (a->ask->changes) /* its response has a schema of its own */
        asked.schema = ah_text_slice(a->ask->schema);
    ah_call_asks(call, &asked, &a->recorded);
    a->ask->recorded = a->recorded.number;
    call->task = a;
    *out = a;
    return AH_OK;
}

void ah_lua_approve(void *ud, ah_call *call, ah_slice why)
{
    const ah_lua_hooks *s = ud;
    approval *a = NULL;
    ah_err err;

    if (open_ask(s->lua, call, why, &a, &err) != AH_OK) {
        ah_call_approved(call, false, (ah_slice){NULL, 0}, ah_slice_of(err.message),
                         ah_host_now(s->lua->host));
        return;
    }
    ah_ask_tell(a->ask);
    if (a->ask && s->approve != LUA_NOREF)
        begin(a, s->approve);
    else if (a->ask)
        ah_lua_offer(a->lua, a->ask);
}

void ah_lua_stop_approving(void *ud, ah_call *call)
{
    ah_ask_end end = {.how = ah_run_unsettled(call->run) ? AH_ASK_PARKED : AH_ASK_CANCELLED};
    approval *a = call->task;
    ah_task *late;

    (void)ud;
    if (!a)
        return;
    if (a->ask)
        ah_ask_close_as(a->ask, &end);
    late = a->task;
    free_approval(a);
    if (late)
        ah_task_stop(late);
}
