/* One run: calls a model until it answers without calls. The state machine does no I/O and reads no
 * clock: it yields needs, and its driver reports the results.
 *
 *     while (ah_run_next(run, &need)) serve(need);   until AH_NEED_WAIT or AH_NEED_DONE
 *     ah_run_head / feed / end, ah_call_done, ah_run_tick, ah_run_cancel
 *
 * The run owns a copy of its config. When AH_NEED_DONE is reached the transcript is sound: every
 * call in it has a result, also after a failure or without memory.
 * Callers: its module, host, lua. */
#ifndef AH_RUN_RUN_H
#define AH_RUN_RUN_H

#include "prompt/prompt.h"
#include "run/call.h"
#include "run/hooks.h"
#include "run/inject.h"
#include "run/need.h"
#include "run/tell.h"
#include "wire/lower.h"

/* `now` is the time of the loop's clock, ms. */
ah_status ah_run_new(const ah_run_config *cfg, int64_t now, ah_run **out, ah_err *err);
/* No more events, no results kept in files; once cancelled, the run begins no handler any more. */
void ah_run_mute(ah_run *run);
/* Sets the run around it; NULL: that one is gone. */
void ah_run_set_around(ah_run *run, ah_run *around);
ah_run *ah_run_around(const ah_run *run); /* NULL: none */
/* Passes on an event of a run inside this one to the listener of this one. */
void ah_run_relay(ah_run *run, const ah_notice *e);
void ah_run_free(ah_run *run); /* settles and commits a pending turn first; NULL is allowed */

/* Returns false with AH_NEED_WAIT and AH_NEED_DONE. */
bool ah_run_next(ah_run *run, ah_need *need);

/* For AH_NEED_PLACE: the run waits for its place. reason: static; seconds: the time it waits at
 * least; -1: unknown. limit: a limit of the provider is used up. */
void ah_run_waits(ah_run *run, const char *reason, double seconds, bool limit);
/* For AH_NEED_PLACE: the request may be sent. Takes note only; the next ah_run_next acts on it. */
void ah_run_placed(ah_run *run);
/* Time before the next try, ms: half a second, doubled `steps` times up to eight, less up to a
 * quarter at random ([0, 1)). */
int64_t ah_run_delay(int steps, double random);

/* Data that the exchange `id` has received. All are ignored for another exchange than the current
 * one. `bytes` are borrowed. */
void ah_run_head(ah_run *run, uint32_t id, const ah_response_head *head);
void ah_run_feed(ah_run *run, uint32_t id, ah_slice bytes);
/* The response has ended: completely with err NULL or AH_OK, else with that error. */
void ah_run_end(ah_run *run, uint32_t id, const ah_err *err);
/* The server asks to wait this long before the next try, ms; -1: it does not. */
void ah_run_advise(ah_run *run, uint32_t id, int64_t retry_after_ms);
/* Once the message is complete: how long to wait for the rest of the response, ms; else -1. */
int64_t ah_run_linger(const ah_run *run, uint32_t id);
/* For AH_NEED_SETUP and AH_NEED_STOP_SETUP: call the functions of the config. */
void ah_run_begin_setup(ah_run *run);
void ah_run_stop_setup(ah_run *run);
/* Setup has ended. The run goes on (err NULL), or ends with the error. */
void ah_run_ready(ah_run *run, const ah_err *err);
/* The response to the approval that hooks->ask began. `args`: checked JSON that replaces the
 * arguments; .p NULL: unchanged. `why` is shown to the model if the call was not approved. */
void ah_call_approved(ah_call *call, bool approved, ah_slice args, ah_slice why, int64_t now);
/* The end of hooks->lost. */
typedef enum ah_found {
    AH_FOUND_DONE,   /* it has happened; `value` (checked JSON, .p NULL: none) is its result */
    AH_FOUND_UNDONE, /* it has not: the handler begins again */
    AH_FOUND_UNKNOWN /* the model reads so */
} ah_found;
void ah_call_found(ah_call *call, ah_found how, ah_slice value, int64_t now);
/* The end of AH_NEED_RECORD with this call and id. With an error (err NULL or AH_OK: none) the run
 * ends with it, and nothing more is recorded. Ignored if it is not waited for. */
void ah_run_recorded(ah_run *run, ah_call *call, uint32_t id, const ah_err *err);
/* Writes the hash of the tool's definition and of the arguments with which the call would be run,
 * or, once it was run, of its result and its changes: what an approval is about. 64 hexadecimal
 * digits and a NUL. False: out of memory. */
