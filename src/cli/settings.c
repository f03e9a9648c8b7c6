/* The configuration is read from one place, the user's own folder: never from the folder a
 * script or a shell happens to be in, which may be somebody else's. */
#include "cli/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/near.h"

enum { MAX_SHOW = 1 << 20 };

typedef struct setting_row {
    const char *name;
    const char *words; /* the values there are; NULL: any */
    const char *value; /* its default */
} setting_row;

static const setting_row rows[AH_SETTINGS] = {
    [AH_SET_MODEL] = {"model", NULL, NULL},
    [AH_SET_COLOR] = {"color", "auto always never", "auto"},
    [AH_SET_ENV_FILE] = {"env-file", NULL, NULL},
    [AH_SET_LOG] = {"log", "error warning info debug", "warning"},
};

/* What the library and the command look at in the environment. */
static const struct variable_row {
    const char *name;
    bool secret;
} variables[] = {
    {"AGENTHOST_MODEL", false},     {"OPENAI_API_KEY", true},      {"OPENAI_BASE_URL", false},
    {"OPENAI_ORG_ID", false},       {"OPENAI_PROJECT_ID", false},  {"ANTHROPIC_API_KEY", true},
    {"ANTHROPIC_AUTH_TOKEN", true}, {"ANTHROPIC_BASE_URL", false}, {"NO_COLOR", false},
};
enum { MODEL_VARIABLE, VARIABLES = sizeof variables / sizeof *variables };
_Static_assert((int)VARIABLES <= (int)AH_VARIABLES_MAX, "a place for each variable");

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

static int place_in(const char *words, const char *word)
{
    size_t n = strlen(word);
    int at = 0;

    for (const char *p = words; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL, at++)
        if (strcspn(p, " ") == n && memcmp(p, word, n) == 0)
            return at;
    return -1;
}

/* -- the configuration file ---------------------------------------------------------- */

/* XDG Base Directory Specification: a relative path counts as none. */
static void find_file(ah_settings *s)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config == '/')
        snprintf(s->path, sizeof s->path, "%s/agenthost/config", config);
    else if (home && *home == '/')
        snprintf(s->path, sizeof s->path, "%s/.config/agenthost/config", home);
}

static bool cannot_read(ah_settings *s, const char *what, const char *path, int why)
{
    const char *words = why == EFBIG    ? "it is larger than 1 MiB"
                        : why == EINVAL ? "it is no text (it holds NUL)"
                                        : strerror(why);

    snprintf(s->fault, sizeof s->fault, "cannot read the %s '%.300s': %s", what, path, words);
    return false;
}

static ah_setting_id find(const char *name)
{
    int i = 0;

    while (i < AH_SETTINGS && strcmp(name, rows[i].name) != 0)
        i++;
    return (ah_setting_id)i;
}

static bool unknown(ah_settings *s, const char *name)
{
    ah_near near = {.to = ah_slice_of(name)};
    char hint[64] = "";

    for (int i = 0; i < AH_SETTINGS; i++)
        ah_near_offer(&near, ah_slice_of(rows[i].name));
    ah_near_offer(&near, ah_slice_of("models.NAME"));
    if (near.best.p)
        snprintf(hint, sizeof hint, " (did you mean '%.*s'?)", AH_FMT(near.best));
    snprintf(s->fault, sizeof s->fault,
             "%.300s:%u: there is no such setting%s\nSee agenthost config --help.", s->path,
             s->file.line, hint);
    return false;
}

/* models.NAME = provider/model, or a JSON object of what is known of one. What it says is for the
 * library to judge, which knows models. */
static bool take_model(ah_settings *s, const char *name, const char *value)
{
    ah_buf *b = &s->models;

    if (*value == '{' &&
        ah_json_check(&ah_mem_libc, ah_slice_of(value), AH_JSON_MAX_DEPTH, NULL) != AH_OK) {
        snprintf(s->fault, sizeof s->fault, "%.300s:%u: what is said of the model is no JSON object",
                 s->path, s->file.line);
        return false;
    }
    ah_buf_str(b, b->len ? "," : "{");
    ah_json_put_string(b, ah_slice_of(name));
    ah_buf_char(b, ':');
    if (*value == '{')
        ah_buf_str(b, value);
    else
        ah_json_put_string(b, ah_slice_of(value));
    return ah_buf_ok(b) || cannot_read(s, "configuration", s->path, ENOMEM);
}

