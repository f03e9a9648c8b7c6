/* The command line as passed to the programs: the path of the settings file, the flags of running a
 * script, the words. The program is lua/agenthost/command/line.lua. All strings are borrowed.
 * Callers: its floor. */
#ifndef AH_CLI_LINE_H
#define AH_CLI_LINE_H

#include <stdbool.h>

#include "agenthost.h"

typedef struct ah_line {
    const char *settings; /* path of the user's file; "": there can be none */
    bool configured;      /* there is a file of settings */
    int argc;             /* without the command's own name */
    char **argv;
    const char *read; /* as the program passes it to other states (performed.lua); NULL: not yet */
} ah_line;

/* Calls a member of the program with these strings and the line; returns as ah_program_call. */
ah_status ah_line_call(ah_host *host, const char *member, int argc, const char *const *argv,
                       const ah_line *line);

#endif
