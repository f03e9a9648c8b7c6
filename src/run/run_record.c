/* The records of a run, each made from its state; docs/reference/journal.md has their members. The
 * state machine decides when each is made and which are waited for, the recorder makes them safe to
 * show and knows what is new. Borrows the run. */
#include "base/sha256.h"
#include "run/restage.h"
#include "run/run_state.h"
#include "run/step.h"
#include "wire/prints.h"

static const ah_slice nothing = {NULL, 0};

/* NULL: nothing is recorded. */
static ah_recorder *recorder(const ah_run *run)
{
    return ah_recorder_on(run->recorder) ? run->recorder : NULL;
}

static void begin(const ah_run *run, ah_buf *b, const ah_call *c)
{
    ah_buf_init(b, run->cfg.mem, AH_STORE_MAX_RECORD);
    ah_buf_char(b, '{');
    if (c)
        ah_buf_fmt(b, "\"call\":%zu", c->at);
}

/* Ends the object, and records it. */
static void end(const ah_run *run, ah_record_kind kind, ah_buf *b, ah_slice kept)
{
    ah_buf_char(b, '}');
    ah_recorder_put(run->recorder, kind, b, kept);
    ah_buf_clear(b);
}

static void put_progress(const ah_run *run, ah_buf *b)
{
    const ah_run_result *r = &run->result;
    const ah_run_progress p = {.iterations = r->iterations,
                               .rounds = r->rounds,
                               .check_rounds = run->check_rounds,
                               .empties = run->empties,
                               .repairs = run->repairs,
                               .restarts = run->restarts.n,
                               .unknown_in_row = run->unknown_in_row,
                               .tool_calls = r->tool_calls,
                               .fallbacks = run->fallbacks,
                               .last_round = run->last_round,
                               .usage = r->usage};

    ah_json_add_name(b, "progress");
    ah_run_progress_print(&p, b);
}

/* -- hashes -------------------------------------------------------------------------------- */

static void add_part(ah_sha256 *s, ah_slice part)
{
    ah_sha256_add(s, part);
    ah_sha256_add(s, (ah_slice){"", 1});
}

static void write_hash(ah_sha256 *s, char out[AH_CALL_HASH])
{
    ah_sha256_end_hex(s, out);
    out[AH_CALL_HASH - 1] = '\0';
}

void ah_call_definition(const ah_tool *tool, char out[AH_CALL_HASH])
{
    const ah_tool *full = tool->full ? tool->full : tool;
    ah_sha256 s;

    ah_sha256_begin(&s);
    add_part(&s, ah_text_slice(full->spec));
    add_part(&s, full->result ? ah_text_slice(ah_schema_text(full->result)) : nothing);
    write_hash(&s, out);
}

bool ah_call_about(const ah_call *call, char out[AH_CALL_HASH])
{
    ah_sha256 s;
    ah_buf args;
    bool ok;

    if (call->state == AH_CALL_SHOWN) {
        memcpy(out, call->about->data, AH_CALL_HASH);
        return true;
    }
    ah_call_definition(call->tool, out);
    ah_sha256_begin(&s);
    add_part(&s, (ah_slice){out, AH_CALL_HASH - 1});
    ah_buf_init(&args, call->overlay.mem, AH_STORE_MAX_RECORD);
    ok = ah_json_canon(call->overlay.mem, ah_text_slice(call->args), &args) == AH_OK &&
         ah_buf_ok(&args);
    if (ok)
        add_part(&s, ah_buf_slice(&args));
    write_hash(&s, out);
    ah_buf_clear(&args);
    return ok;
}

