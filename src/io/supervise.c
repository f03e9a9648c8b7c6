/* Everything here runs after a fork of a process that may have had threads: only async-signal-safe
 * calls, no memory but the stack, no file of ours left open.
 *
 * Between host and command are two small processes, both subreapers. The inner one supervises: it
 * waits for its children, for commands of the host, and for the time limit, and ends everything
 * below (io/descent.h). The outer one supervises the inner one, because a command without a sandbox
 * may do anything to its parent:
 *
 *     the inner one is stopped          the outer one continues it, at once
 *     the inner one is killed           the outer one adopts what was below, and ends it
 *     the outer one is killed           the kernel signals the inner one, which ends everything
 *     both are stopped                  the host, which knows the time limit, continues them
 *     the inner one does nothing        the host signals the outer one (TERM, CONT), which kills it
 *
 * Each watcher is watched by a process that can act without its help. A command escapes only if it
 * kills both at once. On systems other than Linux (or built with AH_PROCESS_GROUP) there is only
 * the inner one, which ends the group of the command. */
#define _GNU_SOURCE /* syscall, ppoll */
#include "io/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/descent.h"

#if AH_HAS_DESCENT
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

enum {
    CONTROL = 3, /* numbers given to the descriptors */
    REPORT = 4,
    FENCE = AH_PROCESS_FENCE,
    FOLDER = 6,
    FIRST_OTHER = 7,
    SAFE = 12,         /* above all of these */
    MOST_FD = 1 << 16, /* closed one by one if the system cannot close all at once */
    PAUSE_MS = 2,      /* between two rounds of KILL */
    SLACK_MS = 1000,   /* delay allowed to the inner one */
    CLEAN_MS = 2000    /* time for cleaning up before the end is reported */
};

typedef struct supervisor {
    const ah_process_config *cfg;
    ah_descent below;
    pid_t above; /* the process that supervises this one; 0: only the host */
    pid_t command;
    int status;         /* of the command, once known */
    bool ended, ending; /* the command has ended; everything is being ended */
    bool deaf;          /* the host is gone */
    bool none;          /* waitpid reported no children: nothing is below */
    ah_process_end how;
    int64_t deadline, kill_at, give_up; /* 0: none */
} supervisor;

static void pause_ms(long ms)
{
    struct timespec ts = {0, ms * 1000000L};

    nanosleep(&ts, NULL);
}

static int64_t grace_of(const ah_process_config *cfg)
{
    return cfg->grace_ms > 0 ? cfg->grace_ms : AH_GRACE_MS;
}

static void tell(const ah_report *r)
{
    while (write(REPORT, r, sizeof *r) < 0 && errno == EINTR)
        ;
}

#if AH_HAS_DESCENT
/* Sends CONT when the parent dies: even a stopped process gets it. */
static void become_reaper(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    prctl(PR_SET_PDEATHSIG, (long)SIGCONT, 0L, 0L, 0L);
    prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L); /* its memory is a copy of the host's */
    prctl(PR_SET_NAME, "agenthost-watch", 0L, 0L, 0L);
}

/* The command dies with its supervisor. */
static bool tie_to(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L) == 0 && getppid() == parent &&
           prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0;
}

static bool close_range_of_all(void)
{
#ifdef SYS_close_range
    return syscall(SYS_close_range, (unsigned)FIRST_OTHER, ~0U, 0U) == 0;
#else
    return false;
#endif
}

#else

static void become_reaper(void) {}

static bool tie_to(pid_t parent)
{
    return getppid() == parent;
}

static bool close_range_of_all(void)
{
    return false;
}
#endif

/* -- the command's process -------------------------------------------------------------------- */

#ifdef __GLIBC__
typedef __rlimit_resource_t resource;
#else
typedef int resource;
#endif

static bool limit(resource what, uint64_t most)
{
    struct rlimit r;

    if (!most)
        return true;
    if (getrlimit(what, &r) != 0)
        return false;
    if (r.rlim_max == RLIM_INFINITY || r.rlim_max > most)
        r.rlim_max = most;
    r.rlim_cur = r.rlim_max;
    return setrlimit(what, &r) == 0;
}

static bool set_limits(const ah_process_limits *l)
{
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    return limit(RLIMIT_AS, l->memory_bytes) && limit(RLIMIT_FSIZE, l->file_bytes) &&
           limit(RLIMIT_CPU, l->cpu_s) && limit(RLIMIT_NPROC, l->processes);
}

static _Noreturn void give_up(ah_launch_step step, int e)
{
    const ah_report r = {.kind = AH_REPORT_FAILED, .failed = step, .error = e};

    tell(&r);
    _exit(127);
}

