/* Prints a short form of agenthost --help, used if no Lua state can be made for the full text.
 * Callers: its floor. */
#ifndef AH_CLI_HELP_H
#define AH_CLI_HELP_H

#include <stdio.h>

void ah_help(FILE *out);

#endif
