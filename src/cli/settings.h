/* Settings from the files of user and project, a file of variables, and flags. A program in Lua
 * (lua/agenthost/command/settings.lua) reads them once, before the script's host is opened, and
 * only if there is something to read. Variables of the files are then in the environment, where the
 * library and scripts look. The program of the command line (line.lua) returns settings in the same
 * form. ah_settings owns its text. Callers: its floor. */
#ifndef AH_CLI_SETTINGS_H
#define AH_CLI_SETTINGS_H

#include "cli/options.h"

typedef struct ah_settings {
    char path[1024];      /* of the user's file; "" if there can be none (no HOME) */
    char *text;           /* what the program returned; the next fields are parts of it, or NULL */
    const char *color;    /* NULL: not set */
    const char *models;   /* the settings models.NAME, for ah_alias; NULL: none */
    const char *defaults; /* settings of runs, for ah_defaults; NULL: none */
    const char *warning;  /* which settings of the project's file are ignored; NULL: none */
    const char *show;     /* text for stdout; NULL: none */
    const char *fault;    /* the error in a file or the line, with advice; NULL: none */
    const char *line;     /* the line for other states, see ah_line; NULL: it has no command */
    ah_log_level log;
    bool json;     /* for a command line: --json was given */
    bool is_run;   /* a script is to be run, not a command */
    bool is_apart; /* the command needs its own host */
    bool prints;   /* the output of code in that host stays on stdout */
    bool again;    /* the command is run again by --watch */
    bool pages;    /* the command reads the pages of the reference */
    int file;      /* index + 1 of the word that names a file to read; 0: none */
    int word;      /* index + 1 of a word that is neither a command, nor a script, nor a prompt */
} ah_settings;

enum { AH_STATE_ROOM = 1024 };

/* Writes the path of a file in the folder of agenthost's state into `room`, as pairs.lua does.
 * Returns it; NULL if there can be none (no HOME). */
const char *ah_state_path(char room[AH_STATE_ROOM], const char *name);

/* Sets the values of the flags, and the path. */
void ah_settings_init(ah_settings *s, const ah_options *o);
/* True if there is a file of settings, even one that cannot be read. */
bool ah_settings_there(const ah_settings *s);
/* Reads what a program returned into settings prepared by ah_settings_init, and sets the
 * environment. An error in the settings goes into `fault`. False: out of memory. */
bool ah_settings_take(ah_settings *s, const char *said);
void ah_settings_clear(ah_settings *s);

#endif