static bool enter_folder(const ah_process_config *cfg)
{
    return (!cfg->cwd_fd || fchdir(FOLDER) == 0) && (!cfg->cwd || chdir(cfg->cwd) == 0);
}

/* `above`: the processes above it, its parent first. */
static _Noreturn void become_command(const ah_supervisor *s, const pid_t *above, size_t n)
{
    const ah_process_config *cfg = s->cfg;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    int e;

    setsid();
    if (!tie_to(above[0]))
        _exit(127);
    if (!enter_folder(cfg))
        give_up(AH_STEP_CWD, errno);
    if (!set_limits(&cfg->limits))
        give_up(AH_STEP_LIMITS, errno);
    if (cfg->confine && (e = cfg->confine(cfg->confine_ud, above, n)) != 0)
        give_up(AH_STEP_CONFINE, e);
    sigaction(SIGCHLD, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* POSIX's prototype; neither the strings nor the lists are written to */
    execve(s->path, (char *const *)(uintptr_t)cfg->argv, (char *const *)(uintptr_t)cfg->env);
    give_up(AH_STEP_EXEC, errno);
}

/* -- setting up -------------------------------------------------------------------------------- */

static void on_signal(int sig)
{
    (void)sig; /* its arrival ends a wait */
}

/* Resets all signals: handlers of the host must not run here, and the command must not ignore
 * signals that the host ignores. */
static void reset_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours = {.sa_handler = on_signal};

    for (int sig = 1; sig < 65; sig++)
        sigaction(sig, &usual, NULL);
    sigaction(SIGCHLD, &ours, NULL);
    sigaction(SIGCONT, &ours, NULL);
}

static sigset_t all_but(int one, int other)
{
    sigset_t set;

    sigfillset(&set);
    sigdelset(&set, one);
    sigdelset(&set, other);
    return set;
}

static void close_others(void)
{
    if (!close_range_of_all())
        for (int fd = FIRST_OTHER; fd < MOST_FD; fd++)
            close(fd);
}

/* Moves the given descriptors to 0 to 6, whatever their numbers, and closes all others. */
static bool place(const ah_supervisor *s)
{
    const int from[] = {s->in,     s->out,           s->err,        s->control,
                        s->report, s->cfg->fence_fd, s->cfg->cwd_fd};
    int safe[FIRST_OTHER];

    for (int i = 0; i < FIRST_OTHER; i++) {
        bool none = i >= FENCE && !from[i];

        safe[i] = none ? -1 : fcntl(from[i], F_DUPFD, SAFE);
        if (safe[i] < 0 && !none)
            return false;
    }
    for (int i = 0; i < FIRST_OTHER; i++)
        if (safe[i] < 0)
            close(i);
        else if (dup2(safe[i], i) < 0 || (i >= CONTROL && fcntl(i, F_SETFD, FD_CLOEXEC) != 0))
            return false;
    close_others();
    return true;
}

/* Closes the supervisor's copies of the command's descriptors, so that only the command keeps its
 * streams open. */
static void close_its(const ah_process_config *cfg)
{
    for (int fd = 0; fd < CONTROL; fd++)
        close(fd);
    if (cfg->fence_fd)
        close(FENCE);
    if (cfg->cwd_fd)
        close(FOLDER);
}

/* Returns the CPU time, in microseconds, of all children that were waited for. */
static int64_t cpu_of_children(void)
{
    struct rusage used = {0};

    getrusage(RUSAGE_CHILDREN, &used);
    return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* Returns 0 only if the kernel reports no children, and a number only if all could be looked at. */
static int count_left(const ah_descent *below, bool none)
{
    return none ? 0 : ah_descent_count(below);
}

/* -- the inner supervisor ---------------------------------------------------------------------- */

static void signal_all(const supervisor *s, int sig)
{
    if (!AH_HAS_DESCENT || s->below.children < 0) /* only the group is known */
        kill(-s->command, sig);
    ah_descent_signal(&s->below, sig);
}

static void begin_ending(supervisor *s, ah_process_end how, bool kill_now)
{
    int64_t now = ah_clock_ms();

    if (!s->ending) {
        s->ending = true;
        s->how = how;
        s->kill_at = now + grace_of(s->cfg);
        tell(&(ah_report){.kind = AH_REPORT_ENDING, .how = how});
        if (!kill_now) {
            signal_all(s, SIGTERM);
            signal_all(s, SIGCONT); /* a stopped process cannot end */
        }
    }
    if (kill_now)
        s->kill_at = now;
    s->give_up = s->kill_at + AH_KILL_MS;
}

/* Reaps ended children; false if there are none left. A command may have made this process its
 * tracer: then its stops are reported here too, and are no end. */
static bool reap(supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
        if (pid != s->command || !(WIFEXITED(status) || WIFSIGNALED(status)))
            continue;
        s->status = status;
        s->ended = true;
    }
    s->none = pid != 0;
    return pid == 0;
}

