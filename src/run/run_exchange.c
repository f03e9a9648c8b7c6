/* One exchange with a model: opened within the budget, fed, ended, and repeated if its failure may
 * pass. run.c handles the answer, the adapter makes the bytes, and the driver sends them. */
#include "run/run_state.h"

#include <inttypes.h>
#include <stdio.h>

enum { FIRST_DELAY_MS = 500, LONGEST_DELAY_MS = 8000 };

/* "provider/model", as prices name it. */
static ah_slice name_in(const ah_model_settings *s)
{
    return s->model.n >= 2 ? ah_json_inside(s->model) : (ah_slice){"", 0};
}

/* Of the request that is at work. */
static ah_slice model_name(const ah_run *run)
{
    return name_in(&run->cfg.wire->settings);
}

/* True if the request can have reached a model, which may have been paid for then. */
static bool may_have_cost(const ah_run *run)
{
    static const char *const before[] = {"refused", "dns", "tls", "timeout_connect", "proxy"};
    const ah_err *err = &run->result.err;
    ah_slice reason = ah_json_detail_of(err, "reason");

    if (run->want[AH_NEED_EXCHANGE].raised || run->state == RUN_PLACING) /* it is not sent yet */
        return false;
    if (run->msg.pieces || run->msg.usage.known) /* an error may end an answer that had begun */
        return true;
    if (err->http_status >= 300 || (run->reader && run->reader->status >= 300) ||
        err->status == AH_USAGE)
        return false;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (ah_slice_is(reason, before[i]))
            return false;
    return true;
}

static void close_reader(ah_run *run)
{
    if (run->reader)
        run->cfg.adapter->vt->close(run->reader);
    run->reader = NULL;
    run->exchange = 0;
    ah_assembly_clear(&run->msg);
}

/* Counts an answer that was cut off: it is billed, and its cost is unknown. */
static void count_cut(ah_run *run)
{
    const ah_spent cut = {.usage = {.unpriced = 1}, .cut = true};
    bool begun = run->msg.pieces || run->msg.usage.known;

    if (!run->cfg.spending.in_flight || !begun || !run->cfg.adapter->billed)
        return;
    run->result.usage.unpriced++;
    for (size_t i = 0; i < run->cfg.spending.n; i++)
        ah_spent_add(&run->cfg.spending.draw[i].budget->counted, &cut);
}

/* Nothing, if it was settled. */
static void give_back(ah_run *run)
{
    count_cut(run);
    ah_budgets_leave(&run->cfg.spending);
    ah_budgets_drop(&run->cfg.spending, model_name(run), run->cfg.adapter,
                    may_have_cost(run) ? &run->msg.usage : NULL);
}

void ah_run_close_exchange(ah_run *run)
{
    give_back(run);
    close_reader(run);
}

void ah_run_stop_exchange(ah_run *run)
{
    give_back(run); /* while it shows if the request was sent */
    if (run->exchange)
        ah_run_end_need(run, AH_NEED_EXCHANGE,
                        (ah_need){.kind = AH_NEED_STOP_EXCHANGE, .id = run->exchange});
    close_reader(run);
}

static void on_delta(void *ud, ah_slice text)
{
    EMIT((ah_run *)ud, AH_EVENT_CONTENT, AH_F_STR("text", text));
}

static void note_break(ah_run *run, ah_break brk, size_t entry)
{
    if (brk == AH_BREAK_NONE)
        return;
    ah_budgets_forget(&run->cfg.spending); /* costs reported for the conversation start anew */
    run->owed = 0;
    ah_metric_add(run->cfg.metrics, AH_METRIC_CACHE_BREAKS, 1);
    ah_log_put(run->cfg.log, AH_LOG_DEBUG, "cache break: %s by entry %zu", ah_break_name(brk),
               entry);
    EMIT(run, AH_EVENT_CACHE_BREAK, AH_F_STR("reason", ah_slice_of(ah_break_name(brk))),
         AH_F_INT("entry", entry));
}

