/* Random programs of tasks on a simulated clock: waiting takes no time, and when nothing is ready
 * the clock goes to the next timer.
 *
 *     simulated FROM COUNT      the programs of COUNT seeds
 *     simulated FILE            the program of a file, which program.lua and shrink.lua write
 *     simulated "{ planted = 'open', ... }"    a program as a table, with a fault of planted.lua
 *
 * perform.lua performs and judges them. After each, nothing may be left at work in the host, and
 * its memory must be what it was. Some programs are cancelled from outside, and some hosts are
 * closed while one is at work. Run from the repository's root; --jobs N shares the seeds. */
#define _DEFAULT_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agenthost.h"
#include "host/host.h"
#include "lua/lua_state.h"

enum {
    PER_HOST = 50,
    WARM = 4,   /* programs of a host before blocks are counted */
    SLACK = 10, /* blocks: tables of Lua differ */
    AGAIN = 8,
    MOST_JOBS = 8,
    MOST_STEPS = 100,         /* until nothing is posted after a program */
    LONGEST_MS = 600 * 1000,  /* simulated, of one program */
    MOST_WAITS = 1000 * 1000, /* of one program */
};

/* -- memory --------------------------------------------------------------------------------- */

static long live; /* blocks */

static void *change(void *ud, void *p, size_t size)
{
    void *to = size ? realloc(p, size) : NULL;

    (void)ud;
    if (!size) {
        live -= p != NULL;
        free(p);
    }
    live += to && !p;
    return to;
}

/* -- the clock -------------------------------------------------------------------------------- */

static struct {
    int64_t ms;
    int64_t begun;
    int64_t cancel; /* everything is cancelled then; 0: never */
    long waits;
    struct ah_host *host;
} now;

static long patience = 60; /* real seconds, for one program */
static char doing[300];    /* for the report of a crash */

static void give_up(const char *what)
{
    fprintf(stderr, "simulated: %s: %s\n", doing, what);
    fflush(stdout);
    _exit(1);
}

static void hangs(int sig)
{
    (void)sig;
    give_up("hangs");
}

/* Of the sanitizers, where they are linked. */
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static void crashed(void)
{
    give_up("crashes");
}

static void crashes(int sig)
{
    (void)sig;
    crashed();
}

static void tell_crashes(void)
{
    signal(SIGALRM, hangs);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(crashed);
    } else {
        signal(SIGSEGV, crashes);
        signal(SIGABRT, crashes);
    }
}

static int64_t simulated_ms(void *ud)
{
    (void)ud;
    return now.ms;
}

/* ah_watcher.idle: time passes at once. */
static int pass_time(void *ud, int timeout_ms)
{
    int timer = ah_loop_timeout(now.host->loop);

    (void)ud;
    if (++now.waits > MOST_WAITS || now.ms - now.begun > LONGEST_MS)
        give_up("does not come to an end");
    if (timeout_ms == 0)
        return 0;
    if (timeout_ms < 0 || (timer >= 0 && timer < timeout_ms))
        timeout_ms = timer;
    if (now.cancel && (timeout_ms < 0 || now.ms + timeout_ms >= now.cancel)) {
        now.ms = now.cancel > now.ms ? now.cancel : now.ms;
        now.cancel = 0;
        ah_cancel(now.host);
        return 0;
    }
    if (timeout_ms < 0)
        give_up("waits for ever");
    now.ms += timeout_ms;
    return 0;
}

/* -- runs ------------------------------------------------------------------------------------- */

/* Of one host. A run that has said `start` says `done` once, and nothing after it. */
static struct {
    enum { UNKNOWN, BEGUN, DONE } state[1 << 16];
    long at_work;
} runs;

static struct {
    char text[4096]; /* what the program did wrong, or "" */
} faults;

static void fault(const char *what, const char *detail)
{
    size_t n = strlen(faults.text);

    snprintf(faults.text + n, sizeof faults.text - n, "  %s%s%s\n", what, *detail ? ": " : "",
             detail);
}

static void on_event(void *ud, const ah_event *event)
{
    size_t run = (size_t)event->run;

    (void)ud;
    if (run >= sizeof runs.state / sizeof *runs.state)
        return;
    if (runs.state[run] == DONE)
        fault("an event came after the end of its run", event->type);
    if (strcmp(event->type, "start") == 0) {
        runs.at_work += runs.state[run] == UNKNOWN;
        runs.state[run] = BEGUN;
    } else if (strcmp(event->type, "done") == 0) {
        runs.at_work -= runs.state[run] == BEGUN;
        runs.state[run] = DONE;
    }
}

