/* The text of agenthost --help, from the tables of options.h. */
#ifndef AH_CLI_HELP_H
#define AH_CLI_HELP_H

#include <stdio.h>

void ah_help(FILE *out);

#endif
