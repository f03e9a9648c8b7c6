/* Dispatches one tool call (seed 002, Runtime Dispatch), one function per step: look up, parse,
 * deadline, context, overlay, handler, commit or drop, event, answer. A call owns its overlay, its
 * texts and its live value until ah_call_clear; it borrows its run and its slot. The state machine
 * decides when each step is taken. The owner of a handler ends it with ah_call_done, which may be
 * called while the handler is being started. Callers: its floor, lua. */
#ifndef AH_RUN_CALL_H
#define AH_RUN_CALL_H

#include "run/need.h"
#include "state/changes.h"
#include "state/session.h"
#include "wire/adapter.h"

struct ah_run;
struct ah_call_history;

typedef enum ah_call_state {
    AH_CALL_WAITING,   /* not begun */
    AH_CALL_ASKING,    /* waits for an approval */
    AH_CALL_RECORDING, /* its record must be there before its handler is started */
    AH_CALL_SEEKING,   /* begun by an earlier process: its outcome is being found out */
    AH_CALL_RUNNING,   /* its handler is running */
    AH_CALL_SHOWN,     /* its handler has ended, and its changes are to be approved */
    AH_CALL_ANSWERED   /* content and success are set; not yet in the transcript */
} ah_call_state;

/* The records of a call so far. */
typedef enum ah_call_records {
    AH_RECORDED_NOTHING,
    AH_RECORDED_START,
    AH_RECORDED_FINISH,
    AH_RECORDED_CHANGES, /* `settled`, with changes of files that are to be made */
    AH_RECORDED_SETTLED  /* all */
} ah_call_records;

typedef struct ah_call {
    struct ah_run *run;
    const ah_slot *slot; /* id, name, arguments as they are said */
    size_t at;           /* its index in the turn */
    size_t *at_work;     /* the run's count of running calls; set after ah_call_init */
    uint32_t need;       /* id of its need while it runs */
    uint32_t record;     /* id of the record that it waits for; 0: none */
    ah_call_records recorded;
    const struct ah_call_history *past; /* what the journal knows of it, borrowed; NULL: nothing */
    ah_text *key;                       /* its idempotency key; NULL: it is not recorded */
    ah_text *entry; /* its result as recorded before its changes are made; NULL: it is not */
    ah_need_slot want[AH_NEEDS];
    ah_call_state state;
    bool unknown;                    /* no such tool */
    bool refused;                    /* a strategy has answered it */
    bool asking;                     /* an approval is pending */
    const struct ah_hooks *approver; /* the hooks that approve it */
    ah_text *approved;               /* arguments that an approval has replaced; NULL: none */
    int asks;                        /* approvals asked for so far */
    ah_text *parent_call; /* id of the call that made this one; NULL: the model made it */
    unsigned within;      /* number of calls made in this one so far, for their ids */
    bool strict;      /* a null that the schema does not allow counts as absent (wire/strict.h) */
    ah_text *reason;  /* why an approval is needed */
    ah_text *shown;   /* the changes that are to be approved, a JSON list without keys */
    ah_text *about;   /* hash of these and of the result, hexadecimal */
    bool lost;        /* some of its changes cannot be written down (run/restage.h) */
    ah_text *warning; /* put before the result; NULL: none */
    ah_tool *tool;
    bool changed_args; /* they are not those of the answer */
    ah_text *args;     /* checked, with defaults, for the handler */
    ah_text *coerced;  /* describes which arguments were coerced; NULL: none */
    ah_overlay overlay;
    ah_changes changes;     /* requested by its handler, made once it has succeeded */
    ah_value live;          /* the returned value, kept if strategies look at it */
    int64_t started, ended; /* loop clock; 0: not yet */
    int64_t deadline;       /* 0: none */
    ah_interrupt interrupt; /* stops long checks of arguments and result when the time is over */
    bool success;
    ah_text *value; /* JSON value of the result as policies left it, until its event; NULL: none */
    ah_text *error; /* what its handler raised, with traceback, for the script only; NULL: none */
    bool mistake;   /* the error was not raised on purpose */
    bool keeps;     /* its run may keep a long result in a file; set after ah_call_init */
    /* The full result if `part` shows only head and tail; NULL: all is shown, or it is not kept. */
    ah_text *whole;
    const ah_text *part; /* the content, unless it was replaced since */
    size_t gap;          /* offset in it at which a path may be named */
    ah_text *images;     /* shown beside the content, a JSON list; NULL: none */
    ah_text *content;    /* NULL if memory ran out */
    ah_status leave;     /* a status that ends the run once the batch is settled */
    ah_text *leave_why;
    ah_text *leave_details; /* JSON object for the error's details; NULL: none */
    /* The sections that the handler asked for when it left, as in ah_outcome; NULL: it named
     * none. */
    ah_text *expansion;
    struct ah_steps *steps; /* run/step.h: of a durable tool, while its handler runs; NULL: none */
    void *task;             /* owned by the tool's implementation */
    int64_t ticket;         /* of a call that continues in the background; 0: it does not */
} ah_call;

