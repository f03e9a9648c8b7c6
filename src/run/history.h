/* The journal's knowledge of a run that did not end with its process, or that is parked: the run
 * goes on from it. journal/fold.h fills it, the state machine reads it. It owns its texts.
 * Callers: its floor, journal, lua. */
#ifndef AH_RUN_HISTORY_H
#define AH_RUN_HISTORY_H

#include "base/index.h"
#include "wire/assemble.h"

/* The small state of a run that does not follow from the transcript: member `progress` of the
 * records `turn` and `run_ended`. */
typedef struct ah_run_progress {
    int iterations, rounds, check_rounds, empties, repairs, restarts, unknown_in_row;
    size_t tool_calls, fallbacks;
    bool last_round;
    ah_usage usage;
} ah_run_progress;

void ah_run_progress_print(const ah_run_progress *p, ah_buf *out); /* appends a JSON object */
/* Reads checked JSON. Members that are missing or wrong are 0. */
void ah_run_progress_read(ah_slice json, ah_run_progress *out);

/* A recorded effect within a call. */
typedef struct ah_step_history {
    ah_text *key;      /* path of tasks, kind, name and number: equal for the same step */
    ah_text *said;     /* the record `step`, a JSON object; NULL: started only */
    ah_text *kept;     /* its result; NULL: none */
    ah_text *start;    /* the record `step_started`; NULL: it has no start of its own */
    ah_text *ask;      /* the record `ask` of the step, the last one; NULL: it asks nothing */
    ah_text *response; /* the record `ask_closed` of that ask; NULL: it is open */
} ah_step_history;

/* A call of the pending turn. */
typedef struct ah_call_history {
    ah_text *started;   /* the last record `call_started`; NULL: its handler was not begun */
    ah_text *arguments; /* kept with it; NULL: those of the answer */
    ah_text *finished;  /* the record `call_finished`; NULL: it had not ended */
    ah_text *staged;    /* what it staged, kept; NULL: nothing */
    /* The record `settled` whose files are being applied; NULL: the call is not settled, or its
     * result is in the slot. */
    ah_text *settled;
    /* The first such record: the process ended before all folders were changed, so the call is to
     * be settled once more, without the folders that were. NULL: none. */
    ah_text *again;
    ah_text *ask;          /* its last record `ask` of the kind `approval` or `lost`; NULL: none */
    ah_text *response;     /* the record `ask_closed` of that ask; NULL: it is open */
    ah_step_history *step; /* in the order of their first records */
    size_t n_steps, cap_steps;
    ah_index steps; /* of `step`, by key */
} ah_call_history;

typedef struct ah_run_history {
    const ah_mem *mem;
    int64_t run;      /* its number in the stream, from 1; 0: no run is unfinished */
    size_t first;     /* index of its first entry in the transcript */
    int64_t started;  /* ms since the epoch */
    int64_t deadline; /* ms since the epoch; 0: none */
    bool parked;
    bool cancelled;       /* it is to end before its answer */
    size_t lost_requests; /* requests without an answer since the last answer */
    /* As of the last turn, with the usage and the iteration of the pending answer. */
    ah_run_progress progress;
    ah_call_history *call; /* for each slot of the pending turn */
    size_t n;
} ah_run_history;

void ah_run_history_clear(ah_run_history *h);
/* Makes an empty history of the calls of a turn that begins. */
ah_status ah_run_history_begin_turn(ah_run_history *h, size_t calls, ah_err *err);
/* Forgets the calls; the turn is committed. */
void ah_run_history_end_turn(ah_run_history *h);
/* Returns the step, or NULL. Borrowed until the next step is added. */
ah_step_history *ah_call_history_step(const ah_call_history *c, ah_slice key);
/* An open ask of the pending turn, and the place of its response. */
typedef struct ah_open_ask {
    const ah_text *ask; /* the record */
    ah_text **response; /* NULL so far */
    size_t call, step;  /* used by ah_run_history_next_ask */
} ah_open_ask;
/* Finds the next open ask, in the order of calls and of steps within them; *at: all zero before the
 * first one. False: there is none. */
bool ah_run_history_next_ask(ah_run_history *h, ah_open_ask *at);
/* Adds a step with this key, which is not there yet. NULL: out of memory. */
ah_step_history *ah_call_history_add(const ah_mem *mem, ah_call_history *c, ah_slice key);

#endif
