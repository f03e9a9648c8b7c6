/* The terminal of the process as scripts have it (ah.terminal): its modes, and the signals about it
 * while a script has it open. However the process ends or stops, the terminal is left as it was
 * found, but for SIGKILL. */
#ifndef AH_CLI_TTY_H
#define AH_CLI_TTY_H

#include <stdbool.h>

#include "agenthost.h"

/* Those of the functions of an ah_config.tty that are about modes and signals. sequences: the
 * terminal obeys escape sequences. */
ah_tty ah_tty_of(bool sequences);

bool ah_tty_is_open(void);
/* Gives the terminal back as it was found; async-signal-safe, and harmless where nothing is to be
 * given. */
void ah_tty_restore(void);

/* Around what the command itself writes on a terminal: the lines of the script's live area are not
 * there meanwhile, and come again. */
void ah_tty_hide(void);
void ah_tty_show(void);

#endif
