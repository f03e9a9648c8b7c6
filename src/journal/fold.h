/* The fold: from the records of a stream, in order, to its state: that of a conversation, of a
 * named session (its slices), of a budget, or of files in memory. Resume, replay, fork and rewind
 * all read a stream with it. Pure. A record that breaks an invariant of docs/reference/journal.md
 * ends it with AH_STORE, an error that names the record. The fold owns all it has made; takers take
 * references. It may be moved in memory. Callers: its floor, host, lua. */
#ifndef AH_JOURNAL_FOLD_H
#define AH_JOURNAL_FOLD_H

#include "base/index.h"
#include "base/store.h"
#include "model/entry_reader.h"
#include "model/record.h"
#include "run/history.h"
#include "state/fs_kept.h"
#include "state/list.h"

typedef struct ah_fold_slice {
    ah_text *name;
    ah_list list;
} ah_fold_slice;

/* The last recorded state of an entity or a resource. */
typedef struct ah_fold_state {
    ah_text *class_name, *id;
    ah_text *state; /* JSON; NULL: it has none any more */
    ah_text *key;   /* both names, for the index */
} ah_fold_state;

/* An ask of the pending turn; see ah_fold_is_open. */
typedef struct ah_fold_ask {
    ah_text *id;     /* unique in the stream */
    size_t call;     /* index of its call */
    ah_text *ask;    /* the record `ask` */
    ah_text *kept;   /* what it keeps; NULL: nothing, or it is erased */
    ah_text *closed; /* the record `ask_closed`; NULL: none */
} ah_fold_ask;

typedef struct ah_fold {
    const ah_mem *mem;
    ah_stream_kind stream; /* that is expected; set before the first record, if it is another */
    ah_entry_reader reader;
    int64_t last;              /* number of the last record; 0: none */
    int64_t time;              /* the latest time of a record, ms since the epoch */
    int64_t checkpoint;        /* number of the last checkpoint; 0: none */
    size_t since;              /* turns since it */
    size_t bytes;              /* of records since it */
    ah_text *opened;           /* the record `opened` */
    ah_text *version;          /* of the last writer that is known */
    ah_transcript *transcript; /* with its pending turn, not settled */
    /* Of the checkpoint that is record 1, in place of its own, which is empty; NULL: none. Borrowed
     * until that record is taken. */
    const ah_transcript *given;
    ah_fold_slice *slice;
    size_t n_slices, cap_slices;
    ah_index slices; /* of `slice`, by name; as the other two for functions of the fold only */
    ah_fold_state *state;
    size_t n_states, cap_states;
    ah_index states; /* of `state`, by key */
    ah_fold_ask *ask;
    size_t n_asks, cap_asks;
    ah_index asked;          /* of `ask`, by id */
    int64_t asks;            /* number of asks so far */
    int64_t runs;            /* number of runs so far */
    ah_run_history history;  /* of the unfinished run; .run 0: none */
    bool rewound;            /* the next record is the checkpoint with which it goes on */
    size_t applying;         /* index of the call whose files are being applied, from 1; 0: none */
    ah_text *restoring;      /* the record whose files are being put back; NULL: none */
    ah_text *restoring_kept; /* its kept part; NULL: none */
    ah_text *ended;          /* the last record `run_ended`; NULL: none */
    size_t ended_first;      /* index of the first entry of that run */
    ah_text *spent;          /* the last record `spent`; NULL: none */
    /* Number of the first record of the pending turn of which what it kept is erased; 0: none. The
     * turn cannot go on then. */
    int64_t erased;
    ah_fs *files; /* the contents of files in memory; NULL: none is recorded */
} ah_fold;

ah_status ah_fold_init(ah_fold *f, const ah_mem *mem, ah_err *err);
void ah_fold_clear(ah_fold *f);
/* Takes the next record. The first one is `opened`, or any `checkpoint`. After an error only
 * ah_fold_clear may follow. Has the type of ah_store_record_fn, with `fold` an ah_fold. */
ah_status ah_fold_add(void *fold, const ah_store_record *r, ah_err *err);
/* Takes a checkpoint that stands alone, in place of all records. Its errors name no record. */
ah_status ah_fold_add_alone(ah_fold *f, ah_slice checkpoint, ah_err *err);
/* Appends the slices as a snapshot for ah_session_restore. */
void ah_fold_print_session(const ah_fold *f, ah_buf *out);
/* Appends the state as the object of a record `checkpoint`. Only where one may stand: no turn is
 * pending, and no entries wait. bare: without the transcript, for a fold that is `given` it. */
void ah_fold_print_checkpoint(const ah_fold *f, bool bare, ah_buf *out);
/* Appends the object of a record `opened` that this version writes. members: more of its members,
 * "folder":"/x","agent":"y"; .n 0: none. */
void ah_fold_print_opened(ah_stream_kind stream, ah_slice members, ah_buf *out);
/* Returns the ask, or NULL. */
const ah_fold_ask *ah_fold_find_ask(const ah_fold *f, ah_slice id);
/* True if the ask has no response, and its call has no result. */
bool ah_fold_is_open(const ah_fold *f, const ah_fold_ask *ask);

#endif
