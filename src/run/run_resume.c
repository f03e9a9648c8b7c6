/* A run that goes on after its process has ended: its small state, the calls of its pending turn,
 * and its last answer are as the journal knows them. What was answered is not asked for again, and
 * a handler that had ended is not run again. The history is borrowed. */
#include "run/gate.h"
#include "run/restage.h"
#include "run/run_state.h"
#include "run/step.h"

static const ah_run_history *history(const ah_run *run)
{
    return run->cfg.history;
}

/* -- the state as it was -------------------------------------------------------------------- */

static ah_slice next_of(ah_json_reader *r)
{
    return ah_json_skip(r, ah_json_next(r));
}

static bool was_refused(const ah_transcript *t, size_t at)
{
    return at < t->n && t->entry[at].kind == AH_ENTRY_TOOL_RESULT &&
           ah_slice_is(ah_json_member(ah_text_slice(t->entry[at].json), "refused"), "true");
}

/* Shows the call to the loop detector. False: out of memory. */
static bool note_call(ah_run *run, ah_slice call)
{
    ah_buf name, arguments;
    bool ok, json;

    ah_buf_init(&name, run->cfg.mem, AH_MAX_ARGUMENTS);
    ah_buf_init(&arguments, run->cfg.mem, AH_MAX_ARGUMENTS);
    ah_json_string(ah_json_member(call, "name"), &name);
    ah_json_string(ah_json_member(call, "arguments"), &arguments);
    if ((ok = ah_buf_ok(&name) && ah_buf_ok(&arguments))) {
        json =
            ah_json_check(run->cfg.mem, ah_buf_slice(&arguments), AH_JSON_MAX_DEPTH, NULL) == AH_OK;
        (void)ah_loop_detector_note(&run->loop, ah_buf_slice(&name), ah_buf_slice(&arguments),
                                    json);
    }
    ah_buf_clear(&name);
    ah_buf_clear(&arguments);
    return ok;
}

/* Shows the first n calls of an answer to the loop detector, but for those that a strategy has
 * answered; the results are at `results` in the transcript. */
static bool note_calls(ah_run *run, ah_slice answer, size_t n, size_t results)
{
    ah_json_reader r = ah_json_read(ah_json_member(answer, "tool_calls"));
    bool ok = true;

    if (ah_json_next(&r).kind != AH_JSON_ARRAY)
        return true;
    for (size_t i = 0; i < n && ok; i++) {
        ah_slice call = next_of(&r);

        if (ah_json_kind_of(call) != AH_JSON_OBJECT)
            break;
        ok = was_refused(run->cfg.transcript, results + i) || note_call(run, call);
    }
    return ok;
}

static bool note_turns(ah_run *run)
{
    const ah_transcript *t = run->cfg.transcript;
    bool ok = true;

    for (size_t i = history(run)->first; i < t->n && ok; i++)
        if (t->entry[i].kind == AH_ENTRY_ASSISTANT)
            ok = note_calls(run, ah_text_slice(t->entry[i].json), AH_MAX_CALLS, i + 1);
    return ok;
}

static void restore(ah_run *run)
{
    const ah_run_progress *p = &history(run)->progress;

    run->result.iterations = p->iterations;
    run->result.rounds = p->rounds;
    run->result.tool_calls = p->tool_calls;
    run->result.usage = p->usage;
    run->check_rounds = p->check_rounds;
    run->empties = p->empties;
    run->repairs = p->repairs;
    run->restarts.n = p->restarts;
    run->unknown_in_row = p->unknown_in_row;
    run->last_round = p->last_round;
    run->number = history(run)->run;
    run->first = history(run)->first;
}

