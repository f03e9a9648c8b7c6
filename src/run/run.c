/* The state machine: iterations, answers, time, and the end. run_exchange.c has the exchange with a
 * model, run_turn.c the calls of a turn. Nothing here waits or sends. */
#include <stdio.h>

#include "run/background.h"
#include "run/run_state.h"
#include "wire/full.h"

_Static_assert(offsetof(struct ah_run, cfg) == 0, "tell.c finds it there");

/* -- helpers -------------------------------------------------------------------- */

void ah_run_commit(ah_run *run)
{
    ah_record_turn(run);
    ah_transcript_commit(run->cfg.transcript);
    ah_record_committed(run);
    ah_registry_settle(run->cfg.registry);
}

static ah_need_slot *place_of(ah_run *run, ah_need_kind kind, ah_call *c)
{
    return c ? &c->want[kind] : &run->want[kind];
}

void ah_run_raise(ah_run *run, ah_need need)
{
    ah_need_raise(&run->wants, place_of(run, need.kind, need.call), need);
}

void ah_run_end_need(ah_run *run, ah_need_kind begun, ah_need stop)
{
    if (!ah_need_drop(&run->wants, place_of(run, begun, stop.call)))
        ah_run_raise(run, stop);
}

/* -- ending ------------------------------------------------------------------------ */

static void emit_done(ah_run *run)
{
    const ah_run_result *r = &run->result;
    const ah_slice why = ah_json_detail_of(&r->err, "reason");
    const ah_slice asks = ah_json_member(ah_slice_of(r->err.details), "asks");
    const ah_slice value = r->err.status == AH_OK ? ah_text_slice(run->value) : (ah_slice){NULL, 0};
    ah_field field[10 + AH_COST_FIELDS] = {
        AH_F_BOOL("success", r->err.status == AH_OK),
        AH_F_STR("code", ah_slice_of(ah_status_name(r->err.status))),
        AH_F_STR("message", ah_slice_of(r->err.message)),
        AH_F_STR("stop", ah_slice_of(ah_stop_name(r->stop))),
        AH_F_INT("iterations", r->iterations),
        AH_F_INT("tool_calls", r->tool_calls),
        AH_F_STR("text", ah_buf_slice(&run->text))};
    size_t n = 7;

    if (value.p)
        field[n++] = (ah_field)AH_F_JSON("value", value);
    if (why.p)
        field[n++] = (ah_field)AH_F_STR("reason", why);
    if (r->err.status == AH_WAITING && asks.p)
        field[n++] = (ah_field)AH_F_JSON("asks", asks);
    n += ah_run_put_cost(&r->usage, field + n);
    ah_metric_add(run->cfg.metrics, AH_METRIC_RUNS, 1);

    ah_log_put(run->cfg.log, AH_LOG_INFO, "run %lld %s after %d model calls, %zu tool calls%s%s",
               (long long)run->cfg.id, r->err.status == AH_OK ? "done" : "failed", r->iterations,
               r->tool_calls, r->err.status == AH_OK ? "" : ": ",
               r->err.status == AH_OK ? "" : r->err.message);
    ah_run_emit(run, AH_EVENT_DONE, field, n);
}

static void report_end(ah_run *run)
{
    run->state = RUN_ENDED;
    emit_done(run);
}

/* The end is recorded before it is reported. */
static void finish(ah_run *run)
{
    const ah_background *b = run->cfg.background;

    run->state = RUN_ENDED;
    if (b && run->cfg.awaits)
        b->end(b->ud, run);
    run->timer = 0;
    ah_inject_ended(run);
    if (!run->recorder) {
        report_end(run);
        return;
    }
    if (!run->unsettled && run->cfg.transcript->n_staged) /* no turn of this run follows */
        ah_run_commit(run);
    if (!run->unsettled)
        ah_record_ended(run);
    run->state = RUN_CLOSING;
    run->closing = ah_record_wait(run, NULL, false);
}

/* The end is recorded, or cannot be, or nothing waits for it any more. Returns false if it is being
 * recorded. */
static bool close_recorded(ah_run *run)
{
    if (run->closing && run->recorder)
        return false;
    if (run->closing)
        ah_run_end_need(run, AH_NEED_RECORD,
                        (ah_need){.kind = AH_NEED_STOP_RECORD, .id = run->closing});
    run->closing = 0;
    report_end(run);
    return true;
}