static ah_status open_exchange(ah_run *run)
{
    const ah_adapter *a = run->cfg.adapter;
    ah_err *err = &run->result.err;
    ah_break brk = AH_BREAK_NONE;
    size_t entry = 0;
    ah_status st = ah_wire_update(run->cfg.wire, &brk, &entry, err);

    if (st != AH_OK)
        return st;
    note_break(run, brk, entry);
    run->shows = run->cfg.wants_content && run->cfg.wants_content(run->cfg.on_ud);
    ah_assembly_init(&run->msg, run->cfg.mem, run->cfg.secrets, run->shows ? on_delta : NULL, run);
    ah_buf_reset(&run->heard, 0);
    run->msg.dispatched = run->cfg.wire->mode == AH_TOOLS_DISPATCHER;
    return a->vt->open(a, &run->msg, &run->reader, err);
}

enum { BYTES_PER_TOKEN = 4 }; /* for estimates */

/* An exchange of a run around this one that is not over would wait for this one, whatever it has
 * reserved. */
static bool may_wait(const ah_run *run)
{
    for (const ah_run *r = run->cfg.around; r; r = r->cfg.around)
        if (r->exchange)
            return false;
    return true;
}

static ah_demand demand(const ah_run *run, size_t bytes)
{
    const ah_wire *w = run->cfg.wire;
    ah_json_num most = {0};

    ah_json_number(w->settings.options.max_tokens, &most);
    return (ah_demand){.model = model_name(run),
                       .adapter = run->cfg.adapter,
                       .input = (int64_t)(bytes / BYTES_PER_TOKEN),
                       .output = most.is_int && most.i > 0 ? most.i : 0,
                       .most_input = ah_wire_most_input(w),
                       .most_output = ah_wire_most_output(w),
                       .waits = may_wait(run),
                       .now = run->now};
}

/* The phase of the error says whether it comes before a request or after. */
static ah_status judged(ah_run *run, ah_status st, ah_phase phase)
{
    if (st != AH_OK)
        run->result.err.phase = phase;
    return st;
}

ah_status ah_run_check_budget(ah_run *run)
{
    return judged(run, ah_budgets_check(&run->cfg.spending, NULL, &run->result.err),
                  AH_PHASE_RESPONSE);
}

static ah_status look_ahead(ah_run *run)
{
    ah_demand next = {.model = name_in(&run->cfg.transcript->settings),
                      .adapter = run->cfg.adapter};

    return judged(run, ah_budgets_check(&run->cfg.spending, &next, &run->result.err),
                  AH_PHASE_REQUEST);
}

static size_t body_bytes(const ah_run *run)
{
    ah_slice body[3];
    size_t bytes = 0, n = ah_wire_body(run->cfg.wire, body);

    for (size_t i = 0; i < n; i++)
        bytes += body[i].n;
    return bytes;
}

static void send(ah_run *run, size_t bytes)
{
    run->exchange = ++run->last_id;
    run->state = RUN_EXCHANGING;
    ah_metric_add(run->cfg.metrics, AH_METRIC_REQUESTS, 1);
    ah_record_request(run);
    ah_run_raise(run, (ah_need){.kind = AH_NEED_EXCHANGE, .id = run->exchange});
    ah_log_put(run->cfg.log, AH_LOG_DEBUG, "request %d to %s/%s: %zu bytes",
               run->result.iterations + 1, run->cfg.adapter->provider->data,
               run->cfg.adapter->model->data, bytes);
    EMIT(run, AH_EVENT_REQUEST, AH_F_INT("iteration", run->result.iterations + 1),
         AH_F_INT("attempt", run->attempt + 1), AH_F_INT("bytes", bytes));
}

/* The request is made anew once its turn has come. */
static void queue(ah_run *run)
{
    close_reader(run);
    if (run->state == RUN_QUEUED)
        return;
    run->state = RUN_QUEUED;
    run->queued = run->now;
    ah_log_put(run->cfg.log, AH_LOG_DEBUG, "waiting for room in a budget");
}