enum { AH_CALL_HASH = 65 };
bool ah_call_about(const ah_call *call, char out[AH_CALL_HASH]);
/* The same of the tool's definition alone: name, description, schemas, annotations, version. */
void ah_call_definition(const ah_tool *tool, char out[AH_CALL_HASH]);
/* An ask of a recorded call, and its words, for ah_call_asks. All slices are borrowed. */
typedef struct ah_asked {
    const char *kind; /* "approval", "question" or "lost" */
    ah_slice question;
    ah_slice schema;    /* JSON; .p NULL: that of an approval */
    ah_slice otherwise; /* the default, JSON; .p NULL: none */
    ah_slice step;      /* key of the step that asks; .p NULL: none */
    int64_t until;      /* ms since the epoch; 0: no limit */
} ah_asked;
/* An ask while it is open; in the memory of its owner. */
typedef struct ah_recorded_ask {
    ah_call *call;
    int64_t number; /* in the stream; 0: it is not recorded */
    bool parked;
    struct ah_recorded_ask *next, **link; /* of the run's parked asks */
} ah_recorded_ask;
/* Records the ask, unless it is open since an earlier process. Sets *out; number 0: this call is
 * not recorded. */
void ah_call_asks(ah_call *call, const ah_asked *asked, ah_recorded_ask *out);
/* Records the end of the ask; how: "response", "timeout" or "declined". response: JSON; .p NULL:
 * none. by: .p NULL: unknown. If the run stops unsettled, the ask stays open in the journal. */
void ah_call_asked(ah_recorded_ask *ask, const char *how, ah_slice response, ah_slice by);
/* Nothing in this process can respond. True: the call waits beyond the process, and the run ends
 * with AH_WAITING once all its calls at work do. False: it cannot. */
bool ah_call_park(ah_recorded_ask *ask);
/* Work of a call has ended: its run may wait for responses only. */
void ah_run_look_again(ah_run *run);
/* The ask is over without a record, such as with its call. */
void ah_call_unpark(ah_recorded_ask *ask);
/* The checks that hooks->check began are done. message.p NULL: the answer is accepted; else the
 * message goes to the model, and the run goes on. */
void ah_run_checked(ah_run *run, ah_slice message);
/* The checks failed: the run ends with the error. Returns false if the run is already ending. */
bool ah_run_check_failed(ah_run *run, const ah_err *err);
/* Sets the run's time (loop clock, ms), and ends calls whose time is over. */
void ah_run_tick(ah_run *run, int64_t now);
/* Records the cancellation; the next ah_run_next acts on it. status is AH_CANCELLED, AH_NOMEM,
 * AH_INTERNAL, or AH_GUARD for a rejected message. */
void ah_run_cancel(ah_run *run, ah_status status, const char *why);
/* Ends the run with the error and leaves its turn open: no result reaches the model, no call is
 * settled, changes are dropped. The conversation goes on from its journal only. */
void ah_run_stop_unsettled(ah_run *run, const ah_err *err);
bool ah_run_unsettled(const ah_run *run); /* it is ending so, or has ended so */
/* Queues a user message for the next commit; takes json, also on failure. The run goes on after an
 * answer while messages are queued. */
ah_status ah_run_send(ah_run *run, ah_text *json, ah_err *err);

int ah_run_iterations(const ah_run *run); /* model calls that were answered so far */
/* `owner` is for the code that serves the run. wake: another run has made this one able to go on,
 * call ah_run_next soon; it must not call back. NULL: no call. */
void ah_run_set_owner(ah_run *run, void *owner, void (*wake)(void *owner));
/* The budgets that it draws on: its own and those of the runs around it; a call made by code draws
 * on those of the run around. */
ah_budgets *ah_run_spending(ah_run *run);
void *ah_run_owner(const ah_run *run);
bool ah_run_cancelling(const ah_run *run);
bool ah_run_preparing(const ah_run *run); /* setup is running: no request was sent yet */
/* Emits a `tool_progress` event of a running call. message.p NULL: no message; fraction < 0: no
 * fraction. */
void ah_call_progress(ah_call *call, ah_slice message, double fraction);

/* The result, valid when done. */
typedef struct ah_run_result {
    ah_err err;     /* AH_OK: the run has an answer */
    ah_slice text;  /* text of the last assistant message; valid as long as the run */
    ah_slice value; /* for `output`: checked JSON, valid as long as the run; .p NULL: none */
    ah_stop stop;
    int iterations; /* model calls that were answered */
    int rounds;     /* answers with calls */
    size_t tool_calls;
    ah_usage usage;
} ah_run_result;
void ah_run_result_of(const ah_run *run, ah_run_result *out);

#endif
