/* The parts of the fold: each takes the records of some kinds. `v` has the values of the record's
 * members (AH_AT_ANSWER_entry and the like), of the types of fold_members.h. Errors say what is
 * wrong with the record; fold.c names it. Callers: its floor. */
#ifndef AH_JOURNAL_FOLD_PARTS_H
#define AH_JOURNAL_FOLD_PARTS_H

#include "journal/fold_members.h"

typedef ah_status ah_fold_fn(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err);

/* -- fold_call.c: calls of the pending turn, their steps and asks -- */
ah_fold_fn ah_fold_call_started, ah_fold_step_started, ah_fold_step, ah_fold_ask_opened,
    ah_fold_ask_closed, ah_fold_call_finished, ah_fold_settled, ah_fold_applied,
    ah_fold_apply_failed, ah_fold_parked;

/* -- fold_turn.c: entries, runs and turns -- */
ah_fold_fn ah_fold_entries, ah_fold_run_started, ah_fold_request, ah_fold_answer, ah_fold_turn,
    ah_fold_queued, ah_fold_cancelled, ah_fold_run_ended;

/* -- fold_state.c: slices and entities -- */
ah_fold_fn ah_fold_session;
/* Takes changes of slices and entities (.p NULL: none). With `look` they are only checked. */
ah_status ah_fold_change(ah_fold *f, ah_slice slices, ah_slice entities, bool look, ah_err *err);
/* Sets the slices of a checkpoint: lists by name. */
ah_status ah_fold_whole_slices(ah_fold *f, ah_slice slices, ah_err *err);
void ah_fold_print_slices(const ah_fold *f, ah_buf *out); /* as {"Name":[...]} */
void ah_fold_print_states(const ah_fold *f, ah_buf *out);
void ah_fold_clear_state(ah_fold *f);
void ah_fold_clear_asks(ah_fold *f);

/* -- fold_checkpoint.c -- */
ah_fold_fn ah_fold_opened, ah_fold_checkpoint, ah_fold_rewound, ah_fold_restoring, ah_fold_restored,
    ah_fold_lease, ah_fold_spent, ah_fold_written;

/* -- helpers -- */

/* Stages the entry for the next commit, or only checks it. */
ah_status ah_fold_stage(ah_fold *f, ah_slice entry, bool look, ah_err *err);
ah_status ah_fold_stage_all(ah_fold *f, ah_slice entries, bool look, ah_err *err);
/* Fails if no run is unfinished; or, with `between`, if a turn is pending. */
ah_status ah_fold_in_run(const ah_fold *f, bool between, ah_err *err);
/* Fails if a turn is pending. */
ah_status ah_fold_between(const ah_fold *f, ah_err *err);
/* Fails if files are being applied. */
ah_status ah_fold_at_rest(const ah_fold *f, ah_err *err);
/* Fails if what the record keeps is no object. */
ah_status ah_fold_check_kept(const ah_store_record *r, ah_err *err);
/* Fails if the value is no index of an entry, or of the next one. */
ah_status ah_fold_first(const ah_fold *f, ah_slice value, size_t *out, ah_err *err);

#endif
