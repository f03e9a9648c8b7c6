/* The terminal of the process as scripts have it (ah.terminal): its modes, and the signals about it
 * while a script has it open. However the process ends or stops, the terminal is left as it was
 * found, but for SIGKILL. */
#ifndef AH_CLI_TTY_H
#define AH_CLI_TTY_H

#include <stdbool.h>

#include "agenthost.h"

/* Returns an ah_config.tty with the functions for modes and signals. sequences: the terminal obeys
 * escape sequences. */
ah_tty ah_tty_of(bool sequences);

bool ah_tty_is_open(void);
/* Restores the modes with which the terminal was found; async-signal-safe, and harmless if there is
 * nothing to restore. */
void ah_tty_restore(void);

/* Called before and after the command itself writes on a terminal: hide removes the lines of the
 * script's live area, show has the host draw them again. */
void ah_tty_hide(void);
void ah_tty_show(void);

#endif