static void count_wait(ah_run *run)
{
    ah_metric_add(run->cfg.metrics, AH_METRIC_QUEUED, 1);
    ah_metric_add(run->cfg.metrics, AH_METRIC_QUEUED_MS, run->now - run->queued);
}

/* The budget has room. */
static void tell_waited(ah_run *run)
{
    if (run->state != RUN_QUEUED)
        return;
    count_wait(run);
    EMIT(run, AH_EVENT_QUEUED, AH_F_STR("reason", ah_slice_of("budget")),
         AH_F_NUM("seconds", (double)(run->now - run->queued) / 1000));
}

/* The request is made, and holds what it may use of the budgets; it goes out once its lane has a
 * place. */
static void ask_for_place(ah_run *run, int64_t tokens)
{
    tell_waited(run);
    run->state = RUN_PLACING;
    run->placed = false;
    run->wait = (ah_run_wait){0};
    run->queued = run->now;
    ah_run_raise(run, (ah_need){.kind = AH_NEED_PLACE,
                                .tokens = tokens > run->cached ? tokens - run->cached : 1,
                                .tries = run->attempt});
}

void ah_run_waits(ah_run *run, const char *reason, double seconds, bool limit)
{
    run->wait = (ah_run_wait){.reason = reason, .seconds = seconds, .limit = limit};
}

void ah_run_placed(ah_run *run)
{
    run->placed = true;
}

/* The wait for a place begins. */
static void tell_waits(ah_run *run)
{
    const ah_run_wait *w = &run->wait;
    bool known = w->seconds >= 0;

    run->wait.told = true;
    if (w->limit) {
        ah_log_put(run->cfg.log, AH_LOG_INFO, "waiting %.1f s: a limit of %s is used up",
                   w->seconds, run->cfg.adapter->provider->data);
        EMIT(run, AH_EVENT_RATE_LIMIT, AH_F_NUM("delay", w->seconds));
    }
    EMIT_SOME(run, AH_EVENT_QUEUED, known ? 2 : 1, AH_F_STR("reason", ah_slice_of(w->reason)),
              AH_F_NUM("seconds", w->seconds));
}

void ah_run_leave_queue(ah_run *run)
{
    if (run->wait.reason)
        count_wait(run);
    run->wait = (ah_run_wait){0};
}

bool ah_run_place(ah_run *run)
{
    if (run->placed) {
        ah_run_leave_queue(run);
        ah_budgets_sent(&run->cfg.spending);
        send(run, body_bytes(run));
        return true;
    }
    if (run->wait.reason && !run->wait.told)
        tell_waits(run);
    return false;
}

void ah_run_start_exchange(ah_run *run)
{
    bool waits = false;
    ah_demand d;

    if (ah_run_must_end(run))
        return;
    ah_run_take_adapter(run);
    if (look_ahead(run) != AH_OK || open_exchange(run) != AH_OK) {
        ah_run_fail(run);
        return;
    }
    if (ah_run_must_end(run)) { /* lowering a long conversation takes time, and so may observers */
        ah_run_close_exchange(run);
        return;
    }
    d = demand(run, body_bytes(run));
    if (judged(run, ah_budgets_begin(&run->cfg.spending, &d, &waits, &run->result.err),
               AH_PHASE_REQUEST) != AH_OK) {
        ah_run_fail(run);
    } else if (waits) {
        queue(run);
    } else {
        ask_for_place(run, d.input);
    }
}

bool ah_run_has_turn(const ah_run *run)
{
    return run->cfg.spending.place.called;
}

int64_t ah_run_delay(int steps, double random)
{
    int64_t ms = FIRST_DELAY_MS;

    for (int i = 0; i < steps && ms < LONGEST_DELAY_MS; i++)
        ms *= 2;
    return (int64_t)((double)ms * (1 - 0.25 * random));
}

/* True if the provider refuses the request since it has too many. */
static bool is_overloaded(const ah_err *err)
{
    return err->retryable &&
           (err->http_status == 429 || err->http_status == 503 || err->http_status == 529);
}