/* The idempotency key. NULL: out of memory. */
static ah_text *key_of(const ah_run *run, const ah_call *c)
{
    char number[24], hash[AH_CALL_HASH];
    ah_sha256 s;

    ah_print(number, sizeof number, "%lld", (long long)run->number);
    ah_sha256_begin(&s);
    add_part(&s, ah_text_slice(run->recorder->stream));
    add_part(&s, ah_slice_of(number));
    add_part(&s, ah_text_slice(c->slot->id));
    add_part(&s, ah_text_slice(c->slot->name));
    write_hash(&s, hash);
    return ah_text_new(run->cfg.mem, ah_slice_of(hash));
}

/* -- the beginning and the end ----------------------------------------------------------------- */

void ah_record_started(ah_run *run)
{
    ah_recorder *r = recorder(run);
    ah_buf b;

    if (!r || run->number)
        return;
    run->number = ++r->runs;
    run->first = r->entries;
    r->in_run = true;
    begin(run, &b, NULL);
    ah_json_add_int(&b, "run", run->number);
    ah_json_add_int(&b, "first", (int64_t)run->first);
    if (run->cfg.lasting_deadline)
        ah_json_add_int(&b, "deadline", ah_run_wall(run) + run->cfg.lasting_deadline - run->now);
    end(run, AH_RECORD_RUN_STARTED, &b, nothing);
    ah_recorder_note(r);
}

/* Appends the use since the last record that had it, if that is not the answer alone. */
static void put_spent(const ah_run *run, bool answer, ah_buf *b)
{
    ah_recorder *r = run->recorder;
    ah_spent *counted = r->account ? &r->account->counted : NULL;

    if (!counted || (!counted->answers && !counted->cut))
        return;
    if (!answer || counted->answers > 1 || counted->cut) {
        ah_json_add_name(b, "spent");
        ah_spent_print(counted, b);
    }
    counted->since = ah_run_wall(run);
    ah_spent_add(&r->spent, counted);
    *counted = (ah_spent){0};
}

static void put_answer(const ah_run *run, ah_buf *b)
{
    const ah_err *err = &run->result.err;
    bool success = err->status == AH_OK;

    ah_buf_str(b, success ? ",\"success\":true" : ",\"success\":false");
    ah_json_add_string(b, "code", ah_slice_of(success ? "" : ah_status_name(err->status)));
    if (!success)
        ah_json_add_string(b, "message", ah_slice_of(err->message));
    if (run->text.len && ah_buf_ok(&run->text))
        ah_json_add_string(b, "text", ah_buf_slice(&run->text));
    if (success)
        ah_json_add(b, "value", ah_text_slice(run->value));
    ah_json_add_string(b, "stop", ah_slice_of(ah_stop_name(run->result.stop)));
}

void ah_record_ended(ah_run *run)
{
    ah_recorder *r = recorder(run);
    ah_buf b;

    if (!r)
        return;
    ah_record_started(run);
    ah_recorder_note(r);
    begin(run, &b, NULL);
    ah_json_add_int(&b, "run", run->number);
    ah_json_add_int(&b, "first", (int64_t)run->first);
    put_answer(run, &b);
    put_progress(run, &b);
    put_spent(run, false, &b);
    r->in_run = false;
    end(run, AH_RECORD_RUN_ENDED, &b, nothing);
}

void ah_record_cancelled(ah_run *run)
{
    ah_buf b;

    if (!recorder(run) || !run->number || (run->cfg.history && run->cfg.history->cancelled))
        return;
    begin(run, &b, NULL);
    end(run, AH_RECORD_CANCELLED, &b, nothing);
}

void ah_record_lost(ah_run *run, const char *what, const ah_call *c)
{
    ah_buf b;

    if (!recorder(run))
        return;
    begin(run, &b, c);
    ah_json_add_string(&b, "what", ah_slice_of(what));
    end(run, AH_RECORD_LOST, &b, nothing);
}

/* -- exchanges ------------------------------------------------------------------------------------
 */

