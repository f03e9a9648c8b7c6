/* The command line: what a user asked for, as a struct, and the text of --help.
 * One table of options makes both, so they cannot disagree. Nothing here prints
 * to stderr, opens a file or ends the process. */
#ifndef AH_CLI_OPTIONS_H
#define AH_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "agenthost.h"

/* Strings are borrowed from argv. */
typedef struct ah_options {
    bool help, version;
    bool ended; /* no option follows */
    ah_log_level log_level;
    const char *model;  /* NULL: the script decides */
    const char *script; /* a path or "-"; NULL only with help or version */
    int argc;           /* what stands behind the script belongs to it */
    char **argv;
    char fault[512]; /* what is wrong and what to do, in lines; "" when nothing is */
} ah_options;

/* False where the command line makes no sense; `fault` then says why. */
bool ah_options_parse(ah_options *o, int argc, char **argv);

void ah_options_help(FILE *out);

/* Is there an option --name? */
bool ah_options_has(const char *name);

#endif
