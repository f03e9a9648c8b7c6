/* The command line: which command, what was asked for, as a struct. The tables of options
 * and commands are here for all who tell of them: the help, the completions, the specs.
 * Nothing here prints, opens a file or ends the process; what an unknown option may have meant is asked of a
 * program in Lua. */
#ifndef AH_CLI_OPTIONS_H
#define AH_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/programs.h"

typedef enum ah_command {
    AH_COMMAND_RUN, /* no word for it: a script is run */
    AH_COMMAND_TOOLS,
    AH_COMMAND_CHECK,
    AH_COMMAND_MOCK,
    AH_COMMAND_MODELS,
    AH_COMMAND_CONFIG,
    AH_COMMAND_TRUST,
    AH_COMMAND_COMPLETION,
    AH_COMMANDS
} ah_command;

typedef struct ah_command_row {
    const char *name; /* "": run */
    const char *help; /* one line */
    bool program;     /* all of it is the program of its name, which gets the words behind it */
} ah_command_row;

typedef enum ah_option_id {
    AH_OPTION_EVAL,
    AH_OPTION_MODEL,
    AH_OPTION_ENV_FILE,
    AH_OPTION_JSON,
    AH_OPTION_JSONL,
    AH_OPTION_RECORD,
    AH_OPTION_REPLAY,
    AH_OPTION_SHOW,
    AH_OPTION_LIST,
    AH_OPTION_REMOVE,
    AH_OPTION_YES,
    AH_OPTION_PORT,
    AH_OPTION_LISTEN,
    AH_OPTION_FORMAT,
    AH_OPTION_STRICT,
    AH_OPTION_LENIENT,
    AH_OPTION_ONCE,
    AH_OPTION_LOG,
    AH_OPTION_COLOR,
    AH_OPTION_QUIET,
    AH_OPTION_VERBOSE,
    AH_OPTION_HELP,
    AH_OPTION_VERSION,
    AH_OPTION_END,
    AH_OPTIONS
} ah_option_id;

typedef struct ah_option_row {
    char letter;       /* 0: none */
    const char *name;  /* without its dashes */
    const char *value; /* what it wants; NULL: nothing */
    const char *words; /* the values there are, blanks between; NULL: any */
    unsigned commands; /* bits of the ah_commands that take it */
    const char *help;
} ah_option_row;

extern const ah_command_row ah_command_table[AH_COMMANDS];
extern const ah_option_row ah_option_table[AH_OPTIONS];

static inline bool ah_command_takes(ah_command command, ah_option_id option)
{
    return (ah_option_table[option].commands >> command & 1) != 0;
}

/* Strings are borrowed from argv. */
typedef struct ah_options {
    const ah_program_door *programs; /* who knows what is near */
    ah_command command;
    unsigned given; /* bits of the ah_option_ids that were there */
    bool ended;     /* no option follows */
    ah_log_level log_level;
    const char *model;    /* NULL: the script decides */
    const char *eval;     /* a script's text, in place of a script */
    const char *env_file; /* NULL: none */
    const char *record;   /* HTTP exchanges go there; NULL: nowhere */
    const char *replay;   /* and come from there; NULL: from the network */
    const char *color;    /* "auto", "always", "never"; NULL: not said */
    int port;             /* of the mock; 0: any that is free */
    const char *listen;   /* its address; NULL: this machine only */
    const char *format;   /* what it speaks; NULL: all */
    bool lenient;         /* it refuses nothing that it can read */
    size_t once;          /* it ends after so many requests; 0: with a signal */
    const char *log;      /* where it keeps what came in; NULL: nowhere */
    const char *
        script; /* a path or "-"; for `completion` the shell, for `models` one; NULL where none is needed */
    int argc; /* what stands behind the script belongs to it */
    char **argv;
    char fault[512]; /* what is wrong and what to do, in lines; "" when nothing is */
} ah_options;

static inline bool ah_options_given(const ah_options *o, ah_option_id id)
{
    return (o->given >> id & 1) != 0;
}

/* False where the command line makes no sense; `fault` then says why. */
bool ah_options_parse(ah_options *o, int argc, char **argv, const ah_program_door *programs);

/* The command or option (with its dashes) that a word that is neither may have meant, into
 * `out`; false where there is none near. */
bool ah_options_near(const char *word, const ah_program_door *programs, char *out, size_t size);

/* The tables as strings, for the programs in Lua (lua/agenthost/command/tables.lua). */
enum { AH_TOLD = 1 + 2 * AH_COMMANDS + 6 * AH_OPTIONS };
typedef struct ah_told {
    const char *word[AH_TOLD];
    char commands[8], letter[AH_OPTIONS][2], takers[AH_OPTIONS][64];
} ah_told;

/* `out` is not to be moved. */
void ah_options_tell(ah_told *out);

#endif
