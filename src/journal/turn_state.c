/* Turns are counted by the records `turn` (docs/reference/journal.md, Turns). */
#include "journal/turn_state.h"

ah_status ah_turn_state_init(ah_turn_state *s, const ah_mem *mem, int64_t turn, ah_err *err)
{
    *s = (ah_turn_state){.turn = turn};
    return ah_fold_init(&s->fold, mem, err);
}

void ah_turn_state_clear(ah_turn_state *s)
{
    ah_fold_clear(&s->fold);
}

ah_status ah_turn_state_add(void *state, const ah_store_record *r, ah_err *err)
{
    ah_turn_state *s = state;
    ah_record_kind kind = ah_record_kind_of(r->kind);
    ah_status st;

    if (s->turn == 0 && kind == AH_RECORD_RUN_STARTED)
        return AH_CANCELLED;
    if ((st = ah_fold_add(&s->fold, r, err)) != AH_OK)
        return st;
    if (kind != AH_RECORD_TURN || ++s->turns < s->turn)
        return AH_OK;
    s->found = true;
    return AH_CANCELLED;
}

ah_status ah_turn_state_end(ah_turn_state *s, ah_err *err)
{
    ah_fold *f = &s->fold;

    if (!s->found && s->turn > 0 && s->turns == 0)
        return ah_err_set(err, AH_USAGE, "there is no turn %lld: the conversation has no turns",
                          (long long)s->turn);
    if (!s->found && s->turn > 0)
        return ah_err_set(err, AH_USAGE,
                          "there is no turn %lld: the conversation has turns 1 to %lld",
                          (long long)s->turn, (long long)s->turns);
    ah_run_history_clear(&f->history);
    ah_text_set(&f->ended, NULL);
    f->ended_first = 0;
    return AH_OK;
}