/* True if the settings in force name the model of this adapter. */
static bool is_set(const ah_run *run, const ah_adapter *a)
{
    ah_slice model = run->cfg.transcript->settings.model, name = ah_text_slice(a->model);
    ah_slice provider = ah_text_slice(a->provider);

    if (model.n < 2)
        return false;
    model = ah_json_inside(model);
    return model.n == provider.n + 1 + name.n && ah_slice_begins(model, a->provider->data) &&
           ah_slice_ends(model, a->model->data) && model.p[provider.n] == '/';
}

/* The fallbacks that were used or skipped: as of the last turn or request, or by the settings,
 * which name a later one. */
static size_t fallbacks_used(const ah_run *run)
{
    size_t n = history(run)->progress.fallbacks;

    for (size_t i = run->cfg.n_fallbacks; i > n && !is_set(run, run->cfg.adapter); i--)
        if (is_set(run, run->cfg.fallback[i - 1]))
            return i;
    return n < run->cfg.n_fallbacks ? n : run->cfg.n_fallbacks;
}

static void use_fallback(ah_run *run)
{
    size_t n = fallbacks_used(run);

    run->fallbacks = n;
    if (!n || run->cfg.adapter == run->cfg.fallback[n - 1])
        return;
    ah_adapter_unref(run->cfg.adapter);
    run->cfg.adapter = ah_adapter_ref(run->cfg.fallback[n - 1]);
    ah_wire_use(run->cfg.wire, run->cfg.adapter, AH_BREAK_FALLBACK);
}

static ah_stop stop_of(ah_slice answer)
{
    ah_slice stop = ah_json_member(answer, "stop");
    int s = AH_STOP_NONE;

    while (s < AH_STOP_CANCELLED && !ah_json_string_is(stop, ah_stop_name((ah_stop)s)))
        s++;
    return stop.p ? (ah_stop)s : AH_STOP_NONE;
}

/* Sets up the calls of the pending turn: the results are filled in request order, so the open ones
 * are at the end. */
static bool restore_calls(ah_run *run)
{
    const ah_transcript *t = run->cfg.transcript;
    const ah_run_history *h = history(run);
    size_t done = 0;

    if (!t->assistant)
        return true;
    run->result.stop = stop_of(ah_text_slice(t->assistant));
    if (!t->n_slots)
        return true;
    if (!ah_turn_new(run))
        return false;
    run->result.rounds++;
    run->result.tool_calls += t->n_slots;
    for (size_t i = 0; i < t->n_slots && i < h->n; i++)
        run->call[i].past = &h->call[i];
    while (done < t->n_slots && t->slot[done].result)
        done++;
    run->batch = run->next = done;
    return note_calls(run, ah_text_slice(t->assistant), done, t->n);
}

static void tell_lost(ah_run *run, ah_call *c)
{
    ah_record_lost(run, "call", c);
    ah_call_refuse(c, "The outcome of this call is unknown: the program ended while it ran. It was "
                      "not run again.");
}

/* The changes of the call are to be approved. They were shown before, or are shown now. */
static void show_again(ah_call *c)
{
    ah_slice ask = ah_text_slice(c->past->ask);
    bool asked = ask.p && ah_json_member(ask, "result").p;

    c->approver = ah_gate_approver(c);
    ah_call_show(c);
    if (c->past->again && c->state == AH_CALL_SHOWN) /* it was approved: some of them are made */
        c->state = AH_CALL_ANSWERED;
    if (!asked || c->state != AH_CALL_SHOWN)
        return;
    if (ah_resume_is_about(c, ask))
        (void)ah_resume_approval(c->run, c);
    else
        ah_call_take_back(c, "its changes were not made: what they are based on has changed since "
                             "a person was asked about them. Make the call again.");
}

