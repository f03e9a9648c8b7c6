/* The needs that a run has of whoever serves it. A call, and the run itself, has a place of its own
 * for each kind of need that it can raise: so raising one takes no memory, none is lost, and there
 * is no number of them to be reckoned beforehand. The state machine raises them; the host's driver,
 * or a test, takes them by ah_run_next. */
#ifndef AH_RUN_NEED_H
#define AH_RUN_NEED_H

#include <stdbool.h>
#include <stdint.h>

struct ah_call;

typedef enum ah_need_kind {
    AH_NEED_WAIT,          /* nothing until something comes */
    AH_NEED_DONE,          /* ended: see ah_run_result_of */
    AH_NEED_SETUP,         /* make the run ready: ah_run_begin_setup */
    AH_NEED_STOP_SETUP,    /* ah_run_stop_setup */
    AH_NEED_EXCHANGE,      /* send ah_wire_body(ah_run_cfg(run)->wire) with the adapter */
    AH_NEED_STOP_EXCHANGE, /* the exchange of that id is no longer wanted, as with the other stops:
                              nothing more may come of it */
    AH_NEED_ASK,           /* ask for approval of `call`: hooks->ask */
    AH_NEED_TOOL,          /* start `call` */
    AH_NEED_STOP_CALL,     /* its approval, or its handler */
    AH_NEED_CHECK,         /* check whether the run is done: hooks->check */
    AH_NEED_STOP_CHECK,
    AH_NEED_TIMER, /* call ah_run_tick at `at`; replaces the one before */
    AH_NEEDS
} ah_need_kind;

typedef struct ah_need {
    ah_need_kind kind;
    uint32_t id;
    struct ah_call *call; /* ASK, TOOL, STOP_CALL; else NULL: it is the run's own */
    int64_t at;           /* TIMER, loop clock */
} ah_need;

/* The place of one kind. Zero is one where nothing is raised. */
typedef struct ah_need_slot {
    ah_need need;
    bool raised;
    struct ah_need_slot *next, *prev; /* among what is raised, in that order */
} ah_need_slot;

typedef struct ah_need_queue {
    ah_need_slot *first, *last;
} ah_need_queue;

/* A need that is raised again before it was taken keeps its turn. */
void ah_need_raise(ah_need_queue *all, ah_need_slot *w, ah_need need);
/* False: it was not raised, or was taken already. */
bool ah_need_drop(ah_need_queue *all, ah_need_slot *w);
bool ah_need_take(ah_need_queue *all,
                  ah_need *out); /* the one that waits longest; false: none does */

#endif