/* The phase of an error in the current state. */
static ah_phase phase_of(const ah_run *run)
{
    static const ah_phase phase[] = {
        [RUN_PREPARING] = AH_PHASE_NONE,      [RUN_NEXT] = AH_PHASE_REQUEST,
        [RUN_EXCHANGING] = AH_PHASE_RESPONSE, [RUN_BACKOFF] = AH_PHASE_REQUEST,
        [RUN_QUEUED] = AH_PHASE_REQUEST,      [RUN_PLACING] = AH_PHASE_REQUEST,
        [RUN_CALLING] = AH_PHASE_TOOL,        [RUN_CHECKING] = AH_PHASE_RESPONSE,
        [RUN_AWAITING] = AH_PHASE_TOOL,       [RUN_HELD] = AH_PHASE_TOOL,
        [RUN_SETTLING] = AH_PHASE_NONE,       [RUN_CLOSING] = AH_PHASE_NONE,
        [RUN_ENDED] = AH_PHASE_NONE};

    return phase[run->state];
}

void ah_run_fail(ah_run *run)
{
    ah_err *err = &run->result.err;

    if (err->phase == AH_PHASE_NONE) /* a phase that is set already is more exact */
        err->phase = phase_of(run);
    ah_secrets_redact_err(run->cfg.secrets, err);
    run->cfg.wire->trying = false;
    run->cfg.wire->trying_without = 0;
    ah_run_stop_exchange(run);
    if (run->state == RUN_PLACING) {
        ah_run_leave_queue(run);
        ah_run_end_need(run, AH_NEED_PLACE, (ah_need){.kind = AH_NEED_STOP_PLACE});
    }
    if (run->state == RUN_PREPARING)
        ah_run_end_need(run, AH_NEED_SETUP, (ah_need){.kind = AH_NEED_STOP_SETUP});
    if (run->state == RUN_CHECKING)
        ah_run_end_need(run, AH_NEED_CHECK, (ah_need){.kind = AH_NEED_STOP_CHECK});
    ah_turn_stop(run);
    run->state = RUN_SETTLING;
}

void ah_run_begin_setup(ah_run *run)
{
    run->cfg.setup(run->cfg.on_ud, run);
}

void ah_run_stop_setup(ah_run *run)
{
    run->cfg.stop_setup(run->cfg.on_ud, run);
}

void ah_run_ready(ah_run *run, const ah_err *err)
{
    if (run->state != RUN_PREPARING)
        return;
    if (err) {
        run->result.err = *err;
        ah_run_fail(run);
    } else {
        run->state = RUN_NEXT;
    }
}

/* -- the answer ------------------------------------------------------------------------- */

static bool keep_text(ah_run *run)
{
    const ah_buf *text = run->msg.text.len ? &run->msg.text : &run->msg.refusal;

    ah_buf_reset(&run->text, 0);
    ah_buf_put(&run->text, ah_buf_slice(text));
    return ah_buf_ok(&run->text);
}

static void check(ah_run *run)
{
    run->state = RUN_CHECKING;
    run->check_rounds++;
    ah_run_raise(run, (ah_need){.kind = AH_NEED_CHECK});
}

static void empty_fails(ah_run *run)
{
    ah_err *err = &run->result.err;

    ah_err_set(err, AH_PROVIDER, "the answer is empty: it has neither text nor calls (stop: %s)%s",
               ah_stop_name(run->result.stop),
               run->empties > 1 ? ", and so were those before it" : "");
    err->phase = AH_PHASE_RESPONSE;
    err->retryable = true;
    ah_run_fail(run);
}

/* Fails the run without a retry, which would only make the context fuller. */
static void full_fails(ah_run *run)
{
    ah_err *err = &run->result.err;

    ah_err_set(err, AH_CONTEXT_FULL,
               "the answer is empty, since the model's context is full (stop: %s)" AH_FULL_ADVICE,
               ah_stop_name(run->result.stop));
    err->phase = AH_PHASE_RESPONSE;
    ah_run_fail(run);
}