static bool take(ah_settings *s, const char *name, const char *value)
{
    static const char models[] = "models.";
    ah_setting_id id = find(name);

    if (strncmp(name, models, sizeof models - 1) == 0 && name[sizeof models - 1])
        return take_model(s, name + sizeof models - 1, value);
    if (id == AH_SETTINGS)
        return unknown(s, name);
    if (s->setting[id].value || (rows[id].words && place_in(rows[id].words, value) < 0)) {
        snprintf(s->fault, sizeof s->fault, "%.300s:%u: %s %s%s", s->path, s->file.line, name,
                 s->setting[id].value ? "is set twice" : "must be one of: ",
                 s->setting[id].value ? "" : rows[id].words);
        return false;
    }
    s->setting[id] = (ah_setting){value, AH_FROM_FILE, s->file.line};
    return true;
}

static bool load_file(ah_settings *s)
{
    const char *name, *value;
    ah_pairs_end end = AH_PAIRS_END;
    int why;

    if (!*s->path)
        return true;
    if (!ah_pairs_open(&s->file, s->path, &why))
        return why == ENOENT || why == ENOTDIR || cannot_read(s, "configuration", s->path, why);
    s->found = true;
    while ((end = ah_pairs_next(&s->file, &name, &value, s->fault, sizeof s->fault)) == AH_PAIR)
        if (!take(s, name, value))
            return false;
    if (s->models.len) /* a text of C's */
        ah_buf_add(&s->models, "}", 2);
    if (!ah_buf_ok(&s->models))
        return cannot_read(s, "configuration", s->path, ENOMEM);
    return end == AH_PAIRS_END;
}

/* -- flags and variables ------------------------------------------------------------------- */

static void take_flag(ah_settings *s, ah_setting_id id, const char *value)
{
    if (value)
        s->setting[id] = (ah_setting){.value = value, .from = AH_FROM_FLAG};
}

static void take_flags(ah_settings *s, const ah_options *o)
{
    take_flag(s, AH_SET_MODEL, o->model);
    take_flag(s, AH_SET_COLOR, o->color);
    take_flag(s, AH_SET_ENV_FILE, o->env_file);
    if (ah_options_given(o, AH_OPTION_QUIET) || ah_options_given(o, AH_OPTION_VERBOSE))
        take_flag(s, AH_SET_LOG,
                  o->log_level == AH_LOG_ERROR     ? "error"
                  : o->log_level == AH_LOG_WARNING ? "warning"
                  : o->log_level == AH_LOG_INFO    ? "info"
                                                   : "debug");
}

/* A path in the configuration: ~/ is HOME, a relative one begins where the file is. */
static const char *env_path(ah_settings *s)
{
    const ah_setting *set = &s->setting[AH_SET_ENV_FILE];
    const char *slash = strrchr(s->path, '/'), *home = getenv("HOME");

    if (set->from != AH_FROM_FILE || *set->value == '/')
        return set->value;
    if (strncmp(set->value, "~/", 2) == 0)
        snprintf(s->env_path, sizeof s->env_path, "%s%s", home ? home : "", set->value + 1);
    else
        snprintf(s->env_path, sizeof s->env_path, "%.*s/%s", (int)(slash - s->path), s->path,
                 set->value);
    return s->env_path;
}

static void note_origins(ah_settings *s, ah_origin_of from)
{
    for (int i = 0; i < VARIABLES; i++)
        if (s->variable[i] == AH_FROM_NOWHERE && getenv(variables[i].name))
            s->variable[i] = from;
}

