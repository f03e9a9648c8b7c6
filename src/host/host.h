/* A host: what all runs of one user of the library share. Memory, clock, log,
 * secrets, schemas, the event loop, HTTP, and a queue of jobs: everything that came in
 * (bytes, timers, answers) becomes a job, and jobs are done between waits, never
 * inside another library's callback. */
#ifndef AH_HOST_HOST_H
#define AH_HOST_HOST_H

#include <stdatomic.h>

#include "base/log.h"
#include "io/http.h"
#include "run/metrics.h"
#include "schema/schema.h"

typedef struct ah_job ah_job;
typedef struct ah_driver_run ah_driver_run; /* host/driver.h */

/* Intrusive: lives in what it is about. Zero with fn set is an unposted job. */
struct ah_job {
    void (*fn)(ah_job *job);
    ah_driver_run *of; /* the run it belongs to; NULL: none, done in any scope */
    ah_job *next, *prev;
    uint64_t number;      /* of the posting: later ones are larger */
    struct ah_host *host; /* NULL: not posted */
};

enum { AH_ASKS_KNOWN = 64 }; /* of so many, the last ones, it is known how they were closed */

/* The open asks of a host (host/ask.h), in the order of their opening. */
typedef struct ah_ask_book {
    struct ah_ask_item *first, **last;
    int64_t opened; /* so far; the last one's number */
    unsigned char how[AH_ASKS_KNOWN];
} ah_ask_book;

typedef struct ah_host {
    const ah_mem *mem;
    ah_config cfg; /* clock, wall, random, transport, woken, watcher; the rest is not used here */
    ah_log log;
    ah_secrets secrets;
    ah_schema_cache schemas;
    ah_loop *loop;
    ah_http *http;            /* made when first needed */
    ah_text *record, *replay; /* paths; NULL: not */
    struct ah_recorder *recorder;
    struct ah_replay *player; /* of `http`, like the recorder */
    ah_job *first, *last;     /* in the order of their numbers */
    uint64_t posted;          /* the number given last */
    ah_driver_run *runs;      /* all that are served */
    ah_ask_book asks;
    int64_t last_run; /* ids */
    int depth;        /* drives inside drives */
    int64_t work_ms;  /* processor time of one call into Lua, of a tool where it has no timeout */
    uint64_t random;
    ah_metrics metrics;
    int callbacks; /* functions of the program that we are inside of */
    int looking;   /* of them, those that only look on */
    bool logging;  /* in that of the log */
    atomic_bool cancel, wake;
    atomic_bool stop;        /* for good: nothing new begins */
    atomic_bool interactive; /* a script said that it is a chat */
    unsigned cancels;        /* how often it was acted upon */
    unsigned waits;          /* outermost drives so far */
    int64_t serving; /* number of the run whose job is being done; 0: of none. It may be gone */
    void *owner;     /* the Lua side */
} ah_host;

enum {
    AH_MAX_DEPTH = 8, /* runs inside runs, the outermost included */
    AH_WORK_MS = 10 * 1000
};

/* cfg: a whole one, copied (with its paths); NULL: nothing is the program's own. */
ah_status ah_host_new(const ah_mem *mem, const ah_config *cfg, ah_host **out, ah_err *err);
void ah_host_free(ah_host *h); /* runs, transfers and tasks must be gone */

int64_t ah_host_now(ah_host *h);   /* loop clock, ms */
int64_t ah_host_wall(void *host);  /* ms since the epoch */
double ah_host_random(void *host); /* [0, 1) */
/* True if the clock is past the deadline (0: none), or all runs are about to be cancelled. */
bool ah_host_over(void *host, int64_t deadline);
ah_status ah_host_http(ah_host *h, ah_http **out, ah_err *err);

void ah_job_post(ah_host *h, ah_job *job); /* once posted, posting again changes nothing */
void ah_job_cancel(ah_job *job);           /* harmless when not posted */

/* Works off the jobs that are due for `scope` and the runs it started (NULL: for all); if there are
 * none, waits at most timeout_ms (-1: until something comes). */
void ah_host_step(ah_host *h, ah_driver_run *scope, int timeout_ms);

/* Callable from any thread and from signal handlers. cancel: all runs are cancelled at the next
 * step. stop: besides, no run begins any more. wake: the next step calls cfg.woken. */
void ah_host_cancel(ah_host *h);
void ah_host_stop(ah_host *h);
void ah_host_wake(ah_host *h);

/* Called before and after each call of a function of the program. looks: the function only
 * observes, and must change nothing. */
void ah_host_call_out(ah_host *h, bool looks);
void ah_host_came_back(ah_host *h, bool looks);

#endif
