/* The command `agenthost`: reads the command line and the settings, runs one script in one host (or
 * a command), and turns the result into messages and an exit code. It uses only agenthost.h, as any
 * program can.
 *
 * Exit codes: 0 ok, 1 script failed, 2 usage, 3 provider or network, 4 a limit, 130 SIGINT, 143
 * SIGTERM. os.exit in a script sets its own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agenthost.h"
#include "cli/agent.h"
#include "cli/help.h"
#include "cli/line.h"
#include "cli/missing.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/resume.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/watch.h"

/* Everything about one run of the command. */
typedef struct session {
    ah_terminal terminal;
    ah_options options;
    ah_line line;
    ah_settings settings;
    ah_report report;
    ah_log_level level;
    ah_host *programs; /* host of the command's programs; NULL: not needed yet */
    ah_program_door door;
    ah_resume resume; /* of `agenthost resume` */
    char *store;      /* AGENTHOST_STORE, which is no longer in the environment; NULL: not set */
    bool reported;    /* the end was reported */
    bool watched;     /* this is the child of --watch */
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

#define TRY "agenthost -e 'print(ah.run { model = \"demo/echo\", \"Hello\" })'"

enum {
    MAX_CODE = 8 << 20,   /* limit of -e in bytes, above that of systems */
    MOST_FILES = 16 << 10 /* open files that the command asks for */
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
    case AH_STORE:
    case AH_CONFLICT:
    case AH_DIVERGED:
    case AH_NOT_RECORDED:
        break;
    }
    return EXIT_SCRIPT;
}

static bool given(const session *s, ah_option_id id)
{
    return ah_options_given(&s->options, id);
}

/* -- programs -------------------------------------------------------------------------------- */

/* Opens the host of the command's programs when it is first needed. */
static ah_status programs_of(session *s, ah_host **out)
{
    ah_config cfg = {.size = sizeof cfg,
                     .log = ah_terminal_log,
                     .log_ud = &s->terminal,
                     .log_level = s->level,
                     .tty = ah_terminal_tty(&s->terminal)};
    ah_status st = AH_OK;

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

/* The command or option that the word may mean; NULL: none is similar. */
static const char *near_word(session *s, const char *word)
{
    const ah_line none = {.settings = ""};
    const char *near = NULL;
    ah_host *host;

    if (programs_of(s, &host) == AH_OK && ah_line_call(host, "near", 1, &word, &none) == AH_OK)
        near = ah_returned(host);
    return near && *near ? near : NULL;
}

/* -- reporting the end --------------------------------------------------------------------- */

static bool is_quiet(const session *s)
{
    return s->level >= AH_LOG_ERROR;
}

/* Reports the end once: at the end, or from inside os.exit. */
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

/* Reports an error to people and to programs; returns the exit code. */
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
        ah_advise(path, near_word(s, path), &s->door, advice, sizeof advice);
    snprintf(text, sizeof text, "cannot open '%.500s': %s\n%s", path, strerror(why), advice);
    return fail(s, EXIT_USAGE, "usage", text);
}

/* True if a word adds a file or a page to a prompt. */
static bool adds_file(const ah_line *line)
{
    int i = 0;

    while (i < line->argc && !(line->argv[i][0] == '@' && line->argv[i][1]))
        i++;
    return i < line->argc;
}

/* The end for a word that no model gets, since it may be a mistake. A word beside @FILE is no
 * script, so nothing similar is searched for. */
static int cannot_mean(session *s, const char *word)
{
    bool added = adds_file(&s->line);
    char advice[700], text[1400];

    if (added)
        *advice = '\0';
    else if (ah_unreadable(word) == 0)
        snprintf(advice, sizeof advice, "Did you mean './%.500s'?", word);
    else
        ah_advise(word, near_word(s, word), &s->door, advice, sizeof advice);
    snprintf(text, sizeof text,
             "'%.500s' is no command, and a script ends in .lua or has a /\n%s%s"
             "A prompt of one word:  agenthost -p WORD%s     (see agenthost --help)",
             word, advice, added ? "" : "\n", added ? " @FILE" : "");
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
                st == AH_NOMEM
                    ? "cannot start: out of memory"
                    : "cannot start: the system gives no event loop (too many open files?)");
}

