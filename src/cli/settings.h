/* What the files of user and project, a file of variables and flags say. It is read by a program in Lua
 * (lua/agenthost/command/settings.lua), once, before the script's host is opened, and only where there is
 * anything to read; what the files say of variables is then in the environment, where the library and scripts
 * look. */
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
    const char *show;     /* for people or programs, where that was asked for */
    const char *fault;    /* what is wrong with a file, and what to do; NULL: nothing */
    ah_log_level log;
} ah_settings;

/* As it is where nobody says anything but flags. */
void ah_settings_init(ah_settings *s, const ah_options *o);
/* True if there is anything to read, or to show. */
bool ah_settings_needed(const ah_settings *s, const ah_options *o);
/* Has it read in a host of the command's programs, and sets the environment. AH_OK, also where `fault` tells
 * what is wrong; AH_NOMEM, or as ah_program_call. */
ah_status ah_settings_load(ah_settings *s, const ah_options *o, ah_host *programs);
void ah_settings_clear(ah_settings *s);

#endif
