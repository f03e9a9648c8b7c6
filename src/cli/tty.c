/* Handlers write, switch modes and raise signals again, all async-signal-safe. Events for the host
 * (a resize, the end of a stop) go through a pipe that its loop watches. A process in the
 * background does not change the modes, which are then the shell's. */
#define _DEFAULT_SOURCE /* SIGWINCH */
#include "cli/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Bracketed paste is switched on; at the end the cursor is shown. Keys are distinguished by kitty's
 * protocol. */
#define HELLO     "\033[?2004h"
#define BYE       "\033[?2004l\033[?25h"
#define DISTINCT  "\033[>1u"
#define AS_BEFORE "\033[<u"

enum { ON_RESIZE, ON_STOP, ON_CONTINUE, ON_END };

static void on_resize(int sig);
static void on_stop(int sig);
static void on_continue(int sig);
static void on_end(int sig);

/* on_end: for signals that end the process and have no other handler. */
static const struct {
    int sig;
    void (*handler)(int sig);
} watched[] = {{SIGWINCH, on_resize}, {SIGTSTP, on_stop}, {SIGCONT, on_continue}, {SIGHUP, on_end},
               {SIGQUIT, on_end},     {SIGABRT, on_end},  {SIGSEGV, on_end},      {SIGBUS, on_end},
               {SIGFPE, on_end},      {SIGILL, on_end}};

enum { WATCHED = sizeof watched / sizeof *watched };

/* Writable state at file scope, since signal handlers have no other access; there is one
 * terminal. */
static struct {
    volatile sig_atomic_t open, raw;
    volatile sig_atomic_t n_away, kept; /* kept: no other output was written since it was set */
    char away[AH_TTY_AWAY];
    int fd, news[2];
    unsigned mode;
    bool sequences, at_exit;
    pid_t owner; /* children have the handlers until they exec */
    pthread_t main;
    struct termios found;
    struct sigaction before[WATCHED];
} state;

/* -- modes, as handlers may switch them ------------------------------------------------------- */

static void write_all(const char *p, size_t n)
{
    for (ssize_t done; n && (done = write(state.fd, p, n)) > 0; n -= (size_t)done)
        p += done;
}

static bool in_foreground(void)
{
    pid_t group = tcgetpgrp(state.fd);

    return group == -1 || group == getpgrp();
}

/* Sets the modes with SIGTTOU blocked, so that a process that has just gone to the background is
 * not stopped by it. */
static int set_mode(const struct termios *mode)
{
    sigset_t ours, before;
    int failed;

    sigemptyset(&ours);
    sigaddset(&ours, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    failed = tcsetattr(state.fd, TCSANOW, mode);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void write_hello(void)
{
    if (state.sequences)
        write_all(HELLO, sizeof HELLO - 1);
    if (state.sequences && (state.mode & AH_TTY_DISTINCT))
        write_all(DISTINCT, sizeof DISTINCT - 1);
}

/* Enters the raw mode. Returns 0 or an errno. If it is entered already, sets it again, as another
 * program may have changed it. */
static int enter_mode(void)
{
    bool again = state.raw;
    struct termios mode;

    if (!again && tcgetattr(state.fd, &state.found) != 0)
        return errno;
    mode = state.found;
    mode.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | IGNCR | INLCR | INPCK | ISTRIP | IXON);
    mode.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | (state.mode & AH_TTY_SIGNALS ? 0 : ISIG));
    mode.c_cflag = (mode.c_cflag & ~(tcflag_t)CSIZE) | CS8;
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    state.raw = 1; /* first: a signal may come in between */
    if (set_mode(&mode) != 0) {
        state.raw = 0;
        return errno;
    }
    if (!again)
        write_hello();
    return 0;
}

void ah_tty_hide(void)
{
    if (!state.open || !state.raw)
        return;
    if (state.kept && state.n_away)
        write_all(state.away, (size_t)state.n_away);
    state.kept = 0;
}

static void leave_mode(void)
{
    if (!state.open || !state.raw || state.owner != getpid())
        return;
    if (in_foreground()) {
        ah_tty_hide();
        if (state.sequences && (state.mode & AH_TTY_DISTINCT))
            write_all(AS_BEFORE, sizeof AS_BEFORE - 1);
        if (state.sequences)
            write_all(BYE, sizeof BYE - 1);
        set_mode(&state.found);
    }
    state.raw = 0;
    state.kept = 0;
}

/* Wakes the host, which then checks what has happened. */
void ah_tty_show(void)
{
    if (state.open)
        (void)!write(state.news[1], "", 1);
}

void ah_tty_restore(void)
{
    int saved = errno;

    leave_mode();
    errno = saved;
}

bool ah_tty_is_open(void)
{
    return state.open != 0;
}

/* -- signals ----------------------------------------------------------------------------------- */

static bool is_elsewhere(int sig)
{
    if (state.owner != getpid() || pthread_equal(pthread_self(), state.main))
        return false;
    pthread_kill(state.main, sig);
    return true;
}

