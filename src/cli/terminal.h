/* Output for people on stderr: errors, the log, the line of progress, the closing lines, and colour
 * where it is welcome. Also the stream of the command's own output, if the script's must not be
 * mixed with it. The script's own prints are not touched, only flushed and closed at the end. */
#ifndef AH_CLI_TERMINAL_H
#define AH_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "agenthost.h"

/* No multiple of a block: what is written in whole blocks goes around the buffer. */
enum { AH_STDOUT_BUFFER = 8191 };

/* Stays where it is: stdout has its buffer in it. */
typedef struct ah_terminal {
    bool colour;
    bool people; /* stderr is a terminal: somebody reads along */
    bool cursor; /* that obeys commands, so that a line may be shown and taken away */
    bool drawn;  /* one is shown */
    char buffer[AH_STDOUT_BUFFER]; /* of stdout */
    FILE *out; /* the command's own output: stdout, or what stdout was before it was taken */
} ah_terminal;

/* Also gives the process a descriptor for each of 0, 1 and 2 that was closed, so that
 * no socket of ours ever answers to the name of stdout. */
void ah_terminal_init(ah_terminal *t);

/* True if anything was written to stdout by this process. Where a script has taken the buffer away
 * from its stdout, this is not known, and false. */
bool ah_terminal_wrote(const ah_terminal *t);

/* "always" or "never"; NULL and "auto" leave it to the terminal, TERM and NO_COLOR. */
void ah_terminal_colour(ah_terminal *t, const char *when);

/* From now on what is written to stdout (by children too) goes to stderr, and t->out is
 * where stdout went before. False (errno) where there is no descriptor left. */
bool ah_terminal_take_stdout(ah_terminal *t);

/* "agenthost: text". The text may have several lines. */
void ah_terminal_error(ah_terminal *t, const char *text);

/* An ah_log_fn with an ah_terminal: "agenthost: warning: line". */
void ah_terminal_log(void *terminal, ah_log_level level, const char *line);

/* The number of the character of n bytes. */
unsigned ah_terminal_number(const char *p, size_t n);

/* A faint line of its own. */
void ah_terminal_say(ah_terminal *t, const char *text);

/* Shows a line (ASCII, cut to the terminal's width) below the cursor, in place of the one
 * that is shown; the cursor, which may stand behind text of the script's, stays. Nothing
 * where there is no such terminal or it is too narrow. */
void ah_terminal_draw(ah_terminal *t, const char *line);
void ah_terminal_erase(ah_terminal *t); /* before anything else is written */

/* The same terminal for scripts (ah_config.tty), in the same colours. */
ah_tty ah_terminal_tty(ah_terminal *t);

/* Writes out and closes stdout and t->out. 0, the errno of what could not be written, or -1
 * where an earlier write failed and its reason is no longer known. */
int ah_terminal_finish(ah_terminal *t);

#endif