/* The end by a signal, and the number of calls that ah.map had done until then. */
static const char *interrupted(const char *words, char *text, size_t size)
{
    static const char map[] = "ah.map: ";
    const char *how = ah_signals_caught() == SIGINT ? "interrupted" : "terminated";
    const char *done = strstr(words, map);

    if (!done)
        return how;
    snprintf(text, size, "%s: %s", how, done + sizeof map - 1);
    return text;
}

static int explain(session *s, ah_status st, const ah_host *host)
{
    const char *words = ah_errmsg(host);
    char text[256];

    if (ah_signals_caught() && s->level > AH_LOG_INFO)
        words = interrupted(words, text, sizeof text);
    return fail(s, exit_of(st), ah_status_name(ah_signals_caught() ? AH_CANCELLED : st), words);
}

/* -- during the run ------------------------------------------------------------------------ */

static void on_event(void *ud, const ah_event *event)
{
    session *s = ud;

    if (s->reported) /* runs settle while the host is closed */
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

    ah_signals_settled();
    return s->terminal.people && s->terminal.cursor && !is_quiet(s)
               ? ah_report_progress(&s->report, &s->terminal, timeout_ms)
               : timeout_ms;
}

/* Called by os.exit, which may close the host before the last output is written: a signal then
 * finds no host. */
static void on_leaving_apart(void *ud, int code)
{
    (void)ud;
    (void)code;
    ah_signals_forget();
}

/* The same in a script. A reader of --json always gets a report; the exit code is the script's. */
static void on_leaving(void *ud, int code)
{
    session *s = ud;
    char words[64];

    ah_signals_forget();
    snprintf(words, sizeof words, "the script ended with os.exit(%d)", code);
    report(s, code ? "internal" : "ok", code ? words : "");
}

/* The watcher of a script's run, without functions if none of them would print. */
static ah_watcher watcher_of(session *s)
{
    bool machine = given(s, AH_OPTION_JSON) || given(s, AH_OPTION_JSONL);
    bool people = s->terminal.people && !is_quiet(s);
    ah_watcher w = {.ud = s, .content = given(s, AH_OPTION_JSONL), .leaving = on_leaving};

    if (machine || people || s->level == AH_LOG_INFO)
        w.event = on_event;
    if ((people && s->terminal.cursor) || given(s, AH_OPTION_INTERACTIVE))
        w.idle = on_idle;
    return w;
}

/* Takes the store out of the environment: processes that a model reaches must not find it. */
static ah_status take_store(session *s)
{
    const char *path = getenv("AGENTHOST_STORE");

    if (path && *path && !s->store && !(s->store = strdup(path)))
        return AH_NOMEM;
    unsetenv("AGENTHOST_STORE");
    return AH_OK;
}

/* Opens the host of a script, or of a command that needs its own. */
static ah_status open_host(session *s, bool script, ah_host **out)
{
    char pins[AH_STATE_ROOM], logins[AH_STATE_ROOM];
    ah_config cfg = {.size = sizeof cfg,
                     .mcp_logins = ah_state_path(logins, "mcp_credentials.json"),
                     .mcp_pins = ah_state_path(pins, "mcp_pins.json"),
                     .log = ah_terminal_log,
                     .log_ud = &s->terminal,
                     .log_level = s->level,
                     .watcher = {.ud = s, .leaving = on_leaving_apart}};
    ah_status st = take_store(s);

    if (script) {
        cfg.store = s->options.store ? s->options.store : s->store;
        cfg.conversation = s->resume.conversation;
        cfg.conversation_base = s->resume.base;
        cfg.take = s->resume.take;
        cfg.give_up = s->resume.give_up;
        cfg.model = s->options.model;
        cfg.watcher = watcher_of(s);
        cfg.record = s->options.record;
        cfg.replay = s->options.replay;
        cfg.tty = ah_terminal_tty(&s->terminal);
    }
    return st == AH_OK ? ah_open(&cfg, out) : st;
}

/* -- running a script ------------------------------------------------------------------------ */

/* Puts the code on the same line, so that its lines count from 1. */
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

/* The script's name in messages. */
static const char *name_of(const ah_options *o)
{
    return o->eval ? "-e" : strcmp(o->script, "-") == 0 ? "the script" : o->script;
}