/* The command's id is valid until it was waited for. Before it has its group it blocks all signals,
 * and takes this one before exec. */
static void pass_on(const supervisor *s, int sig)
{
    if (!s->ended && kill(-s->command, sig) != 0)
        kill(s->command, sig);
}

/* Reads nothing, a byte, or the end, which means that the host has died. */
static void read_control(supervisor *s)
{
    char c = 0;
    ssize_t n = read(CONTROL, &c, 1);

    if (n < 0)
        return;
    if (n == 1 && c > 0 && c <= AH_MOST_SIGNAL) {
        pass_on(s, c);
        return;
    }
    begin_ending(s, AH_PROCESS_STOPPED, n == 1 && c == AH_CONTROL_KILL);
    s->deaf = n == 0; /* it would stay readable */
}

static int64_t wake_at(const supervisor *s)
{
    return s->ending ? s->kill_at : s->deadline;
}

/* Waits until a child ends, the host sends a command, the parent dies, or it is time. */
static void wait_for_news(supervisor *s)
{
    int64_t at = wake_at(s), left = at ? at - ah_clock_ms() : -1;
    const sigset_t mask = all_but(SIGCHLD, SIGCONT);
    struct timespec ts = {0};
    fd_set readable;

    if (at && left < 0)
        left = 0;
    ts.tv_sec = (time_t)(left / 1000);
    ts.tv_nsec = (long)(left % 1000) * 1000000L;
    FD_ZERO(&readable);
    if (!s->deaf)
        FD_SET(CONTROL, &readable);
    if (pselect(CONTROL + 1, &readable, NULL, NULL, at ? &ts : NULL, &mask) > 0)
        read_control(s);
}

/* Runs until no process is left. The rounds of KILL do not wait for single children: thousands may
 * end. */
static void watch(supervisor *s)
{
    while (reap(s)) {
        int64_t now = ah_clock_ms();

        if (!s->ending && s->above && getppid() != s->above)
            begin_ending(s, AH_PROCESS_FAILED, true);
        else if (!s->ending && s->ended)
            begin_ending(s, AH_PROCESS_EXITED, false);
        else if (!s->ending && s->deadline && now >= s->deadline)
            begin_ending(s, AH_PROCESS_TIMED_OUT, false);
        if (!s->ending || now < s->kill_at) {
            wait_for_news(s);
            continue;
        }
        if (now >= s->give_up)
            return;
        signal_all(s, SIGKILL);
        pause_ms(PAUSE_MS);
    }
}

/* In bytes. Before exec the command's process counts with the host's memory, which this process
 * also has: a value no larger than that says nothing. */
static int64_t peak_of_children(void)
{
    const int64_t margin = 1 << 20;
#ifdef __APPLE__
    const int64_t unit = 1;
#else
    const int64_t unit = 1024;
#endif
    struct rusage own = {0}, used = {0};

    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &used);
    if (used.ru_maxrss * unit <= own.ru_maxrss * unit + margin)
        return 0;
    return used.ru_maxrss * unit;
}

static void report_end(const supervisor *s)
{
    tell(&(ah_report){.kind = AH_REPORT_ENDED,
                      .how = s->how,
                      .status = s->status,
                      .left = count_left(&s->below, s->none),
                      .cpu_us = cpu_of_children(),
                      .peak_bytes = peak_of_children()});
}

/* `above`: the outer supervisor and the host, or only the host. */
static void supervise(const ah_supervisor *s, const pid_t *above, size_t n)
{
    supervisor me = {.cfg = s->cfg, .how = AH_PROCESS_EXITED, .above = n > 1 ? above[0] : 0};
    pid_t over[3] = {getpid()};

    for (size_t i = 0; i < n; i++)
        over[i + 1] = above[i];
    become_reaper();
    ah_descent_open(&me.below);
    if (s->cfg->timeout_ms > 0)
        me.deadline = ah_clock_ms() + s->cfg->timeout_ms;
    me.command = fork();
    if (me.command == 0)
        become_command(s, over, n + 1);
    if (me.command < 0)
        give_up(AH_STEP_FORK, errno);
    tell(&(ah_report){.kind = AH_REPORT_STARTED, .group = me.command, .inner = over[0]});
    close_its(s->cfg);
    watch(&me);
    report_end(&me);
}

static void clean_up(const ah_process_config *cfg)
{
    if (!cfg->clean || cfg->clean(cfg->confine_ud, CLEAN_MS) || fork() != 0)
        return;
    close(CONTROL); /* the end is reported meanwhile */
    close(REPORT);
    cfg->clean(cfg->confine_ud, -1);
    _exit(0);
}

