/* One run: a model called until it answers without calls. The state machine does no I/O and knows
 * no clock: it yields needs, and is given what came of them.
 *
 *     while (ah_run_next(run, &need)) serve(need);   until AH_NEED_WAIT or AH_NEED_DONE
 *     ah_run_head / feed / end, ah_call_done, ah_run_tick, ah_run_cancel
 *
 * Whatever happens, the transcript is sound when AH_NEED_DONE is reached. The face of the floor,
 * for those above it: the host's driver serves runs, the Lua floor starts and asks them. */
#ifndef AH_RUN_RUN_H
#define AH_RUN_RUN_H

#include "prompt/prompt.h"
#include "run/call.h"
#include "run/hooks.h"
#include "run/inject.h"
#include "run/need.h"
#include "run/tell.h"
#include "wire/lower.h"

/* `now` is the loop's clock. */
ah_status ah_run_new(const ah_run_config *cfg, int64_t now, ah_run **out, ah_err *err);
void ah_run_mute(ah_run *run); /* no events from now on */
void ah_run_set_around(ah_run *run, ah_run *around);
ah_run *ah_run_around(const ah_run *run); /* NULL: none */
/* An event of a run within this one, to whoever listens to this one. */
void ah_run_relay(ah_run *run, const ah_notice *e);
void ah_run_free(ah_run *run); /* settles and commits a pending turn first; NULL is fine */

/* False with AH_NEED_WAIT and AH_NEED_DONE. */
bool ah_run_next(ah_run *run, ah_need *need);

void ah_run_head(ah_run *run, uint32_t id, const ah_response_head *head);
void ah_run_feed(ah_run *run, uint32_t id, ah_slice bytes);
void ah_run_end(ah_run *run, uint32_t id, const ah_err *err); /* err NULL or AH_OK: complete */
/* The server asks to wait so long before the next try, ms; -1: it does not. */
void ah_run_advise(ah_run *run, uint32_t id, int64_t retry_after_ms);
/* Once the message is complete: how long the rest of the response is worth waiting for, ms; else
 * -1. */
int64_t ah_run_linger(const ah_run *run, uint32_t id);
/* For AH_NEED_SETUP and AH_NEED_STOP_SETUP: calls the functions of the config. */
void ah_run_begin_setup(ah_run *run);
void ah_run_stop_setup(ah_run *run);
/* Setup has ended: the run goes on (err NULL), or ends with the error. */
void ah_run_ready(ah_run *run, const ah_err *err);
/* The approval that hooks->ask began has come. `args` .p NULL: unchanged; else the arguments to
 * use instead, checked JSON. `why` is for the model where it was not approved. */
void ah_call_approved(ah_call *call, bool approved, ah_slice args, ah_slice why, int64_t now);
/* The checks that hooks->check began are done: .p NULL where the answer stands, else what the
 * model is told so that it goes on. */
void ah_run_checked(ah_run *run, ah_slice message);
/* They could not be made, which ends the run with the error; false where it ends already. */
bool ah_run_check_failed(ah_run *run, const ah_err *err);
void ah_run_tick(ah_run *run, int64_t now);
/* Takes note; the next ah_run_next acts on it. status AH_CANCELLED, AH_NOMEM, AH_INTERNAL, or
 * AH_GUARD of what it was to be asked. */
void ah_run_cancel(ah_run *run, ah_status status, const char *why);
/* A user message queued to the next commit; takes json (also on failure). The run goes on
 * after an answer as long as messages were queued. */
ah_status ah_run_send(ah_run *run, ah_text *json, ah_err *err);

int ah_run_iterations(const ah_run *run); /* model calls that were answered so far */
/* Whoever serves it. wake: the run can go on, through what another one has done; call ah_run_next
 * soon. It must not call back. */
void ah_run_set_owner(ah_run *run, void *owner, void (*wake)(void *owner));
/* The budgets that it draws on: its own and those of the runs around it; a call made by code draws
 * on those of the run around. */
ah_budgets *ah_run_spending(ah_run *run);
void *ah_run_owner(const ah_run *run);
bool ah_run_cancelling(const ah_run *run);
bool ah_run_preparing(const ah_run *run); /* setup is at work: nothing is said yet */
/* A `tool_progress` event of a call at work. message.p NULL and fraction < 0: not said. */
void ah_call_progress(ah_call *call, ah_slice message, double fraction);

/* The result, valid when done. */
typedef struct ah_run_result {
    ah_err err;     /* AH_OK: there is an answer */
    ah_slice text;  /* of the last assistant message; lives as long as the run */
    ah_slice value; /* `output`: checked JSON, likewise; .p NULL: none */
    ah_stop stop;
    int iterations; /* model calls that were answered */
    int rounds;     /* answers with calls */
    size_t tool_calls;
    ah_usage usage;
} ah_run_result;
void ah_run_result_of(const ah_run *run, ah_run_result *out);

#endif