/* -- what is counted beyond the Lua state ----------------------------------------------------- */

static lua_Integer guards;

/* note(1) */
static int note(lua_State *L)
{
    guards += luaL_checkinteger(L, 1);
    return 0;
}

/* -- one program --------------------------------------------------------------------------------
 */

static ah_status load(const char *code)
{
    return ah_load(now.host, "simulated", code, strlen(code), 0, NULL);
}

/* Calls code that must not fail, and reports what it returns. */
static void ask(const char *code)
{
    const char *text;

    if (load(code) != AH_OK) {
        fault(code, ah_errmsg(now.host));
    } else {
        text = ah_returned(now.host);
        if (text && *text)
            fault("judged", text);
    }
}

static void check_count(const char *what, long found)
{
    char n[32];

    snprintf(n, sizeof n, "%ld", found);
    if (found)
        fault(what, n);
}

/* Runs the jobs that the last tasks may have posted. */
static void settle(void)
{
    for (int i = 0; i < MOST_STEPS && now.host->first; i++)
        ah_step(now.host, 0);
}

/* Nothing waits for anything, and no code is in the middle of its work. */
static void check_host(void)
{
    struct ah_host *host = now.host;
    const ah_lua *h = host->owner;

    settle();
    check_count("tasks are at work in the core", (long)h->n_tasks + (h->tasks != NULL));
    check_count("a task is being resumed", h->running || h->actor || h->watch);
    check_count("jobs are posted", host->first != NULL);
    check_count("a timer or a watch is left in the loop", !ah_loop_idle(host->loop));
    check_count("drives or callbacks are open", host->depth + host->callbacks);
    check_count("asks are open", host->asks.first != NULL);
    check_count("runs have not ended", runs.at_work);
    check_count("guards are open", (long)guards);
}

/* A task that failed and was not awaited makes the first call fail; then nothing is left. */
static void join_all(void)
{
    for (int i = 0; i < 3; i++)
        if (ah_join(now.host) == AH_OK)
            return;
    fault("ah_join", ah_errmsg(now.host));
}

/* Returns the simulated time after which the host is to be closed, in ms. */
static int64_t begin(const char *source)
{
    char code[300];
    long long cancel = 0, close = 0;
    const char *said;

    snprintf(code, sizeof code, "return simulated.begin(%s)", source);
    if (load(code) != AH_OK || !(said = ah_returned(now.host)))
        give_up(ah_errmsg(now.host));
    if (sscanf(said, "%lld %lld", &cancel, &close) != 2)
        sscanf(said, "- %lld", &close);
    now.begun = now.ms;
    now.waits = 0;
    now.cancel = cancel ? now.ms + cancel : 0;
    return now.ms + close;
}

/* source: what M.begin takes, as Lua text. */
static void perform(const char *source)
{
    begin(source);
    load("simulated.main()");
    ah_join(now.host);
    now.cancel = 0;
    ask("simulated.finish()");
    join_all();
    check_host();
    ask("return simulated.judge()");
    check_host();
    guards = 0;
    ask("return simulated.forget()");
}

/* Leaves the program in the middle of its work, for ah_close to end. */
static void perform_partly(const char *source)
{
    int64_t until = begin(source);

    load("simulated.main()");
    while (now.ms < until && (now.host->first || !ah_loop_idle(now.host->loop))) {
        ah_step(now.host, 0);
        if (!now.host->first && ah_loop_timeout(now.host->loop) < 0)
            break; /* a deadlock, which nothing waits for */
        if (!now.host->first)
            pass_time(NULL, -1);
    }
    now.cancel = 0;
}

/* -- hosts ----------------------------------------------------------------------------------------
 */

static void open_host(void)
{
    ah_config cfg = {.size = sizeof cfg,
                     .alloc = change,
                     .log_level = AH_LOG_OFF,
                     .clock = simulated_ms,
                     .wall = simulated_ms,
                     .watcher = {.event = on_event, .idle = pass_time}};
    ah_host *host = NULL;
    lua_State *L;

    memset(&runs, 0, sizeof runs);
    guards = 0;
    now.ms = 1000;
    now.cancel = 0;
    if (ah_open(&cfg, &host) != AH_OK)
        give_up("ah_open failed");
    now.host = (struct ah_host *)host;
    L = ((ah_lua *)now.host->owner)->main;
    lua_pushcfunction(L, note);
    lua_setglobal(L, "note");
    if (load("simulated = dofile 'spec/simulated/perform.lua'") != AH_OK)
        give_up(ah_errmsg(host));
}

