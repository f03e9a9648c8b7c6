/* Letters without a value can be joined. A value follows "=" (names), or is the rest of the word
 * (letters), or the next word. The program uses the same rules. */
#include "cli/options.h"

#include <string.h>

/* `any`: the value may be empty, or begin with a dash. `once`: a second one is an error, since a
 * file or script must not be dropped silently; of other values the last counts. `common`: every
 * command takes it. */
const ah_option_row ah_option_table[AH_OPTIONS] = {
    [AH_OPTION_EVAL] = {'e', "eval", "CODE", NULL, "any once",
                        "run CODE, in which `ah` is the library"},
    [AH_OPTION_INTERACTIVE] = {'i', "interactive", NULL, NULL, "",
                               "then read Lua code, and print what it returns"},
    [AH_OPTION_WATCH] = {'w', "watch", NULL, NULL, "",
                         "run again whenever a Lua file of the project changes"},
    [AH_OPTION_MODEL] = {'m', "model", "NAME", NULL, "",
                         "use this model (provider/model), whatever the script names"},
    [AH_OPTION_ENV_FILE] = {0, "env-file", "FILE", NULL, "once",
                            "set variables from lines NAME=VALUE, unless they are set"},
    [AH_OPTION_STORE] = {0, "store", "FILE", NULL, "once",
                         "keep conversations that have an id in this file"},
    [AH_OPTION_JSON] = {0, "json", NULL, NULL, "",
                        "print one JSON object, such as the reply or the error"},
    [AH_OPTION_JSONL] = {0, "jsonl", NULL, NULL, "",
                         "print each event as a line of JSON, as it happens"},
    [AH_OPTION_RECORD] = {0, "record", "FILE", NULL, "once",
                          "save requests and responses of providers, without keys"},
    [AH_OPTION_REPLAY] = {0, "replay", "FILE", NULL, "once",
                          "take the responses from such a file: no network, no key"},
    [AH_OPTION_COLOR] = {0, "color", "WHEN", "auto always never", "common",
                         "colour messages: auto, always or never"},
    [AH_OPTION_QUIET] = {'q', "quiet", NULL, NULL, "common", "print errors only, no progress"},
    [AH_OPTION_VERBOSE] = {'v', "verbose", NULL, NULL, "common",
                           "print more: -v a line for each call, -vv every detail"},
    [AH_OPTION_HELP] = {'h', "help", NULL, NULL, "common",
                        "show this text, or the help of the command before it"},
    [AH_OPTION_VERSION] = {'V', "version", NULL, NULL, "",
                           "show the version; with -v also libraries and features"},
    [AH_OPTION_END] = {0, "", NULL, NULL, "common", "end the options: the next word is the script"},
};

/* The unread words of the command line. */
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

/* -- options ---------------------------------------------------------------------------- */

/* Returns AH_OPTIONS if no option has the name. */
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

/* -v increases the current level, so that -q -v is info, like -v. */
static ah_log_level louder(ah_log_level level)
{
    return level > AH_LOG_INFO ? AH_LOG_INFO : AH_LOG_DEBUG;
}

static void apply(ah_options *o, ah_option_id id, const char *value)
{
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
    case AH_OPTION_STORE:
        o->store = value;
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
    case AH_OPTION_HELP:
    case AH_OPTION_END:
        o->ended = true;
        break;
    case AH_OPTION_INTERACTIVE:
    case AH_OPTION_WATCH:
    case AH_OPTION_JSON:
    case AH_OPTION_JSONL:
    case AH_OPTION_VERSION:
    case AH_OPTIONS:
        break;
    }
}

static bool is_word(const char *list, const char *value)
{
    size_t n = strlen(value);

    for (const char *p = list; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL)
        if (strcspn(p, " ") == n && memcmp(p, value, n) == 0)
            return true;
    return false;
}

static bool fits(const ah_option_row *opt, const char *value)
{
    if (!opt->value || !value)
        return !opt->value && !value;
    if (!strstr(opt->traits, "any") && (!*value || *value == '-'))
        return false;
    return !opt->words || is_word(opt->words, value);
}

/* False if the option is unknown or invalid. */
static bool set(ah_options *o, words *w, ah_option_id id, const char *value)
{
    const ah_option_row *opt = &ah_option_table[id];

    if (id == AH_OPTIONS)
        return false;
    if (opt->value && !value)
        value = take(w);
    if (!fits(opt, value) || (ah_options_given(o, id) && strstr(opt->traits, "once")))
        return false;
    o->given |= 1u << id;
    apply(o, id, value);
    return true;
}

static bool long_option(ah_options *o, words *w, const char *word)
{
    size_t n = strcspn(word + 2, "=");

    return set(o, w, by_name(word + 2, n), word[2 + n] ? word + 2 + n + 1 : NULL);
}

/* -v, -vv, -qh, -e CODE, -eCODE; but -model is a mistake, and not -m with the value "odel" */
static bool letters(ah_options *o, words *w, const char *word)
{
    if (word[2] && by_name(word + 1, strlen(word + 1)) != AH_OPTIONS)
        return false;
    for (const char *p = word + 1; *p && !o->ended; p++) {
        ah_option_id id = by_letter(*p);

        if (id != AH_OPTIONS && ah_option_table[id].value)
            return set(o, w, id, p[1] ? p + 1 : NULL);
        if (!set(o, w, id, NULL))
            return false;
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

/* -- the command line -------------------------------------------------------------------- */

/* True if the word names a script by its form. The programs decide on all other words, and on names
 * with white space, which may be prompts. */
static bool names_script(const char *word)
{
    size_t n = strlen(word);

    if (n == 0 || strcmp(word, "-") == 0)
        return true;
    return (strchr(word, '/') || (n > 4 && strcmp(word + n - 4, ".lua") == 0)) &&
           !word[strcspn(word, " \t\n\v\f\r")];
}

bool ah_options_parse(ah_options *o, int argc, char **argv)
{
    words w = {argc, argv};
    bool fine, named;

    *o = (ah_options){.log_level = AH_LOG_WARNING};
    take(&w); /* the command's own name */
    fine = read_options(o, &w);
    named = !o->eval && !ah_options_given(o, AH_OPTION_END);
    if (fine && named && w.left > 0 && strcmp(w.at[0], "version") == 0) {
        take(&w);
        o->given |= 1u << AH_OPTION_VERSION;
        fine = read_options(o, &w);
    }
    if (!o->eval)
        o->script = take(&w);
    o->argc = w.left;
    o->argv = w.at;
    return fine && !ah_options_given(o, AH_OPTION_HELP) &&
           (!named || !o->script || ah_options_given(o, AH_OPTION_VERSION) ||
            names_script(o->script));
}

/* -- for the programs ---------------------------------------------------------------------- */

void ah_options_tell(ah_option_strings *out)
{
    const char **at = out->word;

    *out = (ah_option_strings){.word = {NULL}};
    for (int i = 0; i < AH_OPTIONS; i++) {
        const ah_option_row *opt = &ah_option_table[i];

        out->letter[i][0] = opt->letter;
        *at++ = out->letter[i];
        *at++ = opt->name;
        *at++ = opt->value ? opt->value : "";
        *at++ = opt->words ? opt->words : "";
        *at++ = opt->traits;
        *at++ = opt->doc;
    }
}
