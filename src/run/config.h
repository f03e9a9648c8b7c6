/* The config of a run: all that it is given. Whoever starts a run fills it in (the Lua floor); the
 * run copies it, all of its parts read the copy (ah_run_cfg of run/tell.h), and the state machine
 * alone changes it. */
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
struct ah_outcome;

/* The fate of an answer without calls that has no text but white space. */
typedef enum ah_on_empty {
    AH_EMPTY_STANDS, /* it is the answer */
    AH_EMPTY_RETRY,  /* the model is asked again, `retries` times in a row at most */
    AH_EMPTY_FAILS   /* AH_PROVIDER */
} ah_on_empty;

/* The limits that a script sets for its runs. */
typedef struct ah_run_limits {
    int max_iterations;    /* model calls */
    int retries;           /* of a request */
    bool answer_on_max;    /* one last call without tools instead of the error */
    bool throw_on_unknown; /* an unknown tool ends the run */
    int max_nested;        /* runs inside runs, this one included; 0: no limit of its own */
    ah_on_empty on_empty;
    ah_loop_detector_rules loop; /* its list is borrowed until the run is freed */
} ah_run_limits;

typedef struct ah_run_config {
    const ah_mem *mem;
    const ah_log *log;
    const ah_secrets *secrets;
    int64_t id, parent;          /* parent 0: none */
    ah_slice agent;              /* the agent's name, borrowed; .p NULL: none */
    ah_adapter *adapter;         /* referenced */
    ah_adapter *const *fallback; /* borrowed until the run is freed: each goes on where the one
                                    before is overloaded or out (run_fallback.c) */
    size_t n_fallbacks;
    bool fallback_after_output;    /* even where a listener was shown a piece of the answer */
    ah_transcript *transcript;     /* referenced; the run appends */
    ah_wire *wire;                 /* of the two, kept from run to run: a run costs what is new */
    ah_registry *registry;         /* borrowed until the run is freed, like all that follows */
    const ah_registry *executors;  /* run calls that it cannot; NULL: none */
    struct ah_inject_rules *rules; /* how tools are injected */
    struct ah_drift_warnings *untold;   /* told as the run starts; NULL: nothing */
    const struct ah_strategy *strategy; /* in the order in which they see each call */
    size_t n_strategies;
    const size_t *discovered;     /* how many entities are at hand, for events; NULL: none ever */
    const struct ah_hooks *hooks; /* NULL: none */
    const struct ah_hooks *host_hooks; /* of all runs of the host; NULL: none */
    struct ah_run *around; /* the run in which this one was started, whose policies hold here, too;
                              NULL: none. ah_run_set_around tells when it goes */
    bool made_by_code;     /* its one call is not a model's: it is paid by the run around */
    struct ah_binding *prompt;        /* NULL: none */
    struct ah_disclosure *disclosure; /* the prompt in this conversation; NULL: there is none */
    const ah_schema *output;          /* what the last answer must be; NULL: anything */
    ah_session *session;              /* referenced; NULL: values of tools go nowhere */
    ah_anchor *caller;                /* referenced; the overlay of the call in which the run was
                                started: its own calls commit into it; NULL: none */
    ah_budgets spending;              /* what it may use; taken by ah_run_new, also on failure */
    ah_metrics *metrics;              /* NULL: nothing is counted */
    ah_models *models;                /* told what is learned; NULL: nobody is */
    ah_run_limits limits;
    int64_t deadline;           /* loop clock, ms; 0: none */
    int64_t (*wall)(void *ud);  /* ms since the epoch */
    double (*random)(void *ud); /* [0, 1) */
    /* True if the clock is past the deadline (0: none), or all runs are to end. Asked during long
     * checks, which then end early; NULL: they do not. */
    bool (*over)(void *ud, int64_t deadline);
    void *ud;       /* of the three */
    ah_event_fn on; /* NULL: nobody listens */
    /* Told what each handler gave, once it is judged and before it is words; NULL: nobody. */
    void (*answered)(void *ud, const struct ah_call *call, const struct ah_outcome *o);
    /* Begins what makes the run ready, before its first request, which may change transcript and
     * registry; ah_run_ready ends it, once, unless stop_setup was called. NULL: the run is
     * ready. */
    void (*setup)(void *ud, ah_run *run);
    void (*stop_setup)(void *ud, ah_run *run);
    /* Writes the whole of a result that a model is shown in part into a file, in `o`, which is
     * committed then. `path` gets where; nothing: there is no place for it. NULL: there never
     * is. */
    ah_status (*keep)(void *ud, const struct ah_call *call, ah_overlay *o, ah_slice whole,
                      ah_buf *path, ah_err *err);
    void *on_ud;        /* of `on` and all above */
    bool wants_content; /* a listener is shown content as it comes: no retry after that */
    /* filled in by ah_run_new */
    struct ah_restarts *restarts; /* run/inject.h */
} ah_run_config;

#endif
