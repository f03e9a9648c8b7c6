/* Parsing, from the two tables below. The first word that is no option is the command
 * where it is the name of one, else the script; behind "--" it is the script whatever its
 * name. Letters without a value can be joined; a value follows "=" (long options), or is
 * the rest of the word (letters), or the next word. */
#include "cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bytes.h"

#define TRY "agenthost -e 'print(ah.run { model = \"demo/echo\", \"Hello\" })'"

enum {
    SHOWN_MAX = 60,
    MAX_NAMES = 4096
}; /* bytes of an argument that a message repeats; of all names */

/* Which commands take an option. */
#define RUN     (1u << AH_COMMAND_RUN)
#define INSPECT (1u << AH_COMMAND_TOOLS | 1u << AH_COMMAND_CHECK)
#define MOCK    (1u << AH_COMMAND_MOCK)
#define MODELS  (1u << AH_COMMAND_MODELS)
#define CONFIG  (1u << AH_COMMAND_CONFIG)
#define TRUST   (1u << AH_COMMAND_TRUST)
#define ALL     ((1u << AH_COMMANDS) - 1)

const ah_command_row ah_command_table[AH_COMMANDS] = {
    [AH_COMMAND_RUN] = {"", "run the script (- reads it from standard input)", false},
    [AH_COMMAND_TOOLS] = {"tools", "show the tools that a model would see, and run none", false},
    [AH_COMMAND_CHECK] = {"check", "find faults in a script without asking a model", false},
    [AH_COMMAND_MOCK] = {"mock", "be a model server that says what a script tells it to", false},
    [AH_COMMAND_MODELS] = {"models", "show who has a key, and what the models can do", false},
    [AH_COMMAND_CONFIG] = {"config", "show each setting and where it comes from", false},
    [AH_COMMAND_TRUST] = {"trust", "let all that a project's settings say hold", false},
    [AH_COMMAND_COMPLETION] = {"completion", "print what completes words in that shell", false},
};

const ah_option_row ah_option_table[AH_OPTIONS] = {
    [AH_OPTION_EVAL] = {'e', "eval", "CODE", NULL, RUN | MODELS,
                        "run CODE, in which `ah` is the library"},
    [AH_OPTION_MODEL] = {0, "model", "NAME", NULL, RUN | INSPECT | CONFIG,
                         "use this model (provider/model), whatever the script names"},
    [AH_OPTION_ENV_FILE] = {0, "env-file", "FILE", NULL, RUN | INSPECT | MODELS | CONFIG,
                            "set variables from lines NAME=VALUE where they are not set"},
    [AH_OPTION_JSON] = {0, "json", NULL, NULL, RUN | INSPECT | MODELS | CONFIG | TRUST,
                        "print one JSON object: reply or error, tools, faults"},
    [AH_OPTION_JSONL] = {0, "jsonl", NULL, NULL, RUN,
                         "print each event as a line of JSON, as it happens"},
    [AH_OPTION_RECORD] = {0, "record", "FILE", NULL, RUN,
                          "keep what providers are sent and answer, without keys"},
    [AH_OPTION_REPLAY] = {0, "replay", "FILE", NULL, RUN,
                          "take the answers from such a file: no network, no key"},
    [AH_OPTION_SHOW] = {0, "show", NULL, NULL, CONFIG, "show the settings (as without it)"},
    [AH_OPTION_LIST] = {0, "list", NULL, NULL, TRUST, "list the folders that are trusted"},
    [AH_OPTION_REMOVE] = {0, "remove", NULL, NULL, TRUST, "trust the folder no more"},
    [AH_OPTION_YES] = {'y', "yes", NULL, NULL, TRUST, "do not ask"},
    [AH_OPTION_PORT] = {0, "port", "N", NULL, MOCK, "listen on this port (0, as without it: any)"},
    [AH_OPTION_LISTEN] = {0, "listen", "ADDR", NULL, MOCK,
                          "listen on this address; others can reach it then"},
    [AH_OPTION_FORMAT] = {0, "format", "NAME", "all openai responses anthropic gemini ollama", MOCK,
                          "speak as one provider only, such as anthropic"},
    [AH_OPTION_STRICT] = {0, "strict", NULL, NULL, MOCK,
                          "refuse what strict providers refuse (as without it)"},
    [AH_OPTION_LENIENT] = {0, "lenient", NULL, NULL, MOCK, "refuse only what cannot be read"},
    [AH_OPTION_ONCE] = {0, "once", "N", NULL, MOCK, "end after N requests"},
    [AH_OPTION_LOG] = {0, "log", "FILE", NULL, MOCK, "append each request to FILE, as a line of JSON"},
    [AH_OPTION_COLOR] = {0, "color", "WHEN", "auto always never", ALL,
                         "colour messages: auto, always or never"},
    [AH_OPTION_QUIET] = {'q', "quiet", NULL, NULL, ALL, "say errors only, show no progress"},
    [AH_OPTION_VERBOSE] = {'v', "verbose", NULL, NULL, ALL,
                           "say more: -v a line for each call, -vv every detail"},
    [AH_OPTION_HELP] = {'h', "help", NULL, NULL, ALL,
                        "show this text; of a command where one stands before it"},
    [AH_OPTION_VERSION] = {'V', "version", NULL, NULL, RUN,
                           "show the version; with -v libraries and features too"},
    [AH_OPTION_END] = {0, "", NULL, NULL, ALL, "end the options: the next word is the script"},
};

