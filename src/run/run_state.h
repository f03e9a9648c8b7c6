/* The state of a run, for the files of the state machine: run.c (iterations, answers, time),
 * run_turn.c (the calls of a turn) and the other run_*.c. Nobody else includes it. */
#ifndef AH_RUN_RUN_STATE_H
#define AH_RUN_RUN_STATE_H

#include "run/run.h"

typedef enum run_state {
    RUN_PREPARING, /* what `setup` of the config began is at work */
    RUN_NEXT,
    RUN_QUEUED, /* the request waits for room in a budget */
    RUN_EXCHANGING,
    RUN_BACKOFF,
    RUN_CALLING,
    RUN_CHECKING,
    RUN_SETTLING, /* it has failed: what is at work is being stopped, then the turn is settled */
    RUN_ENDED
} run_state;

struct ah_run {
    ah_run_config cfg; /* first: see ah_run_cfg */
    void *owner;
    void (*wake)(void *owner); /* NULL: the run is served without being woken */
    run_state state;
    int64_t now, timer; /* timer: what the driver was asked for last; 0: nothing */
    uint32_t last_id;

    ah_need_queue wants;         /* of the run and of its calls */
    ah_need_slot want[AH_NEEDS]; /* the run's own */

    ah_assembly msg;
    ah_reader *reader;
    uint32_t exchange; /* id, 0: none */
    int attempt;
    size_t fallbacks; /* of the config that were taken or passed over */
    int64_t retry_at;
    int64_t queued;  /* since when, loop clock */
    int64_t room_at; /* a limit of the provider is used up until then; 0: none is known */

    ah_call *call;
    size_t n_calls, batch, next; /* calls [batch, next) are at work or answered */
    size_t running;
    int unknown_in_row;
    ah_loop_detector loop;

    bool started, cancel, last_round;
    ah_restarts restarts;
    int check_rounds;
    int empties;    /* answers in a row that were empty */
    int repairs;    /* how often an answer was not what `output` asks for */
    ah_text *value; /* that is */
    ah_err cancel_err;
    ah_run_result result;
    ah_buf text;
    ah_buf direct;   /* of the turn: results that are to be the run's answer */
    size_t n_direct; /* so many */
};

/* Of checks that the run makes: it is cancelled, or its time is over, or that of a run or a call
 * around it. `ud` is the run. */
bool ah_run_is_over(void *run);
double ah_run_dollars(const ah_usage *u);
void ah_run_raise(ah_run *run, ah_need need); /* cannot fail */
/* The work that the need `begun` stands for is no longer wanted: where nobody has taken that need
 * yet, it is taken back; else `stop` is raised. */
void ah_run_end_need(ah_run *run, ah_need_kind begun, ah_need stop);
/* The pending turn, and what is staged, is in the conversation from here on. */
void ah_run_commit(ah_run *run);
/* Ends the run with the error already in result.err, once what is at work is stopped: nothing of
 * it is told before what was done in it has been taken back. */
void ah_run_fail(ah_run *run);
/* The turn is committed, and its results, in `direct`, are the answer. `queued`: the user has said
 * more. */
void ah_run_answer_direct(ah_run *run, bool queued);
/* The answer is what it must be: the checks look at it, then the run is done. */
void ah_run_accept(ah_run *run);

/* The exchange has ended, and its reader has a message. */
void ah_run_answered(ah_run *run);

/* It is cancelled, or its time is over: nothing more is begun, and its next step says so. */
bool ah_run_must_end(const ah_run *run);

/* run_exchange.c: what the transcript makes for the model goes out, or the run fails. Where it must
 * end anyway nothing goes out, and the request is neither counted nor told. */
void ah_run_start_exchange(ah_run *run);
/* Closes it, and has the driver stop it where it is at work. */
void ah_run_stop_exchange(ah_run *run);
/* Counts what the answer cost, and closes it. */
void ah_run_settle_exchange(ah_run *run);
void ah_run_close_exchange(ah_run *run);
/* AH_BUDGET where more was used than there is. */
ah_status ah_run_check_budget(ah_run *run);
/* True if a request that waits for room in a budget is to try again. */
bool ah_run_has_turn(const ah_run *run);
/* The answer so far was shown to a listener. */
bool ah_run_has_shown(const ah_run *run);

/* run_settings.c: appends settings as those in force, with members replaced or added; one whose
 * value has .p NULL is left out. */
typedef struct ah_setting {
    const char *name;
    ah_slice value; /* JSON */
} ah_setting;
ah_status ah_run_set(ah_run *run, const ah_setting *set, size_t n, ah_err *err);
/* From here on the model is told so in `tool_choice`, to the end of the run; the settings say what
 * the script gave (`given`). */
ah_status ah_run_choose(ah_run *run, const char *choice, ah_err *err);
/* The first request is answered: a choice that forced it (`required`, or one tool) would force
 * every other one, too, and the model would never come to an answer. */
ah_status ah_run_free_choice(ah_run *run, ah_err *err);

/* run_fallback.c: goes on with the next adapter there is, where the error in result.err is of a
 * kind that allows it. False: it stands, or another one does now. */
bool ah_run_fall_back(ah_run *run);

/* run_learn.c: where a 400 answers a request that told of tools, or had them searched, in a way of
 * the wire's own, the request is made once more in another; what that says is kept in the
 * settings. */
bool ah_run_try_less(ah_run *run); /* the error is in result.err; true: it is tried */
ah_status ah_run_learn(ah_run *run, ah_err *err); /* an answer has come */

/* run_output.c: the value of an answer is appended where it is what `output` asks for; else
 * false. */
bool ah_run_read_output(ah_run *run, ah_slice text, ah_buf *value);
/* The last answer is in run->text and committed. Ends the run or goes on. */
void ah_run_take_output(ah_run *run);

/* run_turn.c. The transcript has a pending turn with calls, which becomes run->call. */
bool ah_turn_new(ah_run *run); /* false: out of memory */
void ah_turn_begin(ah_run *run);
void ah_turn_go_on(ah_run *run); /* nothing is at work: file what is answered, begin what is next */
void ah_turn_stop(ah_run *run);  /* has the driver stop what is at work */
/* Answers what is unanswered and commits: from here on the transcript is sound. */
void ah_turn_settle(ah_run *run, ah_status why);
void ah_turn_clear(ah_run *run);
int64_t ah_turn_deadline(const ah_run *run);
void ah_turn_tick(ah_run *run, int64_t now); /* ends calls whose time is over */

#endif
