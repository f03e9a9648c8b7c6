/* The command line as the programs get it: the path of the configuration, the flags of running a
 * script, the words. The program is lua/agenthost/command/line.lua. */
#ifndef AH_CLI_LINE_H
#define AH_CLI_LINE_H

#include "agenthost.h"

typedef struct ah_line {
    const char *settings; /* "": there can be none */
    int argc;             /* without our own name */
    char **argv;
} ah_line;

/* Calls a member of the program with these strings and the line; as ah_program_call. */
ah_status ah_line_call(ah_host *host, const char *member, int argc, const char *const *argv,
                       const ah_line *line);

#endif