/* The handler has ended: its outcome and its changes are as recorded. */
static void take_finished(ah_call *c)
{
    ah_slice finished = ah_text_slice(c->past->finished);
    bool success = ah_slice_is(ah_json_member(finished, "success"), "true");
    ah_err err;
    ah_status st = ah_call_read_outcome(c, success, ah_json_member(finished, "outcome"), &err);

    c->recorded = AH_RECORDED_FINISH;
    if (success && c->tool && c->tool->background) { /* it had begun, and was not yet answered */
        tell_lost(c->run, c);
        return;
    }
    if (st == AH_OK && success && c->past->staged)
        st = ah_call_restage(c, ah_text_slice(c->past->staged), &err);
    if (st != AH_OK)
        ah_call_refuse(c, "Tool '%s' execution failed: %s", c->slot->name->data, err.message);
    else if (c->state == AH_CALL_SHOWN && !ah_run_replays(c->run))
        show_again(c);
}

/* The run was to end before its process did: the calls that had ended count as in that process. */
static void go_on_cancelling(ah_run *run)
{
    for (size_t i = run->next; i < run->n_calls; i++)
        if (run->call[i].past && run->call[i].past->finished)
            take_finished(&run->call[i]);
    run->next = run->n_calls;
    ah_run_cancel(run, AH_CANCELLED, "the run was cancelled, and its process ended before it did");
}

bool ah_resume_begin(ah_run *run)
{
    bool ok;

    run->resuming = true;
    restore(run);
    use_fallback(run);
    ok = note_turns(run) && restore_calls(run);
    if (ok && history(run)->cancelled)
        go_on_cancelling(run);
    return ok;
}

/* -- its first step ------------------------------------------------------------------------------
 */

static size_t lost_calls(const ah_run *run)
{
    const ah_transcript *t = run->cfg.transcript;
    size_t n = 0;

    for (size_t i = 0; i < run->n_calls; i++) {
        const ah_call_history *p = run->call[i].past;

        n += p && p->started && !p->finished && !t->slot[i].result;
    }
    return n;
}

static void tell(ah_run *run)
{
    const ah_run_history *h = history(run);

    run->started = true;
    if (h->lost_requests)
        ah_record_lost(run, "request", NULL);
    EMIT(run, AH_EVENT_RESUMED, AH_F_STR("provider", ah_text_slice(run->cfg.adapter->provider)),
         AH_F_STR("model", ah_text_slice(run->cfg.adapter->model)),
         AH_F_INT("from", run->result.iterations), AH_F_INT("lost_calls", lost_calls(run)),
         AH_F_INT("lost_requests", h->lost_requests));
    if (run->cfg.untold)
        ah_drift_warnings_tell(run->cfg.untold, run);
}

static const ah_tool *tool_of(const ah_run *run, ah_slice entry)
{
    ah_slice name = ah_json_member(entry, "name");

    return name.p ? ah_registry_find(run->cfg.registry, ah_json_inside(name)) : NULL;
}

/* Keeps a result that may be part of the answer. */
static void keep_direct(ah_run *run, ah_slice entry)
{
    const ah_tool *tool = tool_of(run, entry);
    ah_buf content;

    if (!tool || !tool->direct || !ah_slice_is(ah_json_member(entry, "success"), "true"))
        return;
    ah_buf_init(&content, run->cfg.mem, AH_MAX_TEXT);
    ah_json_string(ah_json_member(entry, "content"), &content);
    if (ah_buf_ok(&content))
        ah_turn_keep_direct(run, ah_buf_slice(&content));
    ah_buf_clear(&content);
}

/* Sets *out to the tool of this name that the agent has in reserve, if its specification is this
 * one; else to a stale tool. */
static ah_status make_tool(ah_run *run, ah_slice name, ah_slice spec, ah_tool **out, ah_err *err)
{
    const ah_run_config *cfg = &run->cfg;
    ah_tool *there = cfg->find_tool ? cfg->find_tool(cfg->on_ud, ah_json_inside(name)) : NULL;

    if (there && !there->stale && ah_slice_eq(ah_text_slice(there->spec), spec)) {
        *out = ah_tool_ref(there);
        return AH_OK;
    }
    return ah_tool_stale(cfg->mem, spec, out, err);
}