/* What is set already stays, so that a variable in front of the command counts. */
static bool load_variables(ah_settings *s)
{
    const char *path, *name, *value;
    ah_pairs_end end;
    int why;

    if (!s->setting[AH_SET_ENV_FILE].value)
        return true;
    path = env_path(s);
    if (!ah_pairs_open(&s->env_file, path, &why))
        return cannot_read(s, "variables' file", path, why);
    while ((end = ah_pairs_next(&s->env_file, &name, &value, s->fault, sizeof s->fault)) == AH_PAIR) {
        size_t plain = strcspn(name, AH_PAIRS_MORE);

        if (name[plain]) {
            snprintf(s->fault, sizeof s->fault, "%.300s:%u: a variable's name has no '%c'", path,
                     s->env_file.line, name[plain]);
            return false;
        }
        if (setenv(name, value, 0) != 0)
            return cannot_read(s, "variables' file", path, errno);
    }
    return end == AH_PAIRS_END;
}

/* The model of the environment stands before that of the configuration, which the library
 * is told in the same way: as AGENTHOST_MODEL. */
static bool settle_model(ah_settings *s)
{
    ah_setting *model = &s->setting[AH_SET_MODEL];

    if (model->from == AH_FROM_FLAG)
        return true;
    if (is_set("AGENTHOST_MODEL"))
        *model = (ah_setting){.value = getenv("AGENTHOST_MODEL"), .from = s->variable[MODEL_VARIABLE]};
    else if (model->value && setenv("AGENTHOST_MODEL", model->value, 1) != 0)
        return cannot_read(s, "configuration", s->path, errno);
    return true;
}

bool ah_settings_load(ah_settings *s, const ah_options *o)
{
    *s = (ah_settings){.found = false};
    ah_buf_init(&s->models, &ah_mem_libc, MAX_SHOW);
    find_file(s);
    if (!load_file(s))
        return false;
    take_flags(s, o);
    note_origins(s, AH_FROM_ENVIRONMENT);
    if (!load_variables(s))
        return false;
    note_origins(s, AH_FROM_ENV_FILE);
    return settle_model(s);
}

void ah_settings_clear(ah_settings *s)
{
    ah_buf_clear(&s->models);
    ah_pairs_close(&s->file);
    ah_pairs_close(&s->env_file);
}

ah_log_level ah_settings_log(const ah_settings *s, const ah_options *o)
{
    const ah_setting *set = &s->setting[AH_SET_LOG];
    int level = set->from == AH_FROM_FILE ? place_in("debug info warning error", set->value) : -1;

    return level < 0 ? o->log_level : (ah_log_level)level;
}

/* -- showing -------------------------------------------------------------------------------- */

static const char *origin_name(ah_origin_of from)
{
    switch (from) {
    case AH_FROM_FLAG:
        return "flag";
    case AH_FROM_ENVIRONMENT:
        return "environment";
    case AH_FROM_ENV_FILE:
        return "env-file";
    case AH_FROM_FILE:
        return "file";
    case AH_FROM_NOWHERE:
        break;
    }
    return "default";
}

/* Text of anybody's as valid UTF-8 without control characters; what an address holds
 * between "//" and "@" is a password's place. */
static void put_clean(ah_buf *b, const char *value, bool secret)
{
    const char *at = strstr(value, "://"), *end = at ? strchr(at + 3, '@') : NULL;
    size_t from = b->len;

    if (secret)
        ah_buf_str(b, "[secret]");
    if (secret)
        return;
    if (end && !memchr(at + 3, '/', (size_t)(end - at - 3))) {
        ah_utf8_repair((ah_slice){value, (size_t)(at + 3 - value)}, b);
        ah_buf_str(b, "[secret]");
        value = end;
    }
    ah_utf8_repair(ah_slice_of(value), b);

    for (size_t i = from; i < b->len; i++)
        if ((unsigned char)b->data[i] < 0x20 || b->data[i] == 0x7f)
            b->data[i] = '?';
}

typedef struct shown {
    const char *name, *value; /* value NULL: none */
    bool secret;
    ah_origin_of from;
    unsigned line;
} shown;