/* What is still to be read of the command line. */
typedef struct words {
    int left;
    char **at;
} words;

static char *take(words *w)
{
    if (w->left <= 0)
        return NULL;
    w->left--;
    return *w->at++;
}

/* For "%.*s": how much of an argument a message repeats, never a part of a character. */
static int shown(const char *p, size_t n)
{
    size_t most = n < SHOWN_MAX ? n : SHOWN_MAX;

    while (most && most < n && ((unsigned char)p[most] & 0xc0) == 0x80)
        most--;
    return (int)most;
}

/* "agenthost tools --help" for the command at hand. */
static bool fail(ah_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fail(ah_options *o, const char *fmt, ...)
{
    const char *command = ah_command_table[o->command].name;
    size_t n;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(o->fault, sizeof o->fault, fmt, ap);
    va_end(ap);
    n = strlen(o->fault);
    snprintf(o->fault + n, sizeof o->fault - n, "\nSee agenthost %s%s--help.", command,
             *command ? " " : "");
    return false;
}

/* -- looking up ------------------------------------------------------------------------ */

/* Letters and names of all options, a line each. */
static void list_options(ah_bytes *out)
{
    for (int i = 0; i < AH_OPTIONS; i++) {
        if (ah_option_table[i].letter)
            ah_bytes_fmt(out, "%c\n", ah_option_table[i].letter);
        ah_bytes_fmt(out, "%s\n", ah_option_table[i].name);
    }
    ah_bytes_char(out, '\0');
}

static const char *near_option(const ah_program_door *programs, const char *word)
{
    const char *near = NULL;
    ah_bytes names;

    ah_bytes_init(&names, MAX_NAMES);
    list_options(&names);
    if (ah_bytes_ok(&names))
        near = ah_program_near(programs, word, names.data);
    ah_bytes_clear(&names);
    return near;
}

static const char *near_command(const ah_program_door *programs, const char *word)
{
    const char *near = NULL;
    ah_bytes names;

    ah_bytes_init(&names, MAX_NAMES);
    for (int i = AH_COMMAND_RUN + 1; i < AH_COMMANDS; i++)
        ah_bytes_fmt(&names, "%s\n", ah_command_table[i].name);
    ah_bytes_char(&names, '\0');
    if (ah_bytes_ok(&names))
        near = ah_program_near(programs, word, names.data);
    ah_bytes_clear(&names);
    return near;
}

bool ah_options_near(const char *word, const ah_program_door *programs, char *out, size_t size)
{
    const char *near = near_command(programs, word);

    if (near) {
        snprintf(out, size, "agenthost %s", near);
        return true;
    }
    near = near_option(programs, word);
    if (!near || !near[1])
        return false;
    snprintf(out, size, "agenthost --%s", near);
    return true;
}

/* `name` is the word without its dashes and its "=value". */
static bool unknown(ah_options *o, const char *word, const char *name, size_t n)
{
    char asked[SHOWN_MAX + 1];
    const char *near;
    int found = shown(word, (size_t)(name - word) + n);

    snprintf(asked, sizeof asked, "%.*s", shown(name, n), name);
    if (!(near = near_option(o->programs, asked)))
        return fail(o, "unknown option '%.*s'", found, word);
    return fail(o, "unknown option '%.*s' (did you mean %s%s?)", found, word, near[1] ? "--" : "-",
                near);
}

/* AH_OPTIONS where there is none. */
static ah_option_id by_name(const char *name, size_t n)
{
    int i = 0;

    while (i < AH_OPTIONS &&
           (strlen(ah_option_table[i].name) != n || memcmp(name, ah_option_table[i].name, n) != 0))
        i++;
    return (ah_option_id)i;
}

static ah_option_id by_letter(char letter)
{
    int i = 0;

    while (i < AH_OPTIONS && ah_option_table[i].letter != letter)
        i++;
    return (ah_option_id)i;
}

/* AH_COMMAND_RUN where the word is no command. */
static ah_command command_of(const char *word)
{
    int i = AH_COMMANDS - 1;

    while (i > AH_COMMAND_RUN && strcmp(word, ah_command_table[i].name) != 0)
        i--;
    return (ah_command)i;
}

/* -- options ---------------------------------------------------------------------------- */

/* -v counts up from where it is, so that -q -v is info, as -v is. */
static ah_log_level louder(ah_log_level level)
{
    return level > AH_LOG_INFO ? AH_LOG_INFO : AH_LOG_DEBUG;
}

/* Digits only; `most` bounds it. */
static bool is_number(const char *value, long most)
{
    size_t n = strspn(value, "0123456789");

    return n && n < 10 && !value[n] && atol(value) <= most;
}

/* The options of the mock; false where the id is none of them. */
static bool apply_mock(ah_options *o, ah_option_id id, const char *value)
{
    if (id == AH_OPTION_PORT)
        o->port = atoi(value);
    else if (id == AH_OPTION_LISTEN)
        o->listen = value;
    else if (id == AH_OPTION_FORMAT)
        o->format = value;
    else if (id == AH_OPTION_STRICT || id == AH_OPTION_LENIENT)
        o->lenient = id == AH_OPTION_LENIENT;
    else if (id == AH_OPTION_ONCE)
        o->once = (size_t)atol(value);
    else if (id == AH_OPTION_LOG)
        o->log = value;
    else
        return false;
    return true;
}

static void apply(ah_options *o, ah_option_id id, const char *value)
{
    if (apply_mock(o, id, value))
        return;
    switch (id) {
    case AH_OPTION_EVAL:
        o->eval = value;
        break;
    case AH_OPTION_MODEL:
        o->model = value;
        break;
    case AH_OPTION_ENV_FILE:
        o->env_file = value;
        break;
    case AH_OPTION_RECORD:
        o->record = value;
        break;
    case AH_OPTION_REPLAY:
        o->replay = value;
        break;
    case AH_OPTION_COLOR:
        o->color = value;
        break;
    case AH_OPTION_QUIET:
        o->log_level = AH_LOG_ERROR;
        break;
    case AH_OPTION_VERBOSE:
        o->log_level = louder(o->log_level);
        break;
    case AH_OPTION_HELP: /* ends the options: help is given whatever stands behind it */
    case AH_OPTION_END:
        o->ended = true;
        break;
    case AH_OPTION_JSON:
    case AH_OPTION_JSONL:
    case AH_OPTION_SHOW:
    case AH_OPTION_LIST:
    case AH_OPTION_REMOVE:
    case AH_OPTION_YES:
    case AH_OPTION_PORT:
    case AH_OPTION_LISTEN:
    case AH_OPTION_FORMAT:
    case AH_OPTION_STRICT:
    case AH_OPTION_LENIENT:
    case AH_OPTION_ONCE:
    case AH_OPTION_LOG:
    case AH_OPTION_VERSION:
    case AH_OPTIONS:
        break;
    }
}

/* Is the value one of the option's words, where it has any? */
static bool is_word(const char *list, const char *value)
{
    size_t n = strlen(value);

    for (const char *p = list; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL)
        if (strcspn(p, " ") == n && memcmp(p, value, n) == 0)
            return true;
    return !list;
}

static bool wants(ah_options *o, const ah_option_row *opt, const char *found)
{
    const char *what = opt->words ? "of these" : opt->value;

    if (!found)
        return fail(o, "option --%s needs a %s", opt->name, opt->value);
    return fail(o, "option --%s needs %s %s%s%s, found '%.*s'", opt->name, opt->words ? "one" : "a",
                what, opt->words ? ": " : "", opt->words ? opt->words : "", shown(found, strlen(found)),
                found);
}

/* A second file or script must not be dropped in silence; of other values the last counts. */
static bool once(ah_option_id id)
{
    return id == AH_OPTION_EVAL || id == AH_OPTION_ENV_FILE || id == AH_OPTION_RECORD ||
           id == AH_OPTION_REPLAY;
}

static long most_of(ah_option_id id)
{
    return id == AH_OPTION_PORT ? 65535 : 999999999;
}

static bool set(ah_options *o, words *w, ah_option_id id, const char *value)
{
    const ah_option_row *opt = &ah_option_table[id];

    if (opt->value && !value)
        value = take(w);
    if (opt->value && !value)
        return wants(o, opt, value);
    if (opt->value && id != AH_OPTION_EVAL && (!*value || *value == '-'))
        return wants(o, opt, value);
    if (opt->words && !is_word(opt->words, value))
        return wants(o, opt, value);
    if (opt->value && strcmp(opt->value, "N") == 0 && !is_number(value, most_of(id)))
        return fail(o, "option --%s needs a number from 0 to %ld, found '%.*s'", opt->name, most_of(id),
                    shown(value, strlen(value)), value);
    if (ah_options_given(o, id) && once(id))
        return fail(o, "option --%s can be given once", opt->name);
    o->given |= 1u << id;
    apply(o, id, value);
    return true;
}

static bool long_option(ah_options *o, words *w, const char *word)
{
    size_t n = strcspn(word + 2, "=");
    ah_option_id id = by_name(word + 2, n);
    const char *value = word[2 + n] ? word + 2 + n + 1 : NULL;

    if (id == AH_OPTIONS)
        return unknown(o, word, word + 2, n);
    if (value && !ah_option_table[id].value)
        return fail(o, "option --%s takes no value, found '%.*s'", ah_option_table[id].name,
                    shown(value, strlen(value)), value);
    return set(o, w, id, value);
}

/* -v, -vv, -qh, -e CODE, -eCODE */
static bool letters(ah_options *o, words *w, const char *word)
{
    for (const char *p = word + 1; *p && !o->ended; p++) {
        ah_option_id id = by_letter(*p);

        if (id == AH_OPTIONS)
            return unknown(o, word, word + 1, strlen(word + 1));
        if (ah_option_table[id].value)
            return set(o, w, id, p[1] ? p + 1 : NULL);
        set(o, w, id, NULL);
    }
    return true;
}

static bool read_options(ah_options *o, words *w)
{
    while (!o->ended && w->left > 0 && w->at[0][0] == '-' && w->at[0][1]) {
        const char *word = take(w);

        if (!(word[1] == '-' ? long_option(o, w, word) : letters(o, w, word)))
            return false;
    }
    return true;
}

/* `agenthost help [command]` and `agenthost version` are what people type first. False where the word
 * is neither; else it, and the command, are taken. */
static bool take_word(ah_options *o, words *w)
{
    ah_option_id id = strcmp(w->at[0], "help") == 0      ? AH_OPTION_HELP
                      : strcmp(w->at[0], "version") == 0 ? AH_OPTION_VERSION
                                                         : AH_OPTIONS;

    if (id == AH_OPTIONS)
        return false;
    take(w);
    set(o, w, id, NULL);
    if (id != AH_OPTION_HELP || w->left <= 0)
        return true;
    o->command = command_of(w->at[0]);
    if (o->command == AH_COMMAND_RUN)
        fail(o, "there is no command '%.*s'", shown(w->at[0], strlen(w->at[0])), w->at[0]);
    return true;
}

/* -- the whole --------------------------------------------------------------------------- */

static bool check_operand(ah_options *o)
{
    const ah_command c = o->command;

    if (c == AH_COMMAND_RUN && !o->script && !o->eval) {
        snprintf(o->fault, sizeof o->fault, "no script given\nTry:  " TRY "\nHelp: agenthost --help");
        return false;
    }
    if ((c == AH_COMMAND_TOOLS || c == AH_COMMAND_CHECK || c == AH_COMMAND_MOCK) && !o->script)
        return fail(o, "no script given");
    if (c == AH_COMMAND_MODELS && o->argc)
        return fail(o, "agenthost models takes one model, found '%.*s' besides",
                    shown(o->argv[0], strlen(o->argv[0])), o->argv[0]);
    if (c == AH_COMMAND_TRUST && o->argc)
        return fail(o, "agenthost trust takes one folder, found '%.*s' besides",
                    shown(o->argv[0], strlen(o->argv[0])), o->argv[0]);
    if (c == AH_COMMAND_CONFIG && o->script)
        return fail(o, "agenthost config takes no operand, found '%.*s'",
                    shown(o->script, strlen(o->script)), o->script);
    if (c == AH_COMMAND_COMPLETION && !(o->script && is_word("bash zsh fish", o->script)))
        return fail(o, "agenthost completion needs one of these shells: bash zsh fish");
    return true;
}

static bool check(ah_options *o)
{
    for (int id = 0; id < AH_OPTIONS; id++)
        if (ah_options_given(o, (ah_option_id)id) && !ah_command_takes(o->command, (ah_option_id)id))
            return fail(o, "option --%s is not for agenthost %s", ah_option_table[id].name,
                        ah_command_table[o->command].name);
    if (ah_options_given(o, AH_OPTION_JSON) && ah_options_given(o, AH_OPTION_JSONL))
        return fail(o, "--json and --jsonl: give one of them");
    if (o->record && o->replay)
        return fail(o, "--record and --replay: give one of them");
    if (ah_options_given(o, AH_OPTION_VERSION))
        return true;
    return check_operand(o);
}

bool ah_options_parse(ah_options *o, int argc, char **argv, const ah_program_door *programs)
{
    words w = {argc, argv};

    *o = (ah_options){.log_level = AH_LOG_WARNING, .programs = programs};
    take(&w); /* our own name */
    if (!read_options(o, &w))
        return false;
    if (!o->eval && w.left > 0 && !ah_options_given(o, AH_OPTION_END) && take_word(o, &w)) {
        if (*o->fault || !read_options(o, &w))
            return false;
    } else if (!o->eval && w.left > 0 && !ah_options_given(o, AH_OPTION_END)) {
        o->command = command_of(w.at[0]);
    }
    if (o->command != AH_COMMAND_RUN && !ah_options_given(o, AH_OPTION_HELP)) {
        take(&w);
        if (!read_options(o, &w))
            return false;
    }
    if (ah_options_given(o, AH_OPTION_HELP))
        return true;
    if (!o->eval || o->command != AH_COMMAND_RUN)
        o->script = take(&w);
    o->argc = w.left;
    o->argv = w.at;
    return check(o);
}

/* -- for the programs in Lua --------------------------------------------------------------- */

/* "run tools" */
static void name_takers(ah_option_id id, char *out, size_t size)
{
    size_t n = 0;

    for (int i = 0; i < AH_COMMANDS && n < size; i++)
        if (ah_command_takes((ah_command)i, id))
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "",
                                  i == AH_COMMAND_RUN ? "run" : ah_command_table[i].name);
}

void ah_options_tell(ah_told *out)
{
    const char **at = out->word;

    *out = (ah_told){.word = {NULL}};
    snprintf(out->commands, sizeof out->commands, "%d", AH_COMMANDS);
    *at++ = out->commands;
    for (int i = 0; i < AH_COMMANDS; i++) {
        *at++ = ah_command_table[i].name;
        *at++ = ah_command_table[i].help;
    }
    for (int i = 0; i < AH_OPTIONS; i++) {
        const ah_option_row *opt = &ah_option_table[i];

        out->letter[i][0] = opt->letter;
        name_takers((ah_option_id)i, out->takers[i], sizeof out->takers[i]);
        *at++ = out->letter[i];
        *at++ = opt->name;
        *at++ = opt->value ? opt->value : "";
        *at++ = opt->words ? opt->words : "";
        *at++ = out->takers[i];
        *at++ = opt->help;
    }
}
