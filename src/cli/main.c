/* The command `agenthost`: reads the command line and the settings, runs one script in one
 * host (or what a command asks for), and turns how that ended into messages and an exit
 * code. Nothing of agents is known here; what this file does, any program can do with
 * agenthost.h.
 *
 * Exit codes: 0 ok, 1 script failed, 2 usage, 3 provider or network, 4 a limit,
 * 130 SIGINT, 143 SIGTERM. os.exit in a script has its own way. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agenthost.h"
#include "cli/agent.h"
#include "cli/help.h"
#include "cli/missing.h"
#include "cli/mock.h"
#include "cli/mock_server.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/terminal.h"

/* All of one run of the command. */
typedef struct session {
    ah_terminal terminal;
    ah_options options;
    ah_settings settings;
    ah_report report;
    ah_log_level level;
    ah_host *programs; /* the command's own; NULL: none was needed yet */
    ah_program_door door;
    bool reported; /* programs and people were told how it ended */
} session;

enum {
    EXIT_OK = 0,
    EXIT_SCRIPT = 1,
    EXIT_USAGE = 2,
    EXIT_NETWORK = 3,
    EXIT_LIMIT = 4,
    EXIT_WAITING = 5,
    EXIT_SIGNAL = 128
};

enum { MAX_CODE = 8 << 20 }; /* bytes of -e: more than a system lets through */

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
    case AH_CONTEXT_FULL:
        return EXIT_LIMIT;
    case AH_WAITING:
        return EXIT_WAITING;
    case AH_INTERNAL:
    case AH_NOMEM:
    case AH_PROMPT_VALIDATION:
    case AH_PROMPT_RENDER:
    case AH_PROMPT_EVALUATION:
    case AH_TOOL_VALIDATION:
    case AH_TOOL_NOT_FOUND:
    case AH_INVALID_TOOL_PROVIDER:
    case AH_CANCELLED:
    case AH_GUARD:
        break;
    }
    return EXIT_SCRIPT;
}

static bool given(const session *s, ah_option_id id)
{
    return ah_options_given(&s->options, id);
}

/* -- how it ended -------------------------------------------------------------------------- */

static bool is_quiet(const session *s)
{
    return s->level >= AH_LOG_ERROR;
}

/* Once: at the end, or from inside os.exit. */
static void report(session *s, const char *code, const char *message)
{
    ah_ending e = {code, message};

    if (s->reported)
        return;
    s->reported = true;
    ah_terminal_erase(&s->terminal);
    if (given(s, AH_OPTION_JSON))
        ah_report_object(&s->report, s->terminal.out, &e);
    if (given(s, AH_OPTION_JSONL))
        ah_report_last_line(&s->report, s->terminal.out, &e);
    if (s->terminal.people && !is_quiet(s)) {
        fflush(stdout);
        ah_report_closing(&s->report, &s->terminal);
    }
}

/* For people and for programs. */
static int fail(session *s, int exit, const char *code, const char *message)
{
    ah_terminal_error(&s->terminal, message);
    report(s, code, message);
    return exit;
}

static int cannot_open(session *s, const char *path, int why)
{
    char advice[700] = "Give a file that --record has written.", text[1400];

    if (path != s->options.replay)
        ah_advise(path, &s->door, advice, sizeof advice);
    snprintf(text, sizeof text, "cannot open '%.500s': %s\n%s", path, strerror(why), advice);
    return fail(s, EXIT_USAGE, "usage", text);
}

static int cannot_replay(session *s, const char *path, int why)
{
    char text[700];

    snprintf(text, sizeof text, "cannot open the recording '%.500s': %s", path, strerror(why));
    return fail(s, EXIT_USAGE, "usage", text);
}

static int cannot_take(session *s)
{
    char text[256];

    snprintf(text, sizeof text, "cannot write to standard output: %s", strerror(errno));
    ah_terminal_error(&s->terminal, text);
    return EXIT_SCRIPT;
}

static int cannot_start(session *s, ah_status st)
{
    return fail(s, EXIT_SCRIPT, "internal",
                st == AH_NOMEM ? "cannot start: out of memory"
                               : "cannot start: the system gives no event loop (too many open files?)");
}

static int explain(session *s, ah_status st, const ah_host *host)
{
    const char *words = ah_errmsg(host);

    if (ah_signals_caught() && s->level > AH_LOG_INFO)
        words = ah_signals_caught() == SIGINT ? "interrupted" : "terminated";
    return fail(s, exit_of(st), ah_status_name(ah_signals_caught() ? AH_CANCELLED : st), words);
}

