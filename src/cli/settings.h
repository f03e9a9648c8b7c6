/* What the files of user and project, a file of variables and flags say. It is read by a program in
 * Lua (lua/agenthost/command/settings.lua), once, before the script's host is opened, and only
 * where there is anything to read; what the files say of variables is then in the environment,
 * where the library and scripts look. What the program of the command line says (line.lua) comes in
 * the same form. */
#ifndef AH_CLI_SETTINGS_H
#define AH_CLI_SETTINGS_H

#include "cli/options.h"

typedef struct ah_settings {
    char path[1024];      /* of the configuration; "" where there can be none (no HOME) */
    char *text;           /* what the program said; the others are parts of it, or NULL */
    const char *color;    /* NULL: nobody said */
    const char *models;   /* the settings models.NAME, for ah_alias; NULL: none */
    const char *defaults; /* of runs, for ah_defaults; NULL: none */
    const char *warning;  /* what of the project's file does not hold; NULL: nothing */
    const char *show;     /* a text for stdout; NULL: none */
    const char *fault;    /* what is wrong with a file or the line, and what to do; NULL: nothing */
    ah_log_level log;
    bool json;     /* of a line: the command tells programs */
    bool is_run;   /* a script is to be run: the line is none of a command */
    bool is_apart; /* the command needs a host of its own */
    int file;      /* the number of the word that is to be read; 0: none */
} ah_settings;

/* As it is where nobody says anything but flags. */
void ah_settings_init(ah_settings *s, const ah_options *o);
/* True if there is anything to read. */
bool ah_settings_needed(const ah_settings *s, const ah_options *o);
/* Takes what a program said into settings as ah_settings_init left them, and sets the environment.
 * `fault` then tells what is wrong. False: there is no memory. */
bool ah_settings_take(ah_settings *s, const char *said);
void ah_settings_clear(ah_settings *s);

#endif
