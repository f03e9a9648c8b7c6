/* The kinds of records of a stream (docs/reference/journal.md has the members of each), as one
 * table. Written by run/recorder.h, host/keeper.h and the Lua floor, read by journal/fold.h.
 * Callers: run, journal, host, lua. */
#ifndef AH_MODEL_RECORD_H
#define AH_MODEL_RECORD_H

#include "base/slice.h"

/* Number, name, and N for those that a reader must know, I for those that only inform. */
#define AH_RECORD_LIST(X)                                                                          \
    X(OPENED, "opened", N)   /* the stream begins */                                               \
    X(ENTRIES, "entries", N) /* entries of the transcript outside of turns */                      \
    X(SESSION, "session", N) /* changes of slices outside of calls */                              \
    X(RUN_STARTED, "run_started", N)                                                               \
    X(REQUEST, "request", I)           /* a request goes out */                                    \
    X(ANSWER, "answer", N)             /* the turn begins */                                       \
    X(CALL_STARTED, "call_started", N) /* before its handler */                                    \
    X(STEP_STARTED, "step_started", N) /* before an outside effect of a durable handler */         \
    X(STEP, "step", N)                 /* its result */                                            \
    X(ASK, "ask", N)                                                                               \
    X(ASK_CLOSED, "ask_closed", N)                                                                 \
    X(CALL_FINISHED, "call_finished", N) /* the handler's outcome, and what it staged */           \
    X(SETTLED, "settled", N)             /* the result and the changes, before they are made */    \
    X(APPLIED, "applied", N)             /* files of the machine are changed */                    \
    X(APPLY_FAILED, "apply_failed", N)   /* they could not be; the corrected result */             \
    X(TURN, "turn", N)                   /* the turn is committed */                               \
    X(QUEUED, "queued", N)               /* a message that waits for the next turn */              \
    X(PARKED, "parked", N)               /* the run waits for responses */                         \
    X(LOST, "lost", I)                   /* what a dead process had begun */                       \
    X(CANCELLED, "cancelled", N)                                                                   \
    X(RUN_ENDED, "run_ended", N)                                                                   \
    X(CHECKPOINT, "checkpoint", N) /* the whole state; reading begins at the last one */           \
    X(REWOUND, "rewound", N)       /* the next checkpoint is an earlier state */                   \
    X(RESTORING, "restoring", N)   /* files are put back to an earlier state */                    \
    X(RESTORED, "restored", N)     /* they are in place */                                         \
    X(COMPACTED, "compacted", N)   /* reserved */                                                  \
    X(LEASE, "lease", I)           /* another holder */                                            \
    X(SPENT, "spent", N)           /* what was used of a budget so far */                          \
    X(WRITTEN, "written", N)       /* changes of files in memory */

#define AH_RECORD_NUMBER(id, name, need) AH_RECORD_##id,
typedef enum ah_record_kind { AH_RECORD_LIST(AH_RECORD_NUMBER) AH_RECORD_KINDS } ah_record_kind;
#undef AH_RECORD_NUMBER

const char *ah_record_name(ah_record_kind kind);
/* Returns AH_RECORD_KINDS for an unknown name. */
ah_record_kind ah_record_kind_of(ah_slice name);
/* True if a reader that does not know the kind must not go on. */
bool ah_record_needed(ah_record_kind kind);

/* The kinds of streams. A name begins with the kind and '/', except that of a conversation. */
typedef enum ah_stream_kind {
    AH_STREAM_CONVERSATION,
    AH_STREAM_SESSION,
    AH_STREAM_BUDGET,
    AH_STREAM_FILES
} ah_stream_kind;

const char *ah_stream_kind_name(ah_stream_kind kind); /* as in the record `opened` */
/* True if streams of this kind have such records. */
bool ah_stream_has(ah_stream_kind stream, ah_record_kind kind);

enum { AH_RECORD_FORMAT = 1 }; /* `format` of an `opened` record */

#endif