static void close_host(long before)
{
    ah_close(now.host);
    now.host = NULL;
    check_count("guards are open after ah_close", (long)guards);
    check_count("blocks were not given back by ah_close", live - before);
}

static bool report(void)
{
    bool ok = !faults.text[0];

    if (!ok)
        printf("simulated: %s\n%s", doing, faults.text);
    faults.text[0] = '\0';
    fflush(stdout);
    return ok;
}

static void name_program(long seed)
{
    snprintf(doing, sizeof doing, "seed %ld", seed);
    alarm((unsigned)patience);
}

/* Returns the blocks of the host after the program, which is performed again if it seems to keep
 * some: the library loads something at its first use, but not twice. */
static long check_memory(const char *source, long before)
{
    long after = live;

    if (live <= before + SLACK)
        return before;
    for (int i = 0; i < AGAIN; i++)
        perform(source);
    if (live >= after + AGAIN)
        check_count("blocks are kept by each such program", (live - after) / AGAIN);
    return live;
}

/* Programs from, from + 1 ... in one host, of which the last is closed while it is at work. Returns
 * the number of those that were performed: none after one that has failed. */
static long try_seeds(long from, long count, bool *ok)
{
    long before = live, done = 0, kept = 0;
    bool fine = true;
    char source[32];

    open_host();
    perform("nil");
    for (; done < count && fine; done++) {
        name_program(from + done);
        snprintf(source, sizeof source, "%ld", from + done);
        perform(source);
        kept = done < WARM ? live : check_memory(source, kept);
        fine = report();
    }
    if (fine) {
        perform_partly(source);
        close_host(before);
        fine = report();
    } else {
        ah_close(now.host);
    }
    *ok = *ok && fine;
    return done;
}

static bool try_file(const char *path)
{
    long before = live;
    char source[300];

    snprintf(doing, sizeof doing, "%s", path);
    snprintf(source, sizeof source, *path == '{' ? "%s" : "'%s'", path);
    alarm((unsigned)patience);
    open_host();
    perform(source);
    if (*path != '{')
        perform_partly(source);
    close_host(before);
    return report();
}

/* -- start ---------------------------------------------------------------------------------------
 */

static bool work(long from, long count, long step)
{
    bool ok = true;

    for (long at = 0; at < count; at += step)
        for (long n = 0, most = count - at < PER_HOST ? count - at : PER_HOST; n < most;)
            n += try_seeds(from + at + n, most - n, &ok);
    return ok;
}

/* Job i of n has hosts i, i + n, i + 2n ... */
static int share(long from, long count, long jobs)
{
    pid_t child[MOST_JOBS];
    long n = 0;
    bool ok = true;
    int st;

    for (; n < jobs; n++) {
        if ((child[n] = fork()) == 0)
            exit(work(from + n * PER_HOST, count - n * PER_HOST, jobs * PER_HOST) ? 0 : 1);
        if (child[n] < 0)
            break;
    }
    ok = n == jobs;
    while (n-- > 0)
        if (waitpid(child[n], &st, 0) < 0 || st != 0)
            ok = false;
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    long jobs = 1, from, count;

    signal(SIGPIPE, SIG_IGN);
    tell_crashes();
    for (; argc > 2 && strncmp(argv[1], "--", 2) == 0; argv += 2, argc -= 2) {
        long *option = strcmp(argv[1], "--seconds") == 0 ? &patience : &jobs;

        *option = atol(argv[2]);
    }
    if (argc == 2)
        return try_file(argv[1]) ? 0 : 1;
    from = argc == 3 ? atol(argv[1]) : 0;
    count = argc == 3 ? atol(argv[2]) : 0;
    if (from < 1 || count < 1 || jobs < 1 || jobs > MOST_JOBS) {
        fputs("usage: simulated [--jobs N] [--seconds N] FROM COUNT, or simulated FILE\n", stderr);
        return 2;
    }
    return jobs == 1 ? !work(from, count, PER_HOST) : share(from, count, jobs);
}