/* -- while it works ------------------------------------------------------------------------ */

static void on_event(void *ud, const ah_event *event)
{
    session *s = ud;

    if (s->reported) /* what the end of the host settles */
        return;
    ah_terminal_erase(&s->terminal);
    ah_report_event(&s->report, event);
    if (s->level == AH_LOG_INFO)
        ah_report_call(&s->report, &s->terminal, event);
    if (given(s, AH_OPTION_JSONL))
        ah_report_json(s->terminal.out, event->json, event->json_len);
}

static int on_idle(void *ud, int timeout_ms)
{
    session *s = ud;

    return ah_report_progress(&s->report, &s->terminal, timeout_ms);
}

/* A program that reads --json is told in any case; the exit code is the script's own. */
static void on_leaving(void *ud, int code)
{
    session *s = ud;
    char words[64];

    snprintf(words, sizeof words, "the script ended with os.exit(%d)", code);
    report(s, code ? "internal" : "ok", code ? words : "");
}

/* Nobody looks on where nobody would see it. */
static ah_watcher watcher_of(session *s)
{
    bool machine = given(s, AH_OPTION_JSON) || given(s, AH_OPTION_JSONL);
    bool people = s->terminal.people && !is_quiet(s);
    ah_watcher w = {.ud = s, .content = given(s, AH_OPTION_JSONL), .leaving = on_leaving};

    if (s->options.command != AH_COMMAND_RUN)
        return (ah_watcher){.ud = s};
    if (machine || people || s->level == AH_LOG_INFO)
        w.event = on_event;
    if (people && s->terminal.cursor)
        w.idle = on_idle;
    return w;
}

static ah_status open_host(session *s, ah_host **out)
{
    ah_config cfg = {.size = sizeof cfg,
                     .log = ah_terminal_log,
                     .log_ud = &s->terminal,
                     .log_level = s->level,
                     .model = s->options.command == AH_COMMAND_RUN ? s->options.model : NULL,
                     .watcher = watcher_of(s),
                     .record = s->options.record,
                     .replay = s->options.replay};

    if (s->options.command == AH_COMMAND_RUN)
        cfg.tty = ah_terminal_tty(&s->terminal);
    return ah_open(&cfg, out);
}

/* A host for the command's programs, opened when one is first needed. */
static ah_status programs_of(session *s, ah_host **out)
{
    ah_config cfg = {.size = sizeof cfg, .log = ah_terminal_log, .log_ud = &s->terminal};
    ah_status st = AH_OK;

    cfg.log_level = s->level;
    if (!s->programs && (st = ah_open(&cfg, &s->programs)) == AH_OK)
        st = ah_program_open(s->programs);
    *out = s->programs;
    return st;
}

static ah_host *program_host(void *ud)
{
    ah_host *host;

    return programs_of(ud, &host) == AH_OK ? host : NULL;
}

/* -- running a script ------------------------------------------------------------------------ */

/* On one line with the code, so that its lines count from 1. */
static ah_status run_code(const session *s, ah_host *host)
{
    const ah_options *o = &s->options;
    ah_status st = AH_NOMEM;
    ah_bytes text;

    ah_bytes_init(&text, MAX_CODE);
    ah_bytes_str(&text, "local ah = require 'agenthost' ");
    ah_bytes_str(&text, o->eval);
    if (ah_bytes_ok(&text))
        st = ah_load(host, "-e", text.data, text.len, o->argc, o->argv);
    ah_bytes_clear(&text);
    return st;
}

/* The script as messages name it. */
static const char *name_of(const ah_options *o)
{
    return o->eval ? "-e" : strcmp(o->script, "-") == 0 ? "the script" : o->script;
}

static int no_words(session *s)
{
    const ah_options *o = &s->options;
    char text[1400];

    snprintf(text, sizeof text,
             "%.500s returned an agent: say what it is to answer\nTry:  agenthost %s%.500s \"Hello\"",
             name_of(o), o->eval ? "-e CODE" : "", o->eval ? "" : o->script);
    return fail(s, EXIT_USAGE, "usage", text);
}