static void empty_again(ah_run *run)
{
    static const ah_slice words = AH_LIT("Your answer was empty. Answer, or call a tool.");
    ah_text *json = ah_entry_text(run->cfg.mem, AH_ENTRY_USER, words, ah_run_wall(run));

    ah_run_warn(run, ah_slice_of("the answer is empty, asking again (on_empty = \"retry\")"));
    if (ah_transcript_add(run->cfg.transcript, AH_ENTRY_USER, json, &run->result.err) == AH_OK)
        run->state = RUN_NEXT;
    else
        ah_run_fail(run);
}

/* True: the last answer is empty and not accepted; the next step is begun. */
static bool refuse_empty(ah_run *run)
{
    bool empty = ah_slice_trim(ah_buf_slice(&run->text)).n == 0;

    if (empty && run->result.stop == AH_STOP_FULL) {
        full_fails(run);
        return true;
    }
    if (!empty || run->cfg.limits.on_empty == AH_EMPTY_STANDS) {
        run->empties = 0;
        return false;
    }
    if (run->cfg.limits.on_empty == AH_EMPTY_RETRY && run->empties++ < run->cfg.limits.retries)
        empty_again(run);
    else
        empty_fails(run);
    return true;
}

/* Handles a committed answer. */
static void take_answer(ah_run *run)
{
    if (run->cfg.output)
        ah_run_take_output(run);
    else
        ah_run_accept(run);
}

void ah_run_answer_direct(ah_run *run, bool queued)
{
    bool whole = ah_buf_ok(&run->direct);

    ah_buf_reset(&run->text, 0);
    if (whole)
        ah_buf_put(&run->text, ah_buf_slice(&run->direct));
    run->result.stop = AH_STOP_TOOL;
    if (!whole || !ah_buf_ok(&run->text)) {
        ah_buf_error(whole ? &run->text : &run->direct, "the results", &run->result.err);
        ah_run_fail(run);
    } else if (queued) {
        run->state = RUN_NEXT;
    } else {
        take_answer(run);
    }
}

/* True if the answer is not the last one: results of background calls follow. */
static bool awaits(const ah_run *run)
{
    const ah_background *b = run->cfg.background;

    return b && run->cfg.awaits && !run->last_round && b->has(b->ud, run, false);
}

void ah_run_no_calls(ah_run *run)
{
    bool queued = run->cfg.transcript->n_staged > 0;

    ah_inject_answered(run);
    ah_run_commit(run);
    ah_run_take_last(run, queued);
}

void ah_run_take_last(ah_run *run, bool queued)
{
    if (ah_run_check_budget(run) != AH_OK)
        ah_run_fail(run);
    else if (queued && !run->last_round)
        run->state = RUN_NEXT;
    else if (awaits(run))
        run->state = RUN_AWAITING;
    else if (!refuse_empty(run))
        take_answer(run);
}

void ah_run_accept(ah_run *run)
{
    const ah_hooks *h = run->cfg.hooks;

    if (h && h->check && !run->last_round)
        check(run);
    else
        finish(run);
}

void ah_run_checked(ah_run *run, ah_slice message)
{
    ah_transcript *t = run->cfg.transcript;
    ah_text *json;

    if (run->state != RUN_CHECKING)
        return;
    if (message.p && run->check_rounds > AH_MAX_CHECK_ROUNDS)
        ah_run_warn(run,
                    ah_slice_of("a check still fails after 10 rounds; the answer is accepted"));
    if (!message.p || run->check_rounds > AH_MAX_CHECK_ROUNDS) {
        finish(run);
        return;
    }
    json = ah_entry_text(run->cfg.mem, AH_ENTRY_USER, message, ah_run_wall(run));
    if (ah_transcript_add(t, AH_ENTRY_USER, json, &run->result.err) == AH_OK)
        run->state = RUN_NEXT;
    else
        ah_run_fail(run);
}

bool ah_run_check_failed(ah_run *run, const ah_err *err)
{
    if (run->state != RUN_CHECKING || ah_run_is_over(run)) /* the run then reports its own end */
        return false;
    run->result.err = *err;
    run->result.err.phase = AH_PHASE_RESPONSE;
    run->state = RUN_NEXT;
    ah_run_fail(run);
    return true;
}

static ah_status ask_guard(ah_run *run, const ah_hooks *h, ah_slice text, ah_slice value)
{
    return h && h->guard ? h->guard(h->ud, run, text, value, &run->result.err) : AH_OK;
}

/* True if the guards let the answer into the conversation. With `output`, they are asked only about
 * an answer that fits it, as any other is not final. */