/* Puts the tool into the registry, unless one of its name is there. */
static ah_status know_tool(ah_run *run, ah_slice spec, ah_err *err)
{
    ah_slice name = ah_json_member(spec, "name");
    ah_tool *tool = NULL;
    ah_status st;

    if (ah_json_kind_of(name) != AH_JSON_STRING ||
        ah_registry_find(run->cfg.registry, ah_json_inside(name)))
        return AH_OK;
    st = make_tool(run, name, spec, &tool, err);
    if (st == AH_OK)
        st = ah_registry_put(run->cfg.registry, tool, err);
    ah_tool_unref(tool);
    return st;
}

/* Makes the changes of tools that are in one staged entry. */
static ah_status know_tools(ah_run *run, const ah_entry *e, ah_err *err)
{
    bool adds = e->kind == AH_ENTRY_TOOLS_ADDED;
    ah_slice list = ah_json_member(ah_text_slice(e->json), adds ? "tools" : "names");
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY || (!adds && e->kind != AH_ENTRY_TOOLS_REMOVED))
        return AH_OK;
    for (t = ah_json_next(&r); t.kind != AH_JSON_ARRAY_END && st == AH_OK; t = ah_json_next(&r)) {
        ah_slice item = ah_json_skip(&r, t);

        if (adds)
            st = know_tool(run, item, err);
        else if (t.kind == AH_JSON_STRING)
            (void)ah_registry_remove(run->cfg.registry, ah_json_inside(item));
    }
    return st;
}

/* The calls of the pending turn that are filed have changed tools, or handed the conversation over:
 * the entries are staged. */
static ah_status know_staged(ah_run *run, ah_err *err)
{
    const ah_transcript *t = run->cfg.transcript;
    size_t n = t->n_staged;
    ah_status st = AH_OK;

    if (run->recorder && run->recorder->staged < n)
        n = run->recorder->staged;
    for (size_t i = 0; i < n && st == AH_OK; i++)
        st = know_tools(run, &t->staged[i], err);
    if (st == AH_OK)
        ah_resume_hand_over(run, n);
    return st;
}

/* Goes on with the calls that are open. */
static void resume_calls(ah_run *run)
{
    const ah_transcript *t = run->cfg.transcript;

    if (know_staged(run, &run->result.err) != AH_OK) {
        ah_run_fail(run);
        return;
    }
    for (size_t i = 0; i < run->next; i++)
        keep_direct(run, ah_text_slice(t->slot[i].result));
    if (run->next < run->n_calls)
        ah_turn_refuse_cut(run);
    run->state = RUN_CALLING;
}