/* The returned agent answers the words behind the script. */
static int answer(session *s, ah_host *host)
{
    bool machine = given(s, AH_OPTION_JSON) || given(s, AH_OPTION_JSONL);
    ah_status st = AH_NOMEM;
    ah_bytes words;

    ah_bytes_init(&words, MAX_CODE);
    ah_agent_words(&s->options, &words);
    if (ah_bytes_ok(&words) && words.len == 1)
        return no_words(s);
    if (ah_bytes_ok(&words))
        st = ah_agent_answer(host, words.data, machine ? NULL : s->terminal.out);
    ah_bytes_clear(&words);
    if (st != AH_OK)
        return explain(s, st, host);
    report(s, "ok", "");
    return EXIT_OK;
}

/* A script that began no run and printed nothing may have been meant to do something. */
static int did_nothing(session *s)
{
    const ah_options *o = &s->options;
    const char *name = name_of(o);
    char text[1400];

    if (o->argc && !ah_agent_reads_words(o)) {
        snprintf(text, sizeof text,
                 "%.500s did not use \"%.100s\": it reads neither `...` nor `arg`, began no run and "
                 "returned no agent\nAn agent script ends with: return ah.agent { ... }",
                 name, o->argv[0]);
        return fail(s, EXIT_USAGE, "usage", text);
    }
    snprintf(text, sizeof text,
             "%.500s printed nothing, began no run and returned no agent; an agent script ends with: "
             "return ah.agent { ... }",
             name);
    if (!is_quiet(s))
        ah_terminal_log(&s->terminal, AH_LOG_WARNING, text);
    report(s, "ok", "");
    return EXIT_OK;
}

static int run_in(session *s, ah_host *host)
{
    const ah_options *o = &s->options;
    ah_status st = o->eval ? run_code(s, host) : ah_script(host, o->script, o->argc, o->argv);

    if (st != AH_OK && !ah_signals_reader_gone()) /* nobody reads on: that is no failure of the script */
        return explain(s, st, host);
    if (ah_signals_ending())
        report(s, "cancelled", "interrupted");
    else if (st == AH_OK && ah_agent_returned(host))
        return answer(s, host);
    else if (st == AH_OK && !ah_terminal_wrote(&s->terminal) && ah_agent_idle(host))
        return did_nothing(s);
    report(s, "ok", "");
    return EXIT_OK;
}

/* Prints the text of a program and returns its exit code: it said the code, a line end, and the text. */
static int tell(session *s, ah_host *host, ah_status st)
{
    const char *said;

    if (ah_signals_caught()) /* whatever was found until then */
        return EXIT_SCRIPT;
    said = ah_returned(host);
    if (st != AH_OK || !said)
        return explain(s, st, host);
    fputs(said + 2, s->terminal.out);
    return *said == '0' ? EXIT_OK : EXIT_SCRIPT;
}

/* Findings of the script's state are told in another state. */
static int tell_found(session *s, const char *found)
{
    const char *argv[] = {ah_command_table[s->options.command].name,
                          given(s, AH_OPTION_JSON) ? "json" : "text", found};
    ah_host *host;
    ah_status st = programs_of(s, &host);

    return st == AH_OK ? tell(s, host, ah_program_call(host, "inspected", "", 3, argv))
                       : cannot_start(s, st);
}

/* Calls a program with this word and those that stand behind the command. */
static ah_status call_with_words(const session *s, ah_host *host, const char *program, const char *word)
{
    const ah_options *o = &s->options;
    const char **argv = malloc(((size_t)o->argc + 2) * sizeof *argv);
    ah_status st;

    if (!argv)
        return AH_NOMEM;
    argv[0] = word;
    argv[1] = o->script;
    for (int i = 0; i < o->argc; i++)
        argv[i + 2] = o->argv[i];
    st = ah_program_call(host, program, "", o->script ? o->argc + 2 : 1, argv);
    free(argv);
    return st;
}

/* All of a command that is a program. */
static int run_program(session *s)
{
    ah_host *host;
    ah_status st = programs_of(s, &host);
    int code;

    if (st != AH_OK)
        return cannot_start(s, st);
    ah_signals_watch(host);
    st = call_with_words(s, host, ah_command_table[s->options.command].name,
                         given(s, AH_OPTION_JSON) ? "json" : "text");
    code = tell(s, host, st);
    ah_signals_forget();
    return code;
}

