/* The calls of one turn: begun in batches, answered, filed into the transcript in request order,
 * and settled if the run ends before they do. */
#include <stdio.h>

#include "run/background.h"
#include "run/gate.h"
#include "run/run_state.h"
#include "run/said.h"
#include "run/step.h"

enum {
    MAX_UNKNOWN = 4,    /* this many calls of unknown tools in a row end the run */
    MAX_WARNING = 1024, /* bytes of the text about a loop */
    MAX_PATH = 256,     /* bytes of the path of a file that keeps a result */
    MAX_ARGS = 64 << 20 /* bytes of arguments as an approval leaves them */
};

/* Seconds that its handler ran; 0 if none was started. */
static double duration(const ah_run *run, const ah_call *c)
{
    int64_t end = c->ended ? c->ended : run->now;

    return c->need && end > c->started ? (double)(end - c->started) / 1000 : 0.0;
}

/* The log for a call: code's own calls use the log of the run around theirs. */
static const ah_log *log_of(const ah_run *run)
{
    while (!run->cfg.log->fn && run->cfg.around)
        run = run->cfg.around;
    return run->cfg.log;
}

/* Reports a filed call. Frees value and error afterwards, which may be large. Not earlier, since a
 * policy may withhold them. */
static void invoked(ah_run *run, ah_call *c, bool success, ah_slice content)
{
    ah_field field[11] = {AH_F_STR("name", ah_text_slice(c->slot->name)),
                          AH_F_STR("id", ah_text_slice(c->slot->id)),
                          AH_F_BOOL("success", success),
                          AH_F_NUM("duration", duration(run, c)),
                          AH_F_STR("arguments", ah_text_slice(c->slot->arguments)),
                          AH_F_STR("coerced", ah_text_slice(c->coerced)),
                          AH_F_STR("content", content)};
    size_t n = 7;

    if (c->value)
        field[n++] = (ah_field)AH_F_JSON("value", ah_text_slice(c->value));
    if (c->error)
        field[n++] = (ah_field)AH_F_STR("error", ah_text_slice(c->error));
    ah_metric_add(run->cfg.metrics, AH_METRIC_TOOL_CALLS, 1);
    ah_metric_add(run->cfg.metrics, AH_METRIC_TOOL_FAILURES, success ? 0 : 1);
    if (c->error)
        ah_log_raised(log_of(run), c->mistake, ah_text_slice(c->error));
    if (c->parent_call)
        field[n++] = (ah_field)AH_F_STR("parent_call", ah_text_slice(c->parent_call));
    if (run->cfg.ticket)
        field[n++] = (ah_field)AH_F_INT("ticket", run->cfg.ticket);
    ah_run_emit(run, AH_EVENT_TOOL_INVOKED, field, n);
    ah_text_set(&c->value, NULL);
    ah_text_set(&c->error, NULL);
}

/* Removes keys that a handler may have found. */
static void redact(const ah_run *run, ah_text *text)
{
    if (text)
        text->len = ah_secrets_redact(run->cfg.secrets, text->data, text->len);
}

/* Puts the warning before the result, or leaves it out without memory. */
static void put_warning(ah_run *run, ah_call *c)
{
    ah_text *text = NULL;
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, c->content->len + MAX_WARNING);
    ah_buf_fmt(
        &b, "Warning: %s; time %d ends the run. Use the results there are, or do something else.",
        c->warning->data, run->loop.rules.stop);
    ah_buf_str(&b, "\n\n");
    ah_buf_put(&b, ah_text_slice(c->content));
    if (ah_text_from_buf(&b, "tool result", &text, NULL) == AH_OK)
        ah_text_set(&c->content, text);
    ah_buf_clear(&b);
}

/* Keeps a direct result, which becomes the run's answer if all results of the turn are direct. */
static void keep_direct(ah_run *run, const ah_call *c)
{
    if (c->success && !c->refused && c->tool && c->tool->direct && c->content)
        ah_turn_keep_direct(run, ah_text_slice(c->content));
}

void ah_turn_keep_direct(ah_run *run, ah_slice content)
{
    ah_buf *b = &run->direct;

    ah_buf_str(b, run->n_direct++ ? "\n\n" : "");
    ah_buf_put(b, content);
    if (ah_buf_ok(b))
        b->len = ah_secrets_redact(run->cfg.secrets, b->data, b->len);
}

/* Writes the full result into a file, through the overlay `o`, which is committed if it is not the
 * call's own. A failure to write is not a failure of the call. A result that was replaced or
 * blocked is not written. */
static void keep_whole(ah_run *run, ah_call *c, ah_overlay *o)
{
    ah_err err = {.status = AH_OK};
    ah_status st;
    ah_buf path;

    if (!c->whole || !c->success || !c->content || c->content != c->part || !run->cfg.keep)
        return;
    redact(run, c->whole);
    ah_buf_init(&path, run->cfg.mem, MAX_PATH);
    st = run->cfg.keep(run->cfg.on_ud, c, o, ah_text_slice(c->whole), &path, &err);
    if (st == AH_OK && path.len && o != &c->overlay)
        st = ah_overlay_commit(o, run->cfg.transcript, &err);
    if (st == AH_OK && path.len)
        ah_call_name_file(c, ah_buf_slice(&path));
    if (st != AH_OK)
        ah_log_put(run->cfg.log, AH_LOG_INFO, "the whole result of '%s' is in no file: %s",
                   c->tool->name->data, err.message);
    ah_buf_clear(&path);
    ah_text_set(&c->whole, NULL);
}

