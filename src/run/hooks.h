/* Hooks: what may look at a call before its handler and at its result after it, and at a run where
 * it begins, between its turns and before its answer (seed 002: policies, approvals, feedback,
 * completion checks). Those that may take time are started here and answer later; the others never
 * wait. Any of them may be NULL. The Lua floor fills them in. The order in which they are asked
 * about a call is gate.c's; injection asks for feedback, the state machine for guards and
 * checks. */
#ifndef AH_RUN_HOOKS_H
#define AH_RUN_HOOKS_H

#include "state/changes.h"

struct ah_run;
struct ah_call;
struct ah_outcome;

/* The verdict of a policy. ASK, DENY and REWRITE before the handler; REPLACE, REDACT and BLOCK of
 * its result. */
typedef enum ah_verdict {
    AH_VERDICT_NONE, /* there is no such policy, or it does not look at this */
    AH_VERDICT_ALLOW,
    AH_VERDICT_ASK,
    AH_VERDICT_DENY,
    AH_VERDICT_REWRITE, /* the arguments */
    AH_VERDICT_REPLACE,
    AH_VERDICT_REDACT,
    AH_VERDICT_BLOCK
} ah_verdict;

const char *ah_verdict_name(ah_verdict v); /* "deny" */

/* A reason that is longer than this is told as its beginning, and how many bytes are left out. */
enum {
    AH_MAX_CHECK_ROUNDS = 10,
    AH_MAX_REASON = 16 << 10, /* bytes */
    AH_MAX_POLICY = 128       /* bytes of a policy's name */
};

/* The ruling of one policy. Texts are the caller's to clear (ah_ruling_clear). */
typedef struct ah_ruling {
    ah_verdict verdict;
    bool shadow;                /* it is told, and not obeyed */
    bool failed;                /* the policy failed; `failure` says how, for the script alone */
    char policy[AH_MAX_POLICY]; /* its name, or where it stands: "crm.lua:12" */
    char failure[AH_MAX_MESSAGE];
    ah_buf why; /* for the model, and for whoever approves */
    /* REWRITE: the arguments, checked JSON. REPLACE, REDACT: the value, checked JSON; NULL:
     * none. */
    ah_text *json;
    ah_text *message, *images, *type; /* REPLACE: as in an outcome; NULL: none */
    bool success, exclude;            /* REPLACE */
} ah_ruling;

void ah_ruling_init(ah_ruling *r, const ah_mem *mem);
void ah_ruling_clear(ah_ruling *r);

typedef struct ah_hooks {
    /* Asks policy number i (from 0) about the call, whose arguments are checked. `of`: the run
     * whose policies these are, that of the call or one around it; NULL: the host's own. False:
     * there are not so many. */
    bool (*before)(void *ud, struct ah_run *of, const struct ah_call *call, size_t i,
                   ah_ruling *out);
    /* The same of its result: the outcome as it is now, and the words that the model would read. */
    bool (*after)(void *ud, struct ah_run *of, const struct ah_call *call, size_t i,
                  const struct ah_outcome *o, ah_slice words, ah_ruling *out);
    bool decides; /* `ask` begins with a function of the script, which may decide */
    /* Starts an approval; ah_call_approved ends it, once, unless stop_asking was called. */
    void (*ask)(void *ud, struct ah_call *call, ah_slice why);
    void (*stop_asking)(void *ud, struct ah_call *call);
    /* A batch of so many calls is filed: what is to be said to the model (notes). */
    ah_status (*feedback)(void *ud, struct ah_run *run, size_t calls, ah_changes *notes,
                          ah_err *err);
    /* The final answer has come, and is not in the conversation yet: AH_OK, or AH_GUARD and why it
     * must not be. value .p NULL: the run has no `output`. */
    ah_status (*guard)(void *ud, struct ah_run *run, ah_slice text, ah_slice value, ah_err *err);
    /* The model has answered without calls: starts the checks, which say if it is done;
     * ah_run_checked ends them, once, unless stop_checking was called. */
    void (*check)(void *ud, struct ah_run *run);
    void (*stop_checking)(void *ud, struct ah_run *run);
    void *ud;
} ah_hooks;

#endif
