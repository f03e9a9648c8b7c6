/* What agenthost --help says where there is no Lua state to say more. */
#ifndef AH_CLI_HELP_H
#define AH_CLI_HELP_H

#include <stdio.h>

void ah_help(FILE *out);

#endif