static int no_words(session *s)
{
    const ah_options *o = &s->options;
    char text[1400];

    snprintf(
        text, sizeof text,
        "%.500s returned an agent: add the text that it should answer\nTry:  agenthost %s%.500s "
        "\"Hello\"",
        name_of(o), o->eval ? "-e CODE" : "", o->eval ? "" : o->script);
    return fail(s, EXIT_USAGE, "usage", text);
}

/* Ends `agenthost resume` before the agent does anything with a conversation that is not meant. */
static int other_conversation(session *s)
{
    char text[1400];

    snprintf(text, sizeof text,
             "the agent of %.500s has not opened conversation '%.200s', but another one or none\n"
             "Let ah.agent have this id, or no id, when the script is run in its folder without "
             "words.",
             name_of(&s->options), s->resume.conversation);
    return fail(s, EXIT_USAGE, "usage", text);
}

static FILE *output_of(const session *s)
{
    bool machine = given(s, AH_OPTION_JSON) || given(s, AH_OPTION_JSONL);

    return machine ? NULL : s->terminal.out;
}

static int end_of_agent(session *s, ah_host *host, ah_status st)
{
    if (st == AH_OK)
        st = ah_join(host);
    if (st != AH_OK)
        return explain(s, st, host);
    report(s, "ok", "");
    return EXIT_OK;
}

/* Lets the returned agent answer the words after the script, or go on. */
static int answer(session *s, ah_host *host)
{
    ah_status st = AH_NOMEM;
    ah_bytes words;

    if (s->resume.conversation)
        return ah_agent_has(host, s->resume.conversation)
                   ? end_of_agent(
                         s, host,
                         ah_agent_go_on(host, s->resume.words, output_of(s), &s->report.kept))
                   : other_conversation(s);

    ah_bytes_init(&words, MAX_CODE);
    ah_agent_words(&s->options, &words);
    if (ah_bytes_ok(&words) && words.len == 1)
        return no_words(s);
    if (ah_bytes_ok(&words))
        st = ah_agent_answer(host, words.data, output_of(s), &s->report.kept);
    ah_bytes_clear(&words);
    return end_of_agent(s, host, st);
}

/* The words of `agenthost resume` had no agent to be asked. */
static int no_agent(session *s)
{
    char text[1400];

    snprintf(text, sizeof text,
             "%.500s returned no agent that could be asked the words\n"
             "An agent script ends with: return ah.agent { ... }",
             name_of(&s->options));
    return fail(s, EXIT_USAGE, "usage", text);
}

/* Warns about a script that began no run and printed nothing. */
static int did_nothing(session *s)
{
    const ah_options *o = &s->options;
    const char *name = name_of(o);
    char text[1400];

    if (o->argc && !ah_agent_reads_words(o)) {
        snprintf(
            text, sizeof text,
            "%.500s did not use \"%.100s\": it reads neither `...` nor `arg`, began no run and "
            "returned no agent\nAn agent script ends with: return ah.agent { ... }",
            name, o->argv[0]);
        return fail(s, EXIT_USAGE, "usage", text);
    }
    snprintf(
        text, sizeof text,
        "%.500s printed nothing, began no run and returned no agent; an agent script ends with: "
        "return ah.agent { ... }",
        name);
    if (!is_quiet(s))
        ah_terminal_log(&s->terminal, AH_LOG_WARNING, text);
    report(s, "ok", "");
    return EXIT_OK;
}

/* Warns if the file of --store was not even made: what is to be kept has an id. */
static void warn_unkept(session *s)
{
    const char *path = s->options.store;
    char text[1400];

    if (!path || s->resume.answer || is_quiet(s) || access(path, F_OK) == 0)
        return;
    snprintf(text, sizeof text,
             "nothing is kept in '%.500s': %.500s names no conversation\n"
             "Give its agent an id, as in ah.agent { id = \"ann\", ... }; each run then goes on "
             "with the conversation of this id.",
             path, name_of(&s->options));
    ah_terminal_log(&s->terminal, AH_LOG_WARNING, text);
}

/* Calls the program that reads inputs with what was given of -q, -e and the script, and the words
 * after it. */
