/* Asks of recorded calls, and runs that wait for responses from beyond their process: such a run
 * ends with AH_WAITING, its turn stays open in the journal, and a later run goes on with it.
 * Borrows the asks, which are in the memory of their owners. */
#include "run/run_state.h"
#include "run/said.h"
#include "run/step.h"

enum { MAX_DIGITS = 24 };

static const ah_slice nothing = {NULL, 0};

/* -- asks ------------------------------------------------------------------------------------- */

/* Returns the record of the ask that an earlier process opened for this, and that is open; .p NULL:
 * none. */
static ah_slice open_before(const ah_call *c, const ah_asked *asked)
{
    const ah_call_history *past = c->past;
    const ah_step_history *step = NULL;
    ah_slice ask = nothing;

    if (past && asked->step.p && (step = ah_call_history_step(past, asked->step)) &&
        !step->response)
        return ah_text_slice(step->ask);
    if (past && !asked->step.p && !past->response)
        ask = ah_text_slice(past->ask);
    return ask.p && ah_json_string_is(ah_json_member(ask, "kind"), asked->kind) ? ask : nothing;
}

/* Returns the number in an ask's record; 0: it has none. */
static int64_t number_of(ah_slice ask)
{
    ah_slice id = ah_json_member(ask, "ask");
    int64_t n = 0;

    if (ah_json_kind_of(id) != AH_JSON_STRING || id.n > MAX_DIGITS - 4)
        return 0;
    id = ah_json_inside(id);
    for (size_t i = 0; i < id.n; i++) {
        if (id.p[i] < '0' || id.p[i] > '9')
            return 0;
        n = n * 10 + (id.p[i] - '0');
    }
    return n;
}

static void put(ah_run *run, ah_record_kind kind, ah_buf *b, ah_slice kept)
{
    ah_buf_char(b, '}');
    ah_recorder_put(run->recorder, kind, b, kept);
    ah_buf_clear(b);
}

/* Appends what an approval is about. */
static void put_about(ah_run *run, const ah_call *c, ah_buf *b)
{
    char hash[AH_CALL_HASH];

    if (c->tool) {
        ah_call_definition(c->tool, hash);
        ah_json_add_string(b, "definition", ah_slice_of(hash));
    } else if (c->state != AH_CALL_SHOWN) {
        return;
    }
    if (ah_call_about(c, hash))
        ah_json_add_string(b, "about", ah_slice_of(hash));
    else
        run->recorder->broken = AH_NOMEM;
    ah_json_add_name(b, "arguments");
    ah_said_args(c, b);
    if (c->state == AH_CALL_SHOWN)
        ah_json_add_string(b, "result", ah_text_slice(c->content));
}

/* Appends the changes that an approval is about; nothing for another ask. */
static void put_changes(const ah_call *c, ah_buf *out)
{
    if (c->state == AH_CALL_SHOWN)
        ah_buf_fmt(out, "{\"changes\":%.*s}", AH_FMT(ah_text_slice(c->shown)));
}

static void record_close(ah_run *run, int64_t number, const char *how, ah_slice response,
                         ah_slice by)
{
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(&b, "{\"ask\":\"%lld\",\"how\":\"%s\"", (long long)number, how);
    ah_json_add(&b, "response", response);
    ah_json_add_string(&b, "by", by);
    put(run, AH_RECORD_ASK_CLOSED, &b, nothing);
}

