/* A need is what a run asks of its driver. Each call, and the run itself, owns one slot for each
 * kind of need. So raising a need allocates no memory and cannot fail, and none is lost. The state
 * machine raises needs; the host's driver, or a test, takes them by ah_run_next. The queue borrows
 * its slots. Callers: its floor. */
#ifndef AH_RUN_NEED_H
#define AH_RUN_NEED_H

#include <stdbool.h>
#include <stdint.h>

struct ah_call;

typedef enum ah_need_kind {
    AH_NEED_WAIT,       /* nothing to do until an event arrives */
    AH_NEED_DONE,       /* the run has ended: see ah_run_result_of */
    AH_NEED_SETUP,      /* make the run ready: ah_run_begin_setup */
    AH_NEED_STOP_SETUP, /* ah_run_stop_setup */
    AH_NEED_PLACE,      /* call ah_run_placed when the request may be sent */
    AH_NEED_STOP_PLACE, /* the place is no longer wanted, given or not */
    AH_NEED_EXCHANGE,   /* send ah_wire_body(ah_run_cfg(run)->wire) with the adapter */
    /* The exchange with this id is no longer wanted. As with the other stops, it may cause no more
     * calls. */
    AH_NEED_STOP_EXCHANGE,
    AH_NEED_ASK,       /* ask for approval of `call`: hooks->ask */
    AH_NEED_TOOL,      /* start `call` */
    AH_NEED_LOST,      /* find out what became of `call`: hooks->lost */
    AH_NEED_STOP_CALL, /* stop its approval, its search for the outcome, or its handler */
    AH_NEED_CHECK,     /* start the checks: hooks->check */
    AH_NEED_STOP_CHECK,
    AH_NEED_RECORD,      /* the recorder's sink: flush(ud, run, call, id, effect) */
    AH_NEED_STOP_RECORD, /* forget(ud, run, call) */
    AH_NEED_TIMER,       /* call ah_run_tick at `at`; replaces the previous timer */
    AH_NEEDS
} ah_need_kind;

typedef struct ah_need {
    ah_need_kind kind;
    uint32_t id;
    struct ah_call *call; /* for ASK, TOOL, LOST, STOP_CALL, RECORD, STOP_RECORD; NULL for needs of
                             the run itself */
    bool effect;          /* for RECORD: something outside of the process begins next */
    int64_t at;           /* for TIMER: loop clock, ms */
    int64_t tokens;       /* for PLACE: of the input that is not cached, about */
    int tries;            /* for PLACE: before this one */
} ah_need;

/* The slot of one kind of need. All zero: not raised. */
typedef struct ah_need_slot {
    ah_need need;
    bool raised;
    struct ah_need_slot *next, *prev; /* neighbours in the queue of raised needs */
} ah_need_slot;

typedef struct ah_need_queue {
    ah_need_slot *first, *last;
} ah_need_queue;

/* A need that is raised again before it was taken keeps its place in the queue. */
void ah_need_raise(ah_need_queue *all, ah_need_slot *w, ah_need need);
/* Returns false if it was not raised, or was already taken. */
bool ah_need_drop(ah_need_queue *all, ah_need_slot *w);
/* Takes the need that has waited longest; false: none. */
bool ah_need_take(ah_need_queue *all, ah_need *out);

#endif
