/* Signals are taken from a descriptor, so that one wait is for them, for the end of the child and
 * for changes. A Ctrl-C reaches the child, too, which decides what it ends; other signals are
 * passed on. */
#include "cli/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SELF "/proc/self/exe"
#endif

static const char CHILD[] = "AGENTHOST_WATCHED"; /* in the environment of the child */

bool ah_watch_is_child(void)
{
    bool is = getenv(CHILD) != NULL;

    unsetenv(CHILD);
    return is;
}

static int refuse(const ah_watching *w, const char *what, int why)
{
    char text[256];

    snprintf(text, sizeof text, "--watch: %s: %s", what, strerror(why));
    ah_terminal_error(w->terminal, text);
    return 1;
}

#ifdef __linux__

enum { GRACE_MS = 2000, PATH_ROOM = 1024 };

typedef struct watching {
    const ah_watching *w;
    int fd;               /* signals are read from it */
    sigset_t before;      /* the mask of the child */
    pid_t child;          /* 0: none is at work */
    bool stopping;        /* the child was asked to end, since a file has changed */
    int ending;           /* the signal that ends the whole; 0: none */
    int by_key;           /* the same signal, by a key: the child decides; 0: none */
    char path[PATH_ROOM]; /* the file that has changed */
} watching;

/* -- messages -------------------------------------------------------------------------------- */

static const char *what_of(const watching *g)
{
    return g->w->what ? g->w->what : "the specs";
}

static void say_ended(const watching *g, int status)
{
    char text[700], how[64];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
    snprintf(text, sizeof text, "agenthost: %.500s: %s; waiting for changes, Ctrl-C ends",
             what_of(g), how);
    if (!g->w->quiet)
        ah_terminal_say(g->w->terminal, text);
}

static void say_again(const watching *g)
{
    char text[PATH_ROOM + 700];

    snprintf(text, sizeof text, "agenthost: %s has changed; running %.500s again", g->path,
             what_of(g));
    if (!g->w->quiet)
        ah_terminal_say(g->w->terminal, text);
}

/* -- the child ------------------------------------------------------------------------------- */

static int start(watching *g)
{
    posix_spawnattr_t attr;
    int e = posix_spawnattr_init(&attr);

    if (e)
        return e;
    e = posix_spawnattr_setsigmask(&attr, &g->before);
    if (!e)
        e = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    if (!e && setenv(CHILD, "1", 1) != 0)
        e = errno;
    if (!e) {
        extern char **environ;

        e = posix_spawn(&g->child, SELF, NULL, &attr, g->w->argv, environ);
    }
    unsetenv(CHILD);
    posix_spawnattr_destroy(&attr);
    g->stopping = false;
    return e;
}

/* True if the child was ended by a Ctrl-C. Specs have no other reason to end after one; busted then
 * ends with 1. */
static bool was_interrupted(const watching *g, int status)
{
    if (!g->by_key || !g->w->what)
        return g->by_key != 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) == g->by_key
                               : WEXITSTATUS(status) == 128 + g->by_key;
}

/* Takes the end of the child. A child that a Ctrl-C has ended ends the whole. */
static void take_end(watching *g)
{
    int status;

    if (!g->child || waitpid(g->child, &status, WNOHANG) != g->child)
        return;
    g->child = 0;
    if (was_interrupted(g, status))
        g->ending = g->by_key;
    g->by_key = 0;
    if (!g->stopping && !g->ending)
        say_ended(g, status);
}

/* -- waiting --------------------------------------------------------------------------------- */

static void take_signal(watching *g)
{
    struct signalfd_siginfo info;
    int sig;

    if (read(g->fd, &info, sizeof info) != sizeof info)
        return;
    sig = (int)info.ssi_signo;
    if (sig == SIGCHLD)
        return;
    if (sig == SIGINT && info.ssi_code > 0 && g->child) { /* the system sent it to both */
        g->by_key = sig;
        return;
    }
    g->ending = sig;
    if (g->child)
        kill(g->child, sig);
}

/* Notes a change. Returns false if there is none. */
static bool take_change(watching *g)
{
    const char *path;

    if (ah_line_call(g->w->host, "changed", 0, NULL, g->w->line) != AH_OK)
        return false;
    path = ah_returned(g->w->host);
    if (!path || !*path)
        return false;
    snprintf(g->path, sizeof g->path, "%s", path);
    return true;
}

/* Waits for a signal or for a change, at most so long. */
static void await(watching *g, int most_ms)
{
    struct pollfd fd[] = {{.fd = g->fd, .events = POLLIN},
                          {.fd = ah_pollfd(g->w->host), .events = POLLIN}};
    int timeout = ah_timeout(g->w->host);

    if (most_ms >= 0 && (timeout < 0 || most_ms < timeout))
        timeout = most_ms;
    if (poll(fd, sizeof fd / sizeof *fd, timeout) > 0 && fd[0].revents)
        take_signal(g);
    ah_step(g->w->host, 0);
    take_end(g);
}

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Ends the child: it is asked to, and after a while made to. */
static void stop(watching *g)
{
    long long end = now_ms() + GRACE_MS, now;

    g->stopping = true;
    if (g->child && !g->ending)
        kill(g->child, SIGTERM);
    while (g->child && (now = now_ms()) < end)
        await(g, (int)(end - now));
    if (!g->child)
        return;
    kill(g->child, SIGKILL);
    waitpid(g->child, NULL, 0);
    g->child = 0;
}

/* Waits until a file has changed, or a signal ends the whole. */
static void await_change(watching *g)
{
    while (!g->ending && !take_change(g))
        await(g, -1);
}

static int loop(watching *g)
{
    int e = start(g);

    while (!e && !g->ending) {
        await_change(g);
        stop(g);
        if (g->ending)
            break;
        say_again(g);
        e = start(g);
    }
    return e ? refuse(g->w, "the command cannot be run again", e) : 128 + g->ending;
}

int ah_watch_serve(const ah_watching *w)
{
    watching g = {.w = w};
    sigset_t taken;
    int code;

    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &taken, &g.before);
    if ((g.fd = signalfd(-1, &taken, SFD_CLOEXEC)) < 0)
        return refuse(w, "signals cannot be waited for", errno);
    code = loop(&g);
    close(g.fd);
    return code;
}

#else

int ah_watch_serve(const ah_watching *w)
{
    return refuse(w, "changes of files", ENOSYS);
}

#endif
