/* The recorder of one conversation: it compares the conversation (transcript, pending turn,
 * session) with what is recorded of it, and makes records of what is new. So every way to change a
 * conversation is covered by one mechanism, and a record costs what is new in it. The state
 * machine calls it at the points that docs/reference/journal.md names; between runs, the owner of
 * the conversation does. It does no I/O: a sink takes the records. The recorder references the
 * conversation, and owns the notes of what is recorded. Its functions do nothing once a record
 * could not be made (ah_recorder_state), or without a sink.
 * Callers: its floor, host, lua. */
#ifndef AH_RUN_RECORDER_H
#define AH_RUN_RECORDER_H

#include "base/secret.h"
#include "base/store.h"
#include "model/record.h"
#include "run/budget.h"
#include "run/history.h"
#include "state/session.h"

struct ah_run;
struct ah_call;

/* The receiver of the records. host/keeper.h is the one of the library. */
typedef struct ah_record_sink {
    /* Takes a record, which it copies; it is appended soon, in order. If it cannot be, each later
     * flush fails. kept.p NULL: none. */
    void (*put)(void *ud, ah_record_kind kind, ah_slice said, ah_slice kept);
    /* Appends all records taken so far; `effect`: something outside of the process begins next.
     * Then ah_run_recorded(run, call, id, err) is called, but not from here. */
    void (*flush)(void *ud, struct ah_run *run, struct ah_call *call, uint32_t id, bool effect);
    /* The run does not wait any more, for this call or (NULL) at all. */
    void (*forget)(void *ud, struct ah_run *run, struct ah_call *call);
    void *ud;
} ah_record_sink;

/* The recorded part of a slice. Both are referenced; NULL: empty. */
typedef struct ah_recorded_slice {
    ah_cell *head;
    ah_cell *ahead; /* after the changes that are being applied */
} ah_recorded_slice;

typedef struct ah_recorder {
    const ah_mem *mem;
    const ah_secrets *secrets; /* removed from what is said */
    ah_record_sink sink;       /* put NULL: the conversation is not recorded */
    ah_text *stream;           /* name of the stream, owned; NULL: "" */
    ah_slice store;            /* path of its store, borrowed; .p NULL: in memory */
    ah_transcript *transcript; /* referenced */
    ah_session *session;       /* referenced; NULL: none */
    size_t entries, staged;    /* how many of the transcript's are recorded */
    bool answered;             /* the pending turn is recorded */
    bool bytes;                /* those of requests and answers are kept, too */
    bool replays;              /* handlers run again, without effects outside (run/step.h) */
    bool in_run;               /* a run is recorded as begun and not as ended */
    bool applying;             /* files of the machine are being changed: slices wait */
    ah_recorded_slice *slice;  /* by id */
    size_t slices;
    /* Counts the answers since the last record with `spent`; all recorded runs draw on it. Owned;
     * NULL: they are not counted. */
    ah_budget *account;
    ah_spent spent;   /* of the stream so far, as recorded */
    int64_t runs;     /* number of the last run of the stream */
    int64_t asks;     /* number of the last ask of the stream */
    ah_status broken; /* AH_OK; AH_NOMEM: a record could not be made; AH_STORE: or written;
                         AH_CANCELLED: a run was dropped before its end; AH_CONFLICT: it was
                         recorded what became of files that were being changed */
    /* Appends members about changed entities and resources to the object of a `settled`, `turn` or
     * `session` record, each after a comma: "entities":[{"class","id","state"}]. NULL: none. */
    void (*changed)(void *ud, ah_buf *out);
    /* Appends the members of a `checkpoint` that the recorder does not know, each after a comma:
     * opened, entities, asks, ended. NULL: none. */
    void (*whole)(void *ud, ah_buf *out);
    /* Appends the kept part of a `checkpoint`. NULL: none. */
    void (*contents)(void *ud, ah_buf *out);
    void *changed_ud; /* for these three */
    /* Called after each record: what it belongs with, as changes of named sessions, is recorded in
     * the same append. NULL: nothing. */
    void (*beside)(void *ud);
    /* True if the changes of the overlay would need that. NULL: never. */
    bool (*shares)(void *ud, const ah_overlay *o);
    void *beside_ud; /* for both */
} ah_recorder;

void ah_recorder_init(ah_recorder *r, const ah_mem *mem, const ah_secrets *secrets);
void ah_recorder_clear(ah_recorder *r);
/* Binds it to a conversation whose present state is recorded (`recorded`), or is all new. */
ah_status ah_recorder_bind(ah_recorder *r, ah_transcript *t, ah_session *s, bool recorded,
                           ah_err *err);
/* AH_OK, or the reason why nothing more is recorded: the conversation must be opened anew. */
ah_status ah_recorder_state(const ah_recorder *r, ah_err *err);
/* Records what has changed outside of turns: `entries` and `session`. */
void ah_recorder_note(ah_recorder *r);
/* Records the whole state as a `checkpoint`. Only between runs. kept_slices: a snapshot, whose
 * slices follow that the session does not have; .p NULL: none. */
void ah_recorder_checkpoint(ah_recorder *r, ah_slice kept_slices);
/* Appends the object of a `checkpoint`. No turn may be pending. */
void ah_recorder_print(const ah_recorder *r, ah_slice kept_slices, ah_buf *out);
/* Appends the changes of the slices since they were recorded, as a JSON object
 * {"Name":{"keep":n,"add":[..]}}, read through the overlay `o` (NULL: none), and notes them as
 * recorded. Returns false, and appends nothing, if there are none. */
bool ah_recorder_slices(ah_recorder *r, const ah_overlay *o, ah_buf *out);

/* -- for the state machine -- */

/* False: there is no recorder (r NULL), or it does nothing. */
bool ah_recorder_on(const ah_recorder *r);
/* Removes secrets from `said`, a JSON object, and passes the record on. If the buffer has failed,
 * the recorder is broken. */
void ah_recorder_put(ah_recorder *r, ah_record_kind kind, ah_buf *said, ah_slice kept);
/* Records entries that were added before the pending turn, which no record has yet. */
void ah_recorder_note_before_turn(ah_recorder *r);
/* Records the staged entries that no record has, as `queued`. */
void ah_recorder_queue(ah_recorder *r);
/* Appends what is new, each member after a comma: staged entries (only those of `o`, if it is not
 * NULL), slices read through `o`, entities. */
void ah_recorder_put_changes(ah_recorder *r, const ah_overlay *o, ah_buf *out);
/* The changes that put_changes appended for an overlay were just made (`done`), or taken back. All
 * that was staged before was recorded. */
void ah_recorder_applied(ah_recorder *r, bool done);
/* The pending turn was committed, as its record says. */
void ah_recorder_committed(ah_recorder *r);

#endif