/* Returns the time before the next try. *by_lane: the lane waits, with all requests of its queue,
 * since the provider has too many requests. */
static int64_t delay_of(ah_run *run, bool *by_lane)
{
    int64_t advised = run->reader ? run->reader->retry_after_ms : -1, ms = 0;

    if (run->cfg.back_off && is_overloaded(&run->result.err))
        ms = run->cfg.back_off(run->cfg.ud, run, advised, run->attempt);
    *by_lane = ms > 0;
    if (!ms)
        ms = advised > 0 ? advised : ah_run_delay(run->attempt, run->cfg.random(run->cfg.ud));
    return ms;
}

bool ah_run_has_shown(const ah_run *run)
{
    return run->shows && run->msg.shown > 0;
}

static bool may_retry(const ah_run *run)
{
    return run->result.err.retryable && run->attempt < run->cfg.limits.retries &&
           !ah_run_has_shown(run);
}

/* Handles the error in result.err. */
static void exchange_failed(ah_run *run)
{
    ah_err *err = &run->result.err;
    bool by_lane;
    int64_t delay = delay_of(run, &by_lane);
    ah_slice reason;

    if (!may_retry(run) && ah_run_try_less(run)) {
        ah_run_stop_exchange(run);
        run->retry_at = run->now;
        run->state = RUN_BACKOFF;
        return;
    }
    if (!may_retry(run)) {
        if (!ah_run_fall_back(run))
            ah_run_fail(run);
        return;
    }
    ah_run_stop_exchange(run);
    ah_secrets_redact_err(run->cfg.secrets, err);
    reason = ah_json_detail_of(err, "reason");
    run->attempt++;
    ah_metric_add(run->cfg.metrics, AH_METRIC_RETRIES, 1);
    run->retry_at = run->now + (by_lane ? 0 : delay);
    run->state = RUN_BACKOFF;
    ah_log_put(run->cfg.log, AH_LOG_WARNING, "retry %d of %d in %.1f s: %s", run->attempt,
               run->cfg.limits.retries, (double)delay / 1000, err->message);
    EMIT_SOME(run, AH_EVENT_RETRY, reason.p ? 5 : 4, AH_F_INT("attempt", run->attempt),
              AH_F_NUM("delay", (double)delay / 1000),
              AH_F_STR("message", ah_slice_of(err->message)), AH_F_INT("status", err->http_status),
              AH_F_STR("reason", reason));
}

void ah_run_price_answer(ah_run *run)
{
    const ah_adapter *a = run->cfg.adapter;
    ah_usage *u = &run->msg.usage;

    if (a->cost_told == AH_COST_LAST && u->priced) {
        u->covers = run->owed;
        run->owed = 0;
    }
    if (a->cost_told != AH_COST_LAST && !run->msg.unlisted) /* the last answer reports for all */
        ah_budgets_price(&run->cfg.spending, model_name(run), a, u);
    u->unpriced = a->billed && !u->priced;
    run->owed += a->cost_told == AH_COST_LAST ? u->unpriced : 0;
}

size_t ah_run_put_cost(const ah_usage *u, ah_field field[AH_COST_FIELDS])
{
    size_t n = 0;

    if (u->priced)
        field[n++] = (ah_field)AH_F_NUM("cost", (double)u->cost / AH_COST_UNIT);
    if (u->prices_of[0])
        field[n++] = (ah_field)AH_F_STR("prices_of", ah_slice_of(u->prices_of));
    if (u->unpriced)
        field[n++] = (ah_field)AH_F_INT("unpriced", u->unpriced);
    if (u->covers)
        field[n++] = (ah_field)AH_F_INT("covers", u->covers);
    return n;
}

