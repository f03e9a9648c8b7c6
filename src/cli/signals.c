/* Handlers do what is async-signal-safe: note the signal, ah_cancel, ah_terminate, poll, _exit.
 * They keep errno. A signal ends the script; but while a chat (ah.interactive) waits for an answer,
 * the Ctrl-C of a terminal ends that answer alone, and the chat goes on. SIGINT is taken even where
 * it was ignored at the start (a shell does so for its background jobs), so that kill -INT always
 * ends a script in an orderly way. */
#include "cli/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cli/tty.h"

enum { WAKE_SECONDS = 1 };

/* Writable state at file scope (tty.c has the other): a signal handler is given nothing else. */
static struct {
    pthread_t main;
    _Atomic(ah_host *) host;
    volatile sig_atomic_t caught;
    volatile sig_atomic_t ending; /* the script was told to end, by this signal */
    volatile sig_atomic_t by_key; /* a SIGINT came from the terminal, in whichever thread */
    volatile unsigned cancelled;  /* the wait that a Ctrl-C has cancelled; 0: none */
    volatile sig_atomic_t reader_gone;
    volatile sig_atomic_t drawn;
    volatile sig_atomic_t output;
} state = {.output = STDOUT_FILENO};

/* All in the main thread, never beside it: it alone knows whether the host still lives.
 * (libcurl's resolver threads may be the ones that get the signal.) */
static bool is_elsewhere(int sig)
{
    if (pthread_equal(pthread_self(), state.main))
        return false;
    pthread_kill(state.main, sig);
    return true;
}

static void cancel(void)
{
    ah_host *host = atomic_load(&state.host);

    if (host)
        ah_cancel(host);
}

static void leave(int sig)
{
    if (state.drawn) /* a terminal may drop at a ^C what took it away */
        (void)!write(STDERR_FILENO, AH_ERASE_LINE, sizeof AH_ERASE_LINE - 1);
    ah_tty_restore();
    _exit(128 + sig);
}

/* A second one while what the first has cancelled is still at work is not to wait for it. */
static void stop(int sig, bool by_key)
{
    ah_host *host = atomic_load(&state.host);
    unsigned waiting = by_key && ah_interactive(host) ? ah_waiting(host) : 0;

    if (state.ending || (waiting && waiting == state.cancelled))
        leave(sig);
    state.caught = sig;
    state.cancelled = waiting;
    if (waiting) {
        ah_cancel(host);
    } else {
        state.ending = sig;
        ah_terminate(host);
        alarm(WAKE_SECONDS);
    }
}

/* A script that was told to end and reads on from a terminal or a pipe is woken until it does. */
static void on_alarm(int sig)
{
    (void)sig;
    if (atomic_load(&state.host))
        alarm(WAKE_SECONDS);
}

static void on_stop(int sig, siginfo_t *info, void *context)
{
    bool by_key = sig == SIGINT && info->si_code > 0; /* of the system, not of a process */
    int saved = errno;

    (void)context;
    if (sig == SIGINT)
        state.by_key |= by_key;
    if (!is_elsewhere(sig)) {
        by_key = sig == SIGINT && state.by_key;
        state.by_key = 0;
        stop(sig, by_key);
    }
    errno = saved;
}

/* Any broken pipe comes here; only that of the command's output matters. Each time anew: a
 * run that was ending just then leaves the script to go on. */
static void on_pipe(int sig)
{
    struct pollfd out = {.fd = state.output};
    int saved = errno;

    (void)sig;
    if (poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP))) {
        state.reader_gone = 1;
        cancel();
    }
    errno = saved;
}

/* Without SA_RESTART: a script that waits in io.read is woken too. */
static void handle(int sig, struct sigaction act)
{
    sigemptyset(&act.sa_mask);
    sigaction(sig, &act, NULL);
}

void ah_signals_init(void)
{
    state.main = pthread_self();
    handle(SIGPIPE, (struct sigaction){.sa_handler = on_pipe});
}

void ah_signals_watch(ah_host *host)
{
    atomic_store(&state.host, host);
    handle(SIGINT, (struct sigaction){.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO});
    handle(SIGTERM, (struct sigaction){.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO});
    handle(SIGALRM, (struct sigaction){.sa_handler = on_alarm});
}

void ah_signals_drawn(void)
{
    state.drawn = 1;
}

void ah_signals_output(int fd)
{
    state.output = fd;
}

void ah_signals_forget(void)
{
    atomic_store(&state.host, NULL);
    alarm(0);
}

int ah_signals_caught(void)
{
    return (int)state.caught;
}

int ah_signals_ending(void)
{
    return (int)state.ending;
}

bool ah_signals_reader_gone(void)
{
    return state.reader_gone != 0;
}