static void keep_whole_after(ah_run *run, ah_call *c)
{
    ah_overlay o;

    if (!c->whole)
        return;
    ah_overlay_init(&o, run->cfg.mem, run->cfg.caller);
    keep_whole(run, c, &o);
    ah_overlay_drop(&o);
}

static ah_text *entry_of(const ah_run *run, const ah_call *c)
{
    ah_slice content = ah_text_slice(c->content);

    if (!c->content)
        return NULL;
    if (c->ticket)
        return ah_entry_ticket(run->cfg.mem, c->slot, c->ticket, content, ah_run_wall(run));
    return ah_entry_tool_result(run->cfg.mem, c->slot, c->success, c->refused, content,
                                ah_text_slice(c->success ? c->images : NULL), ah_run_wall(run));
}

/* Makes the changes of a call that has succeeded. Their failure is the call's. */
static void make_changes(ah_run *run, ah_call *c)
{
    ah_err err;

    ah_record_queued(run);
    if (ah_overlay_commit(&c->overlay, run->cfg.transcript, &err) != AH_OK)
        ah_call_refuse(c, "Tool '%s' execution failed: %s", c->slot->name->data, err.message);
    if (!c->entry)
        return;
    if (!c->success) {
        redact(run, c->content);
        ah_text_set(&c->entry, entry_of(run, c));
    }
    ah_record_applied(run, c, c->success);
}

/* True in a replay, if the call has changed what outlives it: files of the machine, such as that of
 * a long result, or what has a stream of its own. */
static bool is_not_for_replay(const ah_run *run, const ah_call *c)
{
    const ah_recorder *r = run->recorder;

    return ah_run_replays(run) &&
           (ah_overlay_outside(&c->overlay) || (r->shares && r->shares(r->beside_ud, &c->overlay)));
}

/* Commits the overlay of an answered call first, then injects. Returns AH_OK, or the reason why the
 * run must end. */
static ah_status commit_call(ah_run *run, ah_call *c, bool fails, ah_err *err)
{
    ah_status st = AH_OK;

    if (!c->success || is_not_for_replay(run, c))
        ah_overlay_drop(&c->overlay);
    else
        make_changes(run, c);
    keep_whole_after(run, c);
    keep_direct(run, c);
    if (c->content && c->warning && !c->entry)
        put_warning(run, c);
    if (!c->ticket) { /* else strategies see the result when it comes */
        st = ah_inject_after(run, c, fails, err);
        ah_run_hand_over(run, c);
    }
    redact(run, c->content);
    redact(run, c->images);
    redact(run, c->value);
    redact(run, c->error);
    return st;
}

/* Records the result and the changes of the call, if these are outside of the process, and waits
 * for the record. */
static void announce(ah_run *run, ah_call *c)
{
    ah_err err;

    if (ah_overlay_prepare(&c->overlay, &err) != AH_OK) {
        ah_call_refuse(c, "Tool '%s' execution failed: %s", c->slot->name->data, err.message);
        return;
    }
    if (c->warning)
        put_warning(run, c);
    ah_text_set(&c->warning, NULL);
    redact(run, c->content);
    redact(run, c->images);
    ah_text_set(&c->entry, entry_of(run, c));
    if (!c->entry || !ah_record_announced(run, c))
        ah_text_set(&c->entry, NULL);
    else
        c->record = ah_record_wait(run, c, true);
}

/* True if the call can be filed: nothing of it waits for a record. */
static bool may_file(ah_run *run, ah_call *c)
{
    if (c->record || c->entry || !run->recorder || !c->success || !c->content)
        return !c->record;
    keep_whole(run, c, &c->overlay);
    if (ah_overlay_outside(&c->overlay) && !ah_run_replays(run))
        announce(run, c);
    return !c->record;
}

/* Moves an answered call into its slot. Returns AH_OK, or the reason why the run must end. */
static ah_status file_answer(ah_run *run, ah_call *c, bool fails, ah_err *err)
{
    ah_status st = commit_call(run, c, fails, err);
    ah_text *entry = c->entry ? ah_text_ref(c->entry) : entry_of(run, c);

    if (entry) {
        ah_record_settled(run, c, ah_text_slice(entry));
        ah_transcript_fill(run->cfg.transcript, c->at, entry);
    }
    if (!c->refused)
        run->unknown_in_row = c->unknown ? run->unknown_in_row + 1 : 0;
    return st;
}

/* -- results of background calls ---------------------------------------------------------- */

