/* Replay of requests: folds the records of a conversation, makes each of its requests again from
 * the entries before it, and compares it with what the record `request` says (wire/prints.h). Sends
 * nothing, and needs no key. Owns its fold, its wire and its adapter. Callers: host. */
#ifndef AH_JOURNAL_REBUILD_H
#define AH_JOURNAL_REBUILD_H

#include "journal/fold.h"
#include "wire/prints.h"

/* The first difference. */
typedef struct ah_rebuild_difference {
    int64_t record;  /* number of the record `request`; 0: there is no difference */
    size_t request;  /* which request of the conversation it is, from 1 */
    const char *in;  /* "entries", "settings", "tools", "system", "conversation" */
    int64_t entry;   /* index of the entry with which it begins; -1: none */
    ah_buf pointer;  /* JSON pointer into the request's body; empty: the bytes are not kept */
    ah_buf recorded; /* the value there in the recorded request, and */
    ah_buf rebuilt;  /* in the one made again: JSON, cut; empty: it has none */
} ah_rebuild_difference;

typedef struct ah_rebuild {
    const ah_mem *mem;
    ah_fold fold;
    ah_secrets secrets;
    ah_wire wire; /* .mem NULL: there was no request yet */
    ah_adapter *adapter;
    ah_text *head;   /* the last recorded `head`; NULL: none */
    ah_buf was_head; /* the recorded bytes, if they are kept */
    ah_buf was_body;
    bool kept; /* they are kept, from the body's beginning on */
    /* Numbers of requests: all, those that are equal, those of another revision of their wire, and
     * those that cannot be made again, as their record, or one before, says too little. */
    size_t requests, equal, other_revision, not_recorded;
    int64_t revision, revision_now; /* of the first one of another revision */
    ah_rebuild_difference difference;
} ah_rebuild;

ah_status ah_rebuild_init(ah_rebuild *r, const ah_mem *mem, ah_err *err);
void ah_rebuild_clear(ah_rebuild *r);
/* Takes the next record; the first is `opened`. Has the type of ah_store_record_fn, with `rebuild`
 * an ah_rebuild. AH_CANCELLED: a difference was found, and no more is to be read. Other failures
 * are those of ah_fold_add. */
ah_status ah_rebuild_add(void *rebuild, const ah_store_record *record, ah_err *err);
/* Appends the outcome as a JSON object (store:replay in docs/reference/stores.md). */
void ah_rebuild_print(const ah_rebuild *r, ah_buf *out);

#endif
