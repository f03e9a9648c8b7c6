/* Output for people on stderr: errors, the log, the line of progress, the closing lines, in colour
 * if wanted. Also the stream of the command's own output, if the script's must not be mixed with
 * it. The script's own prints are only flushed and closed at the end. Callers: its floor. */
#ifndef AH_CLI_TERMINAL_H
#define AH_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "agenthost.h"

/* Not a multiple of a block, since writes of whole blocks bypass the buffer. */
enum { AH_STDOUT_BUFFER = 8191 };

/* Must not move: stdout uses its buffer. */
typedef struct ah_terminal {
    bool colour;
    bool people; /* stderr is a terminal, read by a person */
    bool cursor; /* it supports cursor commands, so that a line can be shown and removed */
    bool drawn;  /* a line is shown */
    char buffer[AH_STDOUT_BUFFER]; /* buffer of stdout */
    FILE *out; /* the command's own output: stdout, or what stdout was before it was redirected */
} ah_terminal;

/* Also opens a descriptor for each of 0, 1 and 2 that is closed, so that no socket of ours gets the
 * number of stdout. */
void ah_terminal_init(ah_terminal *t);

/* True if this process has written to stdout. False if unknown, because a script has replaced the
 * buffer of its stdout. */
bool ah_terminal_wrote(const ah_terminal *t);

/* "always" or "never"; NULL and "auto": depends on the terminal, TERM and NO_COLOR. */
void ah_terminal_colour(ah_terminal *t, const char *when);

/* Redirects what is written to stdout (by children too) to stderr; t->out is then the earlier
 * stdout. False, with errno, if no descriptor is left. */
bool ah_terminal_take_stdout(ah_terminal *t);

/* Prints "agenthost: text". The text may have several lines. */
void ah_terminal_error(ah_terminal *t, const char *text);

/* An ah_log_fn with an ah_terminal: prints "agenthost: warning: line". */
void ah_terminal_log(void *terminal, ah_log_level level, const char *line);

/* The code point of the UTF-8 character of n bytes. */
unsigned ah_terminal_number(const char *p, size_t n);

/* Prints a text of n bytes and a line end. On a terminal, which then obeys none of it, controls are
 * codes. */
void ah_terminal_answer(FILE *out, const char *text, size_t n);

/* Prints a faint line. */
void ah_terminal_say(ah_terminal *t, const char *text);

/* Shows a line (ASCII, cut to the terminal's width) below the cursor, replacing the current one.
 * The cursor stays, even after unfinished text of the script. No effect without such a terminal, or
 * if it is too narrow. */
void ah_terminal_draw(ah_terminal *t, const char *line);
void ah_terminal_erase(ah_terminal *t); /* call before anything else is written */

/* The same terminal for scripts (ah_config.tty), in the same colours. */
ah_tty ah_terminal_tty(ah_terminal *t);

/* Flushes and closes stdout and t->out. Returns 0, the errno of the failed write, or -1 if an
 * earlier write failed for an unknown reason. */
int ah_terminal_finish(ah_terminal *t);

#endif