void ah_record_request(ah_run *run)
{
    ah_recorder *r = recorder(run);
    const ah_adapter *a = run->cfg.adapter;
    ah_buf b, bytes;

    if (!r)
        return;
    ah_recorder_note(r);
    ah_buf_init(&bytes, run->cfg.mem, AH_STORE_MAX_RECORD);
    begin(run, &b, NULL);
    ah_json_add(&b, "model",
                run->cfg.wire->settings.model.n ? run->cfg.wire->settings.model
                                                : ah_slice_of("\"\""));
    ah_json_add_string(&b, "adapter", ah_text_slice(a->provider));
    ah_json_add_int(&b, "attempt", run->attempt + 1);
    ah_json_add_int(&b, "entries", (int64_t)run->cfg.transcript->n);
    if (run->fallbacks)
        ah_json_add_int(&b, "fallbacks", (int64_t)run->fallbacks);
    ah_prints_put(run->cfg.wire, &b, r->bytes ? &bytes : NULL);
    if (!ah_buf_ok(&bytes))
        r->broken = AH_NOMEM;
    end(run, AH_RECORD_REQUEST, &b, r->bytes ? ah_buf_slice(&bytes) : nothing);
    ah_buf_clear(&bytes);
}

/* Appends the bytes of the response, which may be any, to an open object or none. A response that
 * found no room is left out, as the answer itself is recorded. */
static void put_heard(const ah_run *run, ah_buf *out)
{
    ah_buf text;

    ah_buf_init(&text, run->cfg.mem, AH_STORE_MAX_RECORD);
    if (ah_buf_ok(&run->heard))
        ah_utf8_repair(ah_buf_slice(&run->heard), &text);
    if (ah_buf_ok(&text)) {
        ah_buf_str(out, out->len ? "" : "{");
        ah_json_add_string(out, "bytes", ah_buf_slice(&text));
    }
    ah_buf_clear(&text);
}

/* Begins an object with a list for the calls: the arguments as a string, or null if they have no
 * keys in them. Appends nothing if none has. */
static void put_originals(const ah_transcript *t, ah_buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_slots; i++)
        n += t->slot[i].original != NULL;
    for (size_t i = 0; n && i < t->n_slots; i++) {
        ah_buf_str(out, i ? "," : "{\"arguments\":[");
        if (t->slot[i].original)
            ah_json_put_string(out, ah_text_slice(t->slot[i].original));
        else
            ah_buf_str(out, "null");
    }
    ah_buf_str(out, n ? "]" : "");
}

void ah_record_answer(ah_run *run)
{
    ah_recorder *r = recorder(run);
    ah_slice entry = ah_text_slice(run->cfg.transcript->assistant);
    ah_buf b, kept;

    if (!r)
        return;
    if (run->cfg.transcript->n > r->entries) /* settings that the answer has confirmed */
        ah_recorder_note_before_turn(r);
    begin(run, &b, NULL);
    ah_json_add(&b, "entry", entry);
    ah_json_add_int(&b, "iteration", run->result.iterations);
    ah_json_add_string(&b, "stop", ah_slice_of(ah_stop_name(run->result.stop)));
    ah_json_add(&b, "usage", ah_json_member(entry, "usage"));
    put_spent(run, true, &b);
    r->answered = true;
    ah_buf_init(&kept, run->cfg.mem, AH_STORE_MAX_RECORD);
    put_originals(run->cfg.transcript, &kept);
    if (r->bytes && run->heard.len)
        put_heard(run, &kept);
    ah_buf_str(&kept, kept.len ? "}" : "");
    if (!ah_buf_ok(&kept))
        r->broken = AH_NOMEM;
    end(run, AH_RECORD_ANSWER, &b, kept.len ? ah_buf_slice(&kept) : nothing);
    ah_buf_clear(&kept);
}

/* -- calls ---------------------------------------------------------------------------------------
 */

