/* The driver: serves the needs of all runs of a host, with HTTP, timers and the owners of tools and
 * adapters. A driven run owns its ah_run and its exchange. Handlers and observers that it calls may
 * start, cancel or settle other runs. Callers: its floor, lua. */
#ifndef AH_HOST_DRIVER_H
#define AH_HOST_DRIVER_H

#include "host/host.h"
#include "run/run.h"

/* Called once, from a job, when a run has ended. */
typedef void (*ah_driver_run_fn)(void *ud, ah_driver_run *d);

/* Takes the run and begins to serve it. `parent`: the run in whose tool it was started, or NULL. */
ah_status ah_driver_run_new(ah_host *h, ah_run *run, ah_driver_run *parent, ah_driver_run_fn done,
                            void *ud, ah_driver_run **out, ah_err *err);
/* Stops what is running and frees the run. It makes no more calls from then on. NULL is allowed. */
void ah_driver_run_free(ah_driver_run *d);

ah_run *ah_driver_run_run(const ah_driver_run *d);
/* The ud given to ah_driver_run_new together with `done`; NULL if another function was given. */
void *ah_driver_run_ud(const ah_driver_run *d, ah_driver_run_fn done);
/* Returns the depth of the run: 1 + the number of runs around it; 0 for NULL. */
int ah_driver_run_depth(const ah_driver_run *d);
/* Returns the depth that runs within it may have at most, by the `max_nested` of this run and of
 * those around it; AH_MAX_DEPTH for NULL. */
int ah_driver_run_deepest(const ah_driver_run *d);
/* The number of its run, unique in the host; 0 for NULL. */
int64_t ah_driver_run_id(const ah_driver_run *d);
/* The next driven run of the host; NULL: none. */
ah_driver_run *ah_driver_run_next(const ah_driver_run *d);
/* The run in whose tool it was started; NULL: none. */
ah_driver_run *ah_driver_run_parent(const ah_driver_run *d);
/* Ends the run and those inside it soon. */
void ah_driver_run_cancel(ah_driver_run *d, ah_status status, const char *why);
/* Returns the time (loop clock) since which the run of this number, or a run around it, is past its
 * deadline or was seen to be cancelled; 0 if neither, or if the run is gone. *why: the status with
 * which it ends. */
int64_t ah_driver_run_ended(ah_host *h, int64_t id, int64_t now, ah_status *why);
/* As ah_driver_run_cancel, but at once: on return the run is settled and its end is reported,
 * unless a caller below on the C stack is working on the run. */
void ah_driver_run_settle(ah_driver_run *d, ah_status status, const char *why);
/* True while its needs are being served, below us on the C stack: it cannot be freed. */
bool ah_driver_run_at_work(const ah_driver_run *d);
/* True if d is scope or a run started by it, at any depth. A NULL scope matches every d; a NULL d
 * matches every scope. */
bool ah_driver_run_within(const ah_driver_run *d, const ah_driver_run *scope);
/* Something was given to the run (an answer, a message): its needs are served soon. */
void ah_driver_run_wake(ah_driver_run *d);

/* back_off of ah_run_config: the run's lane waits. */
int64_t ah_driver_back_off(void *host, ah_run *run, int64_t advised, int tries);

/* An exchange for its owner (ah_adapter_vt.exchange). */
typedef struct ah_exchange {
    ah_driver_run *of;
    ah_adapter *adapter; /* referenced, since the run may use another adapter when the exchange is
                            stopped */
    uint32_t id;
    bool head_told;
    bool over;             /* HTTP: the wait for the end of the response is over */
    ah_transfer *transfer; /* HTTP */
    ah_timer linger;
    ah_buf scratch;
    ah_job job;
    void *task; /* used by the owner */
} ah_exchange;

/* The bytes must stay valid until this returns, since observers are called meanwhile. */
void ah_exchange_feed(ah_exchange *x, ah_slice bytes);
void ah_exchange_end(ah_exchange *x, const ah_err *err); /* frees x */

#endif