/* The program writes by itself: it said the exit code, a line end, and what went wrong. */
static int run_trust(session *s)
{
    static const ah_option_id known[] = {AH_OPTION_JSON, AH_OPTION_LIST, AH_OPTION_REMOVE,
                                         AH_OPTION_YES};
    char flags[64] = "";
    const char *said;
    ah_host *host;
    ah_status st = programs_of(s, &host);
    int code;

    if (st != AH_OK)
        return cannot_start(s, st);
    for (size_t i = 0, n = 0; i < sizeof known / sizeof *known; i++)
        if (given(s, known[i]))
            n += (size_t)snprintf(flags + n, sizeof flags - n, "%s ", ah_option_table[known[i]].name);
    st = call_with_words(s, host, "trust", flags);
    said = ah_returned(host);
    if (st != AH_OK || !said)
        return explain(s, st, host);
    code = *said - '0';
    return said[2] ? fail(s, code, code == EXIT_USAGE ? "usage" : "internal", said + 2) : code;
}

static int inspect_in(session *s, ah_host *host)
{
    ah_status st = call_with_words(s, host, "inspect", s->options.model ? s->options.model : "");

    if (ah_signals_caught()) /* whatever was found until then */
        return EXIT_SCRIPT;
    return st == AH_OK && ah_returned(host) ? tell_found(s, ah_returned(host)) : explain(s, st, host);
}

/* What the mock tells of a request, at the level that was asked for. */
static void say_request(void *ud, ah_log_level level, const char *line)
{
    session *s = ud;

    if (level >= s->level)
        ah_terminal_log(&s->terminal, level, line);
}

static int mock_in(session *s, ah_host *host)
{
    const ah_options *o = &s->options;
    ah_mock mock = {.script = o->script,
                    .address = o->listen,
                    .port = o->port,
                    .format = o->format,
                    .log = o->log,
                    .lenient = o->lenient,
                    .once = o->once,
                    .out = s->terminal.out,
                    .say = say_request,
                    .ud = s};
    char fault[512];
    ah_status st;

    if (o->listen && !is_quiet(s))
        ah_terminal_log(&s->terminal, AH_LOG_WARNING,
                        "--listen: others may reach this server; it is for tests and guards nothing");
    st = ah_mock_serve(host, &mock, fault, sizeof fault);
    if (*fault)
        return fail(s, EXIT_SCRIPT, "internal", fault);
    return st == AH_OK ? EXIT_OK : explain(s, st, host);
}

static int models_in(session *s, ah_host *host)
{
    const ah_options *o = &s->options;
    const char *argv[] = {given(s, AH_OPTION_JSON) ? "json" : "text", o->script ? o->script : "",
                          o->eval ? o->eval : ""};

    return tell(s, host, ah_program_call(host, "models", "", 3, argv));
}

static int work_in(session *s, ah_host *host)
{
    ah_status st;

    if (s->options.command == AH_COMMAND_RUN)
        return run_in(s, host);
    if ((st = ah_program_open(host)) != AH_OK)
        return explain(s, st, host);
    if (s->options.command == AH_COMMAND_MOCK)
        return mock_in(s, host);
    return s->options.command == AH_COMMAND_MODELS ? models_in(s, host) : inspect_in(s, host);
}

/* Gives the host what the settings say of models and runs. Where that is wrong: the exit code, else 0. */
static int settle(session *s, ah_host *host)
{
    const ah_settings *said = &s->settings;
    char text[1400];

    if ((!said->models || ah_alias(host, said->models) == AH_OK) &&
        (!said->defaults || ah_defaults(host, said->defaults) == AH_OK))
        return 0;
    snprintf(text, sizeof text, "%.300s: %.1000s", said->path, ah_errmsg(host));
    return fail(s, EXIT_USAGE, "usage", text);
}

static int run(session *s)
{
    const ah_options *o = &s->options;
    bool machine = given(s, AH_OPTION_JSON) || given(s, AH_OPTION_JSONL);
    ah_host *host = NULL;
    int code;
    ah_status st;

    if ((machine || o->command != AH_COMMAND_RUN) && !ah_terminal_take_stdout(&s->terminal))
        return cannot_take(s);
    if (!o->eval && o->command != AH_COMMAND_MODELS && (code = ah_unreadable(o->script)))
        return cannot_open(s, o->script, code);
    if (o->replay && (code = ah_unreadable(o->replay)))
        return cannot_replay(s, o->replay, code);
    if (machine && (st = programs_of(s, &host)) != AH_OK) /* a script may leave nothing for it */
        return cannot_start(s, st);
    if ((st = open_host(s, &host)) != AH_OK)
        return cannot_start(s, st);
    ah_signals_watch(host);
    if (!(code = settle(s, host)))
        code = work_in(s, host);
    ah_signals_forget();
    ah_close(host);
    return code;
}