static ah_text *note_of(const ah_run *run, const ah_call *c)
{
    ah_slice content = c->content ? ah_text_slice(c->content) : ah_slice_of("out of memory");
    ah_text *note = NULL;
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, content.n + MAX_WARNING);
    ah_buf_fmt(&b, "Ticket %lld (%s) %s:\n\n", (long long)run->cfg.ticket, c->slot->name->data,
               c->success ? "is done. Its result" : "has failed");
    ah_buf_put(&b, content);
    if (ah_buf_ok(&b))
        note = ah_entry_ticket_note(run->cfg.mem, run->cfg.ticket, ah_buf_slice(&b),
                                    ah_text_slice(c->success ? c->images : NULL), ah_run_wall(run));
    ah_buf_clear(&b);
    return note;
}

void ah_turn_drop_apart(ah_run *run)
{
    invoked(run, run->call, false, ah_text_slice(run->call->content));
}

void ah_turn_file_apart(ah_run *run)
{
    ah_call *c = run->call;
    ah_err err;

    if (commit_call(run, c, false, &err) != AH_OK)
        ah_run_warn(run, ah_slice_of(err.message));
    if (ah_transcript_stage(run->cfg.transcript, AH_ENTRY_NOTE, note_of(run, c), &err) != AH_OK)
        ah_run_warn(run, ah_slice_of("the note of a background call is lost: out of memory"));
    invoked(run, c, c->success, ah_text_slice(c->content));
}

static void take_background(ah_run *run)
{
    const ah_background *b = run->cfg.background;

    if (b)
        b->take(b->ud, run);
}

static void begin_in_background(ah_run *run, ah_call *c)
{
    const ah_background *b = run->cfg.background;
    int64_t ticket = 0;
    ah_err err;

    if (b->begin(b->ud, c, &ticket, &err) == AH_OK)
        ah_call_give_ticket(c, ticket);
    else
        ah_call_refuse(c, "Tool '%s' was not run: %s", c->tool->name->data, err.message);
}

/* Its changes are not approved any more. */
static void stop_shown(ah_run *run, ah_call *c)
{
    if (c->asking)
        ah_run_end_need(run, AH_NEED_ASK,
                        (ah_need){.kind = AH_NEED_STOP_CALL, .id = c->need, .call = c});
    ah_call_take_back(c, "its changes were taken back: the run ended before they were approved.");
}

/* Stops what the call waits for, or its handler. */
static void stop_call(ah_run *run, ah_call *c)
{
    static const ah_need_kind begun[] = {[AH_CALL_ASKING] = AH_NEED_ASK,
                                         [AH_CALL_RECORDING] = AH_NEED_RECORD,
                                         [AH_CALL_SEEKING] = AH_NEED_LOST,
                                         [AH_CALL_RUNNING] = AH_NEED_TOOL};
    bool recording = c->state == AH_CALL_RECORDING;

    ah_run_end_need(run, begun[c->state],
                    (ah_need){.kind = recording ? AH_NEED_STOP_RECORD : AH_NEED_STOP_CALL,
                              .id = recording ? c->record : c->need,
                              .call = c});
    if (recording)
        c->record = 0;
}

void ah_turn_stop(ah_run *run)
{
    for (size_t i = run->batch; i < run->next; i++) {
        ah_call *c = &run->call[i];

        if (c->state == AH_CALL_SHOWN)
            stop_shown(run, c);
        else if (c->state != AH_CALL_WAITING && c->state != AH_CALL_ANSWERED)
            stop_call(run, c);
    }
}

/* True if the slot of the call is filled. */
static bool is_filed(const ah_run *run, const ah_call *c)
{
    return run->cfg.transcript->slot[c->at].result != NULL;
}

/* Files the answered calls of a run that ends; false: one of them waits for its record. Without the
 * record, its changes are dropped. */
static bool file_answered(ah_run *run)
{
    ah_err ignored; /* the run ends anyway */

    for (size_t i = run->batch; i < run->next; i++) {
        ah_call *c = &run->call[i];

        if (c->state != AH_CALL_ANSWERED || is_filed(run, c))
            continue;
        if (ah_record_is_over(run))
            ah_overlay_drop(&c->overlay);
        else if (!may_file(run, c))
            return false;
        else
            file_answer(run, c, true, &ignored);
    }
    return true;
}

static const char *settle_words(ah_status st, bool begun)
{
    if (!begun)
        return "Not run: the run ended before this call was begun.";
    switch (st) {
    case AH_CANCELLED:
        return "Cancelled: the run was stopped before this call finished. Its outcome is unknown.";
    case AH_DEADLINE:
        return "Cancelled: the deadline passed before this call finished. Its outcome is unknown.";
    default:
        return "Internal error: the run ended before this call finished. Its outcome is unknown.";
    }
}

/* True if a handler of the call was started, here or by an earlier process. */
static bool has_begun(const ah_call *c)
{
    return c->state >= AH_CALL_SEEKING || (c->past && c->past->started);
}

