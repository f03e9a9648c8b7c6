/* Settings from the files of user and project, a file of variables, and flags. A program in Lua
 * (lua/agenthost/command/settings.lua) reads them once, before the script's host is opened, and
 * only if there is anything to read; variables of the files are then in the environment, where the
 * library and scripts look. The program of the command line (line.lua) returns settings in the same
 * form. */
#ifndef AH_CLI_SETTINGS_H
#define AH_CLI_SETTINGS_H

#include "cli/options.h"

typedef struct ah_settings {
    char path[1024];      /* of the configuration; "" where there can be none (no HOME) */
    char *text;           /* what the program said; the others are parts of it, or NULL */
    const char *color;    /* NULL: not set */
    const char *models;   /* the settings models.NAME, for ah_alias; NULL: none */
    const char *defaults; /* of runs, for ah_defaults; NULL: none */
    const char *warning;  /* what of the project's file does not hold; NULL: nothing */
    const char *show;     /* a text for stdout; NULL: none */
    const char *fault;    /* what is wrong with a file or the line, and what to do; NULL: nothing */
    ah_log_level log;
    bool json;     /* of a line: the command tells programs */
    bool is_run;   /* a script is to be run: the line is none of a command */
    bool is_apart; /* the command needs a host of its own */
    bool pages;    /* the command reads the pages of the reference */
    int file;      /* the number of the word that is to be read; 0: none */
} ah_settings;

/* Sets what flags alone say, and the path. */
void ah_settings_init(ah_settings *s, const ah_options *o);
/* True if there is anything to read. */
bool ah_settings_needed(const ah_settings *s, const ah_options *o);
/* Reads what a program returned into settings as ah_settings_init left them, and sets the
 * environment. A fault of the settings is put into `fault`. False: there is no memory. */
bool ah_settings_take(ah_settings *s, const char *said);
void ah_settings_clear(ah_settings *s);

#endif
