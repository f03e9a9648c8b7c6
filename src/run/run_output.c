/* Checks the last answer of a run against its output schema, and asks for it again at most
 * MOST_REPAIRS times. */
#include "prompt/output.h"
#include "run/run_state.h"

enum { MOST_REPAIRS = 2, MAX_VALUE = 64 << 20, MAX_WORDS = 4 << 10, MAX_REQUEST = 64 << 10 };

static void fail(ah_run *run, ah_slice words)
{
    ah_err *err = &run->result.err;

    if (run->result.stop == AH_STOP_REFUSAL)
        ah_err_set(err, AH_PROMPT_EVALUATION, "the model refused to answer: %.*s",
                   AH_FMT(ah_buf_slice(&run->text)));
    else
        ah_err_set(err, AH_PROMPT_EVALUATION, "the answer is not what `output` asks for: %.*s",
                   AH_FMT(words));
    err->phase = AH_PHASE_RESPONSE;
    ah_run_fail(run);
}

static void warn(ah_run *run, ah_slice words)
{
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, MAX_WORDS + 128);
    ah_buf_fmt(&b,
               "the answer is not what `output` asks for, asking again (%d of %d): ", run->repairs,
               MOST_REPAIRS);
    ah_buf_put(&b, words);
    if (ah_buf_cut_short(&b))
        ah_run_warn(run, ah_buf_slice(&b));
    ah_buf_clear(&b);
}

static void ask_again(ah_run *run, ah_slice words)
{
    ah_text *entry = NULL;
    ah_status st;
    ah_buf b;

    run->repairs++;
    warn(run, words);
    ah_buf_init(&b, run->cfg.mem, MAX_REQUEST);
    ah_output_ask_again(run->cfg.output, words, &b);
    if (ah_buf_ok(&b))
        entry = ah_entry_text(run->cfg.mem, AH_ENTRY_USER, ah_buf_slice(&b), ah_run_wall(run));
    ah_buf_clear(&b);
    st = ah_transcript_add(run->cfg.transcript, AH_ENTRY_USER, entry, &run->result.err);
    if (st == AH_OK)
        run->state = RUN_NEXT;
    else
        ah_run_fail(run);
}

/* The check took longer than the run may: the run ends. */
static void give_up(ah_run *run, ah_slice words)
{
    bool cancelled = run->cfg.over(run->cfg.ud, 0);

    run->cancel = true;
    ah_err_set(&run->cancel_err, cancelled ? AH_CANCELLED : AH_DEADLINE,
               "%s while the answer was checked: %.*s",
               cancelled ? "cancelled" : "the run's deadline passed (set by timeout or deadline)",
               AH_FMT(words));
    run->cancel_err.phase = AH_PHASE_RESPONSE;
    run->state = RUN_NEXT;
}

bool ah_run_read_output(ah_run *run, ah_slice text, ah_buf *value)
{
    const ah_interrupt interrupt = {ah_run_is_over, run};
    ah_buf words;
    ah_err err;
    bool is;

    ah_buf_init(&words, run->cfg.mem, MAX_WORDS);
    is = ah_output_check(run->cfg.output, text, &interrupt, value, &words, &err) == AH_OK &&
         !words.len && ah_buf_ok(value);
    ah_buf_clear(&words);
    return is;
}

void ah_run_take_output(ah_run *run)
{
    const ah_interrupt interrupt = {ah_run_is_over, run};
    ah_buf value, words;
    ah_err *err = &run->result.err;
    ah_status st;

    ah_buf_init(&value, run->cfg.mem, MAX_VALUE);
    ah_buf_init(&words, run->cfg.mem, MAX_WORDS);
    st =
        ah_output_check(run->cfg.output, ah_buf_slice(&run->text), &interrupt, &value, &words, err);
    if (st == AH_OK && !words.len)
        st = ah_text_from_buf(&value, "the value", &run->value, err);
    if (st == AH_CANCELLED)
        give_up(run, ah_buf_slice(&words));
    else if (st != AH_OK)
        ah_run_fail(run);
    else if (!words.len)
        ah_run_accept(run);
    else if (run->last_round || run->repairs >= MOST_REPAIRS || run->result.stop == AH_STOP_REFUSAL)
        fail(run, ah_buf_slice(&words));
    else
        ask_again(run, ah_buf_slice(&words));
    ah_buf_clear(&value);
    ah_buf_clear(&words);
}
