/* Injection: tools that are added, changed and removed while a conversation goes on, and the
 * interface of the strategies that decide it (seeds 000 and 001). A set of changes is made as a
 * whole, so that registry and transcript always agree. The state machine calls the functions marked
 * "for the run". Strategies only list the changes; they are called from here. Registry, transcript,
 * rules and session are borrowed. Warnings and events may call observers, which may start changes
 * of their own. Callers: its floor, lua. */
#ifndef AH_RUN_INJECT_H
#define AH_RUN_INJECT_H

#include "run/drift.h"
#include "state/changes.h"
#include "state/session.h"

struct ah_run;
struct ah_call;

/* The handling of a tool that is injected under a name already in use. */
typedef enum ah_conflict { AH_CONFLICT_SKIP, AH_CONFLICT_REPLACE, AH_CONFLICT_ERROR } ah_conflict;

/* Set when calls of a turn have made changes that the adapter cannot take in mid-conversation: the
 * run goes on in a new session of the wire. */
typedef struct ah_restarts {
    bool due;      /* tools were injected */
    bool expanded; /* a handler left for sections, which were opened; counts as a restart */
    int n;         /* number of restarts so far */
    ah_buf keys;   /* keys of sections, as JSON strings with commas between them */
} ah_restarts;

enum { AH_MANY_TOOLS = 64, AH_MAX_TOOLS = 128, AH_MAX_RESTARTS = 10 };

/* The rules by which a conversation takes injections; kept from run to run. */
typedef struct ah_inject_rules {
    int max_tools;
    ah_conflict on_conflict;
    ah_on_drift on_drift;
    bool hint;        /* a line after the result names the new tools */
    bool brief;       /* tools are declared by their brief descriptions (seed 004) ... */
    bool keep_picked; /* ... and those that were picked stay picked from run to run */
    int max_restarts;
    bool warned_many, warned_full; /* each warning is given once */
} ah_inject_rules;

/* The place where changes are made, and what was made. */
typedef struct ah_injection {
    const ah_mem *mem;
    ah_registry *registry;
    ah_transcript *transcript;
    ah_inject_rules *rules;
    ah_session *session; /* for AH_CHANGE_SHOW and HIDE; NULL: there are no such changes */
    /* The overlay in which the session is changed; NULL: it is changed at once. */
    ah_anchor *caller;
    bool at_work; /* a run is active: entries are staged for its next commit */
    int64_t time; /* ms since the epoch */
    /* `changed`: a JSON list of what drift has changed in the tool; .p NULL: no drift. */
    void (*warn)(void *ud, ah_slice message, ah_slice tool_name, ah_slice changed);
    void *ud;
    /* Set by ah_inject and ah_inject_try. */
    size_t mark;                   /* the transcript's mark before the changes */
    bool warned_many, warned_full; /* the rules' flags before the changes */
    size_t n_added, n_removed;
    /* Names, as JSON strings with commas between them; the caller clears both. */
    ah_buf added, removed;
} ah_injection;

/* Makes all changes that can be made. On failure (AH_NOMEM, or AH_PROMPT_VALIDATION for a taken
 * name under AH_CONFLICT_ERROR) makes none. Tools beyond max_tools are left out with a warning. */
ah_status ah_inject(ah_injection *in, ah_changes *c, ah_err *err);
/* The same in two steps: ah_inject_try makes the changes; then ah_inject_undo takes them back, if
 * nothing has been built on them, or ah_inject_stand keeps them. Changes of a session cannot be
 * undone and must not be among them. */
ah_status ah_inject_try(ah_injection *in, ah_changes *c, ah_err *err);
void ah_inject_undo(ah_injection *in, ah_changes *c);
void ah_inject_stand(ah_injection *in, const ah_changes *c); /* also emits the warnings */

/* A strategy decides which tools the model has. It sees each answered call, in request order,
 * before the next one is begun, and lists the changes. A later strategy sees the changes of earlier
 * ones made. An error of a strategy becomes a warning and loses only its own changes. A strategy
 * keeps its state in the transcript (ah_changes_state, ah_strategy_state), so that it holds for
 * saved and forked conversations and exists only if the call's other changes do. Reading sections,
 * discovery, search and picking are strategies like those of scripts. Each slot may be NULL. */
