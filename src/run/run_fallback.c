/* Uses another model in place of one that is overloaded or unavailable. The conversation goes on in
 * the same transcript, with the new model in its settings, to the end of the run. The wire is made
 * anew, and lowers ids, reasoning and tools for the new model. */
#include "run/run_state.h"

enum { MAX_NAME = 4 << 10 };

/* True if another provider might answer. A wrong request or key is not an outage. */
static bool is_outage(const ah_err *err)
{
    if (err->status != AH_HTTP && err->status != AH_PROVIDER)
        return false;
    return err->retryable || err->http_status == 408 || err->http_status == 429 ||
           err->http_status >= 500;
}

static bool has_answered(const ah_transcript *t)
{
    return ah_transcript_last(t, AH_ENTRY_ASSISTANT).p != NULL;
}

static ah_adapter *next_one(ah_run *run)
{
    while (run->fallbacks < run->cfg.n_fallbacks) {
        ah_adapter *a = run->cfg.fallback[run->fallbacks++];

        if (!a->begins_only || !has_answered(run->cfg.transcript))
            return a;
        ah_log_put(run->cfg.log, AH_LOG_WARNING,
                   "fallback %s/%s is skipped: it cannot continue this conversation",
                   a->provider->data, a->model->data);
    }
    return NULL;
}

static void put_name(ah_buf *b, const ah_adapter *a)
{
    ah_buf_fmt(b, "%s/%s", a->provider->data, a->model->data);
}

static void tell(ah_run *run, const ah_buf *from, const ah_buf *to)
{
    ah_err *err = &run->result.err;
    ah_slice reason;

    ah_secrets_redact_err(run->cfg.secrets, err);
    ah_log_put(run->cfg.log, AH_LOG_WARNING, "fallback to %.*s: %s", AH_FMT(ah_buf_slice(to)),
               err->message);
    reason = ah_json_detail_of(err, "reason");
    EMIT_SOME(run, AH_EVENT_FALLBACK, reason.p ? 5 : 4, AH_F_STR("from", ah_buf_slice(from)),
              AH_F_STR("to", ah_buf_slice(to)), AH_F_STR("message", ah_slice_of(err->message)),
              AH_F_INT("status", err->http_status), AH_F_STR("reason", reason));
}

/* Records the new model in the settings. */
static ah_status say_model(ah_run *run, const ah_buf *name, ah_err *err)
{
    /* `learned` is about the previous model, and is dropped. */
    ah_setting set[] = {{"model", {NULL, 0}}, {"learned", {NULL, 0}}};
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, 8 * MAX_NAME);
    ah_json_put_string(&b, ah_buf_slice(name));
    set[0].value = ah_buf_slice(&b);
    st = ah_buf_ok(&b) && ah_buf_ok(name) ? ah_run_set(run, set, 2, err) : ah_err_nomem(err);
    ah_buf_clear(&b);
    return st;
}

static void use(ah_run *run, ah_adapter *to)
{
    ah_run_stop_exchange(run);
    ah_adapter_ref(to);
    ah_adapter_unref(run->cfg.adapter);
    run->cfg.adapter = to;
    ah_wire_use(run->cfg.wire, to, AH_BREAK_FALLBACK);
    run->attempt = 0;
    run->retry_at = run->now;
    run->state = RUN_BACKOFF;
}

bool ah_run_fall_back(ah_run *run)
{
    bool shown = ah_run_has_shown(run) && !run->cfg.fallback_after_output;
    ah_adapter *to = is_outage(&run->result.err) && !shown ? next_one(run) : NULL;
    ah_buf from, name;
    ah_err err;
    ah_status st;

    if (!to)
        return false;
    ah_buf_init(&from, run->cfg.mem, MAX_NAME);
    ah_buf_init(&name, run->cfg.mem, MAX_NAME);
    put_name(&from, run->cfg.adapter);
    put_name(&name, to);
    if ((st = say_model(run, &name, &err)) == AH_OK) {
        tell(run, &from, &name);
        use(run, to);
    } else {
        run->result.err = err;
    }
    ah_buf_clear(&from);
    ah_buf_clear(&name);
    return st == AH_OK;
}
