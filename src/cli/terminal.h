/* What people see on stderr: errors, the log, and colour where it is welcome.
 * The script's own output on stdout is not touched, only finished. */
#ifndef AH_CLI_TERMINAL_H
#define AH_CLI_TERMINAL_H

#include <stdbool.h>

#include "agenthost.h"

typedef struct ah_terminal {
    bool colour;
} ah_terminal;

/* Also gives the process a descriptor for each of 0, 1 and 2 that was closed, so that
 * no socket of ours ever answers to the name of stdout. */
void ah_terminal_init(ah_terminal *t);

/* "agenthost: text". The text may have several lines. */
void ah_terminal_error(const ah_terminal *t, const char *text);

/* An ah_log_fn with an ah_terminal: "agenthost: warning: line". */
void ah_terminal_log(void *terminal, ah_log_level level, const char *line);

/* Writes out and closes stdout. 0, the errno of what could not be written, or -1 where an
 * earlier write failed and its reason is no longer known. */
int ah_terminal_finish(void);

#endif