/* -- the other commands --------------------------------------------------------------------- */

/* With -v: all lines of ah_about, the first of which is this one, and the command's own. */
static int show_version(session *s)
{
    ah_host *host = NULL;
    ah_status st;

    if (s->options.log_level > AH_LOG_INFO) {
        printf("agenthost %s\n", ah_version());
        return EXIT_OK;
    }
    if ((st = ah_open(NULL, &host)) != AH_OK)
        return cannot_start(s, st);
    fputs(ah_about(host), stdout);
    printf("libmicrohttpd %s\n", ah_mock_server_version() ? ah_mock_server_version() : "none");
    ah_close(host);
    return EXIT_OK;
}

/* AH_OK, and what of the settings is wrong in s->settings.fault. */
static ah_status load_settings(session *s)
{
    ah_host *host;
    ah_status st;

    ah_settings_init(&s->settings, &s->options);
    if (!ah_settings_needed(&s->settings, &s->options))
        return AH_OK;
    st = programs_of(s, &host);
    return st == AH_OK ? ah_settings_load(&s->settings, &s->options, host) : st;
}

/* What needs the settings. */
static int with_settings(session *s)
{
    ah_status st = load_settings(s);
    int code = EXIT_OK;

    if (st != AH_OK) {
        code = cannot_start(s, st);
    } else if (s->settings.fault) {
        code = fail(s, EXIT_USAGE, "usage", s->settings.fault);
    } else {
        ah_terminal_colour(&s->terminal, s->settings.color);
        s->level = s->settings.log;
        if (s->settings.warning && !is_quiet(s))
            ah_terminal_log(&s->terminal, AH_LOG_WARNING, s->settings.warning);
        if (s->settings.show)
            fputs(s->settings.show, stdout);
        else
            code = run(s);
    }
    ah_settings_clear(&s->settings);
    return code;
}

/* A program about the tables: `word` is the shell that completes, or the command that is told of. */
static int tell_tables(session *s, const char *program, const char *word)
{
    const char *argv[AH_TOLD + 1] = {word};
    ah_host *host;
    ah_told told;
    ah_status st;

    ah_options_tell(&told);
    memcpy(argv + 1, told.word, sizeof told.word);
    if ((st = programs_of(s, &host)) != AH_OK)
        return cannot_start(s, st);
    return tell(s, host, ah_program_call(host, program, "", AH_TOLD + 1, argv));
}

static int show_help(session *s)
{
    if (s->options.command != AH_COMMAND_RUN)
        return tell_tables(s, "help", ah_command_table[s->options.command].name);
    ah_help(stdout);
    return EXIT_OK;
}

static int serve(session *s, int argc, char **argv)
{
    ah_options *o = &s->options;
    bool fine = ah_options_parse(o, argc, argv, &s->door);

    ah_terminal_colour(&s->terminal, o->color);
    s->level = o->log_level;
    if (!fine) {
        ah_terminal_error(&s->terminal, o->fault);
        return EXIT_USAGE;
    }
    if (given(s, AH_OPTION_HELP))
        return show_help(s);
    if (given(s, AH_OPTION_VERSION))
        return show_version(s);
    if (o->command == AH_COMMAND_COMPLETION)
        return tell_tables(s, "completion", o->script);
    if (o->command == AH_COMMAND_TRUST)
        return run_trust(s);
    if (ah_command_table[o->command].program)
        return run_program(s);
    return with_settings(s);
}

/* An answer that did not get out is a failure, but for a reader who had enough. */
static int finish(session *s, int code)
{
    int lost = ah_terminal_finish(&s->terminal);
    int sig = code ? ah_signals_caught() : ah_signals_ending();
    char text[256];

    if (sig)
        return EXIT_SIGNAL + sig;
    if (!lost || lost == EPIPE || ah_signals_reader_gone())
        return code;
    snprintf(text, sizeof text, "cannot write to standard output: %s; what was printed is incomplete",
             lost > 0 ? strerror(lost) : "a write failed (disk full?)");
    ah_terminal_error(&s->terminal, text);
    return code ? code : EXIT_SCRIPT;
}

int main(int argc, char **argv)
{
    session s = {.reported = false};
    int code;

    ah_terminal_init(&s.terminal);
    ah_signals_init();
    s.door = (ah_program_door){.host = program_host, .ud = &s};
    s.report = (ah_report){.programs = &s.door};
    code = finish(&s, serve(&s, argc, argv));
    ah_close(s.programs);
    return code;
}