/* The kinds of failure of a handler, which decide the wording (seed 002, Exception Handling). */
typedef enum ah_failure {
    AH_FAILED_SAID,      /* it returned a failure with its own message */
    AH_FAILED_RAISED,    /* "Tool 'x' execution failed: ..." */
    AH_FAILED_VALIDATION /* it raised tool_validation: "Tool validation failed: ..." */
} ah_failure;

/* The outcome of a handler. All fields but `live` are borrowed. */
typedef struct ah_outcome {
    bool success;
    ah_failure failure;
    ah_slice message; /* .p NULL: none */
    ah_slice value;   /* checked JSON; .p NULL: none */
    bool nil;         /* the value is absent because nil was returned; shown as null */
    ah_slice images;  /* shown beside the value, a checked JSON list; .p NULL: none */
    ah_slice type;    /* type of the value; .p NULL: the type that the tool declares, if any */
    ah_slice error;   /* what was raised, with traceback; .p NULL: nothing */
    bool mistake;     /* the error was not raised on purpose */
    ah_slice render;  /* text shown to the model for the value; .p NULL: the value itself */
    bool exclude_value;
    bool untyped;  /* the value has no type, whatever the tool declares */
    bool whole;    /* shown in full, however long */
    ah_value live; /* the returned value; taken. .vt NULL: none, or no reader wants it */
    /* AH_OK, or a status that is re-raised, such as AH_PROMPT_EVALUATION (seed 002). */
    ah_status leave;
    /* With AH_VISIBILITY_EXPANSION: {"reason":..,"requested_overrides":{path:"full"|"summary"},
     * "section_keys":[..]}, checked; "reason" may be absent. .p NULL: no section is named. */
    ah_slice expansion;
} ah_outcome;

/* `below` is the overlay of the call in which the run was started, or NULL. Sets every field; the
 * caller may set `interrupt` afterwards. */
void ah_call_init(ah_call *c, struct ah_run *run, const ah_mem *mem, const ah_slot *slot, size_t at,
                  ah_anchor *below);
void ah_call_clear(ah_call *c);

/* The places that may run a call. */
typedef struct ah_callees {
    const ah_registry *registry;
    /* The executors: for calls of tools that `registry` lacks or has without a handler; NULL:
     * none. */
    const ah_registry *executors;
    ah_adapter *model; /* may answer in place of handlers; NULL: it does not */
    bool strict;       /* the settings ask for strict tools */
} ah_callees;

/* Takes steps 1-6. Returns true if the handler is to be started, false if the call is answered. */
bool ah_call_prepare(ah_call *c, const ah_callees *who, int64_t now, int64_t run_deadline);
/* An approval has changed the arguments (checked JSON). Checks them as the model's arguments are
 * checked, with the call's time limit counted from `now`. */
bool ah_call_change_args(ah_call *c, ah_slice args, int64_t now);
/* Takes steps 1 and 2 for a call that the journal knows: its tool, if there is one, and the
 * arguments as recorded (.p NULL: those of the answer). Returns false if the call is answered. */
bool ah_call_prepare_again(ah_call *c, const ah_callees *who, ah_slice args, int64_t now);
/* Looks up the tool of a call whose outcome is known; it may be gone. */
void ah_call_know_tool(ah_call *c, const ah_callees *who);
/* Answers the call with an error text; no handler is run. */
void ah_call_refuse(ah_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Marks the call as waiting for an approval (AH_CALL_ASKING) before its handler is started. */
void ah_call_ask(ah_call *c, const ah_buf *why);
/* Answers a call that continues in the background. */
void ah_call_give_ticket(ah_call *c, int64_t ticket);
/* Answers the call with a strategy's text in place of its handler. */
void ah_call_stand_in(ah_call *c, const ah_buf *answer);
/* Names, in content that shows only head and tail of c->whole, the file with all of it. */
void ah_call_name_file(ah_call *c, ah_slice path);
/* Turns the outcome into the call's answer: checks it against the tool's result schema, shows it to
 * the policies (run/gate.h), dispatches it to the session (NULL: none) in the call's overlay,
 * renders and cuts it. If a policy asks about it, the call waits for an approval (AH_CALL_SHOWN).
 */
void ah_call_settle(ah_call *c, const ah_outcome *o, ah_session *session);
/* The outcome of a running handler. Ignored, with `live` released, if the call is not running. */
void ah_call_done(ah_call *c, const ah_outcome *o, int64_t now);
/* Marks an answered call as waiting for the approval of its changes: from here on they are
 * committed as they are, or not at all. Lists them. On failure the call is refused. */
void ah_call_show(ah_call *c);
/* Takes the changes of such a call back, and answers it with these words behind "was run, and ". */
void ah_call_take_back(ah_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Answers a call whose time is over. */
void ah_call_refuse_late(ah_call *c);
/* Appends the outcome of an answered call as a JSON object, member `outcome` of its record. */
void ah_call_print_outcome(const ah_call *c, ah_buf *out);
/* Answers the call with a recorded outcome. */
ah_status ah_call_read_outcome(ah_call *c, bool success, ah_slice outcome, ah_err *err);
/* Appends the result as the model reads it: a string as it is, anything else as JSON, after the
 * author's message if there is one. */
void ah_call_render(const ah_call *c, const ah_outcome *o, ah_buf *b);

#endif
