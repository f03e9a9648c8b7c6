/* Parsing and help, both from the table below. Short options have no values, so
 * that letters can be joined; a long one takes its value behind "=" or as the next
 * word. Stops at the first word that is no option: the script. */
#include "cli/options.h"

#include <stdarg.h>
#include <string.h>

#include "base/near.h"

#define FIRST_TRY                                                                                       \
    "echo 'print(assert(require(\"agenthost\").run { model = \"demo/echo\", \"Hello\" }))' | "          \
    "agenthost -"

enum { SHOWN_MAX = 60 }; /* bytes of an argument that a message repeats */

typedef enum option_id {
    OPTION_MODEL,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_END
} option_id;

typedef struct option {
    option_id id;
    char letter;       /* 0: none */
    const char *name;  /* without its dashes */
    const char *value; /* what it wants; NULL: nothing */
    const char *help;
} option;

static const option table[] = {
    {OPTION_MODEL, 0, "model", "NAME", "use this model (provider/model), whatever the script names"},
    {OPTION_QUIET, 'q', "quiet", NULL, "say errors only"},
    {OPTION_VERBOSE, 'v', "verbose", NULL, "say more: -v what happens, -vv every detail"},
    {OPTION_HELP, 'h', "help", NULL, "show this text"},
    {OPTION_VERSION, 0, "version", NULL, "show the version; with -v libraries and features too"},
    {OPTION_END, 0, "", NULL, "end the options: a script whose name begins with - may follow"},
};
enum { OPTIONS = sizeof table / sizeof *table };

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

static ah_slice shown(const char *p, size_t n)
{
    return (ah_slice){p, n > SHOWN_MAX ? ah_utf8_cut(p, SHOWN_MAX) : n};
}

