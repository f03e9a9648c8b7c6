/* Emitting: an event goes to the log and to the listener. */
#include "run/tell.h"

enum { MAX_LOGGED = 8 << 10 }; /* longer than a line of the log, which marks what it leaves out */

/* The config is the first member of ah_run (run_state.h). */
const ah_run_config *ah_run_cfg(const ah_run *run)
{
    return (const ah_run_config *)run;
}

int64_t ah_run_wall(const ah_run *run)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    return cfg->wall(cfg->ud);
}

/* With -vv every event is in the log, in its JSON form. */
static void log_event(const ah_run_config *cfg, const ah_notice *e)
{
    ah_buf b;

    ah_buf_init(&b, cfg->mem, MAX_LOGGED);
    ah_event_json(e, &b);
    if (ah_buf_cut_short(&b))
        ah_log_put(cfg->log, AH_LOG_DEBUG, "event %.*s", AH_FMT(ah_buf_slice(&b)));
    ah_buf_clear(&b);
}

void ah_run_emit(ah_run *run, ah_event_type type, const ah_field *field, size_t n)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    ah_notice e = {.type = type, .run = cfg->id, .parent = cfg->parent, .field = field, .n = n};
    bool logged = cfg->log->fn && cfg->log->level == AH_LOG_DEBUG;

    if (!cfg->on && !logged)
        return;
    e.time = ah_run_wall(run);
    if (logged)
        log_event(cfg, &e);
    if (cfg->on)
        ah_event_tell(cfg->on, cfg->on_ud, &e);
}

ah_slice ah_run_said(const ah_run *run, ah_slice words, ah_buf *b)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    ah_buf_init(b, cfg->mem, words.n + 1);
    if (!ah_secrets_in(cfg->secrets, words))
        return words;
    ah_buf_put(b, words);
    if (!ah_buf_ok(b))
        return ah_slice_of("[secret]");
    b->len = ah_secrets_redact(cfg->secrets, b->data, b->len);
    return ah_buf_slice(b);
}

void ah_run_warn(ah_run *run, ah_slice message)
{
    ah_slice said;
    ah_buf b;

    ah_log_put(ah_run_cfg(run)->log, AH_LOG_WARNING, "%.*s", AH_FMT(message));
    said = ah_run_said(run, message, &b);
    EMIT(run, AH_EVENT_WARNING, AH_F_STR("message", said));
    ah_buf_clear(&b);
}

void ah_run_warn_of_tool(ah_run *run, ah_slice message, ah_slice tool_name, ah_slice changed)
{
    EMIT_SOME(run, AH_EVENT_WARNING, changed.p ? 3 : 2, AH_F_STR("message", message),
              AH_F_STR("tool_name", tool_name), AH_F_JSON("changed", changed));
}