/* Fills the slot, if it is empty, and records it. */
static void settle_slot(ah_run *run, size_t i, const char *words)
{
    const ah_slot *slot = &run->cfg.transcript->slot[i];

    if (slot->result)
        return;
    ah_transcript_settle(run->cfg.transcript, i, words, ah_run_wall(run));
    if (i < run->n_calls)
        ah_record_settled(run, &run->call[i], ah_text_slice(slot->result));
}

/* Settles one call of a run that ends in the middle of its turn. */
static void settle_call(ah_run *run, ah_call *c, ah_status why)
{
    const ah_slot *slot = &run->cfg.transcript->slot[c->at];
    const char *words = settle_words(why, has_begun(c));
    bool filed = slot->result != NULL;

    settle_slot(run, c->at, words);
    if (!c->ticket)
        invoked(run, c, filed && c->success,
                filed ? ah_text_slice(c->content) : ah_slice_of(words));
}

bool ah_turn_settle(ah_run *run, ah_status why)
{
    ah_transcript *t = run->cfg.transcript;

    ah_record_finished(run);
    if (!file_answered(run))
        return false;
    for (size_t i = run->batch; i < run->n_calls; i++)
        settle_call(run, &run->call[i], why);
    /* after lack of memory: slots that have no call, or a call without a result */
    for (size_t i = 0; i < t->n_slots; i++)
        ah_transcript_settle(t, i, settle_words(why, run->n_calls > 0), ah_run_wall(run));
    ah_run_commit(run);
    return true;
}

static void clear_call(ah_run *run, ah_call *c)
{
    for (size_t kind = 0; kind < AH_NEEDS; kind++)
        ah_need_drop(&run->wants, &c->want[kind]);
    ah_call_clear(c);
}

void ah_turn_clear(ah_run *run)
{
    for (size_t i = 0; i < run->n_calls; i++)
        clear_call(run, &run->call[i]);
    ah_free(run->cfg.mem, run->call);
    run->call = NULL;
    run->n_calls = run->batch = run->next = run->running = run->n_filed = 0;
    run->leaves = false;
}

/* True if the call is past its time, or its run is over. */
static bool is_over(void *call)
{
    const ah_call *c = call;
    const ah_run_config *cfg = &c->run->cfg;

    return ah_run_is_over(c->run) || (cfg->over && c->deadline && cfg->over(cfg->ud, c->deadline));
}

bool ah_turn_new(ah_run *run)
{
    ah_transcript *t = run->cfg.transcript;

    run->call = ah_alloc(run->cfg.mem, t->n_slots * sizeof *run->call);
    if (!run->call)
        return false;
    run->n_calls = t->n_slots;
    for (size_t i = 0; i < t->n_slots; i++) {
        ah_call_init(&run->call[i], run, run->cfg.mem, &t->slot[i], i, run->cfg.caller);
        run->call[i].interrupt = (ah_interrupt){is_over, &run->call[i]};
        run->call[i].keeps = run->cfg.keep != NULL;
        run->call[i].at_work = &run->running;
    }
    return true;
}

/* Refuses the last call of an answer that was cut off: it may look complete, but is never run. */
void ah_turn_refuse_cut(ah_run *run)
{
    ah_call *last = &run->call[run->n_calls - 1];

    if (ah_stop_is_cut(run->result.stop) || run->result.stop == AH_STOP_FILTER)
        ah_call_refuse(last, "The call was cut off (%s) and not run. Make it again, shorter.",
                       ah_stop_name(run->result.stop));
}

void ah_turn_begin(ah_run *run)
{
    ah_buf_reset(&run->direct, 0);
    run->n_direct = 0;
    run->result.rounds++;
    run->result.tool_calls += run->n_calls;
    ah_turn_refuse_cut(run);
    ah_inject_answered(run);
    EMIT(run, AH_EVENT_TOOL_CALLS,
         AH_F_JSON("calls",
                   ah_json_member(ah_text_slice(run->cfg.transcript->assistant), "tool_calls")));
    run->state = RUN_CALLING;
}

/* Refuses a call if any budget is overdrawn, even by the answer that asks for it, or has no calls
 * left. Calls are counted exactly. Either ends the run after the batch. */
static bool within_budget(ah_run *run, ah_call *c)
{
    ah_budgets *spending = ah_run_spending(run);
    ah_err err;

    if (ah_budgets_check(spending, NULL, &err) == AH_OK && ah_budgets_call(spending, &err) == AH_OK)
        return true;
    ah_call_refuse(c, "Tool '%s' was not run: %s", c->tool->name->data, err.message);
    c->leave = AH_BUDGET;
    c->leave_why = ah_text_new(run->cfg.mem, ah_slice_of(err.message));
    c->leave_details = ah_text_new(run->cfg.mem, ah_slice_of(err.details));
    return false;
}

static void stop_loop(ah_run *run, ah_call *c, ah_slice words)
{
    ah_buf b;

    ah_call_refuse(c, "Not run: %.*s. The run ends here.", AH_FMT(words));
    ah_buf_init(&b, run->cfg.mem, MAX_WARNING);
    ah_buf_fmt(&b, "loop detected: %.*s; the limit is %d (loop_detector: stop, exempt, or false)",
               AH_FMT(words), run->loop.rules.stop);
    ah_text_from_buf(&b, "reason", &c->leave_why, NULL);
    ah_buf_clear(&b);
    c->leave = AH_LOOP;
}

