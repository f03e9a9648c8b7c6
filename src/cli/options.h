/* The part of the command line that is read without Lua: a script to run, its flags and its words.
 * A program (lua/agenthost/command/line.lua) handles all other lines, and the errors. Nothing here
 * prints, opens a file or ends the process; strings are borrowed from argv. Callers: its floor. */
#ifndef AH_CLI_OPTIONS_H
#define AH_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "agenthost.h"

typedef enum ah_option_id {
    AH_OPTION_EVAL,
    AH_OPTION_INTERACTIVE,
    AH_OPTION_WATCH,
    AH_OPTION_MODEL,
    AH_OPTION_ENV_FILE,
    AH_OPTION_STORE,
    AH_OPTION_JSON,
    AH_OPTION_JSONL,
    AH_OPTION_RECORD,
    AH_OPTION_REPLAY,
    AH_OPTION_COLOR,
    AH_OPTION_QUIET,
    AH_OPTION_VERBOSE,
    AH_OPTION_HELP,
    AH_OPTION_VERSION,
    AH_OPTION_END,
    AH_OPTIONS
} ah_option_id;

/* The form of a row of lua/agenthost/command/flags.lua. */
typedef struct ah_option_row {
    char letter;        /* 0: none */
    const char *name;   /* without dashes */
    const char *value;  /* name of its value; NULL: it takes none */
    const char *words;  /* allowed values, separated by blanks; NULL: any */
    const char *traits; /* for example "any once common" */
    const char *doc;
} ah_option_row;

extern const ah_option_row ah_option_table[AH_OPTIONS];

/* Strings are borrowed from argv. */
typedef struct ah_options {
    unsigned given; /* bits of the ah_option_ids that were given */
    bool ended;     /* no option follows */
    ah_log_level log_level;
    const char *model;    /* NULL: the script decides */
    const char *eval;     /* text of a script, in place of a file */
    const char *env_file; /* NULL: none */
    const char *store;    /* file for conversations; NULL: AGENTHOST_STORE or none */
    const char *record;   /* file for recording HTTP exchanges; NULL: none */
    const char *replay;   /* file for replaying them; NULL: the network is used */
    const char *color;    /* "auto", "always", "never"; NULL: not given */
    const char *script;   /* a path or "-"; NULL: none given */
    int argc;             /* the words after the script, which belong to it */
    char **argv;
} ah_options;

static inline bool ah_options_given(const ah_options *o, ah_option_id id)
{
    return (o->given >> id & 1) != 0;
}

/* True if the line is valid and runs a script or shows the version. Otherwise `o` has what was
 * read, and the program handles the line, for example one whose `script` may be the name of a
 * command or a prompt. */
bool ah_options_parse(ah_options *o, int argc, char **argv);

/* The table as strings, for the programs. */
enum { AH_TOLD = 6 * AH_OPTIONS };
typedef struct ah_option_strings {
    const char *word[AH_TOLD];
    char letter[AH_OPTIONS][2];
} ah_option_strings;

/* `out` must not move afterwards. */
void ah_options_tell(ah_option_strings *out);

#endif
