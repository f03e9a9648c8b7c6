/* The command line, as far as it is read without Lua: a script that is run, its flags and its
 * words. What a line of another kind wants, and the words for one that makes no sense, are said by
 * a program (lua/agenthost/command/line.lua). Nothing here prints, opens a file or ends the
 * process. */
#ifndef AH_CLI_OPTIONS_H
#define AH_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "agenthost.h"

typedef enum ah_option_id {
    AH_OPTION_EVAL,
    AH_OPTION_MODEL,
    AH_OPTION_ENV_FILE,
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
    const char *name;   /* without its dashes */
    const char *value;  /* what it wants; NULL: nothing */
    const char *words;  /* the values there are, blanks between; NULL: any */
    const char *traits; /* "any once common" */
    const char *doc;
} ah_option_row;

extern const ah_option_row ah_option_table[AH_OPTIONS];

/* Strings are borrowed from argv. */
typedef struct ah_options {
    unsigned given; /* bits of the ah_option_ids that were there */
    bool ended;     /* no option follows */
    ah_log_level log_level;
    const char *model;    /* NULL: the script decides */
    const char *eval;     /* a script's text, in place of a script */
    const char *env_file; /* NULL: none */
    const char *record;   /* HTTP exchanges go there; NULL: nowhere */
    const char *replay;   /* and come from there; NULL: from the network */
    const char *color;    /* "auto", "always", "never"; NULL: not said */
    const char *script;   /* a path or "-"; NULL: none was said */
    int argc;             /* what stands behind the script belongs to it */
    char **argv;
} ah_options;

static inline bool ah_options_given(const ah_options *o, ah_option_id id)
{
    return (o->given >> id & 1) != 0;
}

/* True if the line is to run a script or to show the version, and makes sense. Else `o` has what
 * was read of it, and the program knows more: as it does of one whose `script` may be the name of a
 * command. */
bool ah_options_parse(ah_options *o, int argc, char **argv);

/* The table as strings, for the programs. */
enum { AH_TOLD = 6 * AH_OPTIONS };
typedef struct ah_option_strings {
    const char *word[AH_TOLD];
    char letter[AH_OPTIONS][2];
} ah_option_strings;

/* `out` is not to be moved. */
void ah_options_tell(ah_option_strings *out);

#endif
