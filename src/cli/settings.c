/* Finds the file, and applies what the program returned, line by line. */
#include "cli/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROJECT "/agenthost.conf"

enum { PATH_ROOM = 4096 };

/* XDG Base Directory Specification: a relative path is ignored. */
static void find_file(ah_settings *s)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config == '/')
        snprintf(s->path, sizeof s->path, "%s/agenthost/config", config);
    else if (home && *home == '/')
        snprintf(s->path, sizeof s->path, "%s/.config/agenthost/config", home);
}

const char *ah_state_path(char room[AH_STATE_ROOM], const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = 0;

    if (state && *state == '/')
        n = snprintf(room, AH_STATE_ROOM, "%s/agenthost/%s", state, name);
    else if (home && *home == '/')
        n = snprintf(room, AH_STATE_ROOM, "%s/.local/state/agenthost/%s", home, name);
    return n > 0 && n < AH_STATE_ROOM ? room : NULL;
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

/* True if the working directory or one above it has a project's file, even one that is ignored;
 * also if the path is too long to check. */
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

bool ah_settings_there(const ah_settings *s)
{
    return is_there(s->path) || may_have_project();
}

static ah_log_level level_of(const char *name)
{
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    enum { LEVELS = sizeof levels / sizeof *levels };
    int i = 0;

    while (i < LEVELS - 1 && strcmp(name, levels[i]) != 0)
        i++;
    return (ah_log_level)i;
}

/* Sets the variable of NAME=VALUE. */
static bool put_variable(char *pair)
{
    char *equals = strchr(pair, '=');

    *equals = '\0';
    return setenv(pair, equals + 1, 1) == 0;
}

static bool take_line(ah_settings *s, const char *name, char *value)
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
    else if (strcmp(name, "line") == 0)
        s->line = value;
    else if (strcmp(name, "file") == 0)
        s->file = atoi(value);
    else if (strcmp(name, "word") == 0)
        s->word = atoi(value);
    s->json |= strcmp(name, "json") == 0;
    s->is_run |= strcmp(name, "script") == 0;
    s->is_apart |= strcmp(name, "apart") == 0;
    s->prints |= strcmp(name, "prints") == 0;
    s->again |= strcmp(name, "again") == 0;
    s->pages |= strcmp(name, "pages") == 0;
    return true;
}

/* Reads lines NAME or NAME VALUE; the last one may be followed by a text. */
bool ah_settings_take(ah_settings *s, const char *said)
{
    char *line = s->text = strdup(said), *end, *value;

    for (; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        value = line + strcspn(line, " ");
        if (strcmp(line, "fault") == 0)
            s->fault = end + 1;
        else if (strcmp(line, "show") == 0)
            s->show = end + 1;
        if (s->fault || s->show)
            return true;
        if (*value)
            *value++ = '\0';
        if (!take_line(s, line, value))
            return false;
    }
    return line != NULL;
}

void ah_settings_clear(ah_settings *s)
{
    free(s->text);
}
