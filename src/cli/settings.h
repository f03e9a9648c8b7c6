/* Where each setting comes from: a flag, the environment, a file of variables (--env-file),
 * the configuration file, or nowhere. Settings are read once, before a host is opened; what
 * the files say of variables is then in the environment, where the library and scripts look. */
#ifndef AH_CLI_SETTINGS_H
#define AH_CLI_SETTINGS_H

#include <stdio.h>

#include "cli/options.h"
#include "cli/pairs.h"

typedef enum ah_setting_id {
    AH_SET_MODEL,
    AH_SET_COLOR,
    AH_SET_ENV_FILE,
    AH_SET_LOG,
    AH_SETTINGS
} ah_setting_id;

typedef enum ah_origin_of {
    AH_FROM_NOWHERE, /* its default */
    AH_FROM_FLAG,
    AH_FROM_ENVIRONMENT,
    AH_FROM_ENV_FILE,
    AH_FROM_FILE
} ah_origin_of;

typedef struct ah_setting {
    const char *value; /* NULL: nobody said */
    ah_origin_of from;
    unsigned line; /* in the configuration file */
} ah_setting;

enum { AH_VARIABLES_MAX = 16 };

typedef struct ah_settings {
    ah_setting setting[AH_SETTINGS];
    ah_origin_of variable[AH_VARIABLES_MAX]; /* of the variables that settings.c knows */
    bool found;                              /* there is a configuration file */
    char path[1024];                         /* of it; "" where there can be none (no HOME) */
    char env_path[1024];                     /* of the variables' file that the configuration names */
    ah_buf
        models; /* the lines models.NAME as one JSON object, for ah_alias, ended by NUL; empty: none */
    ah_pairs file, env_file;
    char fault[800]; /* what is wrong with a file, and what to do */
} ah_settings;

/* Reads the files and sets the environment. False where a file cannot be read or is
 * faulty; `fault` says which and where. */
bool ah_settings_load(ah_settings *s, const ah_options *o);
void ah_settings_clear(ah_settings *s);

ah_log_level ah_settings_log(const ah_settings *s, const ah_options *o);

/* Each value with its origin; those of keys are masked. */
void ah_settings_show(const ah_settings *s, FILE *out, bool json);

#endif
