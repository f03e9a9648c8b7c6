/* Makes each override as its own set of changes, so that the next one sees the result. disclose.c
 * decides what follows from an override; inject.c makes it. */
#include "run/expand.h"

#include "run/disclose.h"
#include "run/tell.h"
#include "state/visibility.h"

enum { MAX_WORDS = 64 << 20, MAX_PATH = 4096, MAX_WHY = 16 << 20 };

static void tell_bound(ah_run *run, ah_call *call)
{
    ah_buf b;

    ah_buf_init(&b, ah_run_cfg(run)->mem, MAX_WHY);
    ah_buf_put(&b, ah_text_slice(call->leave_why));
    ah_buf_fmt(&b, "; this run has reached its limit of restarts (max_restarts = %d)",
               ah_run_cfg(run)->rules->max_restarts);
    if (ah_buf_cut_short(&b))
        ah_text_set(&call->leave_why, ah_text_new(ah_run_cfg(run)->mem, ah_buf_slice(&b)));
    ah_buf_clear(&b);
}

bool ah_expands(ah_run *run, ah_call *call)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    bool asks = call->leave == AH_VISIBILITY_EXPANSION && call->expansion && cfg->session;
    bool may = cfg->restarts->n < cfg->rules->max_restarts;

    if (asks && !may)
        tell_bound(run, call);
    return asks && may;
}

static ah_status show(ah_run *run, ah_call *call, ah_slice path, ah_visibility v, ah_buf *words,
                      ah_buf *hint, ah_err *err)
{
    ah_disclosure *d = ah_run_cfg(run)->disclosure;
    ah_changes c;
    ah_status st;

    ah_changes_init(&c, ah_run_cfg(run)->mem);
    st = ah_disclosure_request(d, run, path, v, &c, words, err);
    if (st == AH_OK)
        st = ah_inject_for(run, &c, AH_READ_SECTION, ah_text_slice(call->slot->name), hint, err);
    if (st == AH_OK && d)
        ah_disclosure_made(d);
    ah_changes_clear(&c);
    return st;
}

static ah_status show_all(ah_run *run, ah_call *call, ah_buf *words, ah_buf *hint, ah_err *err)
{
    ah_json_reader r =
        ah_json_read(ah_json_member(ah_text_slice(call->expansion), "requested_overrides"));
    ah_json_token key = ah_json_next(&r);
    ah_status st = ah_visibility_register(ah_run_cfg(run)->session, err);
    ah_buf path;

    ah_buf_init(&path, ah_run_cfg(run)->mem, MAX_PATH);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY && st == AH_OK; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        ah_buf_reset(&path, 0);
        ah_json_unescape(key.raw, &path);
        if (!ah_buf_ok(&path))
            st = ah_buf_error(&path, "the key of a section", err);
        else
            st = show(run, call, ah_buf_slice(&path),
                      ah_json_string_is(value, "full") ? AH_FULL : AH_SUMMARY, words, hint, err);
    }
    ah_buf_clear(&path);
    return st;
}

/* Adds a new system text, which names the tools in the new wire session. */
static ah_status retell(ah_run *run, ah_err *err)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    ah_changes c;
    ah_status st;

    if (!cfg->disclosure || !cfg->restarts->due)
        return AH_OK;
    ah_changes_init(&c, cfg->mem);
    st = ah_disclosure_retell(cfg->disclosure, run, &c, err);
    if (st == AH_OK && c.n)
        st = ah_inject_for(run, &c, AH_READ_SECTION, (ah_slice){NULL, 0}, NULL, err);
    ah_changes_clear(&c);
    return st;
}

static ah_status put_answer(ah_call *call, const ah_buf *words, ah_err *err)
{
    ah_text *content = NULL;
    ah_status st;
    ah_buf b;

    if (!call->content)
        return AH_OK;
    ah_buf_init(&b, words->mem, MAX_WORDS);
    ah_buf_put(&b, ah_text_slice(call->content));
    ah_buf_str(&b, "\n\nThe sections that it asked for are shown as it asked; call it again.");
    ah_buf_put(&b, ah_buf_slice(words));
    if ((st = ah_text_from_buf(&b, "tool result", &content, err)) == AH_OK)
        ah_text_set(&call->content, content);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_expand(ah_run *run, ah_call *call, ah_buf *hint, ah_err *err)
{
    ah_status st;
    ah_buf words;

    ah_log_put(ah_run_cfg(run)->log, AH_LOG_INFO, "Tool '%s' asks for sections: %.*s",
               call->slot->name->data, AH_FMT(ah_text_slice(call->expansion)));
    ah_buf_init(&words, ah_run_cfg(run)->mem, MAX_WORDS);
    st = show_all(run, call, &words, hint, err);
    if (st == AH_OK)
        st = retell(run, err);
    if (st == AH_OK && !ah_buf_ok(&words))
        st = ah_buf_error(&words, "tool result", err);
    if (st == AH_OK)
        st = put_answer(call, &words, err);
    if (st == AH_OK)
        ah_run_cfg(run)->restarts->expanded = true;
    ah_buf_clear(&words);
    return st;
}