/* -- the outer supervisor ---------------------------------------------------------------------- */

#if AH_HAS_DESCENT

typedef struct guard {
    const ah_process_config *cfg;
    ah_descent below;
    pid_t inner; /* 0: it has ended */
    bool deaf, none;
    bool gave_up;    /* the inner one exited by itself: it did what it could */
    int64_t kill_at; /* time at which the inner one must have ended; 0: none */
} guard;

/* TERM is never delivered: it is found pending when the CONT sent with it ends a wait. */
static bool told_to_end(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

/* Reaps the children that have ended, without waiting, and continues the inner supervisor if it was
 * stopped. False if there are no children left. */
static bool tend(guard *g)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0 || (pid < 0 && errno == EINTR)) {
        if (pid != g->inner)
            continue;
        if (WIFSTOPPED(status)) {
            kill(pid, SIGCONT);
            continue;
        }
        g->inner = 0;
        g->gave_up = WIFEXITED(status);
    }
    g->none = pid != 0;
    return pid == 0;
}

/* Returns the ms that the inner supervisor may take once it has begun to end everything. */
static int64_t patience(const guard *g)
{
    return grace_of(g->cfg) + AH_KILL_MS + SLACK_MS;
}

/* Waits until the inner supervisor ends or is stopped, the host dies or sends CONT, or it is
 * time. */
static void wait_for_inner(guard *g)
{
    struct pollfd host = {
        .fd = g->deaf ? -1 : CONTROL}; /* waits for its end only: the bytes are for the inner one */
    const sigset_t mask = all_but(SIGCHLD, SIGCONT);
    int64_t left = g->kill_at ? g->kill_at - ah_clock_ms() : 0;
    struct timespec ts = {0};

    left = left > 0 ? left : 0;
    ts.tv_sec = (time_t)(left / 1000);
    ts.tv_nsec = (long)(left % 1000) * 1000000L;
    if (ppoll(&host, 1, g->kill_at ? &ts : NULL, &mask) > 0) {
        int64_t at = ah_clock_ms() + patience(g);

        g->deaf = true;
        g->kill_at = !g->kill_at || at < g->kill_at ? at : g->kill_at;
    }
}

/* True if the inner one does nothing, or nothing that helps. */
static bool is_time(const guard *g)
{
    return told_to_end() || (g->kill_at && ah_clock_ms() >= g->kill_at);
}

/* Kills what is left when the inner one has ended, and the inner one itself if it has not. A
 * process that traces it gets its end first, and must be ended for this process to see it. */
static void end_all(guard *g)
{
    int64_t give_up = ah_clock_ms() + (g->gave_up ? SLACK_MS : AH_KILL_MS);

    if (g->inner)
        tell(&(ah_report){.kind = AH_REPORT_ENDING, .how = AH_PROCESS_FAILED});
    while (tend(g) && ah_clock_ms() < give_up) {
        ah_descent_signal(&g->below, SIGKILL);
        pause_ms(PAUSE_MS);
    }
}

/* Forks the inner supervisor, in which it returns when everything has ended, and guards it. In the
 * guard it returns after the last report. */
static void stand_guard(const ah_supervisor *s, const pid_t *above)
{
    guard g = {.cfg = s->cfg};
    int left;

    become_reaper();
    ah_descent_open(&g.below);
    if (s->cfg->timeout_ms > 0)
        g.kill_at = ah_clock_ms() + s->cfg->timeout_ms + patience(&g);
    g.inner = fork();
    if (g.inner < 0)
        give_up(AH_STEP_FORK, errno);
    if (g.inner == 0) {
        setsid(); /* a separate group, since a group may be signalled at once */
        ah_descent_close(&g.below);
        supervise(s, above, 2);
        return;
    }
    close_its(s->cfg);
    while (tend(&g) && g.inner && !is_time(&g))
        wait_for_inner(&g);
    end_all(&g);
    left = count_left(&g.below, g.none);
    clean_up(s->cfg);
    tell(&(ah_report){.kind = AH_REPORT_GONE, .left = left, .cpu_us = cpu_of_children()});
}

_Noreturn void ah_supervise(const ah_supervisor *s)
{
    const pid_t above[] = {getpid(), s->host}; /* of the inner one */

    setsid();
    reset_signals();
    if (!place(s))
        _exit(1);
    stand_guard(s, above);
    _exit(0);
}

#else

_Noreturn void ah_supervise(const ah_supervisor *s)
{
    setsid();
    reset_signals();
    if (!place(s))
        _exit(1);
    supervise(s, &s->host, 1);
    clean_up(s->cfg);
    tell(&(ah_report){.kind = AH_REPORT_GONE, .left = AH_LEFT_UNKNOWN});
    _exit(0);
}
#endif