static ah_status call_repl(const session *s, ah_host *host)
{
    const ah_options *o = &s->options;
    const char **argv = malloc(((size_t)o->argc + 3) * sizeof *argv);
    ah_status st;

    if (!argv)
        return AH_NOMEM;
    argv[0] = o->log_level >= AH_LOG_ERROR ? "quiet" : "";
    argv[1] = o->eval ? "eval" : o->script ? "script" : "";
    argv[2] = o->eval ? o->eval : o->script ? o->script : "";
    for (int i = 0; i < o->argc; i++)
        argv[i + 3] = o->argv[i];
    st = ah_program_call(host, "repl", "run", o->argc + 3, argv);
    free(argv);
    return st;
}

/* Runs the script, if there is one, and then the inputs of a person or a pipe, by a program in the
 * script's state. At a terminal, tasks that are still at work end with it. */
static int interact(session *s, ah_host *host)
{
    ah_status st = ah_program_open(host);
    int code = EXIT_OK;

    ah_signals_spare();
    if (st == AH_OK && (st = call_repl(s, host)) == AH_OK)
        code = atoi(ah_returned(host));
    if (st == AH_OK && !isatty(STDIN_FILENO))
        st = ah_join(host);
    if (st != AH_OK && !ah_signals_reader_gone())
        return explain(s, st, host);
    report(s, "ok", "");
    return code;
}

static int end_command(session *s, ah_host *host, ah_status st);

/* Runs the member `answer` of the program that the line names. */
static ah_status run_answer(session *s, ah_host *host)
{
    const char *argv[] = {s->line.read, s->resume.answer,
                          s->settings.color ? s->settings.color : "auto"};
    ah_status st = ah_program_open(host);

    return st == AH_OK ? ah_program_call(host, "performed", "answer", 3, argv) : st;
}

/* Runs what is to be run until it has returned. */
static ah_status run_text(session *s, ah_host *host)
{
    const ah_options *o = &s->options;

    if (s->resume.answer)
        return run_answer(s, host);
    return o->eval ? run_code(s, host) : ah_script(host, o->script, o->argc, o->argv);
}

static int end_of_answer(session *s, ah_host *host)
{
    int code = end_command(s, host, AH_OK);

    if (code == EXIT_OK)
        report(s, "ok", "");
    return code;
}

static int run_in(session *s, ah_host *host)
{
    ah_status st = run_text(s, host);

    if (st == AH_OK && !s->resume.answer && !ah_agent_returned(host))
        st = ah_join(host);
    if (st != AH_OK &&
        !ah_signals_reader_gone()) /* the script did not fail: the reader of its output is gone */
        return explain(s, st, host);
    if (ah_signals_ending())
        report(s, "cancelled", "interrupted");
    else if (st == AH_OK && s->resume.answer)
        return end_of_answer(s, host);
    else if (st == AH_OK && ah_agent_returned(host))
        return answer(s, host);
    else if (st == AH_OK && s->resume.words && !ah_agent_reads_words(&s->options))
        return no_agent(s);
    else if (st == AH_OK && !s->resume.conversation && !ah_terminal_wrote(&s->terminal) &&
             ah_agent_idle(host))
        return did_nothing(s);
    report(s, "ok", "");
    return EXIT_OK;
}

/* Gives the host the settings of models and runs. Returns the exit code if they are invalid, else
 * 0. */
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

    if (machine && !ah_terminal_take_stdout(&s->terminal))
        return cannot_take(s);
    if (o->script && (code = ah_unreadable(o->script)))
        return cannot_open(s, o->script, code);
    if (o->replay && (code = ah_unreadable(o->replay)))
        return cannot_replay(s, o->replay, code);
    /* Made early, since a script may leave no memory for it. */
    if (machine && (st = programs_of(s, &host)) != AH_OK)
        return cannot_start(s, st);
    if ((st = open_host(s, true, &host)) != AH_OK)
        return cannot_start(s, st);
    ah_signals_watch(host);
    if (!(code = settle(s, host)) && given(s, AH_OPTION_INTERACTIVE))
        code = interact(s, host);
    else if (!code && !(code = run_in(s, host)))
        warn_unkept(s);
    ah_signals_forget();
    ah_close(host);
    return code;
}

/* -- commands ------------------------------------------------------------------------------- */

