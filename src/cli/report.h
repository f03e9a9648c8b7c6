/* Reports a script's progress and end, for programs (--json, --jsonl) and for people: the line of
 * progress and the closing lines. A program in Lua (lua/agenthost/command/report.lua) gets
 * each event as it happens, counts events and makes the texts. Without memory a text for people is
 * left out. Callers: its floor. */
#ifndef AH_CLI_REPORT_H
#define AH_CLI_REPORT_H

#include "cli/programs.h"
#include "cli/terminal.h"

/* The code and the message with which the command ended. */
typedef struct ah_ending {
    const char *code;    /* "ok", or the code of the error */
    const char *message; /* message of the error, any bytes; a leading "code: " is left out */
} ah_ending;

/* The conversation that a run has left in a store. */
typedef struct ah_kept {
    char id[160];   /* "": none */
    char head[100]; /* of ah_agent_head */
} ah_kept;

typedef struct ah_report {
    const ah_program_door *programs;
    ah_kept kept;  /* of the run of a returned agent */
    int64_t begun; /* start of the first run, monotonic ms; 0: none yet */
    int64_t since; /* start of the current wait, monotonic ms */
    bool waiting;
    bool at_once; /* the line of progress is shown without patience */
} ah_report;

/* Counts an event, and notes what is waited for. */
void ah_report_event(ah_report *r, const ah_event *event);

/* Prints a line of JSON that the library made (no white space between its values). Escapes control
 * characters that JSON permits: C1, and those that change the direction of text. */
void ah_report_json(FILE *out, const char *json, size_t n);

/* Prints one object: {"reply": ...} of the last outermost run, null if there was none or it failed;
 * or {"error": {"code", "message"}}; both with "conversation" and "head" of what is kept. */
void ah_report_object(ah_report *r, FILE *out, const ah_ending *e);

/* Prints the last line of --jsonl: a `done` event without a run, which concerns the whole
 * script. */
void ah_report_last_line(ah_report *r, FILE *out, const ah_ending *e);

/* Prints turns and time, tools, tokens, the head of what is kept, and each ah.map that did not end;
 * nothing if there was neither a run nor a map. */
void ah_report_closing(ah_report *r, ah_terminal *terminal);

/* Prints one line for a person about an answered call: its name, its arguments, how it ended and
 * how long it took. Prints nothing for other events. */
void ah_report_call(ah_report *r, ah_terminal *terminal, const ah_event *event);

/* For ah_watcher.idle: shows what is waited for after half a second (ah.map: at once), and removes
 * it before the host continues. Returns how long the host may wait, ms. */
int ah_report_progress(ah_report *r, ah_terminal *terminal, int timeout_ms);

#endif
