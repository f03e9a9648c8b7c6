/* One run: a model called until it answers without calls. The state machine does
 * no I/O and knows no clock: it yields needs, and is given what came of them.
 *
 *     while (ah_run_next(run, &need)) serve(need);   until AH_NEED_WAIT or AH_NEED_DONE
 *     ah_run_head / feed / end, ah_call_done, ah_run_tick, ah_run_cancel
 *
 * Whatever happens, the transcript is sound when AH_NEED_DONE is reached. */
#ifndef AH_RUN_RUN_H
#define AH_RUN_RUN_H

#include "base/log.h"
#include "model/event.h"
#include "prompt/prompt.h"
#include "run/budget.h"
#include "run/hooks.h"
#include "run/inject.h"
#include "run/metrics.h"
#include "run/dispatch.h"
#include "run/loop_detector.h"
#include "run/need.h"
#include "wire/lower.h"

typedef struct ah_run ah_run;

/* What becomes of an answer without calls that has no text but white space. */
typedef enum ah_on_empty {
    AH_EMPTY_STANDS, /* it is the answer */
    AH_EMPTY_RETRY,  /* the model is asked again, `retries` times in a row at most */
    AH_EMPTY_FAILS   /* AH_PROVIDER */
} ah_on_empty;

typedef struct ah_run_config {
    const ah_mem *mem;
    const ah_log *log;
    const ah_secrets *secrets;
    int64_t id, parent;          /* parent 0: none */
    ah_adapter *adapter;         /* referenced */
    ah_adapter *const *fallback; /* borrowed until the run is freed: each goes on where the one before
                                     is overloaded or out (run_fallback.c) */
    size_t n_fallbacks;
    bool fallback_after_output;   /* even where a listener was shown a piece of the answer */
    ah_transcript *transcript;    /* referenced; the run appends */
    ah_lowered *wire;             /* of the two, kept from run to run: a run costs what is new */
    ah_registry *registry;        /* borrowed until the run is freed, like all that follows */
    const ah_registry *executors; /* run calls that it cannot; NULL: none */
    ah_inject_rules *rules;       /* how tools are injected */
    ah_untold *untold;            /* told as the run starts; NULL: nothing */
    const ah_strategy *strategy;  /* in the order in which they see each call */
    size_t n_strategies;
    const size_t *discovered;   /* how many entities are at hand, for events; NULL: none ever */
    const ah_hooks *hooks;      /* NULL: none */
    const ah_hooks *host_hooks; /* of all runs of the host; NULL: none */
    struct ah_run *around; /* the run in which this one was started, whose policies hold here, too; NULL:
                                   none. ah_run_set_around tells when it goes */
    bool made_by_code;     /* its one call is not a model's: it is paid by the run around */
    ah_binding *prompt;    /* NULL: none */
    struct ah_disclosure *disclosure; /* the prompt in this conversation; NULL: there is none */
    const ah_schema *output;          /* what the last answer must be; NULL: anything */
    ah_session *session;              /* referenced; NULL: values of tools go nowhere */
    ah_anchor *caller;                /* referenced; the overlay of the call in which the run was
                                started: its own calls commit into it; NULL: none */
    ah_spending spending;             /* what it may use; taken by ah_run_new, also on failure */
    ah_metrics *metrics;              /* NULL: nothing is counted */
    ah_models *models;                /* told what is learned; NULL: nobody is */
    int max_iterations;               /* model calls */
    bool answer_on_max;               /* one last call without tools instead of the error */
    bool throw_on_unknown;            /* an unknown tool ends the run (seed 001) */
    ah_on_empty on_empty;
    int retries;
    ah_loop_rules loop;         /* its list is borrowed until the run is freed */
    int64_t deadline;           /* loop clock, ms; 0: none */
    int64_t (*wall)(void *ud);  /* ms since the epoch */
    double (*random)(void *ud); /* [0, 1) */
    /* True if the clock is past the deadline (0: none), or all runs are to end. Asked during long
     * checks, which then end early; NULL: they do not. */
    bool (*over)(void *ud, int64_t deadline);
    void *ud;       /* of the three */
    ah_event_fn on; /* NULL: nobody listens */
    /* Told what each handler gave, once it is judged and before it is words; NULL: nobody. */
    void (*answered)(void *ud, const ah_call *call, const ah_outcome *o);
    /* Begins what makes the run ready, before its first request, which may change transcript and
     * registry; ah_run_ready ends it, once, unless stop_setup was called. NULL: the run is ready. */
    void (*setup)(void *ud, ah_run *run);
    void (*stop_setup)(void *ud, ah_run *run);
    /* Writes the whole of a result that a model is shown in part into a file, in `o`, which is
     * committed then. `path` gets where; nothing: there is no place for it. NULL: there never is. */
    ah_status (*keep)(void *ud, const ah_call *call, ah_overlay *o, ah_slice whole, ah_buf *path,
                      ah_err *err);
    void *on_ud;        /* of `on` and all above */
    bool wants_content; /* a listener is shown content as it comes: no retry after that */
} ah_run_config;

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
/* Once the message is complete: how long the rest of the response is worth waiting for, ms; else -1. */
int64_t ah_run_linger(const ah_run *run, uint32_t id);
void ah_call_done(ah_call *call, const ah_outcome *outcome, int64_t now);
/* For AH_NEED_SETUP and AH_NEED_STOP_SETUP: calls the functions of the config. */
void ah_run_begin_setup(ah_run *run);
void ah_run_stop_setup(ah_run *run);
/* What setup began is done: the run goes on (err NULL), or ends with the error. */
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
/* Takes note; the next ah_run_next acts on it. status AH_CANCELLED, AH_NOMEM, AH_INTERNAL, or AH_GUARD of what
 * it was to be asked. */
void ah_run_cancel(ah_run *run, ah_status status, const char *why);
/* A user message queued to the next commit; takes json (also on failure). The run goes on
 * after an answer as long as messages were queued. */
ah_status ah_run_send(ah_run *run, ah_text *json, ah_err *err);

const ah_hooks *ah_run_hooks(const ah_run *run);
const ah_log *ah_run_log(const ah_run *run);
const ah_spending *ah_run_spending(const ah_run *run);
ah_adapter *ah_run_adapter(const ah_run *run);
const ah_registry *ah_run_registry(const ah_run *run);
const ah_transcript *ah_run_transcript(const ah_run *run);
bool ah_run_has_strategies(const ah_run *run);
int ah_run_iterations(const ah_run *run); /* model calls that were answered so far */
const ah_lowered *ah_run_lowered(const ah_run *run);
int64_t ah_run_id(const ah_run *run);
void ah_run_set_owner(ah_run *run, void *owner); /* whoever serves it */
void *ah_run_owner(const ah_run *run);
int64_t ah_run_deadline(const ah_run *run);
bool ah_run_cancelling(const ah_run *run);
bool ah_run_preparing(const ah_run *run);     /* setup is at work: nothing is said yet */
ah_binding *ah_run_prompt(const ah_run *run); /* NULL: none */
ah_session *ah_run_session(const ah_run *run);
ah_anchor *ah_run_caller(const ah_run *run);     /* NULL: none */
void ah_run_warn(ah_run *run, ah_slice message); /* one `warning` event and log line */
/* The event alone, about a tool. changed: JSON, what differs of it; .p NULL: does not say. */
void ah_run_warn_of_tool(ah_run *run, ah_slice message, ah_slice tool_name, ah_slice changed);
/* A `tool_progress` event of a call at work. message.p NULL and fraction < 0: not said. */
void ah_call_progress(ah_call *call, ah_slice message, double fraction);

/* What came out, valid when done. */
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