/* Reads what the program returned: the exit code, a line end and, if any, an error text. Returns
 * the exit code. */
static int end_command(session *s, ah_host *host, ah_status st)
{
    const char *said;
    char *words;
    int code;

    if (ah_signals_caught()) /* the result so far does not count */
        return EXIT_SCRIPT;
    if (ah_signals_reader_gone())
        return EXIT_OK;
    said = ah_returned(host);
    if (st != AH_OK || !said)
        return explain(s, st, host);
    code = atoi(said);
    if (!(words = strdup(strchr(said, '\n') + 1))) /* a report replaces what was returned */
        return cannot_start(s, AH_NOMEM);
    if (*words)
        code = fail(s, code, code == EXIT_USAGE ? "usage" : "internal", words);
    free(words);
    return code;
}

/* Calls `member` of the program that performs lines with the line, the descriptor of its output and
 * `word`. */
static ah_status perform(session *s, ah_host *host, const char *member, const char *word)
{
    char descriptor[16];
    const char *argv[] = {s->line.read, descriptor, word};

    snprintf(descriptor, sizeof descriptor, "%d", fileno(s->terminal.out));
    return ah_program_call(host, "performed", member, 3, argv);
}

/* Runs the program in the state that has read the line. */
static ah_status run_read(session *s, ah_host *host)
{
    char descriptor[16];
    const char *argv[] = {descriptor};

    snprintf(descriptor, sizeof descriptor, "%d", fileno(s->terminal.out));
    return ah_line_call(host, "run", 1, argv, &s->line);
}

/* Reports what the program's `run` has found in a script's state, in another Lua state. */
static int tell_found(session *s, const char *found)
{
    ah_host *host;
    ah_status st = programs_of(s, &host);

    return st == AH_OK ? end_command(s, host, perform(s, host, "tell", found))
                       : cannot_start(s, st);
}

/* Takes what the program returned: the end of the command, or findings. */
static int take_returned(session *s, ah_host *host, ah_status st)
{
    static const char found[] = "found\n";
    const char *said = st == AH_OK && !ah_signals_caught() ? ah_returned(host) : NULL;
    bool lost;

    if (said && ah_resume_take(&s->resume, said, &lost))
        return lost ? cannot_start(s, AH_NOMEM) : EXIT_OK;
    if (said && strncmp(said, found, sizeof found - 1) == 0)
        return tell_found(s, said + sizeof found - 1);
    return end_command(s, host, st);
}

/* Runs the program in a host of its own, in which it may run a script, whose prints go to
 * stderr. */
static int run_apart(session *s)
{
    ah_host *host;
    ah_status st;
    int code;

    if ((st = open_host(s, false, &host)) != AH_OK)
        return cannot_start(s, st);
    ah_signals_watch(host);
    if (!(code = settle(s, host)))
        code = (st = ah_program_open(host)) == AH_OK
                   ? take_returned(s, host, perform(s, host, "apart", s->store ? s->store : ""))
                   : explain(s, st, host);
    ah_signals_forget();
    ah_close(host);
    return code;
}

/* Runs the program in the host of the programs, which is opened again if it has another log level
 * than the line asks for. */
static int run_here(session *s)
{
    ah_host *host;
    ah_status st;
    int code;

    if (s->level != s->options.log_level) {
        ah_close(s->programs);
        s->programs = NULL;
    }
    st = programs_of(s, &host);
    if (st == AH_OK && s->settings.pages)
        st = ah_program_pages(host);
    if (st != AH_OK)
        return cannot_start(s, st);
    ah_signals_watch(host);
    code = take_returned(s, host, run_read(s, host));
    ah_signals_forget();
    return code;
}

static int serve_script(session *s);

/* Runs what a program has found: a script, in its folder, or its own member. */
static int resume(session *s)
{
    const ah_resume *r = &s->resume;
    ah_settings of_line = s->settings;
    char text[1400];
    int code;

    s->options = (ah_options){.log_level = of_line.log,
                              .color = of_line.color,
                              .script = r->script,
                              .store = r->store,
                              .model = r->model,
                              .argc = r->words != NULL,
                              .argv = &s->resume.words,
                              .env_file = r->env_file,
                              .record = r->record,
                              .replay = r->replay,
                              .given = (unsigned)r->json << AH_OPTION_JSON |
                                       (unsigned)r->jsonl << AH_OPTION_JSONL};
    if (r->folder && chdir(r->folder) != 0) {
        snprintf(text, sizeof text, "cannot enter '%.500s', the folder of the conversation: %s",
                 r->folder, strerror(errno));
        return fail(s, EXIT_SCRIPT, "internal", text);
    }
    ah_settings_init(&s->settings, &s->options);
    code = serve_script(s);
    ah_settings_clear(&s->settings);
    s->settings = of_line;
    return code;
}

