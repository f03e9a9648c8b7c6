/* Hooks: what may look at a call before its handler, and at a run between its turns (seed 002:
 * policies, approvals, feedback, completion checks). Those that may take time are started here
 * and answer later; the others never wait. Any of them may be NULL. */
#ifndef AH_RUN_HOOKS_H
#define AH_RUN_HOOKS_H

#include "prompt/changes.h"

struct ah_run;
struct ah_call;

typedef enum ah_verdict { AH_VERDICT_ALLOW, AH_VERDICT_DENY, AH_VERDICT_ASK } ah_verdict;

/* A reason that is longer than this is told as its beginning, and how many bytes are left out. */
enum {
    AH_MAX_CHECK_ROUNDS = 10,
    AH_MAX_REASON = 16 << 10 /* bytes */
};

typedef struct ah_hooks {
    /* May the call run? Its arguments are checked. `why` takes words: for the model with DENY,
     * for whoever approves with ASK. */
    ah_verdict (*before)(void *ud, struct ah_run *run, const struct ah_call *call, ah_buf *why);
    /* Starts an approval; ah_call_approved ends it, once, unless stop_asking was called. */
    void (*ask)(void *ud, struct ah_call *call, ah_slice why);
    void (*stop_asking)(void *ud, struct ah_call *call);
    /* A batch of so many calls is filed: what is to be said to the model (notes). */
    ah_status (*feedback)(void *ud, struct ah_run *run, size_t calls, ah_changes *notes, ah_err *err);
    /* The model has answered without calls: is it done? Starts the checks; ah_run_checked ends
     * them, once, unless stop_checking was called. */
    void (*check)(void *ud, struct ah_run *run);
    void (*stop_checking)(void *ud, struct ah_run *run);
    void *ud;
} ah_hooks;

#endif
