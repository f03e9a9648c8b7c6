/* The terminal of the process for scripts (ah.terminal): its modes, and its signals while a script
 * has it open. However the process ends or stops, except by SIGKILL, the terminal's modes are
 * restored. The state is the process's: there is one terminal. Callers: its floor. */
#ifndef AH_CLI_TTY_H
#define AH_CLI_TTY_H

#include <stdbool.h>

#include "agenthost.h"

/* Returns an ah_config.tty with the functions for modes and signals. sequences: the terminal
 * supports escape sequences. */
ah_tty ah_tty_of(bool sequences);

bool ah_tty_is_open(void);
/* Restores the original modes of the terminal. Async-signal-safe; no effect if there is nothing to
 * restore. */
void ah_tty_restore(void);

/* Called before and after the command itself writes on a terminal: hide removes the lines of the
 * script's live area, show makes the host draw them again. */
void ah_tty_hide(void);
void ah_tty_show(void);

#endif