/* False: the call repeats too often, and is answered. */
static bool pass_loop_detector(ah_run *run, ah_call *c)
{
    ah_slice name = ah_text_slice(c->slot->name);
    ah_repeat r = ah_loop_detector_note(&run->loop, name, ah_text_slice(c->slot->arguments),
                                        c->slot->written != AH_ARGUMENTS_WRONG);
    ah_buf words;

    if (!r.warn && !r.stop)
        return true;
    ah_buf_init(&words, run->cfg.mem, MAX_WARNING / 2);
    ah_loop_detector_say(&run->loop, &r, name, &words);
    if (r.stop) {
        stop_loop(run, c, ah_buf_slice(&words));
    } else {
        ah_text_from_buf(&words, "warning", &c->warning, NULL);
        ah_run_warn(run, ah_buf_slice(&words));
    }
    ah_buf_clear(&words);
    return !r.stop;
}

static void begin_approval(ah_run *run, ah_call *c)
{
    c->asking = true;
    c->need = ++run->last_id;
    run->running++;
    ah_run_raise(run, (ah_need){.kind = AH_NEED_ASK, .id = c->need, .call = c});
}

void ah_turn_arm(ah_run *run, ah_call *c)
{
    c->interrupt = (ah_interrupt){is_over, c};
    c->at_work = &run->running;
    c->state = AH_CALL_RUNNING;
    c->started = run->now;
    c->deadline = c->tool->timeout_ms ? run->now + c->tool->timeout_ms : 0;
    c->need = ++run->last_id;
    run->running++;
    ah_run_raise(run, (ah_need){.kind = AH_NEED_TOOL, .id = c->need, .call = c});
}

/* Makes the steps of a call that is durable or replayed. False: it is answered. */
static bool prepare_steps(const ah_run *run, ah_call *c)
{
    ah_err err;

    if (!(c->tool->durable || ah_run_replays(run)) || c->steps ||
        ah_steps_new(c, run->recorder, ah_text_slice(c->key), c->past, &err) == AH_OK)
        return true;
    ah_call_refuse(c, "Tool '%s' was not run: %s", c->tool->name->data, err.message);
    return false;
}

/* Starts the handler, or a run of its own for a background call. */
static void start_handler(ah_run *run, ah_call *c)
{
    if (!prepare_steps(run, c))
        return;
    if (c->tool->background && run->cfg.background)
        begin_in_background(run, c);
    else
        ah_turn_arm(run, c);
    if (c->state == AH_CALL_ANSWERED && !c->ticket)
        return;
    EMIT_SOME(run, AH_EVENT_TOOL_STARTED, 2 + (size_t)(c->parent_call != NULL),
              AH_F_STR("name", ah_text_slice(c->slot->name)),
              AH_F_STR("id", ah_text_slice(c->slot->id)),
              AH_F_STR("parent_call", ah_text_slice(c->parent_call)));
    if (c->ticket)
        EMIT(run, AH_EVENT_BACKGROUND_STARTED, AH_F_STR("name", ah_text_slice(c->slot->name)),
             AH_F_STR("id", ah_text_slice(c->slot->id)), AH_F_INT("ticket", c->ticket));
}

void ah_turn_started(ah_run *run, ah_call *c)
{
    run->running--;
    start_handler(run, c);
}

/* Its record comes first. */
void ah_turn_start(ah_run *run, ah_call *c)
{
    if (!within_budget(run, c))
        return;
    if (!run->recorder || c->recorded != AH_RECORDED_NOTHING) {
        start_handler(run, c);
        return;
    }
    ah_record_call_started(run, c);
    c->state = AH_CALL_RECORDING;
    run->running++;
    c->record = ah_record_wait(run, c, true);
}

static void pass_gate(ah_run *run, ah_call *c)
{
    if (ah_gate_before(c))
        ah_turn_start(run, c);
    else if (c->state == AH_CALL_ASKING && !ah_resume_approval(run, c)) {
        ah_resume_explain(c);
        begin_approval(run, c);
    }
}

static void begin_call(ah_run *run, ah_call *c)
{
    ah_slice strict = run->cfg.transcript->settings.options.strict;
    const ah_callees who = {run->cfg.registry, run->cfg.executors, run->cfg.adapter,
                            ah_json_kind_of(strict) == AH_JSON_TRUE};

    bool there;

    if (c->state != AH_CALL_WAITING)
        return;
    if (run->handed_over) {
        ah_call_refuse(c,
                       "Tool '%s' was not run: a call before it has handed the conversation over "
                       "to another agent.",
                       c->slot->name->data);
        return;
    }
    if (c->past && c->past->started) {
        (void)pass_loop_detector(run, c);
        ah_resume_call(run, c, &who);
        return;
    }
    if (ah_run_replays(run)) {
        ah_call_refuse(c, "Its handler was not begun.");
        return;
    }
    there = ah_inject_before(run, c);
    if (!c->refused && pass_loop_detector(run, c) && there &&
        ah_call_prepare(c, &who, run->now, run->cfg.deadline))
        pass_gate(run, c);
}

