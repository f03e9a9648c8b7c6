/* Handoffs: a run goes on with the parts of another agent. Tools, system text and settings are
 * changes of the call that hands over (state/changes.h); the adapter is changed before the next
 * request, since the present one may be in use by an exchange. */
#include "run/run_state.h"

static bool is_handoff(const ah_changes *c)
{
    size_t i = 0;

    while (i < c->n && !(c->item[i].kind == AH_CHANGE_SETTINGS && c->item[i].made))
        i++;
    return i < c->n;
}

static void take_over(ah_run *run, const ah_call *call)
{
    ah_handover to = {0};

    run->cfg.hand_over(run->cfg.on_ud, call, &to);
    ah_adapter_ref(to.adapter);
    ah_adapter_unref(run->next_adapter);
    run->next_adapter = to.adapter;
    run->handed_over = true;
    run->cfg.active = to.hooks;
    run->cfg.output = to.output;
    run->cfg.agent = to.agent;
    run->cfg.limits.max_in_flight = to.max_in_flight;
}

void ah_run_hand_over(ah_run *run, const ah_call *call)
{
    ah_text *from;

    if (!run->cfg.hand_over || !is_handoff(&call->changes))
        return;
    /* Without memory the event lacks the name. */
    from = run->cfg.agent.p ? ah_text_new(run->cfg.mem, run->cfg.agent) : NULL;
    take_over(run, call);
    EMIT(run, AH_EVENT_HANDOFF, AH_F_STR("from", from ? ah_text_slice(from) : ah_slice_of("")),
         AH_F_STR("to", run->cfg.agent.p ? run->cfg.agent : ah_slice_of("")),
         AH_F_STR("name", ah_text_slice(call->slot->name)));
    ah_text_unref(from);
}

void ah_resume_hand_over(ah_run *run, size_t staged)
{
    const ah_transcript *t = run->cfg.transcript;
    size_t i = 0;

    while (i < staged && t->staged[i].kind != AH_ENTRY_SETTINGS)
        i++;
    if (run->cfg.hand_over && i < staged)
        take_over(run, NULL);
}

void ah_run_take_adapter(ah_run *run)
{
    ah_adapter *to = run->next_adapter;

    run->next_adapter = NULL;
    if (!to)
        return;
    if (to != run->cfg.adapter) {
        ah_adapter *before = run->cfg.adapter;

        run->cfg.adapter = to;
        ah_wire_use(run->cfg.wire, to, AH_BREAK_MODEL);
        ah_adapter_unref(before);
    } else {
        ah_adapter_unref(to);
    }
}
