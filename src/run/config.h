/* The config of a run: everything it is given. The code that starts a run fills it in. ah_run_new
 * copies the struct; all parts of the run read that copy (ah_run_cfg), and only the state machine
 * changes it. Each field says whether it is referenced or borrowed. Callers: its floor. */
#ifndef AH_RUN_CONFIG_H
#define AH_RUN_CONFIG_H

#include "base/log.h"
#include "model/event.h"
#include "model/registry.h"
#include "run/budget.h"
#include "run/loop_detector.h"
#include "run/metrics.h"
#include "schema/schema.h"
#include "state/session.h"

typedef struct ah_run ah_run;
struct ah_call;
struct ah_recorder;
struct ah_run_history;

/* The handling of an answer without calls that is empty or only white space. */
typedef enum ah_on_empty {
    AH_EMPTY_STANDS, /* it is kept as the answer */
    AH_EMPTY_RETRY,  /* the model is asked again, at most `retries` times in a row */
    AH_EMPTY_FAILS   /* the run fails with AH_PROVIDER */
} ah_on_empty;

/* The limits that a script sets for its runs. */
typedef struct ah_run_limits {
    int max_iterations;    /* model calls */
    int retries;           /* retries per request */
    int max_in_flight;     /* requests at work at once in a lane (host/lane.h); 0: no limit */
    int max_parallel;      /* handlers of one answer at work at once; 0: no limit */
    bool answer_on_max;    /* one last model call without tools instead of the error */
    bool throw_on_unknown; /* an unknown tool ends the run */
    int max_nested;        /* runs inside runs, this one included; 0: no limit of its own */
    ah_on_empty on_empty;
    ah_loop_detector_rules loop; /* its list is borrowed until the run is freed */
} ah_run_limits;

/* The parts of another agent with which a run goes on. All are borrowed until the run is freed. */
typedef struct ah_handover {
    ah_adapter *adapter;
    const struct ah_hooks *hooks; /* policies and guards beside the run's own; NULL: none */
    const ah_schema *output;      /* NULL: any answer is allowed */
    ah_slice agent;               /* name; .p NULL: none */
    int max_in_flight;            /* as in ah_run_limits */
} ah_handover;

