/* Dispatch of one tool call (seed 002, Runtime Dispatch), a function a step: look up, parse,
 * deadline, context, overlay, handler, commit or drop, event, answer. It owns the call from its
 * slot to its answer. The state machine decides when a step is taken, and takes it; whoever serves
 * a handler ends it with ah_call_done. */
#ifndef AH_RUN_CALL_H
#define AH_RUN_CALL_H

#include "run/need.h"
#include "state/changes.h"
#include "state/session.h"
#include "wire/adapter.h"

struct ah_run;

typedef enum ah_call_state {
    AH_CALL_WAITING, /* not begun */
    AH_CALL_ASKING,  /* waits for an approval */
    AH_CALL_RUNNING, /* its handler is at work */
    AH_CALL_ANSWERED /* content and success are set; not yet in the transcript */
} ah_call_state;

typedef struct ah_call {
    struct ah_run *run;
    const ah_slot *slot; /* id, name, arguments as the model wrote them */
    size_t at;           /* its number in the turn */
    size_t *at_work;     /* how many calls of its run are; set after ah_call_init */
    uint32_t need;       /* id of its need while it runs */
    ah_need_slot want[AH_NEEDS];
    ah_call_state state;
    bool unknown;                    /* no such tool */
    bool refused;                    /* a strategy has answered it */
    bool asking;                     /* an approval is at work */
    const struct ah_hooks *approver; /* whose */
    ah_text *approved;               /* the arguments that an approval gave; NULL: none */
    int asks;                        /* how often one was asked for */
    ah_text *parent_call; /* id of the call in which this one is made; NULL: the model's */
    unsigned within;      /* calls made in this one so far, for their ids */
    bool strict;          /* null where nothing was meant counts as absent (wire/strict.h) */
    ah_text *reason;      /* why one is asked for */
    ah_text *warning;     /* to stand before its answer; NULL: none */
    ah_tool *tool;
    ah_text *args;    /* checked, with defaults: what the handler gets */
    ah_text *coerced; /* what was taken as something else, in words; NULL: nothing */
    ah_overlay overlay;
    ah_changes changes;     /* what its handler asked for, made when it has succeeded */
    ah_value live;          /* the value it returned, where strategies look at it */
    int64_t started, ended; /* loop clock; 0: not yet */
    int64_t deadline;       /* 0: none */
    ah_interrupt interrupt; /* of checks of its arguments and its result: its time is over */
    bool success;
    ah_text *value; /* of the result, JSON, as policies left it, until it was told of; NULL: none */
    ah_text *error; /* what its handler raised, with the traceback: never for the model; likewise */
    bool mistake;   /* and not on purpose */
    bool keeps;     /* its run may keep a long result; set after ah_call_init */
    /* of which `part` shows head and tail; NULL: it shows all, or that is not kept */
    ah_text *whole;
    const ah_text *part; /* the content while nobody has replaced it */
    size_t gap;          /* where in it a path may be named */
    ah_text *images;     /* beside the content, a JSON list; NULL: none */
    ah_text *content;    /* NULL when there was no memory for it */
    ah_status leave;     /* a status that ends the run once the batch is settled */
    ah_text *leave_why;
    ah_text *leave_details; /* a JSON object for the error's; NULL: none */
    ah_text *expansion; /* the sections that it leaves for, as ah_outcome has them; NULL: none are
                           named */
    void *task;         /* the tool owner's */
    int64_t ticket;     /* it goes on in the background, as this; 0: it does not */
} ah_call;

/* The ways of a handler to fail, which decide the words (seed 002, Exception Handling). */
typedef enum ah_failure {
    AH_FAILED_SAID,      /* it returned a failure: its own message */
    AH_FAILED_RAISED,    /* "Tool 'x' execution failed: ..." */
    AH_FAILED_VALIDATION /* it raised tool_validation: "Tool validation failed: ..." */
} ah_failure;

/* The outcome of a handler. Everything is borrowed. */
typedef struct ah_outcome {
    bool success;
    ah_failure failure;
    ah_slice message; /* .p NULL: none */
    ah_slice value;   /* checked JSON; .p NULL: none */
    bool nil;         /* there is none since a nil was given: shown as null */
    ah_slice images;  /* shown beside it: a checked JSON list; .p NULL: none */
    ah_slice type;    /* of the value; .p NULL: that of the tool, if it declares one */
    ah_slice error;   /* what was raised, with the traceback; .p NULL: nothing was */
    bool mistake;     /* not on purpose */
    ah_slice render;  /* what the model is shown of the value; .p NULL: as it is, or as JSON */
    bool exclude_value;
    bool untyped;  /* of no type, whatever the tool declares */
    bool whole;    /* shown as it is, however long */
    ah_value live; /* the value as it was returned; taken. .vt NULL: none, or nobody looks at it */
    ah_status leave; /* AH_OK, or AH_PROMPT_EVALUATION and the like: re-raised (seed 002) */
    /* With AH_VISIBILITY_EXPANSION, {"reason":..,"requested_overrides":{path:"full"|"summary"},
     * "section_keys":[..]}, checked, the first may be absent; .p NULL: it names no section. */
    ah_slice expansion;
} ah_outcome;

/* below: the overlay of the call in which the run was started, or NULL. The caller may set
 * `interrupt` then. */
void ah_call_init(ah_call *c, struct ah_run *run, const ah_mem *mem, const ah_slot *slot, size_t at,
                  ah_anchor *below);
void ah_call_clear(ah_call *c);

/* The parties that may run a call. */
typedef struct ah_callees {
    const ah_registry *registry;
    const ah_registry *executors; /* run calls of tools that `registry` lacks, or has without a
                                     handler; NULL: none */
    ah_adapter *model;            /* may answer in place of handlers; NULL: it does not */
    bool strict;                  /* the settings ask for strict tools */
} ah_callees;

/* Steps 1-6. True: the handler is to be started. False: the call is answered. */
bool ah_call_prepare(ah_call *c, const ah_callees *who, int64_t now, int64_t run_deadline);
/* An approval changed the arguments (checked JSON): they are checked like the model's, in time of
 * the call that begins `now`. */
bool ah_call_change_args(ah_call *c, ah_slice args, int64_t now);
/* An answer that no handler gave. */
void ah_call_refuse(ah_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An approval is to be asked for before its handler is started (AH_CALL_ASKING). */
void ah_call_ask(ah_call *c, const ah_buf *why);
/* The answer to a call that goes on in the background. */
void ah_call_give_ticket(ah_call *c, int64_t ticket);
/* The answer is a strategy's, in the place of its handler. */
void ah_call_stand_in(ah_call *c, const ah_buf *answer);
/* Says in the content, which shows head and tail of c->whole, where that is. */
void ah_call_name_file(ah_call *c, ah_slice path);
/* Step 7's outcome becomes the answer: checked against the tool's result schema, shown to policies
 * (run/gate.h), dispatched to the session (NULL: none) in the call's overlay, rendered, cut. */
void ah_call_settle(ah_call *c, const ah_outcome *o, ah_session *session);
/* The outcome of a handler that is at work has come. */
void ah_call_done(ah_call *c, const ah_outcome *o, int64_t now);
/* Its time is over. */
void ah_call_refuse_late(ah_call *c);
/* As the model reads it: a string as it is, anything else as JSON; after the author's message, if
 * there is one. */
void ah_call_render(const ah_call *c, const ah_outcome *o, ah_buf *b);

#endif