void ah_record_call_started(ah_run *run, ah_call *c)
{
    char definition[AH_CALL_HASH];
    ah_buf b;

    if (!recorder(run))
        return;
    ah_text_set(&c->key, key_of(run, c));
    if (!c->key) {
        run->recorder->broken = AH_NOMEM;
        return;
    }
    ah_call_definition(c->tool, definition);
    begin(run, &b, c);
    ah_json_add_string(&b, "id", ah_text_slice(c->slot->id));
    ah_json_add_string(&b, "tool", ah_text_slice(c->slot->name));
    ah_json_add_string(&b, "key", ah_text_slice(c->key));
    ah_json_add_string(&b, "definition", ah_slice_of(definition));
    ah_json_add_string(&b, "on_lost", ah_slice_of(ah_on_lost_names[c->tool->on_lost]));
    if (c->tool->durable)
        ah_buf_str(&b, ",\"durable\":true");
    c->recorded = AH_RECORDED_START;
    end(run, AH_RECORD_CALL_STARTED, &b, c->changed_args ? ah_text_slice(c->args) : nothing);
}

static void put_finished(ah_run *run, ah_call *c)
{
    ah_buf b, staged;

    ah_buf_init(&staged, run->cfg.mem, AH_STORE_MAX_RECORD);
    if (c->success && (c->overlay.first || c->overlay.n || c->changes.n))
        ah_call_print_staged(c, &staged);
    begin(run, &b, c);
    ah_buf_str(&b,
               c->success ? ",\"success\":true,\"outcome\":" : ",\"success\":false,\"outcome\":");
    ah_call_print_outcome(c, &b);
    c->recorded = AH_RECORDED_FINISH;
    if (!ah_buf_ok(&staged))
        run->recorder->broken = AH_NOMEM;
    else if (staged.len && c->state == AH_CALL_SHOWN)
        c->lost = ah_json_member(ah_buf_slice(&staged), "lost").p != NULL;
    end(run, AH_RECORD_CALL_FINISHED, &b, staged.len ? ah_buf_slice(&staged) : nothing);
    ah_buf_clear(&staged);
}

void ah_record_finished(ah_run *run)
{
    if (!recorder(run))
        return;
    for (size_t i = run->batch; i < run->next; i++) {
        ah_call *c = &run->call[i];

        if (c->state >= AH_CALL_SHOWN && c->recorded == AH_RECORDED_START)
            put_finished(run, c);
    }
}

static void put_announced(ah_run *run, ah_call *c, const ah_buf *files, const ah_buf *kept)
{
    ah_buf b;

    ah_recorder_queue(run->recorder);
    begin(run, &b, c);
    ah_json_add(&b, "result", ah_text_slice(c->entry));
    ah_recorder_put_changes(run->recorder, &c->overlay, &b);
    ah_json_add(&b, "files", ah_buf_slice(files));
    c->recorded = AH_RECORDED_CHANGES;
    end(run, AH_RECORD_SETTLED, &b, ah_buf_slice(kept));
}

bool ah_record_announced(ah_run *run, ah_call *c)
{
    bool any;
    ah_buf files, kept;

    if (!recorder(run))
        return false;
    ah_buf_init(&files, run->cfg.mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&kept, run->cfg.mem, AH_STORE_MAX_RECORD);
    any = ah_overlay_print_settled(&c->overlay, &files, &kept);
    if (!ah_buf_ok(&files) || !ah_buf_ok(&kept))
        run->recorder->broken = AH_NOMEM;
    else if (any)
        put_announced(run, c, &files, &kept);
    ah_buf_clear(&kept);
    ah_buf_clear(&files);
    return any;
}

static void put_settled(ah_run *run, const ah_call *c, ah_slice entry)
{
    ah_buf b;

    begin(run, &b, c);
    ah_json_add(&b, "result", entry);
    ah_recorder_put_changes(run->recorder, NULL, &b);
    end(run, AH_RECORD_SETTLED, &b, nothing);
}

void ah_record_settled(ah_run *run, ah_call *c, ah_slice entry)
{
    if (recorder(run) && c->recorded != AH_RECORDED_SETTLED)
        put_settled(run, c, entry);
    else
        ah_record_queued(run); /* changes of tools */
    c->recorded = AH_RECORDED_SETTLED;
}