static bool pass_guards(ah_run *run)
{
    const ah_hooks *h = run->cfg.hooks, *active = run->cfg.active;
    ah_slice text = ah_buf_slice(run->msg.text.len ? &run->msg.text : &run->msg.refusal),
             value = {0};
    ah_status st = AH_OK;
    ah_buf b;

    if ((!h || !h->guard) && (!active || !active->guard))
        return true;
    ah_buf_init(&b, run->cfg.mem, AH_MAX_TEXT);
    if (run->cfg.output && ah_run_read_output(run, text, &b))
        value = ah_buf_slice(&b);
    if (value.p || !run->cfg.output)
        st = ask_guard(run, h, text, value);
    if (st == AH_OK && (value.p || !run->cfg.output))
        st = ask_guard(run, active, text, value);
    ah_buf_clear(&b);
    if (st == AH_OK)
        return true;
    run->result.err.phase = AH_PHASE_RESPONSE;
    ah_buf_reset(&run->text, 0);
    return false;
}

/* Moves the arguments with keys to the calls of the turn. */
static void take_originals(ah_run *run)
{
    ah_transcript *t = run->cfg.transcript;

    for (size_t i = 0; i < t->n_slots; i++) {
        t->slot[i].original = run->msg.call[i].original;
        run->msg.call[i].original = NULL;
    }
}

/* Makes the message the pending turn. */
static ah_status begin_turn(ah_run *run)
{
    ah_origin origin = ah_adapter_origin(run->cfg.adapter);
    ah_transcript *t = run->cfg.transcript;
    ah_err *err = &run->result.err;
    ah_text *entry;
    ah_status st = ah_assembly_entry(&run->msg, t, &origin, ah_run_wall(run), &entry, err);

    if (st == AH_OK)
        st = ah_transcript_begin(t, entry, err);
    if (st == AH_OK)
        take_originals(run);
    if (st == AH_OK && ((t->n_slots && !ah_turn_new(run)) || !keep_text(run)))
        st = ah_err_nomem(err);
    return st;
}

void ah_run_answered(ah_run *run)
{
    if (ah_run_learn(run, &run->result.err) != AH_OK) {
        ah_run_fail(run);
        return;
    }
    ah_run_price_answer(run);
    if (!run->msg.n && !pass_guards(run)) {
        run->result.iterations++;
        ah_run_settle_exchange(run);
        ah_run_fail(run);
        return;
    }
    if (begin_turn(run) != AH_OK) {
        ah_run_fail(run);
        return;
    }
    ah_err_clear(&run->result.err);
    run->result.iterations++;
    ah_run_settle_exchange(run);
    ah_record_answer(run);
    if (run->n_calls) {
        run->empties = 0;
        ah_turn_begin(run);
    } else
        ah_run_no_calls(run);
}

/* True if a schema or a guard is to judge the answer, which it cannot if that is not whole. */
static bool is_judged(const ah_run *run)
{
    const ah_hooks *h = run->cfg.hooks, *active = run->cfg.active;

    return run->cfg.output || (h && h->guard) || (active && active->guard);
}

/* Commits the text of an answer that is cancelled; without calls and reasoning, which may be
 * incomplete. If that fails, the answer is lost, as one that has no text. */
static void keep_cut_answer(ah_run *run)
{
    if (run->state != RUN_EXCHANGING || is_judged(run) ||
        !ah_slice_trim(ah_buf_slice(&run->msg.text)).n)
        return;
    ah_assembly_drop_calls(&run->msg);
    ah_assembly_stop(&run->msg, AH_STOP_CANCELLED, ah_slice_of("null"));
    if (ah_assembly_check(&run->msg, &run->result.err) != AH_OK || begin_turn(run) != AH_OK)
        return;
    run->result.stop = AH_STOP_CANCELLED;
    run->result.iterations++;
    ah_record_answer(run);
    ah_run_commit(run);
}

/* -- iterations ------------------------------------------------------------------------------ */

/* Reads the clock as well as the last tick, since observers and strategies may have taken time. */
static bool time_is_over(const ah_run *run)
{
    const ah_run_config *cfg = &run->cfg;

    return cfg->deadline &&
           (run->now >= cfg->deadline ||
            (cfg->over && cfg->over(cfg->ud, cfg->deadline) && !cfg->over(cfg->ud, 0)));
}

