/* What a run learns of a model that does less than its name says: tools that change in
 * mid-conversation, and a search of its own among deferred ones. Only an answer makes it sure;
 * until then it is tried. */
#include "run/run_state.h"

enum { REFUSED = 400, MAX_LEARNED = 512 };

/* The warning: what the model may not do (the error is the reason), and what is tried instead. */
static void warn_trying(ah_run *run, const char *what, const char *way, const char *instead)
{
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, 2 << 10);
    ah_buf_fmt(&b, "%s/%s may not %s in its own way (%s), trying %s: %s",
               run->cfg.adapter->provider->data, run->cfg.adapter->model->data, what, way, instead,
               run->result.err.message);
    if (ah_buf_cut_short(&b))
        ah_run_warn(run, ah_buf_slice(&b));
    ah_buf_clear(&b);
}

/* Where the model has answered while it searched, it is not that. */
static bool try_search_here(ah_run *run)
{
    ah_lowered *w = run->cfg.wire;

    if (w->searched || w->searching_here || !ah_lowered_defers(w))
        return false;
    warn_trying(run, "have tools searched", w->searching == AH_SEARCHING_OWN ? "provider" : "deferred",
                "here");
    ah_lowered_search_here(w);
    return true;
}

static bool try_append(ah_run *run)
{
    ah_lowered *w = run->cfg.wire;

    if (w->trying || !ah_lowered_is_native(w))
        return false;
    warn_trying(run, "take tools", ah_tool_change_mode_names[w->mode],
                ah_tool_change_mode_names[AH_TOOLS_APPEND]);
    ah_lowered_try(w, true, AH_TOOLS_APPEND);
    return true;
}

bool ah_run_try_less(ah_run *run)
{
    const ah_err *err = &run->result.err;

    return err->http_status == REFUSED && err->status != AH_CONTEXT_FULL &&
           (try_search_here(run) || try_append(run));
}

/* What was known, with what is sure now. */
static void put_learned(const ah_lowered *w, ah_slice known, ah_buf *b)
{
    bool append = w->trying || ah_json_member(known, "tool_change_mode").p;
    bool here = w->searching_here || ah_json_member(known, "tool_search").p;

    ah_buf_fmt(b, "{%s%s%s}", append ? "\"tool_change_mode\":\"append\"" : "", append && here ? "," : "",
               here ? "\"tool_search\":\"here\"" : "");
}

ah_status ah_run_learn(ah_run *run, ah_err *err)
{
    ah_lowered *w = run->cfg.wire;
    ah_slice settings = ah_transcript_last(run->cfg.transcript, AH_ENTRY_SETTINGS);
    ah_slice known = ah_json_member(settings, "learned");
    ah_setting learned = {"learned", {NULL, 0}};
    ah_status st;
    ah_buf b;

    w->searched = w->searched || ah_lowered_defers(w);
    if (!w->trying && !w->searching_here)
        return AH_OK;
    ah_buf_init(&b, run->cfg.mem, MAX_LEARNED);
    put_learned(w, known, &b);
    learned.value = ah_buf_slice(&b);
    st = ah_buf_ok(&b) ? ah_run_set(run, &learned, 1, err) : ah_err_nomem(err);
    ah_buf_clear(&b);
    if (st == AH_OK)
        w->trying = w->searching_here = false;
    return st;
}