static bool fail(ah_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fail(ah_options *o, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(o->fault, sizeof o->fault, fmt, ap);
    va_end(ap);
    return false;
}

static ah_slice nearest(const char *word, size_t n)
{
    ah_near near = {.to = {word, n}};

    for (int i = 0; i < OPTIONS; i++) {
        ah_near_offer(&near, (ah_slice){&table[i].letter, table[i].letter != 0});
        ah_near_offer(&near, ah_slice_of(table[i].name));
    }
    return near.best;
}

/* `name` is the word without its dashes and its "=value". */
static bool unknown(ah_options *o, const char *word, const char *name, size_t n)
{
    ah_slice found = shown(word, (size_t)(name - word) + n), best = nearest(name, n);

    if (!best.p)
        return fail(o, "unknown option '%.*s'\nSee agenthost --help for all options.", AH_FMT(found));
    return fail(o, "unknown option '%.*s' (did you mean %s%.*s?)\nSee agenthost --help for all options.",
                AH_FMT(found), best.n == 1 ? "-" : "--", AH_FMT(best));
}

static const option *by_name(ah_slice name)
{
    for (int i = 0; i < OPTIONS; i++)
        if (ah_slice_is(name, table[i].name))
            return &table[i];
    return NULL;
}

static const option *by_letter(char letter)
{
    for (int i = 0; i < OPTIONS; i++)
        if (table[i].letter && table[i].letter == letter)
            return &table[i];
    return NULL;
}

/* -v counts up from where it is, so that -q -v is info, as -v is. */
static ah_log_level louder(ah_log_level level)
{
    return level > AH_LOG_INFO ? AH_LOG_INFO : AH_LOG_DEBUG;
}

static void apply(ah_options *o, option_id id, const char *value)
{
    switch (id) {
    case OPTION_MODEL:
        o->model = value;
        break;
    case OPTION_QUIET:
        o->log_level = AH_LOG_ERROR;
        break;
    case OPTION_VERBOSE:
        o->log_level = louder(o->log_level);
        break;
    case OPTION_HELP: /* ends the options: help is given whatever stands behind it */
        o->help = o->ended = true;
        break;
    case OPTION_VERSION:
        o->version = true;
        break;
    case OPTION_END:
        o->ended = true;
        break;
    }
}

static bool wants(ah_options *o, const option *opt, const char *found)
{
    if (!found)
        return fail(o, "option --%s needs a %s\nSee agenthost --help for all options.", opt->name,
                    opt->value);
    return fail(o, "option --%s needs a %s, found '%.*s'\nSee agenthost --help for all options.",
                opt->name, opt->value, AH_FMT(shown(found, strlen(found))));
}

static bool long_option(ah_options *o, words *w, const char *word)
{
    size_t n = strcspn(word + 2, "=");
    const option *opt = by_name((ah_slice){word + 2, n});
    const char *value = word[2 + n] ? word + 2 + n + 1 : NULL;

    if (!opt)
        return unknown(o, word, word + 2, n);
    if (value && !opt->value)
        return fail(o, "option --%s takes no value, found '%.*s'\nSee agenthost --help for all options.",
                    opt->name, AH_FMT(shown(value, strlen(value))));
    if (opt->value && !value)
        value = take(w);
    if (opt->value && (!value || !*value || *value == '-'))
        return wants(o, opt, value);
    apply(o, opt->id, value);
    return true;
}

/* -v, -vv, -qh: no letter has a value. */
static bool letters(ah_options *o, const char *word)
{
    for (const char *p = word + 1; *p && !o->ended; p++) {
        const option *opt = by_letter(*p);

        if (!opt)
            return unknown(o, word, word + 1, strlen(word + 1));
        apply(o, opt->id, NULL);
    }
    return true;
}

bool ah_options_parse(ah_options *o, int argc, char **argv)
{
    words w = {argc, argv};

    *o = (ah_options){.log_level = AH_LOG_WARNING};
    take(&w); /* our own name */
    while (!o->ended && w.left > 0 && w.at[0][0] == '-' && w.at[0][1]) {
        const char *word = take(&w);

        if (!(word[1] == '-' ? long_option(o, &w, word) : letters(o, word)))
            return false;
    }
    o->script = take(&w);
    o->argc = w.left;
    o->argv = w.at;
    if (!o->script && !o->help && !o->version)
        return fail(o, "no script given\nTry:  " FIRST_TRY "\nHelp: agenthost --help");
    return true;
}

bool ah_options_has(const char *name)
{
    return *name && by_name(ah_slice_of(name));
}

static void help_option(FILE *out, const option *opt)
{
    char left[32], letter[] = {'-', opt->letter, ',', ' ', 0};

    snprintf(left, sizeof left, "%s--%s%s%s", opt->letter ? letter : "    ", opt->name,
             opt->value ? " " : "", opt->value ? opt->value : "");
    fprintf(out, "  %-18s%s\n", left, opt->help);
}

void ah_options_help(FILE *out)
{
    fputs("agenthost runs LLM agents whose tools are written in Lua.\n\n"
          "Usage: agenthost [options] script.lua [args...]\n"
          "       agenthost [options] - [args...]       (reads the script from standard input)\n\n"
          "Options:\n",
          out);
    for (int i = 0; i < OPTIONS; i++)
        help_option(out, &table[i]);
    fputs("Everything behind the script belongs to it: it is in `...` and in `arg`.\n"
          "What the script prints goes to stdout, all messages go to stderr.\n\n"
          "Environment:\n"
          "  AGENTHOST_MODEL   the model where neither --model nor the script names one\n"
          "  OPENAI_API_KEY    the key for openai/... models\n"
          "  OPENAI_BASE_URL   a server that speaks as OpenAI's does\n"
          "  NO_COLOR          when set, messages have no colour\n\n"
          "Exit codes:\n"
          "  0         the script ended well\n"
          "  1         the script failed, or standard output could not be written\n"
          "  2         wrong usage, or the script cannot be read\n"
          "  3         the provider or the network failed\n"
          "  4         a limit was reached: iterations, deadline, budget, loop\n"
          "  130, 143  ended by SIGINT (Ctrl-C) or SIGTERM; a second one ends at once\n\n"
          "Examples:\n"
          "  without a key and a network, the second in the source folder:\n"
          "    " FIRST_TRY "\n"
          "    agenthost --model demo/quickstart examples/quickstart.lua\n"
          "  your own script: on a model that calls each of its tools, then on a real one:\n"
          "    agenthost --model demo/tools agent.lua \"What is new?\"\n"
          "    OPENAI_API_KEY=... agenthost --model openai/gpt-4o agent.lua \"What is new?\"\n",
          out);
}