typedef struct ah_strategy {
    /* Unique in the run; used for the log, events and kept state. A script's strategy that also has
     * a set of tools to search (run/search.h) is two strategies with the same name. */
    const char *name;
    const struct ah_strategy_vt {
        /* Called before a call that nothing has looked at yet: its tool may not exist, and `args`
         * is not set. Text put into `answer` becomes the result, an error; the call then counts
         * neither as a call nor for the loop detector, and `after` is not called for it. An error
         * refuses the call, with a warning. Changes in `out` that the call needs are made once all
         * strategies have let it pass. */
        ah_status (*before)(void *ud, struct ah_run *run, const struct ah_call *call,
                            ah_buf *answer, ah_changes *out, ah_err *err);
        /* The call is answered: it holds name, arguments, content, success and live value. The
         * transcript ends before the assistant message, which is pending. */
        ah_status (*after)(void *ud, struct ah_run *run, const struct ah_call *call,
                           ah_changes *out, ah_err *err);
        /* Called when the requested changes are made. */
        void (*made)(void *ud);
        /* The model's message is the pending turn, and none of its calls is begun. For tools that
         * the provider has found for the model. */
        ah_status (*answered)(void *ud, struct ah_run *run, ah_changes *out, ah_err *err);
        /* Called when the run is over and no turn is pending. No event reports these changes. */
        ah_status (*ended)(void *ud, struct ah_run *run, ah_changes *out, ah_err *err);
        /* `after` is also called for the last calls of a run that fails. Only for strategies that
         * run no code of a script. */
        bool to_the_end;
    } * vt;
    void *ud;
} ah_strategy;

/* The part of the transcript that was read for the state of a strategy; zero-initialise it. */
typedef struct ah_strategy_cursor {
    size_t seen, last; /* entries; `last` is index + 1 of the latest state, 0: none yet */
} ah_strategy_cursor;

/* Returns the state that the strategy kept last, as JSON, including the pending turn; .p NULL: none
 * yet. Reads only the entries that are new since the last call. */
ah_slice ah_strategy_state(ah_strategy_cursor *k, const ah_transcript *t, const char *strategy);
/* The same without the pending turn, and of the pending turn alone. */
ah_slice ah_strategy_committed(ah_strategy_cursor *k, const ah_transcript *t, const char *strategy);
ah_slice ah_strategy_staged(const ah_transcript *t, const char *strategy);

/* For the run: the model's message is the pending turn. */
void ah_inject_answered(struct ah_run *run);

/* For the run: asks the strategies before a call. Returns false if one of them has answered it
 * (`refused`), or if the changes that it needs cannot be made; the call is then answered. */
bool ah_inject_before(struct ah_run *run, struct ah_call *call);

/* For the run: makes the changes that a successful call asked for, shows the call to the
 * strategies, and reports what was injected. `fails`: the run fails, and this is one of its last
 * calls. Returns AH_OK, or the reason why the run must end once the batch is filed. */
ah_status ah_inject_after(struct ah_run *run, struct ah_call *call, bool fails, ah_err *err);

/* For the run: a batch is filed. Stages the notes of the feedback hook. */
void ah_inject_feedback(struct ah_run *run, size_t calls);

/* For the run: it is over. */
void ah_inject_ended(struct ah_run *run);

/* Makes changes that follow from a call in other ways, reported as made by `who`. *hint (NULL:
 * none) gets the names of new tools. */
ah_status ah_inject_for(struct ah_run *run, ah_changes *c, const char *who, ah_slice after,
                        ah_buf *hint, ah_err *err);

/* For the script: makes changes outside of calls while the run is active. */
ah_status ah_inject_from_outside(struct ah_run *run, ah_changes *c, ah_err *err);
/* The same in steps: ah_inject_in_run fills *in for ah_inject_try; ah_inject_told reports the
 * changes that were kept. */
void ah_inject_in_run(struct ah_run *run, ah_injection *in);
void ah_inject_told(struct ah_run *run, const ah_injection *in, const ah_changes *c);

#endif