/* Checks the arguments of an approval in the same way as the model's. */
static void pass_changed(ah_run *run, ah_call *c, ah_slice args)
{
    if (!ah_call_change_args(c, args, run->now))
        return;
    ah_text_set(&c->approved, ah_text_ref(c->args));
    pass_gate(run, c);
}

/* A person has changed the arguments as they were shown, which have no keys. */
static void pass_approved(ah_run *run, ah_call *c, ah_slice args)
{
    ah_buf b;

    if (!ah_said_has_key(c, ah_text_slice(c->args))) {
        pass_changed(run, c, args);
        return;
    }
    ah_buf_init(&b, run->cfg.mem, MAX_ARGS);
    ah_said_restore(c, args, &b);
    if (ah_buf_ok(&b))
        pass_changed(run, c, ah_buf_slice(&b));
    else
        ah_call_refuse(c, "Tool '%s' was not run: out of memory", c->tool->name->data);
    ah_buf_clear(&b);
}

/* Its changes are approved, or not. */
static void decide_shown(ah_run *run, ah_call *c, bool approved, ah_slice why)
{
    if (!c->ended) /* its handler ran in an earlier process */
        c->need = 0;
    if (approved)
        c->state = AH_CALL_ANSWERED;
    else
        ah_call_take_back(c, "its changes were not approved%s%.*s", why.n ? ": " : "", AH_FMT(why));
    if (run->cfg.answered)
        run->cfg.answered(run->cfg.on_ud, c);
}

static void ask_about_changes(ah_run *run, ah_call *c)
{
    const ah_slice none = {"", 0};

    if (!ah_run_replays(run) && c->approver)
        begin_approval(run, c);
    else if (!ah_run_replays(run))
        decide_shown(run, c, false, ah_slice_of("the agent has no policies now"));
    else if (!ah_resume_approval(run, c))
        decide_shown(run, c, true, none);
}

bool ah_turn_ask(ah_run *run)
{
    bool any = false;

    for (size_t i = run->batch; i < run->next; i++) {
        ah_call *c = &run->call[i];

        if (c->state != AH_CALL_SHOWN || c->asking)
            continue;
        any = true;
        ask_about_changes(run, c);
    }
    return any;
}

void ah_call_approved(ah_call *call, bool approved, ah_slice args, ah_slice why, int64_t now)
{
    ah_run *run = call->run;

    if (call->state != AH_CALL_ASKING && call->state != AH_CALL_SHOWN)
        return;
    if (now > run->now)
        run->now = now;
    run->running--;
    call->asking = false;
    if (call->state == AH_CALL_SHOWN) {
        decide_shown(run, call, approved, why);
        return;
    }
    call->need = 0;
    if (!approved)
        ah_call_refuse(call, "Tool '%s' was not run: not approved%s%.*s", call->tool->name->data,
                       why.n ? ": " : "", AH_FMT(why));
    else if (args.p)
        pass_approved(run, call, args);
    else
        ah_turn_start(run, call);
}

static const ah_tool *tool_of(const ah_run *run, size_t i)
{
    return ah_registry_find(run->cfg.registry, ah_text_slice(run->call[i].slot->name));
}

static const void *alone(const ah_tool *t)
{
    return t->vt && t->vt->alone ? t->vt->alone(t) : NULL;
}

/* True if the next call may run together with the batch, whose calls are all marked parallel. */
static bool joins_batch(const ah_run *run)
{
    const ah_tool *t = tool_of(run, run->next), *other;
    const void *has;

    if (!t || !t->parallel)
        return false;
    has = alone(t);
    for (size_t i = run->batch; has && i < run->next; i++)
        if ((other = tool_of(run, i)) && alone(other) == has)
            return false;
    return true;
}

static bool is_parallel(const ah_run *run, size_t i)
{
    const ah_tool *t = tool_of(run, i);

    return t && t->parallel;
}

static bool is_full(const ah_run *run)
{
    int most = run->cfg.limits.max_parallel;

    return most > 0 && run->running >= (size_t)most;
}

/* True if a call of the batch ends the run. */
static bool batch_leaves(const ah_run *run)
{
    size_t i = run->batch;

    while (i < run->next && run->call[i].leave == AH_OK)
        i++;
    return i < run->next;
}

static bool may_begin(const ah_run *run)
{
    return run->next < run->n_calls && !run->n_filed && !is_full(run) && !batch_leaves(run) &&
           is_parallel(run, run->batch) && joins_batch(run);
}

bool ah_turn_may_begin(const ah_run *run)
{
    return run->cfg.limits.max_parallel > 0 && run->batch < run->next && may_begin(run);
}

static void begin_more(ah_run *run)
{
    while (may_begin(run))
        begin_call(run, &run->call[run->next++]);
}

