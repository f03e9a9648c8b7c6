/* How a script ended, for programs (--json, --jsonl) and for people: the line of progress
 * and the three closing lines. What went wrong is said elsewhere, by who knows it. */
#ifndef AH_CLI_REPORT_H
#define AH_CLI_REPORT_H

#include "cli/tally.h"
#include "cli/terminal.h"

/* How the command ended. */
typedef struct ah_ending {
    const char *code;    /* "ok", or that of the error */
    const char *message; /* of the error, any bytes; the "code: " it may begin with is left out */
} ah_ending;

/* A line of JSON of ours (no white space between its values), in which control characters that JSON
 * lets stand, C1 and those that turn the direction of writing, are escaped. */
void ah_report_json(FILE *out, ah_slice json);

/* One object: {"reply": ...} of the last outermost run, null where there was none or it
 * failed; or {"error": {"code", "message"}}. */
void ah_report_object(FILE *out, const ah_tally *t, const ah_ending *e);

/* The last line of --jsonl: a `done` event without a run, which is about the whole script. */
void ah_report_last_line(FILE *out, const ah_tally *t, const ah_ending *e);

/* Turns and time, tools, tokens. Nothing where no run was begun. */
void ah_report_closing(ah_terminal *terminal, const ah_tally *t);

/* One line for a person about a call that was answered: its name, its arguments, how it ended and how
 * long it took. Nothing for other events. */
void ah_report_call(ah_terminal *terminal, ah_slice event);

/* ah_watcher.idle: shows what is waited for once that takes half a second, and takes it away
 * before the host works on. Returns how long the host may wait. */
int ah_report_progress(ah_terminal *terminal, const ah_tally *t, int timeout_ms);

#endif
