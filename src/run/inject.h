/* Injection: tools that appear, change and go in mid-conversation, and the contract of the
 * strategies that decide it (seeds 000 and 001). A change is made in one place and as a whole:
 * registry and transcript stay in step, whoever asked for it. The state machine calls what is "for
 * the run"; strategies are called from here and only say what is to change; the Lua floor changes
 * the tools of a conversation by it, with a run at work and without. */
#ifndef AH_RUN_INJECT_H
#define AH_RUN_INJECT_H

#include "run/drift.h"
#include "state/changes.h"
#include "state/session.h"

struct ah_run;
struct ah_call;

/* The fate of a tool that is injected under a taken name. */
typedef enum ah_conflict { AH_CONFLICT_SKIP, AH_CONFLICT_REPLACE, AH_CONFLICT_ERROR } ah_conflict;

/* The calls of a turn have done what the adapter cannot take in mid-conversation: the run goes on
 * in a new session of the wire. */
typedef struct ah_restarts {
    bool due;      /* tools were injected */
    bool expanded; /* a handler left for sections, which were opened: counts as one */
    int n;         /* there were so many */
    ah_buf keys;   /* of sections, as JSON strings with commas between them */
} ah_restarts;

enum { AH_MANY_TOOLS = 64, AH_MAX_TOOLS = 128, AH_MAX_RESTARTS = 10 };

/* The rules by which a conversation takes injections; kept from run to run. */
typedef struct ah_inject_rules {
    int max_tools;
    ah_conflict on_conflict;
    ah_on_drift on_drift;
    bool hint;        /* a line after the result names the new tools */
    bool brief;       /* tools are declared by their brief descriptions (seed 004) ... */
    bool keep_picked; /* ... and those that were picked stay so from run to run */
    int max_restarts;
    bool warned_many, warned_full; /* each warning is given once */
} ah_inject_rules;

/* The place in which changes are made, and what came of them. */
typedef struct ah_injection {
    const ah_mem *mem;
    ah_registry *registry;
    ah_transcript *transcript;
    ah_inject_rules *rules;
    ah_session *session; /* for AH_CHANGE_SHOW and HIDE; NULL: there is none of those */
    ah_anchor *caller;   /* what the session is changed in; NULL: at once */
    bool at_work;        /* a run is at work: entries are staged for its next commit */
    int64_t time;        /* ms since the epoch */
    /* changed: a JSON list of what drift has changed of the tool; .p NULL: it is about something
     * else */
    void (*warn)(void *ud, ah_slice message, ah_slice tool_name, ah_slice changed);
    void *ud;
    /* filled in */
    size_t mark;                   /* the transcript's, before */
    bool warned_many, warned_full; /* the rules', before */
    size_t n_added, n_removed;
    ah_buf added,
        removed; /* names, as JSON strings with commas between them; cleared by the caller */
} ah_injection;

/* Makes all of the changes that can be made; on failure (AH_NOMEM, AH_PROMPT_VALIDATION for
 * a taken name under AH_CONFLICT_ERROR) none. Tools beyond the most are left out with a warning. */
ah_status ah_inject(ah_injection *in, ah_changes *c, ah_err *err);
/* The same in two steps: what was made is undone, while nothing else has come of it, or stands.
 * Changes of a session cannot be undone, and must not be among these. */
ah_status ah_inject_try(ah_injection *in, ah_changes *c, ah_err *err);
void ah_inject_undo(ah_injection *in, ah_changes *c);
void ah_inject_stand(ah_injection *in, const ah_changes *c); /* and warnings are told */

/* A strategy decides which tools the model has. It sees each answered call, in request order,
 * before the next one is begun, and says what is to change. Strategies chain: a later one finds the
 * changes of those before it made. An error of one becomes a warning and loses nothing but its own
 * changes. What it is to know later it keeps in the transcript (ah_changes_state,
 * ah_strategy_state), so that it holds for saved and forked conversations and is there only if the
 * call's other changes are. Sections that are read, discovery, the search and picking are
 * strategies like those of scripts. Each slot may be NULL. */
typedef struct ah_strategy {
    /* For the log, events and what it keeps: no other of the run has it. One of a script that has a
     * set of tools to be found (run/search.h), too, is two of one name. */
    const char *name;
    const struct ah_strategy_vt {
        /* A call is next that nothing has looked at yet: there may be no such tool, and `args`
         * are not there. What is put in `answer`, if anything, is its result, an error; it then
         * counts neither as a call nor for the loop detector, and `after` is not asked about it.
         * An error refuses the call, with a warning. What is to be there for the call goes into
         * `out`, and is made once all of them have let it pass. */
        ah_status (*before)(void *ud, struct ah_run *run, const struct ah_call *call,
                            ah_buf *answer, ah_changes *out, ah_err *err);
        /* The call is answered: name, arguments, content, success and live value stand in it;
         * the transcript reaches up to before the assistant message, which is pending. */
        ah_status (*after)(void *ud, struct ah_run *run, const struct ah_call *call,
                           ah_changes *out, ah_err *err);
        /* The changes that it asked for are made. */
        void (*made)(void *ud);
        /* The model's message has come and is the pending turn, none of its calls is begun: which
         * tools the provider has found for the model. */
        ah_status (*answered)(void *ud, struct ah_run *run, ah_changes *out, ah_err *err);
        /* The run is over, and no turn is pending. Nobody is told of these changes. */
        ah_status (*ended)(void *ud, struct ah_run *run, ah_changes *out, ah_err *err);
        bool to_the_end; /* `after` is asked about the last calls of a run that fails, too: it runs
                            no code of a script's */
    } * vt;
    void *ud;
} ah_strategy;

/* The transcript was read so far for what a strategy keeps; zero it. */
typedef struct ah_strategy_cursor {
    size_t seen, last; /* entries; `last` 0: none yet, else 1 more than where it is */
} ah_strategy_cursor;

/* Returns what the strategy kept last, as JSON, the turn at work included; .p NULL: nothing yet.
 * Reads only what is new since it was asked last. */
ah_slice ah_strategy_state(ah_strategy_cursor *k, const ah_transcript *t, const char *strategy);

/* For the run: the model's message is the pending turn. */
void ah_inject_answered(struct ah_run *run);

/* For the run: asks the strategies before a call. False: one of them has answered it (`refused`),
 * or what is to be there for it cannot be, and it is answered so. */
bool ah_inject_before(struct ah_run *run, struct ah_call *call);

/* For the run: makes what the call itself asked for (it has succeeded), lets the strategies
 * see it, tells what was injected. `fails`: the run does, and this is one of its last calls. AH_OK,
 * or why the run must end once the batch is filed. */
ah_status ah_inject_after(struct ah_run *run, struct ah_call *call, bool fails, ah_err *err);

/* For the run: a batch is filed; what the feedback hook has to say is staged. */
void ah_inject_feedback(struct ah_run *run, size_t calls);

/* For the run: it is over. */
void ah_inject_ended(struct ah_run *run);

/* For what follows from a call by other ways: told as done by `who`; *hint (NULL: none) gets the
 * names of new tools. */
ah_status ah_inject_for(struct ah_run *run, ah_changes *c, const char *who, ah_slice after,
                        ah_buf *hint, ah_err *err);

/* For the script: changes from outside of calls, while the run is at work. */
ah_status ah_inject_from_outside(struct ah_run *run, ah_changes *c, ah_err *err);
/* The same in steps: into *in for ah_inject_try; and what stands is told. */
void ah_inject_in_run(struct ah_run *run, ah_injection *in);
void ah_inject_told(struct ah_run *run, const ah_injection *in, const ah_changes *c);

#endif