/* Begins one call, or neighbours that are all marked parallel and share nothing exclusive. Those
 * beyond max_parallel begin when others have ended. */
static void begin_batch(ah_run *run)
{
    run->batch = run->next;
    run->leaves = false;
    begin_call(run, &run->call[run->next++]);
    begin_more(run);
}

/* Leaves the details out if they do not fit. */
static void keep_details(ah_err *err, const ah_buf *b)
{
    if (!ah_buf_ok(b))
        return;
    memcpy(err->details, b->data, b->len);
    err->details[b->len] = '\0';
}

static void leave(ah_run *run, const ah_call *c)
{
    ah_slice details = ah_text_slice(c->leave_details);
    ah_slice more = details.n > 2 ? ah_json_inside(details) : (ah_slice){"", 0};
    ah_err *err = &run->result.err;
    ah_buf b;

    ah_err_set(err, c->leave, "%.*s", AH_FMT(ah_text_slice(c->leave_why)));
    err->phase = AH_PHASE_TOOL;
    ah_buf_init(&b, run->cfg.mem, sizeof err->details - 1);
    ah_buf_str(&b, "{\"tool\":");
    ah_json_put_string(&b, ah_text_slice(c->slot->name));
    ah_buf_fmt(&b, "%s%.*s}", more.n ? "," : "", AH_FMT(more));
    keep_details(err, &b);
    if (c->expansion) { /* only if it fits: */
        b.len--;
        ah_buf_fmt(&b, ",%.*s", (int)c->expansion->len - 1, c->expansion->data + 1);
        keep_details(err, &b);
    }
    ah_buf_clear(&b);
}

/* Lists the names of the tools as far as they fit; the message gives the number of bytes left
 * out. */
static void too_many_unknown(ah_run *run, const ah_call *c)
{
    ah_err *err = &run->result.err;

    ah_err_set(err, AH_TOOL_NOT_FOUND, "%.*s", AH_FMT(ah_text_slice(c->content)));
    err->phase = AH_PHASE_TOOL;
    ah_registry_detail(run->cfg.registry, ah_text_slice(c->slot->name), err);
}

/* Files one answer of the batch, which may end the run. */
static void end_call(ah_run *run, ah_call *c)
{
    int most = run->cfg.limits.throw_on_unknown ? 1 : MAX_UNKNOWN;
    bool ends = run->leaves;
    ah_err err;
    ah_status st = file_answer(run, c, false, &err);

    if (!c->ticket)
        invoked(run, c, c->success, ah_text_slice(c->content));
    if (!ends && c->leave != AH_OK)
        leave(run, c);
    else if (!ends && st != AH_OK)
        run->result.err = err;
    else if (!ends && run->unknown_in_row >= most)
        too_many_unknown(run, c);
    run->leaves = ends || c->leave != AH_OK || st != AH_OK || run->unknown_in_row >= most;
}

/* Files the batch's answers in request order. Returns false if one of them waits for a record. */
static bool end_batch(ah_run *run)
{
    for (; run->batch < run->next; run->batch++, run->n_filed++) {
        if (!may_file(run, &run->call[run->batch]))
            return false;
        end_call(run, &run->call[run->batch]);
    }
    if (!run->leaves)
        ah_inject_feedback(run, run->n_filed);
    run->n_filed = 0;
    return true;
}

/* {"reason":..,"section_keys":[..],"requested_overrides":{path:"full"}}, as far as they fit. */
static void put_restart_details(ah_run *run)
{
    ah_err *err = &run->result.err;
    ah_json_reader r;
    ah_json_token t;
    ah_buf list, b;
    size_t n = 0;

    ah_buf_init(&list, run->cfg.mem, 32 << 20);
    if (ah_buf_ok(&run->restarts.keys))
        ah_buf_fmt(&list, "[%.*s]", AH_FMT(ah_buf_slice(&run->restarts.keys)));
    ah_buf_init(&b, run->cfg.mem, sizeof err->details - 1);
    ah_buf_fmt(&b,
               "{\"reason\":\"Adapter does not support dynamic tools\",\"section_keys\":%.*s,"
               "\"requested_overrides\":{",
               AH_FMT(ah_buf_ok(&list) && list.len ? ah_buf_slice(&list) : ah_slice_of("[]")));
    r = ah_json_read(ah_buf_ok(&list) ? ah_buf_slice(&list) : ah_slice_of("[]"));
    ah_json_next(&r);
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r))
        ah_buf_fmt(&b, "%s\"%.*s\":\"full\"", n++ ? "," : "", AH_FMT(t.raw));
    ah_buf_str(&b, "}}");
    keep_details(err, &b);
    ah_buf_clear(&b);
    ah_buf_clear(&list);
}

/* A restart beyond the limit is neither made nor counted. */
static void refuse_restart(ah_run *run)
{
    ah_err_set(&run->result.err, AH_VISIBILITY_EXPANSION,
               "Section expansion requires restart, and this run has reached its limit "
               "(max_restarts = %d)",
               run->cfg.rules->max_restarts);
    run->result.err.phase = AH_PHASE_TOOL;
    put_restart_details(run);
    ah_run_fail(run);
}