static int run_command(session *s)
{
    const char *file = s->settings.file ? s->line.argv[s->settings.file - 1] : NULL;
    int code;

    if (s->settings.is_apart && !s->settings.prints && !ah_terminal_take_stdout(&s->terminal))
        return cannot_take(s);
    if (file && (code = ah_unreadable(file)))
        return cannot_open(s, file, code);
    code = s->settings.is_apart ? run_apart(s) : run_here(s);
    return s->resume.text ? resume(s) : code;
}

/* -- command lines -------------------------------------------------------------------------- */

/* Prints the version; with -v, all lines of ah_about, of which it is the first. */
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
    ah_close(host);
    return EXIT_OK;
}

/* An invalid command line is reported to people only. */
static int refuse(session *s, const char *text)
{
    ah_terminal_error(&s->terminal, text);
    return EXIT_USAGE;
}

static void heed_settings(session *s)
{
    ah_terminal_colour(&s->terminal, s->settings.color);
    s->level = s->settings.log;
    if (s->settings.warning && !is_quiet(s))
        ah_terminal_log(&s->terminal, AH_LOG_WARNING, s->settings.warning);
}

/* Calls `member` of the program, which reads the command line, and takes the settings that it
 * returns. AH_OK also if s->settings.fault has an error. */
static ah_status read_line(session *s, const char *member)
{
    ah_host *host;
    ah_status st = programs_of(s, &host);

    if (st == AH_OK)
        st = ah_line_call(host, member, 0, NULL, &s->line);
    if (st == AH_OK && !ah_settings_take(&s->settings, ah_returned(host)))
        st = AH_NOMEM;
    return st;
}

/* Runs the line in a child, and again when files of the project change. */
static int watch(session *s)
{
    bool script = s->options.script && !s->settings.again;
    ah_watching w = {.line = &s->line,
                     .terminal = &s->terminal,
                     .argv = s->line.argv - 1,
                     .what = script ? s->options.script : NULL,
                     .quiet = is_quiet(s)};
    ah_status st = programs_of(s, &w.host);
    int code;

    if (script && (code = ah_unreadable(s->options.script)))
        return cannot_open(s, s->options.script, code);
    if (st == AH_OK)
        st = ah_line_call(w.host, "watch", 0, NULL, &s->line);
    if (st != AH_OK)
        return explain(s, st, w.host);
    if (*ah_returned(w.host))
        return fail(s, EXIT_SCRIPT, "internal", ah_returned(w.host));
    return ah_watch_serve(&w);
}

/* Returns why the line cannot have --watch; NULL: it can. */
static const char *not_watched(const session *s)
{
    const char *script = s->options.script;

    if (given(s, AH_OPTION_INTERACTIVE))
        return "--watch and -i: give one of them\nSee agenthost --help.";
    if (!script || strcmp(script, "-") == 0)
        return "--watch needs a script in a file\nSee agenthost --help.";
    return NULL;
}

/* Returns why the line cannot have -i; NULL: it can. */
static const char *not_interactive(const session *s)
{
    if (given(s, AH_OPTION_JSON) || given(s, AH_OPTION_JSONL))
        return "-i prints values as text: leave out --json and --jsonl\nSee agenthost --help.";
    if (s->options.script && strcmp(s->options.script, "-") == 0)
        return "-i reads its lines from standard input: give the script as a file\n"
               "See agenthost --help.";
    return NULL;
}

