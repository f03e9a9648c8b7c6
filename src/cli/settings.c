/* Finds the file, asks the program, and does what it says, line by line. */
#include "cli/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/programs.h"

#define PROJECT "/agenthost.conf"

enum { MAX_FLAGS = 8, LEVELS = 4, PATH_ROOM = 4096 };

static const char *const levels[LEVELS] = {"debug", "info", "warning", "error"};

/* XDG Base Directory Specification: a relative path counts as none. */
static void find_file(ah_settings *s)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config == '/')
        snprintf(s->path, sizeof s->path, "%s/agenthost/config", config);
    else if (home && *home == '/')
        snprintf(s->path, sizeof s->path, "%s/.config/agenthost/config", home);
}

void ah_settings_init(ah_settings *s, const ah_options *o)
{
    *s = (ah_settings){.color = o->color, .log = o->log_level};
    find_file(s);
}

static bool is_there(const char *path)
{
    struct stat st;

    return *path && (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

/* Is there a project's file above us, whether or not it counts? */
static bool may_have_project(void)
{
    char path[PATH_ROOM], *slash;
    bool found = false;

    if (!getcwd(path, sizeof path - sizeof PROJECT))
        return errno == ERANGE;
    while (!found && (slash = strrchr(path, '/'))) {
        size_t n = strlen(path);

        memcpy(path + n, PROJECT, sizeof PROJECT);
        found = is_there(path);
        *slash = '\0';
    }
    return found;
}

bool ah_settings_needed(const ah_settings *s, const ah_options *o)
{
    if (o->env_file || o->command == AH_COMMAND_CONFIG)
        return true;
    return is_there(s->path) || may_have_project();
}

static int put_flag(const char **argv, int n, const char *name, const char *value)
{
    if (!value)
        return n;
    argv[n] = name;
    argv[n + 1] = value;
    return n + 2;
}

static int put_flags(const char **argv, const ah_options *o)
{
    bool said = ah_options_given(o, AH_OPTION_QUIET) || ah_options_given(o, AH_OPTION_VERBOSE);
    int n = put_flag(argv, 0, "model", o->model);

    n = put_flag(argv, n, "color", o->color);
    n = put_flag(argv, n, "env-file", o->env_file);
    return put_flag(argv, n, "log", said ? levels[o->log_level] : NULL);
}

static ah_log_level level_of(const char *name)
{
    int i = 0;

    while (i < LEVELS - 1 && strcmp(name, levels[i]) != 0)
        i++;
    return (ah_log_level)i;
}

/* NAME=VALUE */
static bool put_variable(char *pair)
{
    char *equals = strchr(pair, '=');

    *equals = '\0';
    return setenv(pair, equals + 1, 1) == 0;
}

static bool take_line(ah_settings *s, char *name, char *value)
{
    if (strcmp(name, "put") == 0)
        return put_variable(value);
    if (strcmp(name, "log") == 0)
        s->log = level_of(value);
    else if (strcmp(name, "color") == 0)
        s->color = value;
    else if (strcmp(name, "models") == 0)
        s->models = value;
    else if (strcmp(name, "defaults") == 0)
        s->defaults = value;
    else if (strcmp(name, "warn") == 0)
        s->warning = value;
    return true;
}

/* The first line is "ok" or "fault". */
static ah_status take(ah_settings *s)
{
    char *line = strchr(s->text, '\n') + 1, *end, *value;

    if (strncmp(s->text, "fault", 5) == 0) {
        s->fault = line;
        return AH_OK;
    }
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (strcmp(line, "show") == 0) {
            s->show = end + 1;
            return AH_OK;
        }
        value = strchr(line, ' ');
        *value = '\0';
        if (!take_line(s, line, value + 1))
            return AH_NOMEM;
    }
    return AH_OK;
}

ah_status ah_settings_load(ah_settings *s, const ah_options *o, ah_host *programs)
{
    bool show = o->command == AH_COMMAND_CONFIG;
    const char *argv[2 + MAX_FLAGS] = {s->path, !show                                 ? ""
                                                : ah_options_given(o, AH_OPTION_JSON) ? "json"
                                                                                      : "text"};
    int n = put_flags(argv + 2, o);
    ah_status st = ah_program_call(programs, "settings", "", n + 2, argv);

    if (st != AH_OK)
        return st;
    s->text = strdup(ah_returned(programs));
    return s->text ? take(s) : AH_NOMEM;
}

void ah_settings_clear(ah_settings *s)
{
    free(s->text);
}
