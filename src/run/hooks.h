/* Hooks: functions that look at a call before its handler, at its result, and at a run when it
 * begins, between turns, and before its answer is final (seed 002: policies, approvals, feedback,
 * completion checks). Hooks that may take time are started here and answer later; the others return
 * at once. Each may be NULL. gate.c decides the order in which policies are asked, inject.c asks
 * for feedback, and the state machine calls guards and checks. The caller clears each ah_ruling.
 * Callers: its floor, lua. */
#ifndef AH_RUN_HOOKS_H
#define AH_RUN_HOOKS_H

#include "state/changes.h"

struct ah_run;
struct ah_call;
struct ah_outcome;

/* The verdict of a policy. DENY and REWRITE apply before the handler; REPLACE, REDACT and BLOCK to
 * its result; ASK to the call before, and to its result and changes after. */
typedef enum ah_verdict {
    AH_VERDICT_NONE, /* there is no such policy, or it ignores this call */
    AH_VERDICT_ALLOW,
    AH_VERDICT_ASK,
    AH_VERDICT_DENY,
    AH_VERDICT_REWRITE, /* changes the arguments */
    AH_VERDICT_REPLACE,
    AH_VERDICT_REDACT,
    AH_VERDICT_BLOCK
} ah_verdict;

const char *ah_verdict_name(ah_verdict v); /* "deny" */

enum {
    AH_MAX_CHECK_ROUNDS = 10,
    /* Bytes of a reason; of a longer one the beginning is shown, and how many bytes are missing. */
    AH_MAX_REASON = 16 << 10,
    AH_MAX_POLICY = 128 /* bytes of a policy's name */
};

/* The verdict of one policy with its texts. The caller clears it (ah_ruling_clear). */
typedef struct ah_ruling {
    ah_verdict verdict;
    bool shadow;                /* it is reported, but not obeyed */
    bool failed;                /* the policy failed; `failure` says why, for the script only */
    char policy[AH_MAX_POLICY]; /* its name, or the place of its definition: "crm.lua:12" */
    char failure[AH_MAX_MESSAGE];
    ah_buf why; /* for the model and for the person that approves */
    /* Checked JSON. REWRITE: the arguments. REPLACE, REDACT: the value; NULL: none. */
    ah_text *json;
    ah_text *message, *images, *type; /* REPLACE: as in an outcome; NULL: none */
    bool success, exclude;            /* REPLACE */
} ah_ruling;

void ah_ruling_init(ah_ruling *r, const ah_mem *mem);
void ah_ruling_clear(ah_ruling *r);

typedef struct ah_hooks {
    /* Asks policy number i (from 0) about the call, whose arguments are checked. `of` is the run
     * whose policies these are: the call's own run or one around it; NULL: the host. Returns false
     * if there is no policy i. */
    bool (*before)(void *ud, struct ah_run *of, const struct ah_call *call, size_t i,
                   ah_ruling *out);
    /* Asks policy number i about the call's result: the current outcome `o`, and the text that the
     * model would read. Returns false if there is no policy i. */
    bool (*after)(void *ud, struct ah_run *of, const struct ah_call *call, size_t i,
                  const struct ah_outcome *o, ah_slice words, ah_ruling *out);
    bool decides; /* `ask` begins with a function of the script, which may decide */
    /* Starts an approval. ah_call_approved ends it, once, unless stop_asking was called. */
    void (*ask)(void *ud, struct ah_call *call, ah_slice why);
    void (*stop_asking)(void *ud, struct ah_call *call);
    /* Starts to find out what became of a call that an earlier process had begun with this key and
     * these arguments, for tools with AH_LOST_SCRIPT or AH_LOST_ASK. ah_call_found ends it, once,
     * unless stop_lost was called. NULL: the outcome stays unknown. */
    void (*lost)(void *ud, struct ah_call *call, ah_slice key, ah_slice arguments);
    void (*stop_lost)(void *ud, struct ah_call *call);
    /* A batch of `calls` calls is filed: adds notes for the model. */
    ah_status (*feedback)(void *ud, struct ah_run *run, size_t calls, ah_changes *notes,
                          ah_err *err);
    /* The final answer has come and is not in the conversation yet. Returns AH_OK, or AH_GUARD with
     * the reason to reject it. value .p NULL: the run has no `output`. */
    ah_status (*guard)(void *ud, struct ah_run *run, ah_slice text, ah_slice value, ah_err *err);
    /* The model has answered without calls: starts the checks, which decide if the run is done.
     * ah_run_checked ends them, once, unless stop_checking was called. */
    void (*check)(void *ud, struct ah_run *run);
    void (*stop_checking)(void *ud, struct ah_run *run);
    void *ud;
} ah_hooks;

#endif