static int serve_script(session *s)
{
    const ah_options *o = &s->options;
    const char *fault;
    ah_status st;

    if (given(s, AH_OPTION_JSON) && given(s, AH_OPTION_JSONL))
        return refuse(s, "--json and --jsonl: give one of them\nSee agenthost --help.");
    if (o->record && o->replay)
        return refuse(s, "--record and --replay: give one of them\nSee agenthost --help.");
    if (given(s, AH_OPTION_VERSION))
        return show_version(s);
    if (given(s, AH_OPTION_WATCH) && (fault = not_watched(s)))
        return refuse(s, fault);
    if (given(s, AH_OPTION_INTERACTIVE) && (fault = not_interactive(s)))
        return refuse(s, fault);
    if (!o->script && !o->eval && !s->resume.answer && !given(s, AH_OPTION_INTERACTIVE))
        return refuse(s, "no script given\nTry:  " TRY "\nHelp: agenthost --help");
    if (given(s, AH_OPTION_WATCH) && !s->watched)
        return watch(s);
    s->line.configured = ah_settings_there(&s->settings);
    if ((s->line.configured || o->env_file) && (st = read_line(s, "settings_of")) != AH_OK)
        return cannot_start(s, st);
    if (s->settings.fault)
        return fail(s, EXIT_USAGE, "usage", s->settings.fault);
    heed_settings(s);
    return run(s);
}

/* Serves a line that is not the plain run of a script. */
static int serve_line(session *s)
{
    ah_status st;

    s->line.configured = ah_settings_there(&s->settings);
    st = read_line(s, "read");
    if (st != AH_OK && given(s, AH_OPTION_HELP)) {
        ah_help(stdout);
        return EXIT_OK;
    }
    if (st != AH_OK)
        return cannot_start(s, st);
    if (s->settings.is_run) {
        ah_settings_clear(&s->settings);
        ah_settings_init(&s->settings, &s->options);
        return serve_script(s);
    }
    heed_settings(s);
    s->line.read = s->settings.line;
    s->options.given |= s->settings.json ? 1u << AH_OPTION_JSON : 0;
    if (s->settings.word)
        return cannot_mean(s, s->line.argv[s->settings.word - 1]);
    if (s->settings.fault)
        return s->settings.is_apart ? fail(s, EXIT_USAGE, "usage", s->settings.fault)
                                    : refuse(s, s->settings.fault);
    if (s->settings.show) {
        fputs(s->settings.show, stdout);
        return EXIT_OK;
    }
    return s->settings.again && !s->watched ? watch(s) : run_command(s);
}

static int serve(session *s, int argc, char **argv)
{
    ah_options *o = &s->options;
    bool plain = ah_options_parse(o, argc, argv);
    int code;

    ah_settings_init(&s->settings, o);
    heed_settings(s);
    s->line =
        (ah_line){.settings = s->settings.path, .argc = argc > 0 ? argc - 1 : 0, .argv = argv + 1};
    code = plain ? serve_script(s) : serve_line(s);
    ah_settings_clear(&s->settings);
    return code;
}

/* Output that could not be written is a failure, unless its reader is gone. */
static int finish(session *s, int code)
{
    int lost = ah_terminal_finish(&s->terminal);
    int sig = code ? ah_signals_caught() : ah_signals_ending();
    char text[256];

    if (sig)
        return EXIT_SIGNAL + sig;
    if (!lost || lost == EPIPE || ah_signals_reader_gone())
        return code;
    snprintf(text, sizeof text,
             "cannot write to standard output: %s; what was printed is incomplete",
             lost > 0 ? strerror(lost) : "a write failed (disk full?)");
    ah_terminal_error(&s->terminal, text);
    return code ? code : EXIT_SCRIPT;
}

/* Many systems allow 1024 open files at first, which is few for a thousand conversations, and more
 * to a program that asks. Commands that the script starts inherit the limit. */
static void allow_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= MOST_FILES || r.rlim_cur >= r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max < MOST_FILES ? r.rlim_max : MOST_FILES;
    setrlimit(RLIMIT_NOFILE, &r);
}

int main(int argc, char **argv)
{
    session s = {.watched = ah_watch_is_child()};
    int code;

    allow_files();
    ah_terminal_init(&s.terminal);
    ah_signals_init();
    s.door = (ah_program_door){.host = program_host, .ud = &s};
    s.report = (ah_report){.programs = &s.door};
    code = finish(&s, serve(&s, argc, argv));
    ah_resume_clear(&s.resume);
    free(s.store);
    ah_close(s.programs);
    return code;
}
