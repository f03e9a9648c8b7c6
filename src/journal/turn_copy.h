/* The turns of a stored conversation, one by one, for a replay of handlers: each as the records of
 * a stream that ends while the handlers of the turn are at work, with the results of their steps
 * and asks. A run that goes on from such a stream enters the handlers again. Pure. It owns a fold
 * of the stream, and copies of the records of the turn. Callers: host. */
#ifndef AH_JOURNAL_TURN_COPY_H
#define AH_JOURNAL_TURN_COPY_H

#include "journal/fold.h"

/* A record of the stream to be made. */
typedef struct ah_copied_record {
    ah_record_kind kind;
    int64_t time;
    ah_text *said, *kept; /* kept NULL: none */
} ah_copied_record;

/* A call of the turn whose handler was begun. */
typedef struct ah_copied_call {
    ah_text *started; /* the record `call_started`; NULL: it was not begun */
    ah_text *settled; /* the record with its result; NULL: it has none */
    ah_text *failed;  /* the record `apply_failed`; NULL: none */
    int64_t record;   /* number of `call_started` */
    int64_t time;     /* of it, ms since the epoch */
    bool erased;      /* its arguments were erased; it is not in the copy */
} ah_copied_call;

typedef struct ah_turn_copy {
    const ah_mem *mem;
    ah_fold fold;  /* of all records that were read */
    int64_t turn;  /* number of the turn that was read last; 0: none */
    bool begun;    /* it has a call that was begun */
    bool complete; /* the next record belongs to the next turn */
    /* Of the first record, if that is a checkpoint of this module (ah_fold.given); NULL: it is not.
     * So a checkpoint costs little, however long the conversation is. */
    ah_transcript *given;
    ah_copied_record *record;
    size_t n, cap;
    ah_copied_call *call;
    size_t n_calls, cap_calls;
} ah_turn_copy;

ah_status ah_turn_copy_init(ah_turn_copy *c, const ah_mem *mem, ah_err *err);
void ah_turn_copy_clear(ah_turn_copy *c);
/* Takes the next record; the first is number 1. Has the type of ah_store_record_fn, with `copy` an
 * ah_turn_copy. AH_CANCELLED: a turn with handlers is complete; reading goes on behind it. Other
 * failures are those of ah_fold_add. */
ah_status ah_turn_copy_add(void *copy, const ah_store_record *r, ah_err *err);
/* Appends {"turn":n,"calls":[..]} of the calls that were begun and have a result: {"call","id",
 * "tool","record","time","changes","erased","result"}. changes: the call has changed what later
 * calls may see. */
void ah_turn_copy_print(const ah_turn_copy *c, ah_buf *out);

#endif
