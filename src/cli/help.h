/* The text of --help, of agenthost and of each command, from the tables of options.h. */
#ifndef AH_CLI_HELP_H
#define AH_CLI_HELP_H

#include <stdio.h>

#include "cli/options.h"

void ah_help(FILE *out, ah_command command);

#endif
