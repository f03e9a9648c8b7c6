/* The state of a run. Included only by the files of the state machine: run.c (iterations, answers,
 * time), run_turn.c (the calls of a turn) and the other run_*.c. The run owns everything in ah_run
 * except what config.h marks as borrowed. Callers: its module. */
#ifndef AH_RUN_RUN_STATE_H
#define AH_RUN_RUN_STATE_H

#include "run/recorder.h"
#include "run/run.h"

typedef enum run_state {
    RUN_PREPARING, /* `setup` of the config is running */
    RUN_NEXT,
    RUN_QUEUED,  /* the request waits for room in a budget */
    RUN_PLACING, /* the request waits for its place in a lane */
    RUN_EXCHANGING,
    RUN_BACKOFF,
    RUN_CALLING,
    RUN_CHECKING,
    RUN_AWAITING, /* the model has answered, and background calls are outstanding */
    RUN_HELD,     /* of a background call: its handler has ended */
    RUN_SETTLING, /* the run has failed: stops are raised, then the turn is settled */
    RUN_CLOSING,  /* its end is being recorded */
    RUN_ENDED
} run_state;

/* A wait for a place. All zero: none. */
typedef struct ah_run_wait {
    const char *reason; /* static */
    double seconds;     /* -1: unknown */
    bool limit;         /* a limit of the provider is used up */
    bool told;
} ah_run_wait;

struct ah_run {
    ah_run_config cfg; /* first: see ah_run_cfg */
    void *owner;
    void (*wake)(void *owner); /* NULL: the run is served without being woken */
    run_state state;
    int64_t now, timer; /* timer: the time last asked of the driver; 0: none */
    uint32_t last_id;

    ah_need_queue wants;         /* raised by the run and by its calls */
    ah_need_slot want[AH_NEEDS]; /* the run's own slots */

    ah_assembly msg;
    ah_reader *reader;
    ah_adapter *next_adapter; /* referenced: of the agent that has taken over; NULL: no change */
    uint32_t exchange;        /* id, 0: none */
    int attempt;
    size_t fallbacks; /* how many of the config's fallbacks were used or skipped */
    int64_t retry_at;
    int64_t queued; /* since when, loop clock */
    bool placed;    /* it has its place */
    ah_run_wait wait;
    int64_t owed;   /* answers whose cost a later one reports (AH_COST_LAST) */
    int64_t cached; /* tokens that the provider had cached of the last request */

    ah_call *call;
    size_t n_calls, batch, next; /* calls [batch, next) are running or answered */
    size_t running;
    size_t n_filed; /* calls of the present batch that are filed: [batch - n_filed, batch) */
    bool leaves;    /* a filed call of the batch ends the run */
    ah_slot slot;   /* of a background call */
    int unknown_in_row;
    ah_loop_detector loop;

    ah_recorder *recorder; /* borrowed; NULL: nothing is recorded, or nothing more */
    int64_t number;        /* of the run in its stream; 0: it is not recorded as begun */
    size_t first;          /* index of its first entry */
    uint32_t closing;      /* id of the record of its end */
    bool resuming;         /* the next step goes on with what the journal knows */

    bool handed_over; /* by a call of the present turn */
    bool started, cancel, last_round;
    bool shows;              /* the content of the request at work is emitted */
    bool muted;              /* by ah_run_mute */
    bool unsettled;          /* by ah_run_stop_unsettled */
    ah_recorded_ask *parked; /* asks to which nothing in this process can respond */
    ah_restarts restarts;
    int check_rounds;
    int empties;    /* empty answers in a row */
    int repairs;    /* answers so far that did not fit `output` */
    ah_text *value; /* the answer that fits `output` */
    ah_err cancel_err;
    ah_run_result result;
    ah_buf heard; /* the bytes of the response, if the recorder keeps them */
    ah_buf text;
    ah_buf direct;   /* results of the turn that become the run's answer */
    size_t n_direct; /* number of results in `direct` */
};

/* For long checks: true if the run is cancelled, or its time is over, or that of a run or call
 * around it. `run` is an ah_run. */
bool ah_run_is_over(void *run);
enum { AH_COST_FIELDS = 4 };
/* Sets what is known of the cost as fields of an event; returns how many these are. They refer to
 * `u`. */
size_t ah_run_put_cost(const ah_usage *u, ah_field field[AH_COST_FIELDS]);
void ah_run_raise(ah_run *run, ah_need need); /* cannot fail */
/* The work started by the need `begun` is no longer wanted. Takes the need back if it was not taken
 * yet; else raises `stop`. */