/* Appends the texts of an answer of one type: "text" or "refusal". */
static void put_texts(ah_slice answer, const char *type, ah_buf *out)
{
    ah_json_reader r = ah_json_read(ah_json_member(answer, "content"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice part = ah_json_skip(&r, t);

        if (ah_json_string_is(ah_json_member(part, "type"), type))
            ah_json_string(ah_json_member(part, "text"), out);
    }
}

/* Sets run->text to that of an answer. False: out of memory, and the run fails. */
static bool keep_text(ah_run *run, ah_slice answer)
{
    ah_buf_reset(&run->text, 0);
    put_texts(answer, "text", &run->text);
    if (ah_buf_ok(&run->text) && !run->text.len)
        put_texts(answer, "refusal", &run->text);
    run->result.stop = stop_of(answer);
    if (ah_buf_ok(&run->text))
        return true;
    ah_buf_error(&run->text, "the answer", &run->result.err);
    ah_run_fail(run);
    return false;
}

/* True for entries that a turn may have behind its answer and results. */
static bool goes_with_turn(ah_entry_kind kind)
{
    return kind != AH_ENTRY_USER && kind != AH_ENTRY_ASSISTANT && kind != AH_ENTRY_TOOL_RESULT;
}

/* Finds the last turn of the run if nothing was said after it. Returns the index of its answer, or
 * the number of entries; *results: how many results follow it. */
static size_t last_turn(const ah_run *run, size_t *results)
{
    const ah_transcript *t = run->cfg.transcript;
    size_t i = t->n;

    *results = 0;
    while (i > run->first && goes_with_turn(t->entry[i - 1].kind))
        i--;
    for (; i > run->first && t->entry[i - 1].kind == AH_ENTRY_TOOL_RESULT; i--)
        ++*results;
    return i > run->first && t->entry[i - 1].kind == AH_ENTRY_ASSISTANT ? i - 1 : t->n;
}

/* The last turn is committed: it may hold the answer of the run. */
static void resume_between(ah_run *run)
{
    const ah_transcript *t = run->cfg.transcript;
    size_t results, at = last_turn(run, &results);

    run->state = RUN_NEXT;
    if (at == t->n)
        return;
    if (!results) {
        if (keep_text(run, ah_text_slice(t->entry[at].json)))
            ah_run_take_last(run, false);
        return;
    }
    for (size_t i = 1; i <= results; i++)
        keep_direct(run, ah_text_slice(t->entry[at + i].json));
    if (run->n_direct == results)
        ah_run_answer_direct(run, false);
}

void ah_resume(ah_run *run)
{
    run->resuming = false;
    tell(run);
    run->n_direct = 0;
    if (run->n_calls)
        resume_calls(run);
    else if (!run->cfg.transcript->assistant)
        resume_between(run);
    else if (keep_text(run, ah_text_slice(run->cfg.transcript->assistant)))
        ah_run_no_calls(run);
}

/* -- its calls ------------------------------------------------------------------------------------
 */

static void seek(ah_run *run, ah_call *c)
{
    c->state = AH_CALL_SEEKING;
    c->need = ++run->last_id;
    run->running++;
    ah_run_raise(run, (ah_need){.kind = AH_NEED_LOST, .id = c->need, .call = c});
}

/* The handler had begun, and its end is not recorded. */
/* Enters the handler again, if what it gets is recorded. */
static void replay(ah_run *run, ah_call *c)
{
    const char *secret = ah_steps_can_reenter(c->past) ? NULL : "a secret step";
    const char *why = c->tool->background ? "work in the background" : secret;

    if (!why) {
        ah_turn_start(run, c);
        return;
    }
    ah_record_lost(run, why, c);
    ah_call_refuse(c, "Tool '%s' was not run: %s is not recorded.", c->slot->name->data, why);
}

static void take_lost(ah_run *run, ah_call *c, const ah_callees *who)
{
    const ah_hooks *h = run->cfg.hooks;
    ah_slice key = ah_json_member(ah_text_slice(c->past->started), "key");

    c->recorded = AH_RECORDED_START;
    if (key.p && ah_json_kind_of(key) == AH_JSON_STRING)
        ah_text_set(&c->key, ah_text_new(run->cfg.mem, ah_json_inside(key)));
    if (!ah_call_prepare_again(c, who, ah_text_slice(c->past->arguments), run->now)) {
        if (!ah_run_replays(run))
            tell_lost(run, c);
    } else if (ah_run_replays(run))
        replay(run, c);
    else if ((c->tool->durable && ah_steps_can_reenter(c->past)) ||
             c->tool->on_lost == AH_LOST_RETRY)
        ah_turn_start(run, c);
    else if (c->tool->on_lost == AH_LOST_TELL || !h || !h->lost || !h->stop_lost)
        tell_lost(run, c);
    else
        seek(run, c);
}

bool ah_resume_call(ah_run *run, ah_call *c, const ah_callees *who)
{
    if (!c->past || !c->past->started)
        return false;
    if (c->past->finished) {
        ah_call_know_tool(c, who);
        take_finished(c);
    } else {
        take_lost(run, c, who);
    }
    return true;
}

static void settle_found(ah_run *run, ah_call *c, ah_slice value)
{
    const ah_outcome o = {.success = true, .value = value};

    c->state = AH_CALL_RUNNING;
    ah_call_settle(c, &o, run->cfg.session);
}

/* Records that the handler begins: what was found out holds for the time before. */
static void begin_anew(ah_run *run, ah_call *c)
{
    c->recorded = AH_RECORDED_NOTHING;
    ah_turn_start(run, c);
}

void ah_call_found(ah_call *call, ah_found how, ah_slice value, int64_t now)
{
    ah_run *run = call->run;

    if (call->state != AH_CALL_SEEKING)
        return;
    if (now > run->now)
        run->now = now;
    run->running--;
    call->need = 0;
    if (how == AH_FOUND_DONE)
        settle_found(run, call, value);
    else if (how == AH_FOUND_UNDONE)
        begin_anew(run, call);
    else
        tell_lost(run, call);
}

/* -- approvals
 * ------------------------------------------------------------------------------------- */

bool ah_resume_is_about(const ah_call *c, ah_slice ask)
{
    ah_slice about = ah_json_member(ask, "about");
    char now[AH_CALL_HASH];

    return about.p && ah_call_about(c, now) && ah_json_string_is(about, now);
}

static bool same_definition(const ah_call *c, ah_slice ask)
{
    char now[AH_CALL_HASH];

    ah_call_definition(c->tool, now);
    return ah_json_string_is(ah_json_member(ask, "definition"), now);
}

void ah_resume_explain(ah_call *c)
{
    ah_slice ask = c->past ? ah_text_slice(c->past->ask) : (ah_slice){NULL, 0}, before;
    ah_text *text = NULL;
    ah_buf b;

    if (!ask.p || c->asks > 1 || ah_resume_is_about(c, ask))
        return;
    before = ah_json_member(ask, "arguments");
    ah_buf_init(&b, c->overlay.mem, AH_MAX_TEXT);
    ah_buf_fmt(&b, "%.*s (asked again: ", AH_FMT(ah_text_slice(c->reason)));
    if (!same_definition(c, ask))
        ah_buf_str(&b, "the definition of the tool has changed since)");
    else
        ah_buf_fmt(&b, "the arguments were %.*s)", AH_FMT(before.p ? before : ah_slice_of("{}")));
    if (ah_text_from_buf(&b, "reason", &text, NULL) == AH_OK)
        ah_text_set(&c->reason, text);
    ah_buf_clear(&b);
}

/* True if the ask has a response to what the call is about now. In a replay the response is taken
 * as it was. */
static bool has_response(const ah_run *run, const ah_call *c)
{
    ah_slice ask;

    if (!c->past || !c->past->ask || !c->past->response)
        return false;
    ask = ah_text_slice(c->past->ask);
    return ah_run_replays(run) ? ah_json_member(ask, "result").p != NULL
                               : ah_resume_is_about(c, ask);
}

bool ah_resume_approval(ah_run *run, ah_call *c)
{
    ah_slice response, args, why;
    bool approved;
    ah_buf words;

    if (!has_response(run, c))
        return false;
    response = ah_json_member(ah_text_slice(c->past->response), "response");
    if (!response.p)
        return false;
    approved =
        ah_slice_is(response, "true") || ah_slice_is(ah_json_member(response, "approved"), "true");
    args = ah_json_member(response, "arguments");
    why = ah_json_member(response, "why");
    ah_buf_init(&words, run->cfg.mem, AH_MAX_REASON);
    ah_json_string(why, &words);
    run->running++; /* ended by ah_call_approved */
    ah_call_approved(c, approved, ah_json_kind_of(args) == AH_JSON_OBJECT ? args : (ah_slice){0},
                     ah_buf_ok(&words) ? ah_buf_slice(&words) : ah_slice_of(""), run->now);
    ah_buf_clear(&words);
    return true;
}