bool ah_run_must_end(const ah_run *run)
{
    return run->cancel || time_is_over(run);
}

static bool past_deadline(ah_run *run)
{
    if (!time_is_over(run))
        return false;
    ah_err_set(&run->result.err, AH_DEADLINE,
               "the run's deadline passed (set by timeout or deadline)");
    return true;
}

/* on_max = "answer": one more model call, with tools declared but not allowed. */
static ah_status ask_for_answer(ah_run *run)
{
    run->last_round = true;
    return ah_run_choose(run, "none", &run->result.err);
}

static void too_many_iterations(ah_run *run)
{
    ah_err *err = &run->result.err;

    if (run->cfg.limits.answer_on_max && !run->last_round) {
        if (ask_for_answer(run) == AH_OK)
            ah_run_start_exchange(run);
        else
            ah_run_fail(run);
        return;
    }
    ah_err_set(err, AH_MAX_ITERATIONS,
               "Tool loop exceeded maximum iterations (%d). This may indicate a loop in tool calls "
               "or an overly "
               "complex task.",
               run->cfg.limits.max_iterations);
    snprintf(err->details, sizeof err->details, "{\"max_iterations\":%d}",
             run->cfg.limits.max_iterations);
    ah_run_fail(run);
}

static void tell_start(ah_run *run)
{
    const ah_adapter *a = run->cfg.adapter;

    run->started = true;
    ah_record_started(run);
    EMIT_SOME(run, AH_EVENT_START, 2 + (size_t)(run->cfg.agent.p != NULL),
              AH_F_STR("provider", ah_text_slice(a->provider)),
              AH_F_STR("model", ah_text_slice(a->model)), AH_F_STR("agent", run->cfg.agent));
    if (run->cfg.untold)
        ah_drift_warnings_tell(run->cfg.untold, run);
}

static void next_iteration(ah_run *run)
{
    if (!run->started)
        tell_start(run);
    run->attempt = 0;
    if (run->result.iterations >= run->cfg.limits.max_iterations) {
        too_many_iterations(run);
        return;
    }
    if (run->result.iterations == 1 && ah_run_free_choice(run, &run->result.err) != AH_OK) {
        ah_run_fail(run);
        return;
    }
    EMIT(run, AH_EVENT_TOOL_LOOP_ITERATION, AH_F_INT("iteration", run->result.iterations + 1),
         AH_F_INT("available_tool_count", run->cfg.registry->live),
         AH_F_INT("discovered_provider_count", run->cfg.discovered ? *run->cfg.discovered : 0));
    ah_run_start_exchange(run);
}

/* Records what has changed since the last step. True: that failed, and ends the run. */
static bool record(ah_run *run)
{
    ah_record_queued(run);
    if (run->state == RUN_CALLING && !ah_turn_settles_now(run))
        ah_record_finished(run);
    if (!ah_record_broke(run))
        return false;
    if (run->state != RUN_SETTLING && run->state != RUN_CLOSING)
        ah_run_fail(run);
    return true;
}

/* True if the next call to be filed waits for its record. */
static bool files_later(const ah_run *run)
{
    return run->batch < run->next && run->call[run->batch].record;
}

/* Takes one step if possible; false: there is nothing to do yet. */
static bool advance(ah_run *run)
{
    if (run->state == RUN_ENDED)
        return false;
    if (run->cfg.ticket)
        return ah_background_advance(run);
    if (run->recorder && record(run))
        return true;
    if (run->state == RUN_CLOSING)
        return close_recorded(run);
    if (run->state == RUN_SETTLING) {
        if (run->unsettled)
            ah_turn_clear(run);
        else if (!ah_turn_settle(run, run->result.err.status))
            return false;
        finish(run);
        return true;
    }
    if (run->cancel && !run->unsettled && run->cancel_err.status == AH_CANCELLED)
        keep_cut_answer(run);
    if (run->cancel)
        run->result.err = run->cancel_err;
    if (run->cancel || past_deadline(run)) {
        if (!run->unsettled)
            ah_record_cancelled(run);
        ah_run_fail(run);
        return true;
    }
    switch (run->state) {
    case RUN_NEXT:
        if (run->resuming)
            ah_resume(run);
        else
            next_iteration(run);
        return true;
    case RUN_BACKOFF:
        if (run->now < run->retry_at)
            return false;
        ah_run_start_exchange(run);
        return true;
    case RUN_QUEUED:
        if (!ah_run_has_turn(run))
            return false;
        ah_run_start_exchange(run);
        return true;
    case RUN_PLACING:
        return ah_run_place(run);
    case RUN_CALLING:
        if (ah_turn_ask(run))
            return true;
        if (run->parked && ah_run_park(run))
            return true;
        if ((run->running && !ah_turn_may_begin(run)) || files_later(run))
            return false;
        ah_turn_go_on(run);
        return true;
    case RUN_AWAITING:
        return ah_turn_await(run);
    case RUN_HELD:
    case RUN_PREPARING:
    case RUN_EXCHANGING:
    case RUN_CHECKING:
    case RUN_SETTLING:
    case RUN_CLOSING:
    case RUN_ENDED:
        return false;
    }
    return false;
}

