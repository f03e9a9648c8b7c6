/* Everything here runs behind a fork of a process that may have had threads: only calls that are
 * async-signal-safe, no memory but the stack, no file of ours left open. The process is small: it
 * waits for its children, for a word from the host, and for the time to be over.
 *
 * On Linux it is a subreaper: orphans below become its children, so that waitpid says when the
 * last is gone, and a walk over /proc/PID/task/TID/children finds each descendant. Each walk sees
 * a moment, and what forks meanwhile is found by the next; a process group is signalled at once,
 * forks in it included, which is what ends a fork bomb. Elsewhere (or built with
 * AH_PROCESS_GROUP) there is the group of the command alone. */
#define _GNU_SOURCE /* syscall, wait4, getdents64 */
#include "base/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && !defined(AH_PROCESS_GROUP)
#define HAS_TREE 1
#include <sys/prctl.h>
#include <sys/syscall.h>
#else
#define HAS_TREE 0
#endif

enum {
    CONTROL = 3, /* where the descriptors are put */
    REPORT = 4,
    FIRST_OTHER = 5,
    SAFE = 10,         /* above all of these */
    MOST_FD = 1 << 16, /* closed one by one where the system has no way for all */
    GRACE_MS = 500,
    KILL_MS = 10 * 1000, /* then it is given up */
    PAUSE_MS = 2,        /* between two rounds of KILL */
    MAX_TREE = 2048      /* descendants of one round; the next one finds others */
};

typedef struct supervisor {
    const ah_process_config *cfg;
    pid_t command;
    int status;         /* of the command, once it is known */
    bool ended, ending; /* the command; everything */
    bool deaf;          /* the host is gone */
    ah_process_end how;
    int64_t deadline, kill_at, give_up; /* 0: none */
} supervisor;

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void tell(const ah_report *r)
{
    while (write(REPORT, r, sizeof *r) < 0 && errno == EINTR)
        ;
}

/* -- descendants --------------------------------------------------------------------------- */

typedef struct tree {
    pid_t pid[MAX_TREE];
    size_t n;
} tree;

#if HAS_TREE

enum { MAX_NAME = 64, CHUNK = 2048 };

/* s and a number behind it; the end. */
static char *append(char *to, const char *s, long n)
{
    char digits[24];
    size_t k = 0;

    while (*s)
        *to++ = *s++;
    if (n >= 0)
        do
            digits[k++] = (char)('0' + n % 10);
        while ((n /= 10) > 0);
    while (k)
        *to++ = digits[--k];
    *to = '\0';
    return to;
}

static void add_numbers(tree *t, const char *p, const char *end, long *partial)
{
    for (; p < end; p++) {
        if (*p >= '0' && *p <= '9') {
            *partial = (*partial < 0 ? 0 : *partial) * 10 + (*p - '0');
            continue;
        }
        if (*partial > 0 && t->n < MAX_TREE)
            t->pid[t->n++] = (pid_t)*partial;
        *partial = -1;
    }
}

/* The children of one thread: numbers with blanks behind them. */
static void add_children(tree *t, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char chunk[CHUNK];
    long partial = -1;
    ssize_t n;

    if (fd < 0)
        return;
    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        add_numbers(t, chunk, chunk + n, &partial);
    close(fd);
}

struct entry { /* of getdents64; the kernel's, which no header has */
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static void add_threads(tree *t, const char *folder, const char *entries, long n)
{
    char path[MAX_NAME * 2];

    for (long at = 0; at < n;) {
        const struct entry *e = (const struct entry *)(const void *)(entries + at);

        if (e->name[0] >= '0' && e->name[0] <= '9')
            append(append(append(append(path, folder, -1), "/", -1), e->name, -1), "/children", -1);
        if (e->name[0] >= '0' && e->name[0] <= '9')
            add_children(t, path);
        at += e->size;
    }
}

/* Those of all its threads. */
static void add_children_of(tree *t, pid_t pid)
{
    _Alignas(8) char entries[CHUNK];
    char folder[MAX_NAME];
    long n;
    int fd;

    append(append(folder, "/proc/", pid), "/task", -1);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        add_threads(t, folder, entries, n);
    close(fd);
}

/* Below this process, parents before their children. */
static void walk(tree *t)
{
    t->n = 0;
    add_children_of(t, getpid());
    for (size_t i = 0; i < t->n; i++)
        add_children_of(t, t->pid[i]);
}

static void become_reaper(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L); /* its memory is a copy of the host's */
    prctl(PR_SET_NAME, "agenthost-watch", 0L, 0L, 0L);
}