void ah_run_end_need(ah_run *run, ah_need_kind begun, ah_need stop);
/* Commits the pending turn and the staged entries to the conversation. */
void ah_run_commit(ah_run *run);
/* Ends the run with the error in result.err. The end is reported only after everything running has
 * been stopped and its changes are taken back. */
void ah_run_fail(ah_run *run);
/* The turn is committed; its results, in `direct`, are the answer. `queued`: the user has sent
 * another message. */
void ah_run_answer_direct(ah_run *run, bool queued);
/* The answer is valid: starts the checks, after which the run is done. */
void ah_run_accept(ah_run *run);

/* The exchange has ended, and its reader has a complete message. */
void ah_run_answered(ah_run *run);

/* True if the run is cancelled or its time is over: nothing more is begun, and its next step ends
 * it. */
bool ah_run_must_end(const ah_run *run);

/* run_exchange.c: sends the request for the transcript, or fails the run. If the run must end,
 * sends nothing, and neither counts nor reports the request. */
void ah_run_start_exchange(ah_run *run);
/* Sends the request if it has its place, else reports the wait once. Returns true if it is sent. */
bool ah_run_place(ah_run *run);
/* The wait for a place is over. */
void ah_run_leave_queue(ah_run *run);
/* Closes the exchange, and raises its stop if the driver has started it. */
void ah_run_stop_exchange(ah_run *run);
/* Sets the cost of the answer, if it is known. */
void ah_run_price_answer(ah_run *run);
/* Counts what the answer cost, and closes the exchange. */
void ah_run_settle_exchange(ah_run *run);
void ah_run_close_exchange(ah_run *run);
/* AH_BUDGET where more was used than there is. */
ah_status ah_run_check_budget(ah_run *run);
/* True if a request that waits for room in a budget is to try again. */
bool ah_run_has_turn(const ah_run *run);
/* True if a listener was shown part of the current answer. */
bool ah_run_has_shown(const ah_run *run);

/* run_settings.c: appends an entry with the settings in force, with members replaced or added. A
 * member whose value has .p NULL is left out. */
typedef struct ah_setting {
    const char *name;
    ah_slice value; /* JSON */
} ah_setting;
ah_status ah_run_set(ah_run *run, const ah_setting *set, size_t n, ah_err *err);
/* Sets `tool_choice` for the model, to the end of the run. The settings keep the script's own
 * choice as `given`. */
ah_status ah_run_choose(ah_run *run, const char *choice, ah_err *err);
/* Called when the first request is answered. Lifts a forced choice (`required`, or one tool), which
 * would force every later answer to be a call. */
ah_status ah_run_free_choice(ah_run *run, ah_err *err);

/* run_fallback.c: goes on with the next adapter if the error in result.err allows it. Returns false
 * if the run must end with result.err, which may then be another error. */
bool ah_run_fall_back(ah_run *run);

/* run_handoff.c: if the call has handed the conversation over, and its changes are made, the run
 * goes on with the parts of the other agent. */
void ah_run_hand_over(ah_run *run, const ah_call *call);
/* The same for a call of the pending turn that an earlier process has settled, if there is one.
 * staged: how many of the staged entries are of such calls. */
void ah_resume_hand_over(ah_run *run, size_t staged);
/* Before a request, changes to the adapter of the agent that has taken over. */
void ah_run_take_adapter(ah_run *run);

/* run_learn.c: a provider answered 400 to a request that declared or searched tools in its own way.
 * The request is made again in another way; what this shows is kept in the settings. */
bool ah_run_try_less(ah_run *run); /* the error is in result.err; true: another way is tried */
ah_status ah_run_learn(ah_run *run, ah_err *err); /* called when an answer has come */

/* run_output.c: appends the value of an answer that fits `output`; else returns false. */
bool ah_run_read_output(ah_run *run, ah_slice text, ah_buf *value);
/* The last answer is in run->text and committed. Ends the run, or asks again. */
void ah_run_take_output(ah_run *run);

/* run_turn.c: makes run->call from the pending turn of the transcript, which has calls. */
bool ah_turn_new(ah_run *run); /* false: out of memory */
void ah_turn_begin(ah_run *run);
/* True if a call of the present batch waits for others to end (max_parallel), and may begin now. */
bool ah_turn_may_begin(const ah_run *run);
/* True if the one call of the batch is answered, has changed no session, file or resource, and
 * becomes final in this step: its `settled` then says all that its `call_finished` would. */
bool ah_turn_settles_now(const ah_run *run);
/* No call is running, or one may begin beside those that are: begins it, or files the answered
 * calls and begins the next ones. */
