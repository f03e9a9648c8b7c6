/* The life of a background call: at work, held, then taken or dropped. run_turn.c begins such calls
 * and files their results. */
#include "run/background.h"

#include "run/run_state.h"

/* The call goes on with the checked arguments. */
static void move_call(ah_run *run, const ah_call *from)
{
    ah_call *c = run->call;

    run->slot = (ah_slot){.id = ah_text_ref(from->slot->id),
                          .name = ah_text_ref(from->slot->name),
                          .arguments = ah_text_ref(from->slot->arguments),
                          .written = from->slot->written};
    ah_call_init(c, run, run->cfg.mem, &run->slot, 0, run->cfg.caller);
    c->tool = ah_tool_ref(from->tool);
    c->args = ah_text_ref(from->args);
    c->coerced = ah_text_ref(from->coerced);
    c->strict = from->strict;
    c->keeps = run->cfg.keep != NULL;
    ah_turn_arm(run, c);
    run->batch = 0;
    run->n_calls = run->next = 1;
}

ah_status ah_background_new(const ah_run_config *cfg, const ah_call *call, int64_t now,
                            ah_run **out, ah_err *err)
{
    ah_status st = ah_run_new(cfg, now, out, err);

    if (st != AH_OK)
        return st;
    (*out)->state = RUN_CALLING;
    (*out)->started = true;
    if (!((*out)->call = ah_alloc(cfg->mem, sizeof *call))) {
        (*out)->state = RUN_ENDED;
        ah_run_free(*out);
        return ah_err_nomem(err);
    }
    move_call(*out, call);
    return AH_OK;
}

const ah_call *ah_background_call(const ah_run *run)
{
    return run->call;
}

bool ah_background_held(const ah_run *run)
{
    return run->state == RUN_HELD;
}

static void hold(ah_run *run)
{
    const ah_background *b = run->cfg.background;
    const ah_call *c = run->call;

    run->state = RUN_HELD;
    run->timer = 0;
    b->ready(b->ud, run);
    EMIT(run, AH_EVENT_BACKGROUND_DONE, AH_F_STR("name", ah_text_slice(c->slot->name)),
         AH_F_STR("id", ah_text_slice(c->slot->id)), AH_F_INT("ticket", run->cfg.ticket),
         AH_F_BOOL("success", c->success),
         AH_F_NUM("duration", (double)(c->ended - c->started) / 1000));
}

/* The handler was stopped, and its changes are taken back. */
static void refuse(ah_run *run)
{
    ah_call *c = run->call;

    c->ended = run->now;
    ah_call_refuse(c, "Cancelled: %s before this call finished. Its outcome is unknown.",
                   run->cancel ? run->cancel_err.message : "the deadline passed");
}

bool ah_background_advance(ah_run *run)
{
    if (run->state == RUN_SETTLING) {
        refuse(run);
        hold(run);
        return true;
    }
    if (run->state == RUN_CALLING && !ah_run_must_end(run) && ah_turn_ask(run))
        return true;
    if (run->state != RUN_CALLING || (run->running && !ah_run_must_end(run)))
        return false;
    if (!run->running) {
        hold(run);
        return true;
    }
    ah_turn_stop(run);
    run->running = 0;
    run->state = RUN_SETTLING;
    return true;
}

void ah_background_take(ah_run *run, ah_run *into)
{
    if (into)
        run->cfg.restarts = into->cfg.restarts;
    ah_turn_file_apart(run);
    if (!into)
        ah_run_commit(run);
    run->state = RUN_ENDED;
}

void ah_background_drop(ah_run *run)
{
    ah_call *c = run->call;

    if (run->state == RUN_ENDED)
        return;
    ah_overlay_drop(&c->overlay);
    if (c->state != AH_CALL_ANSWERED || c->success)
        ah_call_refuse(c, "Cancelled: the conversation was closed before the result of this call "
                          "was taken. Its changes were taken back.");
    ah_turn_drop_apart(run);
    run->state = RUN_ENDED;
}
