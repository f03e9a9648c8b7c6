/* Handlers do what is async-signal-safe: note the signal, ah_cancel, poll, _exit. They
 * keep errno. SIGINT is taken even where it was ignored at the start (a shell does so
 * for its background jobs), so that kill -INT always ends a script in an orderly way. */
#include "cli/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* The one writable state at file scope: a signal handler is given nothing else. */
static struct {
    pthread_t main;
    _Atomic(ah_host *) host;
    volatile sig_atomic_t caught;
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

static void on_stop(int sig)
{
    int saved = errno;

    if (is_elsewhere(sig))
        goto done;
    if (state.caught) {
        if (state.drawn) /* a terminal may drop at a ^C what took it away */
            (void)!write(STDERR_FILENO, AH_ERASE_LINE, sizeof AH_ERASE_LINE - 1);
        _exit(128 + sig);
    }
    state.caught = sig;
    cancel();
done:
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
static void handle(int sig, void (*fn)(int))
{
    struct sigaction act = {.sa_handler = fn};

    sigemptyset(&act.sa_mask);
    sigaction(sig, &act, NULL);
}

void ah_signals_init(void)
{
    state.main = pthread_self();
    handle(SIGPIPE, on_pipe);
}

void ah_signals_watch(ah_host *host)
{
    atomic_store(&state.host, host);
    handle(SIGINT, on_stop);
    handle(SIGTERM, on_stop);
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
}

int ah_signals_caught(void)
{
    return (int)state.caught;
}

bool ah_signals_reader_gone(void)
{
    return state.reader_gone != 0;
}