static void show_line(const shown *v, ah_buf *b)
{
    size_t from;

    ah_buf_fmt(b, "%-22s", v->name);
    from = b->len;
    if (v->value)
        put_clean(b, v->value, v->secret);
    else
        ah_buf_char(b, '-');
    do
        ah_buf_char(b, ' ');
    while (ah_buf_ok(b) && b->len - from < 27);
    ah_buf_str(b, origin_name(v->from));
    if (v->line)
        ah_buf_fmt(b, ", line %u", v->line);
    ah_buf_char(b, '\n');
}

static void show_member(const shown *v, ah_buf *b, ah_buf *scratch)
{
    ah_buf_fmt(b, "\"%s\":{\"from\":\"%s\",\"value\":", v->name, origin_name(v->from));
    ah_buf_reset(scratch, 0);
    if (v->value)
        put_clean(scratch, v->value, v->secret);
    if (v->value)
        ah_json_put_string(b, ah_buf_slice(scratch));
    else
        ah_buf_str(b, "null");
    if (v->line)
        ah_buf_fmt(b, ",\"line\":%u", v->line);
    ah_buf_char(b, '}');
}

static shown setting_at(const ah_settings *s, int i)
{
    const ah_setting *set = &s->setting[i];

    return (shown){rows[i].name, set->value ? set->value : rows[i].value, false, set->from, set->line};
}

/* AGENTHOST_MODEL as it was found, not as settle_model left it. */
static shown variable_at(const ah_settings *s, int i)
{
    bool was = s->variable[i] != AH_FROM_NOWHERE;

    return (shown){variables[i].name, was ? getenv(variables[i].name) : NULL, variables[i].secret,
                   s->variable[i], 0};
}

static void show_text(const ah_settings *s, ah_buf *b)
{
    for (int i = 0; i < AH_SETTINGS + VARIABLES; i++) {
        shown v = i < AH_SETTINGS ? setting_at(s, i) : variable_at(s, i - AH_SETTINGS);

        show_line(&v, b);
    }
    if (s->models.len)
        ah_buf_str(b, "models.NAME            as agenthost models tells  file\n");
    ah_buf_fmt(b, "\nconfiguration file: %s%s\n", *s->path ? s->path : "none (HOME is not set)",
               s->found || !*s->path ? "" : " (not there)");
    ah_buf_str(b, "A script's own model wins over environment and configuration, a flag over all.\n");
}

static void show_json(const ah_settings *s, ah_buf *b, ah_buf *scratch)
{
    ah_buf_str(b, "{\"configuration\":{\"found\":");
    ah_buf_str(b, s->found ? "true" : "false");
    ah_buf_str(b, ",\"path\":");
    ah_utf8_repair(ah_slice_of(s->path), scratch);
    ah_json_put_string(b, ah_buf_slice(scratch));
    ah_buf_str(b, "},\"models\":");
    ah_buf_str(b, s->models.len ? s->models.data : "{}");
    ah_buf_str(b, ",\"settings\":{");
    for (int i = 0; i < AH_SETTINGS; i++) {
        shown v = setting_at(s, i);

        ah_buf_str(b, i ? "," : "");
        show_member(&v, b, scratch);
    }
    ah_buf_str(b, "},\"variables\":{");
    for (int i = 0; i < VARIABLES; i++) {
        shown v = variable_at(s, i);

        ah_buf_str(b, i ? "," : "");
        show_member(&v, b, scratch);
    }
    ah_buf_str(b, "}}\n");
}

void ah_settings_show(const ah_settings *s, FILE *out, bool json)
{
    ah_buf b, scratch;

    ah_buf_init(&b, &ah_mem_libc, MAX_SHOW);
    ah_buf_init(&scratch, &ah_mem_libc, MAX_SHOW);
    if (json)
        show_json(s, &b, &scratch);
    else
        show_text(s, &b);
    fwrite(b.data, 1, b.len, out);
    ah_buf_clear(&scratch);
    ah_buf_clear(&b);
}
