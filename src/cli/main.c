/* The command `agenthost`: reads the command line, runs one script in one host, and turns
 * how that ended into messages and an exit code. Nothing of agents is known here; what
 * this file does, any program can do with agenthost.h.
 *
 * Exit codes: 0 ok, 1 script failed, 2 usage, 3 provider or network, 4 a limit,
 * 130 SIGINT, 143 SIGTERM. os.exit in a script has its own way. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agenthost.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/terminal.h"

enum {
    EXIT_OK = 0,
    EXIT_SCRIPT = 1,
    EXIT_USAGE = 2,
    EXIT_NETWORK = 3,
    EXIT_LIMIT = 4,
    EXIT_SIGNAL = 128
};

static int exit_of(ah_status st)
{
    switch (st) {
    case AH_OK:
        return EXIT_OK;
    case AH_USAGE:
        return EXIT_USAGE;
    case AH_PROVIDER:
    case AH_HTTP:
        return EXIT_NETWORK;
    case AH_MAX_ITERATIONS:
    case AH_DEADLINE:
    case AH_BUDGET:
    case AH_LOOP:
    case AH_VISIBILITY_EXPANSION:
        return EXIT_LIMIT;
    case AH_INTERNAL:
    case AH_NOMEM:
    case AH_PROMPT_VALIDATION:
    case AH_PROMPT_RENDER:
    case AH_PROMPT_EVALUATION:
    case AH_TOOL_VALIDATION:
    case AH_TOOL_NOT_FOUND:
    case AH_INVALID_TOOL_PROVIDER:
    case AH_CANCELLED:
        break;
    }
    return EXIT_SCRIPT;
}

/* 0, or the errno. Looks without opening: opening and closing a pipe would break it. */
static int unreadable(const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return 0;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? EISDIR : 0;
}

/* What a person who typed this may have meant. */
static void advise(char *out, size_t size, const char *path)
{
    char lua[512];

    snprintf(lua, sizeof lua, "%.500s.lua", path);
    if (ah_options_has(path))
        snprintf(out, size, "Did you mean agenthost --%s?", path);
    else if (unreadable(lua) == 0)
        snprintf(out, size, "Did you mean '%s'?", lua);
    else
        snprintf(out, size,
                 "Give the path of a Lua script, or - to read one from standard input; see "
                 "agenthost --help.");
}

static int cannot_open(const ah_terminal *t, const char *path, int why)
{
    char advice[600], text[1400];

    advise(advice, sizeof advice, path);
    snprintf(text, sizeof text, "cannot open '%.500s': %s\n%s", path, strerror(why), advice);
    ah_terminal_error(t, text);
    return EXIT_USAGE;
}

static int cannot_start(const ah_terminal *t, ah_status st)
{
    ah_terminal_error(t, st == AH_NOMEM
                             ? "cannot start: out of memory"
                             : "cannot start: the system gives no event loop (too many open files?)");
    return EXIT_SCRIPT;
}

static void explain(const ah_terminal *t, const ah_options *o, const ah_host *host)
{
    if (ah_signals_caught() && o->log_level > AH_LOG_INFO)
        ah_terminal_error(t, ah_signals_caught() == SIGINT ? "interrupted" : "terminated");
    else
        ah_terminal_error(t, ah_errmsg(host));
}

static int run_in(const ah_terminal *t, const ah_options *o, ah_host *host)
{
    ah_status st = ah_script(host, o->script, o->argc, o->argv);

    if (st == AH_OK || ah_signals_reader_gone()) /* nobody reads on: that is no failure of the script */
        return EXIT_OK;
    explain(t, o, host);
    return exit_of(st);
}

static int run(ah_terminal *t, const ah_options *o)
{
    ah_config cfg = {.size = sizeof cfg,
                     .log = ah_terminal_log,
                     .log_ud = t,
                     .log_level = o->log_level,
                     .model = o->model};
    ah_host *host = NULL;
    int code = unreadable(o->script);
    ah_status st;

    if (code)
        return cannot_open(t, o->script, code);
    if ((st = ah_open(&cfg, &host)) != AH_OK)
        return cannot_start(t, st);
    ah_signals_watch(host);
    code = run_in(t, o, host);
    ah_signals_forget();
    ah_close(host);
    return code;
}

/* With -v: all lines of ah_about, the first of which is this one. */
static int show_version(const ah_terminal *t, const ah_options *o)
{
    ah_host *host = NULL;
    ah_status st;

    if (o->log_level > AH_LOG_INFO) {
        printf("agenthost %s\n", ah_version());
        return EXIT_OK;
    }
    if ((st = ah_open(NULL, &host)) != AH_OK)
        return cannot_start(t, st);
    fputs(ah_about(host), stdout);
    ah_close(host);
    return EXIT_OK;
}

static int serve(ah_terminal *t, int argc, char **argv)
{
    ah_options o;

    if (!ah_options_parse(&o, argc, argv)) {
        ah_terminal_error(t, o.fault);
        return EXIT_USAGE;
    }
    if (o.help) {
        ah_options_help(stdout);
        return EXIT_OK;
    }
    return o.version ? show_version(t, &o) : run(t, &o);
}

/* An answer that did not get out is a failure, but for a reader who had enough. */
static int finish(const ah_terminal *t, int code)
{
    int lost = ah_terminal_finish(), sig = ah_signals_caught();
    char text[256];

    if (sig)
        return EXIT_SIGNAL + sig;
    if (!lost || lost == EPIPE || ah_signals_reader_gone())
        return code;
    snprintf(text, sizeof text, "cannot write to standard output: %s; what was printed is incomplete",
             lost > 0 ? strerror(lost) : "a write failed (disk full?)");
    ah_terminal_error(t, text);
    return code ? code : EXIT_SCRIPT;
}

int main(int argc, char **argv)
{
    ah_terminal terminal;

    ah_terminal_init(&terminal);
    ah_signals_init();
    return finish(&terminal, serve(&terminal, argc, argv));
}
