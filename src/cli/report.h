/* Reports of a script's progress and end, for programs (--json, --jsonl) and for people: the line
 * of progress and the three closing lines. A program in Lua (lua/agenthost/command/report.lua) gets
 * each event as it happens, counts them and makes the words. */
#ifndef AH_CLI_REPORT_H
#define AH_CLI_REPORT_H

#include "cli/programs.h"
#include "cli/terminal.h"

/* The code and the message with which the command ended. */
typedef struct ah_ending {
    const char *code;    /* "ok", or that of the error */
    const char *message; /* of the error, any bytes; the "code: " it may begin with is left out */
} ah_ending;

typedef struct ah_report {
    const ah_program_door *programs;
    int64_t begun; /* monotonic ms, of the first run; 0: none yet */
    int64_t since; /* the same, from when on something is waited for */
    bool waiting;
} ah_report;

void ah_report_event(ah_report *r, const ah_event *event);

/* Prints a line of JSON that the library made (no white space between its values). Control
 * characters that JSON permits, C1 and those that turn the direction of writing, are escaped. */
void ah_report_json(FILE *out, const char *json, size_t n);

/* One object: {"reply": ...} of the last outermost run, null where there was none or it
 * failed; or {"error": {"code", "message"}}. */
void ah_report_object(ah_report *r, FILE *out, const ah_ending *e);

/* The last line of --jsonl: a `done` event without a run, which is about the whole script. */
void ah_report_last_line(ah_report *r, FILE *out, const ah_ending *e);

/* Turns and time, tools, tokens. Nothing where no run was begun. */
void ah_report_closing(ah_report *r, ah_terminal *terminal);

/* One line for a person about a call that was answered: its name, its arguments, how it ended and
 * how long it took. Nothing for other events. */
void ah_report_call(ah_report *r, ah_terminal *terminal, const ah_event *event);

/* ah_watcher.idle: shows what is waited for once that takes half a second, and takes it away
 * before the host works on. Returns how long the host may wait. */
int ah_report_progress(ah_report *r, ah_terminal *terminal, int timeout_ms);

#endif
