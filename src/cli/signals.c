/* Handlers use async-signal-safe functions only: ah_cancel, ah_terminate, poll, _exit, and they
 * keep errno. A signal ends the script; but while a chat (ah.interactive) waits for an answer, a
 * terminal's Ctrl-C cancels that answer only, and the chat goes on (with -i also code that does not
 * wait). SIGINT is handled even if it was ignored at the start (shells do that for background
 * jobs), so that kill -INT always ends a script in an orderly way. */
#include "cli/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cli/tty.h"

enum { WAKE_SECONDS = 1 };

/* Writable state at file scope (tty.c has the only other): a signal handler has no other access. */
static struct {
    pthread_t main;
    _Atomic(ah_host *) host;
    volatile sig_atomic_t caught;
    volatile sig_atomic_t ending;   /* the signal that ends the script; 0: none */
    volatile sig_atomic_t by_key;   /* a SIGINT came from the terminal, in any thread */
    volatile unsigned cancelled;    /* number of the wait that a Ctrl-C has cancelled; 0: none */
    volatile sig_atomic_t spare;    /* a chat's code is cancelled, too */
    volatile sig_atomic_t stopping; /* code without a wait was cancelled, and has not ended */
    volatile sig_atomic_t reader_gone;
    volatile sig_atomic_t drawn;
    volatile sig_atomic_t output;
} state = {.output = STDOUT_FILENO};

/* Forwards the signal to the main thread, if this is another: only that one knows if the host still
 * exists. (libcurl's resolver threads may get the signal.) */
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
    if (state.drawn) /* a terminal may discard pending output at ^C */
        (void)!write(STDERR_FILENO, AH_ERASE_LINE, sizeof AH_ERASE_LINE - 1);
    ah_tty_restore();
    _exit(128 + sig);
}

/* A second signal does not wait for what the first one is still cancelling. */
static void stop(int sig, bool by_key)
{
    ah_host *host = atomic_load(&state.host);
    bool chat = by_key && ah_interactive(host);
    unsigned waiting = chat ? ah_waiting(host) : 0;
    bool code = chat && !waiting && state.spare;

    if (state.ending || (waiting && waiting == state.cancelled) || (code && state.stopping))
        leave(sig);
    state.caught = sig;
    state.cancelled = waiting;
    state.stopping = code;
    if (waiting || code) {
        ah_cancel(host);
    } else {
        state.ending = sig;
        ah_terminate(host);
        alarm(WAKE_SECONDS);
    }
}

/* Wakes a script that was asked to end but still reads from a terminal or a pipe, until it ends. */
static void on_alarm(int sig)
{
    (void)sig;
    if (atomic_load(&state.host))
        alarm(WAKE_SECONDS);
}

static void on_stop(int sig, siginfo_t *info, void *context)
{
    bool by_key = sig == SIGINT && info->si_code > 0; /* sent by the system, not by a process */
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

/* A file at the limit of its size: the write fails, and says so. Programs that are started have the
 * signal as usual. */
static void on_limit(int sig)
{
    (void)sig;
}

/* Called for any broken pipe; only that of the command's output matters. Cancels each time: after a
 * run that was just ending, the script would go on. */
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

/* Without SA_RESTART, so that a script in io.read is woken too. */
static void handle(int sig, struct sigaction act)
{
    sigemptyset(&act.sa_mask);
    sigaction(sig, &act, NULL);
}

void ah_signals_init(void)
{
    state.main = pthread_self();
    handle(SIGXFSZ, (struct sigaction){.sa_handler = on_limit});
    handle(SIGPIPE, (struct sigaction){.sa_handler = on_pipe});
}

void ah_signals_watch(ah_host *host)
{
    atomic_store(&state.host, host);
    handle(SIGINT, (struct sigaction){.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO});
    handle(SIGTERM, (struct sigaction){.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO});
    handle(SIGALRM, (struct sigaction){.sa_handler = on_alarm});
}

void ah_signals_spare(void)
{
    state.spare = 1;
}

void ah_signals_settled(void)
{
    state.stopping = 0;
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
