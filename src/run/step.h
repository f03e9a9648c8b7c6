/* The steps of one call of a durable tool: what its handler gets from outside. Each is recorded;
 * when the handler is entered again from its beginning, it is given what was recorded. A step is
 * known by the path of the task that makes it, its kind, its name, and the number of equal ones
 * before it in this entry. Handlers ask for the steps of one path and kind in the recorded order,
 * else they have diverged. The call owns its steps until ah_call_clear.
 * Callers: its floor, lua. */
#ifndef AH_RUN_STEP_H
#define AH_RUN_STEP_H

#include "run/recorder.h"

struct ah_call;

enum {
    AH_MAX_STEPS = 10000,    /* of one call */
    AH_MAX_STEP_NAME = 200,  /* bytes */
    AH_MAX_STEP_PATH = 1000, /* bytes */
    AH_STEP_KEY = 65         /* size of a key in hexadecimal digits, with its NUL */
};

typedef enum ah_step_state {
    AH_STEP_NEW,     /* not begun */
    AH_STEP_LOST,    /* begun by a process that has died; it may have happened */
    AH_STEP_BEGUN,   /* in this process */
    AH_STEP_RECORDED /* `success` and `kept` are its result */
} ah_step_state;

typedef struct ah_call_step {
    ah_text *key;  /* "PATH KIND NUMBER NAME" */
    size_t head;   /* length of "PATH KIND " */
    uint64_t hash; /* of the head */
    ah_text *kept; /* JSON; NULL: none */
    ah_step_state state;
    bool success;
    bool asked;  /* in this entry of the handler */
    uint32_t id; /* of its flush; 0: none is outstanding */
    /* Called once when step_started is recorded, or cannot be; NULL: nothing waits for it. */
    void (*recorded)(void *ud, const ah_err *err);
    void *ud;
    ah_overlay aside; /* what runs in this step change; see ah_step_aside */
    bool open;        /* `aside` is in use */
} ah_call_step;

typedef struct ah_steps {
    const ah_mem *mem;
    struct ah_call *call;
    ah_recorder *recorder; /* NULL: nothing is recorded */
    ah_call_step **item;   /* in the order in which they were begun */
    size_t n, cap;
    ah_text **gone; /* paths of tasks that were cancelled */
    size_t n_gone, cap_gone;
    uint32_t last_id;
    bool secret;           /* a secret step was made: no later one is recorded */
    bool conflict;         /* see ah_steps_conflict; in this entry */
    bool diverged;         /* each later step fails */
    char key[AH_STEP_KEY]; /* the key of the call */
} ah_steps;

/* The part of a run's history that the steps of a call need. */
struct ah_call_history;

/* Makes call->steps, before its handler is entered. recorder NULL: they are not recorded. key: the
 * call's idempotency key; .p NULL: that of its record `call_started`, or without one a random key.
 * h NULL: there are none yet. */
ah_status ah_steps_new(struct ah_call *call, ah_recorder *recorder, ah_slice key,
                       const struct ah_call_history *h, ah_err *err);
void ah_steps_free(ah_steps *s); /* NULL is allowed */
/* Forgets what this entry has asked for: the handler is entered again in this process. */
void ah_steps_again(ah_steps *s);
/* True: a step of this process has begun, and has not ended. */
bool ah_steps_at_work(const ah_steps *s);
/* Takes back what the handler, which was stopped, has changed. It may then be started again. */
void ah_call_enter_again(struct ah_call *call);
/* False: it made a secret step, so it cannot be entered again; the `on_lost` of its tool decides.
 */
bool ah_steps_can_reenter(const struct ah_call_history *h);

/* True if the handler only runs again on what is recorded (ah_recorder.replays): every step is a
 * recorded one, and nothing outside is reached. */
bool ah_call_replays(const struct ah_call *call);
/* Such a handler asks for something else, `what`: notes it in a record `lost`, and fills *err.
 * Returns AH_NOT_RECORDED. The handler may then leave out steps. */
ah_status ah_step_not_recorded(struct ah_call *call, const char *what, ah_err *err);

/* Returns the step that the handler asks for, in *out, with its state; NULL: steps are not recorded
 * here. place: the line of the script; once: NULL as well if this entry has asked for one of the
 * name before; in a replay that one. AH_DIVERGED: another one is recorded. AH_NOT_RECORDED: this is
 * a replay, and none is recorded. AH_USAGE: there are too many. */
ah_status ah_step_ask(struct ah_call *call, ah_slice path, ah_slice kind, ah_slice name, bool once,
                      const char *place, ah_call_step **out, ah_err *err);
/* The handler gets an error because a recorded result does not hold any more. For the rest of this
 * entry it may leave out recorded steps, and make others. */
void ah_steps_conflict(ah_steps *s);
/* Records that the step begins (`step_started`). Once that is kept, `recorded` is called, but not
 * from here. on_lost: as its record says it. what: for people, redacted; .p NULL: none. */
ah_status ah_step_begin(struct ah_call *call, ah_call_step *step, const char *on_lost,
                        ah_slice what, void (*recorded)(void *ud, const ah_err *err), void *ud,
                        ah_err *err);
/* Nothing waits for `recorded` any more. */
void ah_step_leave(ah_call_step *step);
/* Records the result (`step`). kept: checked JSON. said: members for people, each after a comma;
 * .p NULL: none. */
ah_status ah_step_end(struct ah_call *call, ah_call_step *step, bool success, ah_slice said,
                      ah_slice kept, ah_err *err);
/* Records that a secret step begins: the call is not durable from here on. */
void ah_step_secret(struct ah_call *call, ah_slice path, ah_slice name);
/* The overlay for runs inside of the step, whose changes are apart from those of the call. NULL:
 * *err says why. */
ah_overlay *ah_step_aside(struct ah_call *call, ah_call_step *step, ah_err *err);
bool ah_step_has_changes(const ah_call_step *step); /* true: `aside` has some */
/* Passes what is in `aside` to the call (`commit`), or drops it. */
ah_status ah_step_close_aside(struct ah_call *call, ah_call_step *step, bool commit, ah_err *err);
/* Fills in the idempotency key of the step, in hexadecimal digits. */
void ah_step_key(const ah_steps *s, const ah_call_step *step, char out[AH_STEP_KEY]);

/* A task was cancelled: steps of its path and below need not be asked for. Without memory they may
 * then count as not asked for. */
void ah_steps_give_up(ah_steps *s, ah_slice path);
/* AH_DIVERGED: the handler has ended without asking for a recorded step. */
ah_status ah_steps_over(ah_steps *s, ah_err *err);
/* Called by ah_run_recorded. Returns true if the id is of a step. */
bool ah_step_recorded(struct ah_call *call, uint32_t id, const ah_err *err);

#endif