/* Whoever kills the supervisor ends the command, too. */
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

static void walk(tree *t)
{
    t->n = 0;
}

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

/* All groups in it, each at once, forks in it included. Not ours, in which a child of the tree
 * is for a moment. */
static void kill_groups(const tree *t)
{
    pid_t ours = getpgrp(), last = 0;

    for (size_t i = 0; i < t->n; i++) {
        pid_t group = getpgid(t->pid[i]);

        if (group > 1 && group != ours && group != last)
            kill(-group, SIGKILL);
        last = group;
    }
}

/* A number could only be another's by now if its process had ended, and all others had been handed
 * out, since the walk; those of our children are theirs until we wait for them. */
static void signal_all(const supervisor *s, int sig)
{
    tree t;

    if (!HAS_TREE)
        kill(-s->command, sig);
    walk(&t);
    if (sig == SIGKILL)
        kill_groups(&t);
    for (size_t i = 0; i < t.n; i++)
        kill(t.pid[i], sig);
}

static int count_left(void)
{
    tree t;

    walk(&t);
    return (int)t.n;
}

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

static _Noreturn void become_command(const ah_supervised *s, pid_t parent)
{
    const ah_process_config *cfg = s->cfg;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    int e;

    setsid();
    if (!tie_to(parent))
        _exit(127);
    if (cfg->cwd && chdir(cfg->cwd) != 0)
        give_up(AH_STEP_CWD, errno);
    if (!set_limits(&cfg->limits))
        give_up(AH_STEP_LIMITS, errno);
    if (cfg->confine && (e = cfg->confine(cfg->confine_ud)) != 0)
        give_up(AH_STEP_CONFINE, e);
    sigaction(SIGCHLD, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* POSIX's prototype: neither the strings nor the lists are written to */
    execve(s->path, (char *const *)(uintptr_t)cfg->argv, (char *const *)(uintptr_t)cfg->env);
    give_up(AH_STEP_EXEC, errno);
}

/* -- setting up --------------------------------------------------------------------------------- */

static void on_child(int sig)
{
    (void)sig; /* its coming ends pselect */
}

/* What the host has set must not run here, nor be ignored by the command. */
static void reset_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, child = {.sa_handler = on_child};

    for (int sig = 1; sig < 65; sig++)
        sigaction(sig, &usual, NULL);
    sigaction(SIGCHLD, &child, NULL);
}

static void close_others(void)
{
    if (!close_range_of_all())
        for (int fd = FIRST_OTHER; fd < MOST_FD; fd++)
            close(fd);
}

/* The descriptors given go to 0 to 4, whatever numbers they have; all others are closed. */
static bool place(const ah_supervised *s)
{
    const int from[] = {s->in, s->out, s->err, s->control, s->report};
    int safe[FIRST_OTHER];

    for (int i = 0; i < FIRST_OTHER; i++)
        if ((safe[i] = fcntl(from[i], F_DUPFD, SAFE)) < 0)
            return false;
    for (int i = 0; i < FIRST_OTHER; i++)
        if (dup2(safe[i], i) < 0)
            return false;
    close_others();
    return fcntl(CONTROL, F_SETFD, FD_CLOEXEC) == 0 && fcntl(REPORT, F_SETFD, FD_CLOEXEC) == 0;
}

/* -- waiting -------------------------------------------------------------------------------------- */

