/* The state of a conversation at the end of one of its turns, from its records alone: where a fork
 * begins, and where a rewind goes on. Later records are not read. Pure. It owns the fold.
 * Callers: host. */
#ifndef AH_JOURNAL_TURN_STATE_H
#define AH_JOURNAL_TURN_STATE_H

#include "journal/fold.h"

typedef struct ah_turn_state {
    ah_fold fold;  /* up to the record that ended the turn */
    int64_t turn;  /* that is wanted, from 1; 0: before the first run */
    int64_t turns; /* that were read so far */
    bool found;
} ah_turn_state;

ah_status ah_turn_state_init(ah_turn_state *s, const ah_mem *mem, int64_t turn, ah_err *err);
void ah_turn_state_clear(ah_turn_state *s);
/* Takes the next record of a stream that is read from record 1 on. AH_CANCELLED: no more records
 * are needed. Has the type of ah_store_record_fn. */
ah_status ah_turn_state_add(void *state, const ah_store_record *r, ah_err *err);
/* Takes the unfinished run out of the state: the conversation is between runs, with the question
 * that has no answer yet. AH_USAGE: the conversation has fewer turns. */
ah_status ah_turn_state_end(ah_turn_state *s, ah_err *err);

#endif