static void record_ask(ah_run *run, const ah_asked *asked, const ah_recorded_ask *ask)
{
    ah_buf b, kept;

    ah_buf_init(&b, run->cfg.mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&kept, run->cfg.mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(&b, "{\"ask\":\"%lld\",\"call\":%zu,\"kind\":\"%s\"", (long long)ask->number,
               ask->call->at, asked->kind);
    ah_json_add_string(&b, "question", asked->question);
    ah_json_add(&b, "schema", asked->schema);
    ah_json_add(&b, "default", asked->otherwise);
    ah_json_add_string(&b, "step", asked->step);
    if (asked->until)
        ah_json_add_int(&b, "until", asked->until);
    if (!asked->step.p)
        put_about(run, ask->call, &b);
    put_changes(ask->call, &kept);
    if (!ah_buf_ok(&kept))
        run->recorder->broken = AH_NOMEM;
    put(run, AH_RECORD_ASK, &b, kept.len ? ah_buf_slice(&kept) : nothing);
    ah_buf_clear(&kept);
}

void ah_call_asks(ah_call *call, const ah_asked *asked, ah_recorded_ask *out)
{
    ah_run *run = call->run;
    ah_slice before;

    *out = (ah_recorded_ask){.call = call};
    if (!ah_recorder_on(run->recorder) || !run->number)
        return;
    before = open_before(call, asked);
    if (before.p && (asked->step.p || ah_resume_is_about(call, before))) {
        out->number = number_of(before);
        return;
    }
    if (before.p)
        record_close(run, number_of(before), "renewed", nothing, nothing);
    out->number = ++run->recorder->asks;
    record_ask(run, asked, out);
}

void ah_call_asked(ah_recorded_ask *ask, const char *how, ah_slice response, ah_slice by)
{
    ah_run *run = ask->call->run;

    ah_call_unpark(ask);
    if (ask->number && ah_recorder_on(run->recorder) && !run->unsettled)
        record_close(run, ask->number, how, response, by);
    ask->number = 0;
}

/* -- parking ---------------------------------------------------------------------------------- */

bool ah_call_park(ah_recorded_ask *ask)
{
    ah_call *c = ask->call;
    ah_run *run = c->run;

    if (!ask->number || run->cancel || ask->parked)
        return ask->parked;
    if (c->lost || (c->state == AH_CALL_RUNNING && !c->tool->durable))
        return false;
    ask->parked = true;
    ask->next = run->parked;
    ask->link = &run->parked;
    if (ask->next)
        ask->next->link = &ask->next;
    run->parked = ask;
    if (run->wake)
        run->wake(run->owner);
    return true;
}

void ah_run_look_again(ah_run *run)
{
    if (run->parked && run->wake)
        run->wake(run->owner);
}

void ah_call_unpark(ah_recorded_ask *ask)
{
    if (!ask->parked)
        return;
    *ask->link = ask->next;
    if (ask->next)
        ask->next->link = ask->link;
    ask->parked = false;
}

static bool is_parked(const ah_run *run, const ah_call *c)
{
    const ah_recorded_ask *a = run->parked;

    while (a && a->call != c)
        a = a->next;
    return a != NULL;
}

/* True if each call at work waits for a response, and no other may begin. */
static bool waits(const ah_run *run)
{
    if (ah_turn_may_begin(run))
        return false;
    for (size_t i = run->batch; i < run->next; i++) {
        const ah_call *c = &run->call[i];
        bool at_work = c->state != AH_CALL_WAITING && c->state != AH_CALL_ANSWERED;

        if (at_work && (!is_parked(run, c) || (c->steps && ah_steps_at_work(c->steps))))
            return false;
    }
    return true;
}

/* Appends the numbers of the asks as strings, the oldest first. */
static void put_asks(const ah_run *run, ah_buf *b)
{
    int64_t last = 0, next;

    for (size_t n = 0;; n++, last = next) {
        next = 0;
        for (const ah_recorded_ask *a = run->parked; a; a = a->next)
            if (a->number > last && (!next || a->number < next))
                next = a->number;
        if (!next)
            return;
        ah_buf_fmt(b, "%s\"%lld\"", n ? "," : "", (long long)next);
    }
}

static void record_parked(ah_run *run)
{
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, AH_STORE_MAX_RECORD);
    ah_buf_str(&b, "{\"asks\":[");
    put_asks(run, &b);
    ah_buf_char(&b, ']');
    put(run, AH_RECORD_PARKED, &b, nothing);
}

static void say_waiting(const ah_run *run, ah_err *err)
{
    const ah_recorder *r = run->recorder;
    const char *stream = r->stream ? r->stream->data : "";
    size_t n = 0;

    for (const ah_recorded_ask *a = run->parked; a; a = a->next)
        n++;
    if (r->store.p)
        ah_err_set(err, AH_WAITING,
                   "conversation '%s' waits for %zu response%s: `agenthost asks --store '%.*s'` "
                   "shows what to respond to, and how",
                   stream, n, n == 1 ? "" : "s", AH_FMT(r->store));
    else
        ah_err_set(err, AH_WAITING,
                   "conversation '%s' waits for %zu response%s: store:asks() lists what to respond "
                   "to by store:respond()",
                   stream, n, n == 1 ? "" : "s");
}

static void tell_waiting(ah_run *run)
{
    ah_err *err = &run->result.err;
    ah_buf b;

    say_waiting(run, err);
    err->phase = AH_PHASE_TOOL;
    ah_buf_init(&b, run->cfg.mem, sizeof err->details - 1);
    ah_buf_str(&b, "{\"asks\":[");
    put_asks(run, &b);
    ah_buf_str(&b, "]}");
    if (ah_buf_ok(&b)) {
        memcpy(err->details, b.data, b.len);
        err->details[b.len] = '\0';
    }
    ah_buf_clear(&b);
}

bool ah_run_park(ah_run *run)
{
    if (!waits(run))
        return false;
    record_parked(run);
    tell_waiting(run);
    run->unsettled = true;
    ah_run_fail(run);
    return true;
}