/* -- time -------------------------------------------------------------------------------------- */

static void sooner(int64_t *at, int64_t candidate)
{
    if (candidate && (!*at || candidate < *at))
        *at = candidate;
}

static int64_t next_timer(const ah_run *run)
{
    bool waits = run->state == RUN_HELD || run->state == RUN_CLOSING || run->state == RUN_SETTLING;
    int64_t at = waits ? 0 : run->cfg.deadline;

    if (run->state == RUN_BACKOFF)
        sooner(&at, run->retry_at);
    sooner(&at, ah_turn_deadline(run));
    return at;
}

void ah_run_tick(ah_run *run, int64_t now)
{
    if (now > run->now)
        run->now = now;
    if (run->state == RUN_CALLING)
        ah_turn_tick(run, now);
}

static void on_turn(void *ud)
{
    ah_run *run = ud;

    if (run->wake)
        run->wake(run->owner);
}

/* -- public functions -------------------------------------------------------------------------- */

ah_status ah_run_new(const ah_run_config *cfg, int64_t now, ah_run **out, ah_err *err)
{
    ah_run *run = ah_alloc(cfg->mem, sizeof *run);

    if (!run) {
        ah_budgets spending = cfg->spending;

        ah_budgets_clear(&spending);
        return ah_err_nomem(err);
    }
    run->cfg = *cfg;
    run->cfg.spending.place = (ah_budget_place){.call = on_turn, .ud = run};
    run->now = now;
    run->state = cfg->setup ? RUN_PREPARING : RUN_NEXT;
    if (cfg->setup)
        ah_run_raise(run, (ah_need){.kind = AH_NEED_SETUP});
    run->loop.rules = cfg->limits.loop;
    ah_adapter_ref(cfg->adapter);
    ah_transcript_ref(cfg->transcript);
    ah_session_ref(cfg->session);
    ah_anchor_ref(cfg->caller);
    ah_buf_init(&run->heard, cfg->mem, AH_MAX_TEXT);
    ah_buf_init(&run->text, cfg->mem, AH_MAX_TEXT);
    ah_buf_init(&run->direct, cfg->mem, AH_MAX_TEXT);
    ah_buf_init(&run->restarts.keys, cfg->mem, 16 << 20);
    run->cfg.restarts = &run->restarts;
    run->recorder = cfg->recorder && cfg->recorder->sink.put ? cfg->recorder : NULL;
    if (cfg->history && cfg->history->run && !ah_resume_begin(run)) {
        run->state = RUN_ENDED;
        ah_run_free(run);
        return ah_err_nomem(err);
    }
    *out = run;
    return AH_OK;
}

void ah_run_set_around(ah_run *run, ah_run *around)
{
    run->cfg.around = around;
}

ah_run *ah_run_around(const ah_run *run)
{
    return run->cfg.around;
}

void ah_run_relay(ah_run *run, const ah_notice *e)
{
    if (run->cfg.on)
        ah_event_tell(run->cfg.on, run->cfg.on_ud, e);
}

void ah_run_mute(ah_run *run)
{
    run->cfg.on = NULL;
    run->cfg.keep = NULL;
    run->cfg.wants_content = NULL;
    run->shows = false;
    run->muted = true;
    if (run->recorder && run->number && !run->unsettled && run->state != RUN_ENDED &&
        run->state != RUN_CLOSING)
        run->recorder->broken = AH_CANCELLED;
    run->recorder = NULL;
}

