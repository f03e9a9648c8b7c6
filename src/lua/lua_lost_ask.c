/* The ask is call->task while it is open. The run gets the response in a job, so that a responder
 * never calls into the middle of the run. */
#include "lua/lua_lost_ask.h"

#include "lua/lua_front.h"
#include "run/history.h"
#include "run/run.h"

enum { MAX_QUESTION = 2 << 20 };

static const char SCHEMA[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"happened\":{\"type\":\"boolean\",\"description\":\"true: the call has done its work\"},"
    "\"result\":{\"description\":\"the result of the call, if it has happened\"}},"
    "\"required\":[\"happened\"],\"additionalProperties\":false}";

typedef struct lost {
    ah_lua *lua;
    ah_call *call;
    ah_ask_item *ask; /* NULL: closed */
    ah_recorded_ask recorded;
    ah_text *said; /* the response; NULL: none */
    ah_job job;
} lost;

static void free_lost(lost *l)
{
    l->call->task = NULL;
    ah_call_unpark(&l->recorded);
    ah_job_cancel(&l->job);
    ah_text_unref(l->said);
    ah_free(&l->lua->mem, l);
}

/* Ends the search with the response (.p NULL: none). */
static void end(ah_lua *h, ah_call *call, ah_slice said)
{
    bool yes = ah_slice_is(ah_json_member(said, "happened"), "true");

    ah_call_found(call,
                  !said.p ? AH_FOUND_UNKNOWN
                  : yes   ? AH_FOUND_DONE
                          : AH_FOUND_UNDONE,
                  yes ? ah_json_member(said, "result") : (ah_slice){NULL, 0}, ah_host_now(h->host));
    ah_driver_run_wake(ah_run_owner(call->run));
}

static void tell_run(ah_job *job)
{
    lost *l = (lost *)(void *)((char *)job - offsetof(lost, job));
    ah_text *said = ah_text_ref(l->said);
    ah_call *call = l->call;
    ah_lua *h = l->lua;

    free_lost(l);
    end(h, call, ah_text_slice(said));
    ah_text_unref(said);
}

static void closed(void *ud, const ah_ask_end *how)
{
    lost *l = ud;

    l->ask = NULL;
    if (how->how == AH_ASK_CANCELLED || how->how == AH_ASK_PARKED) /* with its call */
        return;
    if (how->how == AH_ASK_ANSWERED)
        l->said = ah_text_new(&l->lua->mem, how->value); /* without memory: unknown */
    ah_call_asked(&l->recorded, l->said ? "response" : "declined", how->value, how->by);
    ah_job_post(l->lua->host, &l->job);
}

static bool park(void *ud)
{
    return ah_call_park(&((lost *)ud)->recorded);
}

static void put_question(const ah_call *call, ah_slice arguments, ah_buf *b)
{
    ah_buf_fmt(b, "The program ended while tool '%s' was at work. Has this call done its work? ",
               call->slot->name->data);
    ah_buf_put(b, arguments.p ? arguments : ah_slice_of("{}"));
}

static ah_status open_ask(lost *l, ah_slice question, ah_err *err)
{
    ah_ask_def def = {.kind = AH_ASK_QUESTION,
                      .call = l->call,
                      .of = ah_run_owner(l->call->run),
                      .question = question,
                      .closed = closed,
                      .park = park,
                      .ud = l};
    ah_status st = ah_ask_schema(l->lua->host, ah_slice_of(SCHEMA), &def.schema, err);

    if (st == AH_OK)
        st = ah_ask_open(l->lua->host, &def, &l->ask, err);
    ah_schema_unref(def.schema);
    return st;
}

/* Opens the ask and asks the front ends. */
static ah_status begin(lost *l, ah_slice arguments, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, &l->lua->mem, MAX_QUESTION);
    put_question(l->call, arguments, &b);
    st = ah_buf_ok(&b) ? open_ask(l, ah_buf_slice(&b), err) : ah_err_nomem(err);
    if (st == AH_OK) {
        ah_call_asks(l->call,
                     &(ah_asked){.kind = "lost",
                                 .question = ah_buf_slice(&b),
                                 .schema = ah_slice_of(SCHEMA)},
                     &l->recorded);
        l->ask->recorded = l->recorded.number;
        l->call->task = l;
        ah_ask_tell(l->ask);
    }
    ah_buf_clear(&b);
    return st;
}

/* True if an ask of an earlier process is closed. *response: .p NULL if it was declined. */
static bool was_closed(const ah_call *call, ah_slice *response)
{
    const ah_call_history *past = call->past;
    bool closed = past && past->ask && past->response &&
                  ah_json_string_is(ah_json_member(ah_text_slice(past->ask), "kind"), "lost");

    *response =
        closed ? ah_json_member(ah_text_slice(past->response), "response") : (ah_slice){NULL, 0};
    return closed;
}

void ah_lua_ask_lost(ah_lua *h, ah_call *call, ah_slice arguments)
{
    ah_slice before;
    lost *l = was_closed(call, &before) ? NULL : ah_alloc(&h->mem, sizeof *l);
    ah_err err;

    if (!l) {
        end(h, call, before);
        return;
    }
    *l = (lost){.lua = h, .call = call, .job = {.fn = tell_run, .of = ah_run_owner(call->run)}};
    if (begin(l, arguments, &err) != AH_OK) {
        ah_run_warn(call->run, ah_slice_of(err.message));
        free_lost(l);
        end(h, call, (ah_slice){NULL, 0});
    } else if (l->ask) {
        ah_lua_offer(h, l->ask);
    }
}

void ah_lua_stop_ask_lost(ah_call *call)
{
    ah_ask_end how = {.how = ah_run_unsettled(call->run) ? AH_ASK_PARKED : AH_ASK_CANCELLED};
    lost *l = call->task;

    if (!l)
        return;
    if (l->ask)
        ah_ask_close_as(l->ask, &how);
    free_lost(l);
}