void ah_record_applied(ah_run *run, ah_call *c, bool done)
{
    ah_recorder *r = recorder(run);
    ah_buf b;

    if (!r)
        return;
    ah_recorder_applied(r, done);
    begin(run, &b, c);
    if (!done)
        ah_json_add(&b, "result", ah_text_slice(c->entry));
    c->recorded = AH_RECORDED_SETTLED;
    end(run, done ? AH_RECORD_APPLIED : AH_RECORD_APPLY_FAILED, &b, nothing);
}

/* -- turns ---------------------------------------------------------------------------------------
 */

void ah_record_queued(ah_run *run)
{
    ah_recorder *r = recorder(run);

    if (r && run->number && r->staged < run->cfg.transcript->n_staged)
        ah_recorder_queue(r);
}

void ah_record_turn(ah_run *run)
{
    ah_recorder *r = recorder(run);
    ah_transcript *t = run->cfg.transcript;
    ah_buf b;

    if (!r || !run->number || (!t->assistant && !t->n_staged))
        return;
    if (t->assistant && !r->answered) { /* for lack of memory */
        r->broken = AH_NOMEM;
        return;
    }
    if (!t->assistant)
        ah_recorder_queue(r);
    begin(run, &b, NULL);
    put_progress(run, &b);
    ah_recorder_put_changes(r, NULL, &b);
    r->answered = true;
    end(run, AH_RECORD_TURN, &b, nothing);
}

void ah_record_committed(ah_run *run)
{
    ah_recorder *r = recorder(run);

    if (!r)
        return;
    if (r->answered)
        ah_recorder_committed(r);
    else
        ah_recorder_note(r);
}

/* -- waiting -------------------------------------------------------------------------------------
 */

uint32_t ah_record_wait(ah_run *run, ah_call *c, bool effect)
{
    uint32_t id = ++run->last_id;

    if (recorder(run))
        ah_run_raise(run, (ah_need){.kind = AH_NEED_RECORD, .id = id, .call = c, .effect = effect});
    return id;
}

bool ah_record_broke(ah_run *run)
{
    ah_err err;

    if (!run->recorder || ah_recorder_state(run->recorder, &err) == AH_OK)
        return false;
    run->recorder = NULL;
    run->result.err = err;
    return true;
}

bool ah_run_replays(const ah_run *run)
{
    return run->recorder && run->recorder->replays;
}

bool ah_record_is_over(const ah_run *run)
{
    return run->cfg.recorder && run->cfg.recorder->sink.put && !recorder(run);
}

/* Ends what waited for this record. Returns false if nothing did. */
static bool take_record(ah_run *run, ah_call *c, uint32_t id)
{
    if (!c && run->state == RUN_CLOSING && id == run->closing) {
        run->closing = 0;
        return true;
    }
    if (!c || !c->record || c->record != id)
        return false;
    c->record = 0;
    return true;
}

static void fail(ah_run *run, const ah_err *err)
{
    run->recorder->broken = AH_STORE;
    run->recorder = NULL;
    run->result.err = *err;
    if (run->state != RUN_SETTLING && run->state != RUN_CLOSING)
        ah_run_fail(run);
}

void ah_run_recorded(ah_run *run, ah_call *call, uint32_t id, const ah_err *err)
{
    if (call && ah_step_recorded(call, id, err)) {
        if (run->recorder && err && err->status != AH_OK)
            fail(run, err);
        if (run->wake)
            run->wake(run->owner);
        return;
    }
    if (!take_record(run, call, id))
        return;
    if (run->recorder && err && err->status != AH_OK)
        fail(run, err);
    else if (call && call->state == AH_CALL_RECORDING)
        ah_turn_started(run, call);
    if (run->wake)
        run->wake(run->owner);
}