static void emit_usage(ah_run *run, const ah_usage *u)
{
    enum { COUNTS = 6 };
    ah_field field[COUNTS + AH_COST_FIELDS] = {
        AH_F_INT("input", u->input),
        AH_F_INT("cached_read", u->cached_read),
        AH_F_INT("cached_write", u->cached_write),
        AH_F_INT("output", u->output),
        AH_F_INT("reasoning", u->reasoning),
        AH_F_BOOL("known", u->known),
    };
    size_t n = COUNTS + ah_run_put_cost(u, field + COUNTS);

    ah_run_emit(run, AH_EVENT_USAGE, field, n);
}

static void add_usage(ah_run *run, const ah_usage *u)
{
    ah_usage_add(&run->result.usage, u);
    ah_metric_add(run->cfg.metrics, AH_METRIC_TOKENS_INPUT, u->input);
    ah_metric_add(run->cfg.metrics, AH_METRIC_TOKENS_CACHED, u->cached_read);
    ah_metric_add(run->cfg.metrics, AH_METRIC_TOKENS_OUTPUT, u->output);
    if (u->priced && run->cfg.metrics) {
        run->cfg.metrics->cost += (double)u->cost / AH_COST_UNIT;
        run->cfg.metrics->priced = true;
    }
    emit_usage(run, u);
}

static void warn_of_more(ah_run *run)
{
    const ah_usage *u = &run->msg.usage;
    char words[256];
    int n = snprintf(words, sizeof words,
                     "the provider counts more than a budget had reserved for the request: "
                     "%" PRId64 " input and %" PRId64 " output tokens",
                     u->input, u->output);

    ah_run_warn(run, (ah_slice){words, (size_t)n});
}

void ah_run_settle_exchange(ah_run *run)
{
    run->result.stop = run->msg.stop;
    run->cached = run->msg.usage.cached_read;
    add_usage(run, &run->msg.usage);
    if (ah_budgets_end(&run->cfg.spending, model_name(run), run->cfg.adapter, &run->msg.usage,
                       (int64_t)(run->text.len / BYTES_PER_TOKEN)))
        warn_of_more(run);
    ah_run_close_exchange(run);
}

void ah_run_head(ah_run *run, uint32_t id, const ah_response_head *head)
{
    const ah_adapter_vt *vt = run->cfg.adapter->vt;

    if (id == run->exchange && vt->head_came(run->reader, head, &run->result.err) != AH_OK)
        exchange_failed(run);
}

/* Keeps the bytes of the response for the record of the answer. */
static void hear(ah_run *run, ah_slice bytes)
{
    if (!run->recorder || !run->recorder->bytes)
        return;
    ah_buf_put(&run->heard, bytes);
    if (!ah_buf_ok(&run->heard))
        ah_log_put(run->cfg.log, AH_LOG_DEBUG, "the bytes of a response are too many to be kept");
}

void ah_run_feed(ah_run *run, uint32_t id, ah_slice bytes)
{
    const ah_adapter_vt *vt = run->cfg.adapter->vt;

    if (id == run->exchange)
        hear(run, bytes);
    if (id == run->exchange && vt->feed(run->reader, bytes, &run->result.err) != AH_OK)
        exchange_failed(run);
}

void ah_run_advise(ah_run *run, uint32_t id, int64_t retry_after_ms)
{
    if (id == run->exchange && run->reader)
        run->reader->retry_after_ms = retry_after_ms;
}

int64_t ah_run_linger(const ah_run *run, uint32_t id)
{
    return id == run->exchange && run->reader ? run->reader->linger_ms : -1;
}

/* A connection that breaks after the complete message is not an error. */
void ah_run_end(ah_run *run, uint32_t id, const ah_err *err)
{
    const ah_adapter_vt *vt = run->cfg.adapter->vt;

    if (id == 0 || id != run->exchange)
        return;
    run->exchange = 0; /* nothing left to stop */
    if (err && err->status != AH_OK && run->reader->linger_ms < 0) {
        run->result.err = *err;
        exchange_failed(run);
    } else if (vt->end(run->reader, &run->result.err) != AH_OK) {
        exchange_failed(run);
    } else {
        ah_run_answered(run);
    }
}