typedef struct ah_run_config {
    const ah_mem *mem;
    const ah_log *log;
    const ah_secrets *secrets;
    int64_t id, parent;  /* parent 0: none */
    ah_slice agent;      /* the agent's name, borrowed; .p NULL: none */
    ah_adapter *adapter; /* referenced */
    /* Borrowed until the run is freed. Each takes over when the one before is overloaded or
     * unavailable (run_fallback.c). */
    ah_adapter *const *fallback;
    size_t n_fallbacks;
    bool fallback_after_output; /* even after a listener was shown part of the answer */
    ah_transcript *transcript;  /* referenced; the run appends */
    ah_wire *wire; /* of adapter and transcript, kept from run to run so that only new entries are
                      lowered */
    ah_registry *registry;              /* borrowed until the run is freed, like all that follows */
    const ah_registry *executors;       /* run calls that `registry` cannot; NULL: none */
    struct ah_inject_rules *rules;      /* how tools are injected */
    struct ah_drift_warnings *untold;   /* emitted when the run starts; NULL: none */
    const struct ah_strategy *strategy; /* in the order in which they see each call */
    size_t n_strategies;
    const size_t *discovered; /* number of entities with an instance, for events; NULL: never any */
    const struct ah_hooks *hooks;  /* NULL: none */
    const struct ah_hooks *active; /* of the agent that has taken over; NULL: none */
    /* Called when the call (NULL: one that an earlier process has settled) has handed the
     * conversation over. Fills *to. */
    void (*hand_over)(void *ud, const struct ah_call *call, ah_handover *to);
    const struct ah_hooks *host_hooks; /* the hooks of the host, for all of its runs; NULL: none */
    /* The run in which this one was started; its policies apply here too. NULL: none.
     * ah_run_set_around changes it. */
    struct ah_run *around;
    bool made_by_code; /* its one call was made by code, not by a model; the run around it pays */
    const struct ah_background *background; /* NULL: all handlers are waited for */
    bool awaits;                            /* it ends only when its background calls have ended */
    int64_t ticket;                   /* of its one call, a background call; 0: it has a model */
    struct ah_binding *prompt;        /* NULL: none */
    struct ah_disclosure *disclosure; /* the prompt in this conversation; NULL: there is none */
    const ah_schema *output;          /* schema of the last answer; NULL: none */
    ah_session *session;              /* referenced; NULL: values of tools are not dispatched */
    /* Referenced: the overlay of the call in which the run was started, into which the run's own
     * calls commit; NULL: none. */
    ah_anchor *caller;
    ah_budgets spending;          /* its budgets; taken by ah_run_new, also on failure */
    ah_metrics *metrics;          /* NULL: nothing is counted */
    ah_models *models;            /* records what is learned of models; NULL: not recorded */
    struct ah_recorder *recorder; /* run/recorder.h; NULL: nothing is recorded */
    const struct ah_run_history *history; /* the run goes on from it; NULL: it begins */
    ah_run_limits limits;
    int64_t deadline;           /* loop clock, ms; 0: none */
    int64_t lasting_deadline;   /* the part of it that a later process keeps; 0: none */
    int64_t (*wall)(void *ud);  /* ms since the epoch */
    double (*random)(void *ud); /* [0, 1) */
    /* Called when the provider refuses a request for load, `tries` times before. advised: ms that
     * it asks to wait; -1: none. Returns the ms after which it may be sent again; 0: the run
     * decides. NULL: likewise. */
    int64_t (*back_off)(void *ud, ah_run *run, int64_t advised, int tries);
    /* True if the clock is past the deadline (0: none), or all runs are to end. Long checks ask it
     * and end early if it is true. NULL: they run to their end. */
    bool (*over)(void *ud, int64_t deadline);
    void *ud;       /* passed to wall, random, back_off and over */
    ah_event_fn on; /* NULL: no listener */
    /* Called when the handler of a call has ended and its result is decided: policies have judged
     * it, and it is approved or refused if they asked. NULL: not called. */
    void (*answered)(void *ud, const struct ah_call *call);
    /* Starts the setup before the first request; it may change transcript and registry.
     * ah_run_ready ends it, once, unless stop_setup was called. NULL: no setup. */
    void (*setup)(void *ud, ah_run *run);
    void (*stop_setup)(void *ud, ah_run *run);
    /* Writes a whole result into a file, because the model is shown only a part. Writes through
     * the overlay `o`, which the run then commits. Appends the file's path to `path`, or nothing if
     * the file has no place. NULL: results are never kept. */
    ah_status (*keep)(void *ud, const struct ah_call *call, ah_overlay *o, ah_slice whole,
                      ah_buf *path, ah_err *err);
    /* Called before each request. True: a listener is shown content as it arrives; afterwards
     * there is no retry. NULL: false. */
    bool (*wants_content)(void *ud);
    /* The next three are for records of what calls staged (run/restage.h). */
    const ah_staged_names *names; /* of what calls may change besides the session; NULL: nothing */
    /* Makes a recorded change of an entity again: an item { class, id, state } of `entities`, which
     * joins the call's overlay. NULL: there are no entities. */
    ah_status (*restage_entity)(void *ud, struct ah_call *call, ah_slice item, ah_err *err);
    /* Finds a tool that the registries do not have, borrowed. NULL: there are no others. */
    ah_tool *(*find_tool)(void *ud, ah_slice name);
    void *on_ud; /* passed to `on` and to all functions above */
    /* Set by ah_run_new. */
    struct ah_restarts *restarts; /* run/inject.h */
} ah_run_config;

#endif
