/* What a run learns of a model that does less than its name says: tools that change in
 * mid-conversation, so far. Only an answer makes it sure; until then it is tried. */
#include "run/run_state.h"

enum { REFUSED = 400 };

bool ah_run_try_append(ah_run *run)
{
    ah_lowered *w = run->cfg.wire;
    ah_buf b;

    if (run->result.err.http_status != REFUSED || w->trying || !ah_lowered_is_native(w))
        return false;
    ah_buf_init(&b, run->cfg.mem, 2 << 10);
    ah_buf_fmt(&b, "%s/%s may not take tools in its own way (%s), trying %s: %s",
               run->cfg.adapter->provider->data, run->cfg.adapter->model->data,
               ah_tool_change_mode_names[w->mode], ah_tool_change_mode_names[AH_TOOLS_APPEND],
               run->result.err.message);
    if (ah_buf_ok(&b))
        ah_run_warn(run, ah_buf_slice(&b));
    ah_buf_clear(&b);
    ah_lowered_try(w, true, AH_TOOLS_APPEND);
    return true;
}

ah_status ah_run_learn(ah_run *run, ah_err *err)
{
    const ah_setting learned = {"learned", AH_LIT("{\"tool_change_mode\":\"append\"}")};
    ah_lowered *w = run->cfg.wire;
    ah_status st = AH_OK;

    if (w->trying)
        st = ah_run_set(run, &learned, 1, err);
    if (st == AH_OK)
        w->trying = false;
    return st;
}