static void begin_ending(supervisor *s, ah_process_end how, bool kill_now)
{
    int64_t now = now_ms();

    if (!s->ending) {
        s->ending = true;
        s->how = how;
        s->kill_at = now + (s->cfg->grace_ms > 0 ? s->cfg->grace_ms : GRACE_MS);
        signal_all(s, SIGTERM);
        signal_all(s, SIGCONT); /* one that is stopped cannot end */
    }
    if (kill_now)
        s->kill_at = now;
    s->give_up = s->kill_at + KILL_MS;
}

/* Takes what has ended; false when there is no child any more. */
static bool reap(supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
        if (pid != s->command)
            continue;
        s->status = status;
        s->ended = true;
    }
    return pid == 0;
}

/* Nothing, a byte, or the end, which is the death of the host. */
static void read_control(supervisor *s)
{
    char c = 0;
    ssize_t n = read(CONTROL, &c, 1);

    if (n < 0)
        return;
    begin_ending(s, AH_PROCESS_STOPPED, n == 1 && c == AH_CONTROL_KILL);
    s->deaf = n == 0; /* it would be readable for ever */
}

static int64_t wake_at(const supervisor *s)
{
    return s->ending ? s->kill_at : s->deadline;
}

/* Until a child ends, the host says something, or it is time. */
static void wait_for_news(supervisor *s)
{
    int64_t at = wake_at(s), left = at ? at - now_ms() : -1;
    struct timespec ts = {0};
    sigset_t all_but_child;
    fd_set readable;

    if (at && left < 0)
        left = 0;
    ts.tv_sec = (time_t)(left / 1000);
    ts.tv_nsec = (long)(left % 1000) * 1000000L;
    sigfillset(&all_but_child);
    sigdelset(&all_but_child, SIGCHLD);
    FD_ZERO(&readable);
    if (!s->deaf)
        FD_SET(CONTROL, &readable);
    if (pselect(CONTROL + 1, &readable, NULL, NULL, at ? &ts : NULL, &all_but_child) > 0)
        read_control(s);
}

static void pause_ms(long ms)
{
    struct timespec ts = {0, ms * 1000000L};

    nanosleep(&ts, NULL);
}

/* Until nobody is left. The kill rounds do not wait for children one by one: thousands end. */
static void watch(supervisor *s)
{
    while (reap(s)) {
        int64_t now = now_ms();

        if (!s->ending && s->ended)
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

/* Bytes. Until it is the command, its process counts with the memory of the host, which this one
 * has, too: what is no more than that says nothing. */
static int64_t peak_of(const struct rusage *used)
{
    const int64_t margin = 1 << 20;
#ifdef __APPLE__
    const int64_t unit = 1;
#else
    const int64_t unit = 1024;
#endif
    struct rusage own = {0};

    getrusage(RUSAGE_SELF, &own);
    if (used->ru_maxrss * unit <= own.ru_maxrss * unit + margin)
        return 0;
    return used->ru_maxrss * unit;
}

static void report_end(const supervisor *s)
{
    struct rusage used = {0};
    ah_report r = {.kind = AH_REPORT_ENDED, .how = s->how, .status = s->status, .left = count_left()};

    getrusage(RUSAGE_CHILDREN, &used);
    r.cpu_us = ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
               used.ru_stime.tv_usec;
    r.peak_bytes = peak_of(&used);
    tell(&r);
}

_Noreturn void ah_supervise(const ah_supervised *s)
{
    supervisor me = {.cfg = s->cfg, .how = AH_PROCESS_EXITED};
    pid_t self = getpid();

    setsid();
    reset_signals();
    if (!place(s))
        _exit(1);
    become_reaper();
    if (s->cfg->timeout_ms > 0)
        me.deadline = now_ms() + s->cfg->timeout_ms;
    me.command = fork();
    if (me.command == 0)
        become_command(s, self);
    if (me.command < 0)
        give_up(AH_STEP_FORK, errno);
    tell(&(ah_report){.kind = AH_REPORT_STARTED, .group = me.command});
    for (int fd = 0; fd < CONTROL; fd++) /* the streams end when the command ends them */
        close(fd);
    watch(&me);
    report_end(&me);
    _exit(0);
}