static void tell_restart(ah_run *run)
{
    if (!run->restarts.due)
        return;
    if (run->restarts.keys.len)
        ah_metric_add(run->cfg.metrics, AH_METRIC_DISCLOSURE_RESTARTS, 1);
    ah_log_put(run->cfg.log, AH_LOG_INFO, "restart %d: Adapter does not support dynamic tools",
               run->restarts.n);
}

/* The adapter cannot take tools in mid-conversation: the same transcript goes on in a new session
 * of the wire. Restarts, and the sections opened by handlers, are not counted as iterations. */
static void restart(ah_run *run)
{
    if (run->restarts.n >= run->cfg.rules->max_restarts) {
        refuse_restart(run);
    } else {
        run->restarts.n++;
        tell_restart(run);
    }
    run->restarts.due = run->restarts.expanded = false;
    (void)ah_buf_ok(&run->restarts.keys); /* used only in the details of an error */
    ah_buf_reset(&run->restarts.keys, 0);
}

/* True if the user has sent a message during the turn. */
static bool has_queued(const ah_transcript *t)
{
    size_t i = 0;

    while (i < t->n_staged && t->staged[i].kind != AH_ENTRY_USER)
        i++;
    return i < t->n_staged;
}

/* A slot that got no answer for lack of memory is settled from its reserve. */
static void end_turn(ah_run *run)
{
    ah_transcript *t = run->cfg.transcript;
    bool direct = run->n_direct == run->n_calls, queued = has_queued(t);

    if (!direct)
        take_background(run);

    for (size_t i = 0; i < t->n_slots; i++)
        settle_slot(run, i, settle_words(AH_INTERNAL, true));
    ah_run_commit(run);
    ah_turn_clear(run);
    run->state = RUN_NEXT;
    run->handed_over = false;
    if (direct)
        ah_run_answer_direct(run, queued);
    else if (run->restarts.due || run->restarts.expanded)
        restart(run);
}

/* All calls have results. The turn stays open. */
static void end_replay(ah_run *run)
{
    ah_err err;

    ah_err_set(&err, AH_CANCELLED, "the handlers of the turn have run again");
    ah_run_stop_unsettled(run, &err);
}

bool ah_turn_await(ah_run *run)
{
    const ah_background *b = run->cfg.background;

    if (b->has(b->ud, run, true) && !has_queued(run->cfg.transcript))
        return false;
    take_background(run);
    ah_run_commit(run);
    run->state = RUN_NEXT;
    if (run->restarts.due || run->restarts.expanded)
        restart(run);
    return true;
}

bool ah_turn_settles_now(const ah_run *run)
{
    const ah_call *c = &run->call[run->batch];

    return run->batch + 1 == run->next && c->state == AH_CALL_ANSWERED && !c->record && !c->entry &&
           !c->overlay.first && !run->cfg.n_strategies && !run->cancel && !run->parked &&
           !ah_turn_may_begin(run);
}

void ah_turn_go_on(ah_run *run)
{
    if (ah_turn_may_begin(run)) {
        begin_more(run);
        return;
    }
    if (run->batch < run->next && !end_batch(run))
        return;
    if (run->leaves)
        ah_run_fail(run);
    else if (run->next < run->n_calls)
        begin_batch(run);
    else if (ah_run_replays(run))
        end_replay(run);
    else
        end_turn(run);
}

void ah_call_progress(ah_call *call, ah_slice message, double fraction)
{
    ah_field field[5] = {AH_F_STR("name", ah_text_slice(call->slot->name)),
                         AH_F_STR("id", ah_text_slice(call->slot->id))};
    size_t n = 2;
    ah_slice said;
    ah_buf b;

    said = ah_run_said(call->run, message, &b);
    if (said.p)
        field[n++] = (ah_field)AH_F_STR("message", said);
    if (fraction >= 0)
        field[n++] = (ah_field)AH_F_NUM("fraction", fraction);
    if (call->parent_call)
        field[n++] = (ah_field)AH_F_STR("parent_call", ah_text_slice(call->parent_call));
    ah_run_emit(call->run, AH_EVENT_TOOL_PROGRESS, field, n);
    ah_buf_clear(&b);
}

/* The earliest deadline of a running call, or 0. */
int64_t ah_turn_deadline(const ah_run *run)
{
    int64_t at = 0;

    for (size_t i = run->batch; i < run->next; i++) {
        const ah_call *c = &run->call[i];

        if (c->state == AH_CALL_RUNNING && c->deadline && (!at || c->deadline < at))
            at = c->deadline;
    }
    return at;
}

static void time_out(ah_run *run, ah_call *c)
{
    stop_call(run, c);
    run->running--;
    ah_call_refuse_late(c);
}

void ah_turn_tick(ah_run *run, int64_t now)
{
    for (size_t i = run->batch; i < run->next; i++) {
        ah_call *c = &run->call[i];

        if (c->state == AH_CALL_RUNNING && c->deadline && now >= c->deadline)
            time_out(run, c);
    }
}
