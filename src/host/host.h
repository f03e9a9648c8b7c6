/* A host: what all runs of one user of the library share. Memory, clock, log, secrets, schemas, the
 * event loop, HTTP, and a queue of jobs. Everything that arrives (bytes, timers, answers) becomes a
 * job; jobs run between waits, never inside another library's callback. The host owns these parts;
 * jobs are their owners' memory. Used by one thread, except ah_host_cancel, stop and wake.
 * Callers: its floor, lua. */
#ifndef AH_HOST_HOST_H
#define AH_HOST_HOST_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "host/lane.h"
#include "io/hidden.h"
#include "io/http.h"
#include "run/metrics.h"
#include "schema/schema.h"

typedef struct ah_job ah_job;
typedef struct ah_driver_run ah_driver_run; /* host/driver.h */

/* Intrusive: part of the object that it concerns. All zero, with fn set, is an unposted job. */
struct ah_job {
    void (*fn)(ah_job *job);
    ah_driver_run *of; /* the run it belongs to; NULL: none, done in any scope */
    ah_job *next, *prev;
    uint64_t number;      /* number of the posting: later ones are larger */
    struct ah_host *host; /* NULL: not posted */
};

/* For this many of the last asks, the host remembers how they were closed. */
enum { AH_ASKS_KNOWN = 64 };

/* The open asks of a host (host/ask.h), in the order of their opening. */
typedef struct ah_ask_book {
    struct ah_ask_item *first, **last;
    int64_t opened; /* number of asks so far; also the last one's number */
    unsigned char how[AH_ASKS_KNOWN];
} ah_ask_book;

/* The appends that engines of the program have begun (host/given_store.h). Any thread may end one.
 */
typedef struct ah_given_book {
    pthread_mutex_t lock;
    pthread_cond_t news; /* an append has ended */
    struct ah_given_append *first;
    uint64_t last; /* id */
} ah_given_book;

typedef struct ah_host {
    const ah_mem *mem;
    ah_config cfg; /* only clock, wall, random, transport, woken and watcher are used here */
    ah_log log;
    ah_secrets secrets;
    ah_schema_cache schemas;
    ah_loop *loop;
    ah_http *http;            /* created on first use */
    ah_text *record, *replay; /* paths; NULL: not used */
    /* As in ah_config; NULL: not given. */
    ah_text *store, *conversation, *conversation_base, *give_up, *mcp_pins, *mcp_logins;
    bool take; /* conversations are taken from their holders */
    struct ah_recording *recording;
    struct ah_replay *player; /* used by `http`, like the recorder */
    ah_job *first, *last;     /* in the order of their numbers */
    uint64_t posted;          /* the last number given */
    ah_lanes lanes;
    ah_driver_run *scope; /* only it and its descendants are driven; NULL: all runs */
    ah_driver_run *runs;  /* all driven runs */
    ah_ask_book asks;
    int64_t last_run; /* ids */
    int depth;        /* nesting depth of drives */
    int64_t work_ms;  /* CPU time limit of one call into Lua, and of a tool without a timeout */
    uint64_t random;
    int64_t wall; /* the last time of ah_host_wall */
    ah_metrics metrics;
    int callbacks;                /* calls of the program's functions that are on the stack */
    int looking;                  /* of these, calls of functions that only observe */
    bool logging;                 /* inside the program's log function */
    struct ah_open_store *stores; /* host/keeper.h */
    ah_given_book given;
    ah_hidden hidden; /* folders of which tools know nothing: of stores and of the next one */
    ah_hidden_folder *hidden_file; /* of mcp_logins; NULL: none */
    size_t appends; /* outstanding ones of all stores, and waits for a search index */
    atomic_bool cancel, wake;
    atomic_bool stored;      /* a store has appends that are carried out */
    atomic_bool stop;        /* permanent: nothing new begins */
    atomic_bool interactive; /* a script has declared itself a chat */
    unsigned cancels;        /* number of cancellations carried out */
    unsigned waits;          /* number of outermost drives so far */
    int64_t serving; /* number of the run whose job is running; 0: none. The run may be gone */
    void *owner;     /* used by the Lua part */
} ah_host;

enum {
    AH_MAX_DEPTH = 8, /* limit of runs inside runs, including the outermost */
    AH_WORK_MS = 10 * 1000
};

/* cfg: a complete one, copied with its paths; NULL: all defaults. */
ah_status ah_host_new(const ah_mem *mem, const ah_config *cfg, ah_host **out, ah_err *err);
void ah_host_free(ah_host *h); /* runs, transfers and tasks must be gone */

int64_t ah_host_now(ah_host *h);   /* loop clock, ms */
int64_t ah_host_wall(void *host);  /* ms since the epoch; never goes back */
double ah_host_random(void *host); /* [0, 1) */
/* True if the clock is past the deadline (0: none), or all runs are about to be cancelled. */
bool ah_host_over(void *host, int64_t deadline);
/* Sets *out to the host's HTTP client, made on first use and borrowed. */
ah_status ah_host_http(ah_host *h, ah_http **out, ah_err *err);

void ah_job_post(ah_host *h, ah_job *job); /* no effect if it is posted already */
void ah_job_cancel(ah_job *job);           /* no effect if not posted */
/* True if a job is posted that ah_host_step would run for `scope`. */
bool ah_host_has_job(const ah_host *h, const ah_driver_run *scope);

/* True if only a wake-up, a signal or a posted job would go on: the loop is idle, and no append is
 * outstanding. */
bool ah_host_idle(const ah_host *h);

/* Runs the jobs that are due for `scope` and the runs it started (NULL: all jobs). If there are
 * none, waits at most timeout_ms (-1: without limit). */
void ah_host_step(ah_host *h, ah_driver_run *scope, int timeout_ms);

/* Callable from any thread and from signal handlers. cancel: cancels all runs at the next step.
 * stop: also lets no new run begin. wake: the next step calls cfg.woken. */
void ah_host_cancel(ah_host *h);
void ah_host_stop(ah_host *h);
void ah_host_wake(ah_host *h);

/* Called before and after each call of a function of the program. `looks`: the function only
 * observes, and must change nothing. */
void ah_host_call_out(ah_host *h, bool looks);
void ah_host_came_back(ah_host *h, bool looks);

#endif
