/* latency MILLISECONDS PART COMMAND...: runs a command in a terminal of its own, as a slow
 * connection would show it: what is typed and what is shown come that much later. PART 0: bytes
 * typed together come together; else they come PART by PART, with that time between them. For
 * spec/screens. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 20, PIECES = 1 << 16 };

/* One direction: bytes with the times at which they arrive. */
typedef struct line {
    int from, to;
    size_t part;
    char bytes[ROOM];
    size_t first, end;
    struct piece {
        size_t size;
        long due;
    } pieces[PIECES];
    size_t n_first, n_end;
    long last; /* the time at which the last one arrives */
} line;

static line typed, shown;
static volatile sig_atomic_t resized = 1;

static void on_resize(int sig)
{
    (void)sig;
    resized = 1;
}

/* Returns the time in milliseconds. */
static long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Reads what there is; returns false at the end, or if there is no room. */
static bool take(line *l, long delay)
{
    size_t room = ROOM - l->end;
    ssize_t n = read(l->from, l->bytes + l->end, room < 4096 ? room : 4096);

    for (ssize_t left = n; left > 0;) {
        size_t size = l->part && (size_t)left > l->part ? l->part : (size_t)left;
        long due = l->part && l->last > now() ? l->last + delay : now() + delay;

        if (l->n_end == PIECES)
            return false;
        l->pieces[l->n_end++] = (struct piece){size, due};
        l->last = due;
        left -= (ssize_t)size;
    }
    l->end += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Writes what has arrived; returns the milliseconds until the next piece, -1: there is none. */
static int give(line *l)
{
    while (l->n_first < l->n_end) {
        struct piece *p = &l->pieces[l->n_first];

        if (p->due > now())
            return (int)(p->due - now());
        if (write(l->to, l->bytes + l->first, p->size) != (ssize_t)p->size)
            return -1;
        l->first += p->size;
        l->n_first++;
    }
    l->first = l->end = l->n_first = l->n_end = 0;
    return -1;
}

static void set_size(int fd)
{
    struct winsize size;

    resized = 0;
    if (ioctl(0, TIOCGWINSZ, &size) == 0)
        ioctl(fd, TIOCSWINSZ, &size);
}

static void relay(int fd, long delay)
{
    bool open = true;

    while (open || shown.n_end) {
        int wait_typed = give(&typed), wait_shown = give(&shown), wait = wait_typed;
        struct pollfd ready[2] = {{.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

        if (resized)
            set_size(fd);
        if (wait == -1 || (wait_shown != -1 && wait_shown < wait))
            wait = wait_shown;
        if (poll(ready, open ? 2 : 0, wait) <= 0)
            continue;
        if (ready[0].revents)
            take(&typed, delay);
        if (ready[1].revents)
            open = take(&shown, delay);
    }
}

/* In the child: makes the terminal its controlling one, and runs the command in it. */
static void become(const char *name, char **argv)
{
    int fd;

    setsid();
    if ((fd = open(name, O_RDWR)) == -1 || ioctl(fd, TIOCSCTTY, 0) == -1)
        _exit(126);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    if (fd > 2)
        close(fd);
    execvp(argv[0], argv);
    _exit(127);
}

int main(int argc, char **argv)
{
    struct termios before, raw;
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status = 0;
    pid_t pid;

    if (argc < 4 || fd == -1 || grantpt(fd) != 0 || unlockpt(fd) != 0 || tcgetattr(0, &before) != 0)
        fail("latency");
    signal(SIGWINCH, on_resize);
    set_size(fd);
    if ((pid = fork()) == 0)
        become(ptsname(fd), argv + 3);
    raw = before;
    cfmakeraw(&raw);
    tcsetattr(0, TCSANOW, &raw);
    typed = (line){.from = 0, .to = fd, .part = (size_t)atol(argv[2])};
    shown = (line){.from = fd, .to = 1};
    relay(fd, atol(argv[1]));
    tcsetattr(0, TCSANOW, &before);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