void ah_run_free(ah_run *run)
{
    if (!run)
        return;
    ah_run_mute(run);
    if (run->cfg.ticket && run->call)
        ah_background_drop(run);
    if (!run->unsettled && (run->state == RUN_CALLING || run->state == RUN_SETTLING))
        (void)ah_turn_settle(run, AH_CANCELLED);
    ah_run_close_exchange(run);
    ah_turn_clear(run);
    ah_text_unref(run->slot.id);
    ah_text_unref(run->slot.name);
    ah_text_unref(run->slot.arguments);
    ah_buf_clear(&run->heard);
    ah_buf_clear(&run->text);
    ah_buf_clear(&run->direct);
    ah_buf_clear(&run->restarts.keys);
    ah_budgets_clear(&run->cfg.spending);
    ah_text_unref(run->value);
    ah_adapter_unref(run->cfg.adapter);
    ah_adapter_unref(run->next_adapter);
    ah_transcript_unref(run->cfg.transcript);
    ah_session_unref(run->cfg.session);
    ah_anchor_unref(run->cfg.caller);
    ah_free(run->cfg.mem, run);
}

bool ah_run_next(ah_run *run, ah_need *need)
{
    int64_t at;

    for (;;) {
        /* A run that is dropped begins no handler that was still to be begun. */
        if (run->muted && run->cancel && run->state == RUN_CALLING && advance(run))
            continue;
        if (ah_need_take(&run->wants, need))
            return true;
        if (advance(run))
            continue;
        if (run->state == RUN_ENDED)
            break;
        if ((at = next_timer(run)) == run->timer || !at)
            break;
        run->timer = at;
        *need = (ah_need){.kind = AH_NEED_TIMER, .at = at};
        return true;
    }
    *need = (ah_need){.kind = run->state == RUN_ENDED ? AH_NEED_DONE : AH_NEED_WAIT};
    return false;
}

void ah_run_cancel(ah_run *run, ah_status status, const char *why)
{
    if (run->state == RUN_ENDED || run->state == RUN_CLOSING || run->cancel)
        return;
    run->cancel = true;
    ah_err_set(&run->cancel_err, status, "%s", why);
    if (status == AH_GUARD)
        run->cancel_err.phase = AH_PHASE_REQUEST;
}

void ah_run_stop_unsettled(ah_run *run, const ah_err *err)
{
    if (run->state == RUN_ENDED || run->cancel)
        return;
    run->cancel = run->unsettled = true;
    run->cancel_err = *err;
}

bool ah_run_unsettled(const ah_run *run)
{
    return run->unsettled;
}

ah_status ah_run_send(ah_run *run, ah_text *json, ah_err *err)
{
    return ah_transcript_stage(run->cfg.transcript, AH_ENTRY_USER, json, err);
}

int ah_run_iterations(const ah_run *run)
{
    return run->result.iterations;
}

void ah_run_set_owner(ah_run *run, void *owner, void (*wake)(void *owner))
{
    run->owner = owner;
    run->wake = wake;
}

ah_budgets *ah_run_spending(ah_run *run)
{
    while (run->cfg.made_by_code && run->cfg.around)
        run = run->cfg.around;
    return &run->cfg.spending;
}

void *ah_run_owner(const ah_run *run)
{
    return run->owner;
}

bool ah_run_is_over(void *ud)
{
    const ah_run *run = ud;
    const ah_call *around = NULL;
    int64_t at = 0;
    bool over = false;

    for (; run && !over; run = around ? around->run : NULL) {
        const ah_overlay *in = run->cfg.caller ? run->cfg.caller->overlay : NULL;

        around = in ? in->owner : NULL;
        at = 0;
        sooner(&at, run->cfg.deadline);
        sooner(&at, around ? around->deadline : 0);
        over = run->cancel || (run->cfg.over && run->cfg.over(run->cfg.ud, at));
    }
    return over;
}

bool ah_run_cancelling(const ah_run *run)
{
    return run->cancel;
}

bool ah_run_preparing(const ah_run *run)
{
    return run->state == RUN_PREPARING;
}

void ah_run_result_of(const ah_run *run, ah_run_result *out)
{
    *out = run->result;
    out->text = ah_buf_slice(&run->text);
    out->value = ah_text_slice(run->value);
}