static void chain(int sig)
{
    size_t i = 0;

    while (i < WATCHED - 1 && watched[i].sig != sig)
        i++;
    if (state.before[i].sa_handler != SIG_DFL && state.before[i].sa_handler != SIG_IGN &&
        !(state.before[i].sa_flags & SA_SIGINFO))
        state.before[i].sa_handler(sig);
}

static void on_resize(int sig)
{
    int saved = errno;

    if (state.owner == getpid())
        ah_tty_show();
    chain(sig);
    errno = saved;
}

static void come_back(void)
{
    if (state.open && state.owner == getpid() && in_foreground() && enter_mode() == 0)
        ah_tty_show();
}

static void on_continue(int sig)
{
    int saved = errno;

    come_back();
    chain(sig);
    errno = saved;
}

/* Acts as the system does by default: resets the handler and raises the signal again. */
static void raise_plain(int sig)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, ours;
    sigset_t only;

    sigemptyset(&plain.sa_mask);
    sigaction(sig, &plain, &ours);
    raise(sig);
    sigemptyset(&only);
    sigaddset(&only, sig);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL); /* the process stops or ends here */
    sigaction(sig, &ours, NULL);
}

/* Leaves the mode and stops the process. The system does not stop it if no process could continue
 * it (a group without a parent); then the mode is entered again at once. */
static void on_stop(int sig)
{
    int saved = errno;

    if (!is_elsewhere(sig)) {
        leave_mode();
        raise_plain(sig);
        come_back();
    }
    errno = saved;
}

static void on_end(int sig)
{
    leave_mode();
    raise_plain(sig);
}

/* Installs the handlers. A signal that is ignored (nohup) or has another handler keeps that, except
 * SIGWINCH and SIGCONT, whose handlers here also call the earlier one. */
static void watch_signals(void)
{
    for (int i = 0; i < WATCHED; i++) {
        struct sigaction act = {.sa_handler = watched[i].handler, .sa_flags = SA_RESTART};

        sigemptyset(&act.sa_mask);
        sigaction(watched[i].sig, NULL, &state.before[i]);
        if (state.before[i].sa_handler == SIG_DFL || watched[i].handler == on_resize ||
            watched[i].handler == on_continue)
            sigaction(watched[i].sig, &act, NULL);
    }
}

static void forget_signals(void)
{
    for (int i = 0; i < WATCHED; i++)
        sigaction(watched[i].sig, &state.before[i], NULL);
}

/* -- for the host ------------------------------------------------------------------------------ */

/* Opens its own file, since the non-blocking mode must not affect the shell's descriptors. */
static int open_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    const char *name;

    if (fd == -1 && isatty(STDIN_FILENO) && (name = ttyname(STDIN_FILENO)) != NULL)
        fd = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    return fd;
}

static int open_news(void)
{
    if (pipe(state.news) != 0)
        return errno;
    for (int i = 0; i < 2; i++) {
        fcntl(state.news[i], F_SETFD, FD_CLOEXEC);
        fcntl(state.news[i], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

static void close_all(void)
{
    close(state.news[0]);
    close(state.news[1]);
    close(state.fd);
}

static void leave(void *ud)
{
    (void)ud;
    if (!state.open)
        return;
    leave_mode();
    forget_signals();
    state.open = 0;
    close_all();
}

static int begin(void)
{
    int failed;

    if ((state.fd = open_terminal()) == -1)
        return errno;
    if ((failed = open_news()) != 0) {
        close(state.fd);
        return failed;
    }
    state.owner = getpid();
    state.main = pthread_self();
    state.raw = state.kept = state.n_away = 0;
    watch_signals();
    state.open = 1;
    if (in_foreground() && (failed = enter_mode()) != 0)
        leave(NULL);
    return failed;
}

static int enter(void *ud, unsigned mode, int *fd, int *news)
{
    int failed;

    (void)ud;
    if (state.open)
        return EBUSY;
    state.mode = mode;
    if (!state.at_exit && atexit(ah_tty_restore) != 0)
        return ENOMEM;
    state.at_exit = true;
    if ((failed = begin()) != 0)
        return failed;
    *fd = state.fd;
    *news = state.news[0];
    return 0;
}

/* Suspends the whole job, as a terminal's Ctrl-Z does. */
static void suspend(void *ud)
{
    (void)ud;
    kill(0, SIGTSTP);
}

static bool kept(void *ud)
{
    (void)ud;
    return state.kept != 0;
}

static void shown(void *ud, const char *away, size_t n)
{
    (void)ud;
    state.n_away = 0; /* a signal may come in between */
    memcpy(state.away, away, n);
    state.n_away = (sig_atomic_t)n;
    state.kept = 1;
}

/* xterm and the console cut lines that became too long; all others wrap them again. */
static bool reflows(void)
{
    const char *term = getenv("TERM");

    return !getenv("XTERM_VERSION") && term && strcmp(term, "linux") != 0;
}

ah_tty ah_tty_of(bool sequences)
{
    state.sequences = sequences;
    return (ah_tty){.enter = enter,
                    .leave = leave,
                    .suspend = suspend,
                    .kept = kept,
                    .shown = shown,
                    .sequences = sequences,
                    .reflows = reflows()};
}