void ah_turn_go_on(ah_run *run);
/* Asks about the changes of the calls that wait for it. False: there are none. */
bool ah_turn_ask(ah_run *run);
void ah_turn_stop(ah_run *run); /* raises stops for the running calls */
/* Gives each unanswered call a result and commits: the transcript is then sound. Returns false if
 * it waits for a record, and is to be called again. */
bool ah_turn_settle(ah_run *run, ah_status why);
void ah_turn_clear(ah_run *run);
int64_t ah_turn_deadline(const ah_run *run);
void ah_turn_tick(ah_run *run, int64_t now); /* ends calls whose time is over */
/* The handler of the call is to be started: from here on its time counts. */
void ah_turn_arm(ah_run *run, ah_call *c);
/* The record of the call's start is there. */
void ah_turn_started(ah_run *run, ah_call *c);
/* The call has passed the gate. */
void ah_turn_start(ah_run *run, ah_call *c);
/* Answers the last call if the answer was cut off within it. */
void ah_turn_refuse_cut(ah_run *run);
/* Adds a direct result to run->direct. */
void ah_turn_keep_direct(ah_run *run, ah_slice content);
/* RUN_AWAITING: takes the results of background calls once all are there; false: not yet. */
bool ah_turn_await(ah_run *run);
/* Of a run of a background call: the first stages its result as a note, the second only reports
 * that it was dropped. */
void ah_turn_file_apart(ah_run *run);
void ah_turn_drop_apart(ah_run *run);

/* run.c: the last answer is in run->text and committed (with `queued` messages of the user): ends
 * the run, or goes on. ah_run_no_calls commits it first. */
void ah_run_take_last(ah_run *run, bool queued);
void ah_run_no_calls(ah_run *run);

/* run_record.c: each makes one kind of record from the state of the run; without a recorder, or
 * once a record could not be made, they do nothing. */
void ah_record_started(ah_run *run); /* of the run, once */
void ah_record_request(ah_run *run);
void ah_record_answer(ah_run *run);
void ah_record_call_started(ah_run *run, ah_call *c);
void ah_record_finished(ah_run *run); /* of all calls that have ended since */
/* `settled`, before files of the machine are changed. Returns false if none is to be: nothing is
 * recorded. */
bool ah_record_announced(ah_run *run, ah_call *c);
/* The announced changes were made: `applied`; or taken back: `apply_failed`, with c->entry. */
void ah_record_applied(ah_run *run, ah_call *c, bool done);
void ah_record_settled(ah_run *run, ah_call *c, ah_slice entry);      /* unless it was announced */
void ah_record_turn(ah_run *run);                                     /* before the commit */
void ah_record_committed(ah_run *run);                                /* after it */
void ah_record_lost(ah_run *run, const char *what, const ah_call *c); /* c NULL: not of a call */
void ah_record_cancelled(ah_run *run);
/* run_park.c: ends the run with AH_WAITING if all its calls at work wait for responses from beyond
 * the process. False: they do not. */
bool ah_run_park(ah_run *run);
void ah_record_ended(ah_run *run);
/* Staged entries that came from outside. */
void ah_record_queued(ah_run *run);
/* Waits for the records so far, for the call or (NULL) the end of the run. Returns the id. */
uint32_t ah_record_wait(ah_run *run, ah_call *c, bool effect);
/* True if the state that the recorder has lost ends the run, with the reason in result.err. */
bool ah_record_broke(ah_run *run);
/* True if the run was recorded, and is no more: changes that are not made yet are dropped. */
bool ah_record_is_over(const ah_run *run);
/* True if the run only enters the handlers of a recorded turn again (ah_recorder.replays). */
bool ah_run_replays(const ah_run *run);

/* run_resume.c: takes the state of the run from its history. False: out of memory. */
bool ah_resume_begin(ah_run *run);
/* The first step of a run that goes on. */
void ah_resume(ah_run *run);
/* Begins a call that an earlier process had begun. Returns false if it had not. */
bool ah_resume_call(ah_run *run, ah_call *c, const ah_callees *who);
/* True if the recorded response to its approval still holds, and ends the asking. */
bool ah_resume_approval(ah_run *run, ah_call *c);
/* Adds to the reason of an approval what has changed since it was asked for the last time. */
void ah_resume_explain(ah_call *c);
/* True if the ask, a record, was about what the call would do now. */
bool ah_resume_is_about(const ah_call *c, ah_slice ask);

/* background.c: ah_run_next of such a run. True: a step was made. */
bool ah_background_advance(ah_run *run);

#endif
