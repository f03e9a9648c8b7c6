/* The host's side of a child process: starts the supervisors (supervise.c), reads and writes the
 * command's streams, and reads from the supervisors how it ended. It commands them through a pipe,
 * whose end also shows them that the host has died.
 *
 * The host also watches the time, as a command without a sandbox can stop its supervisors. After
 * the time limit or a request to end, supervisors that do not report in time are continued (CONT).
 * Then the host kills the processes below them, in case the supervisors are stopped faster than
 * continued; then it sends the outer one TERM, which means that the inner one does nothing, and at
 * last KILL. Supervisors are signalled by process id only until they have been waited for. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "io/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/lent.h"
#include "io/descent.h"
#include "io/supervise.h"

enum {
    MAX_PENDING = 1 << 20,
    MAX_INPUT = 64 << 20,
    PIPE_BYTES = 1 << 18, /* requested size; fewer rounds of the loop */
    READ_BYTES = 1 << 16,
    READS = 4, /* per round, so that other descriptors get their turn */
    FREE_MS = 2000,
    REAP_MS = 1000,
    NUDGE_MS = 250, /* after the time limit, and from then on between two CONT */
    /* After the grace time: the inner supervisor must have begun to end everything. */
    LATE_MS = 1500,
    PUSHED_MS = 2000,      /* after LATE_MS: the outer one must have begun */
    GIVE_UP_MS = 5 * 1000, /* after the longest time that a supervisor may need */
    MAX_PATHS = AH_PROCESS_PATH
};

typedef struct stream {
    int fd; /* -1: at its end */
    ah_buf buf;
    size_t taken; /* offset in buf of the untaken bytes */
} stream;

struct ah_process {
    const ah_mem *mem;
    ah_loop *loop;
    ah_process_news_fn news;
    void *ud;
    pid_t pid;   /* process id of the outer supervisor; 0: waited for */
    pid_t inner; /* that of the inner one; 0: unknown, or gone */
    pid_t group; /* the command's process group; 0: unknown, or gone */
    int control, report;
    size_t max_pending;
    stream out[2];
    int in; /* -1: closed */
    ah_buf input;
    size_t passed;     /* bytes of `input` that were written already */
    int64_t written;   /* total number of bytes written */
    bool close_input;  /* when `input` is empty */
    bool told, ending; /* the report ENDED; ENDING has come */
    bool stopping;     /* it was asked to end */
    bool ended;        /* the last report has come */
    int64_t started;
    ah_timer timer;      /* the host's own watch over the end */
    int64_t limit;       /* time at which everything must begin to end; 0: none */
    ah_process_end over; /* the reason for the end by that time */
    int64_t grace_ms;
    bool struck;         /* the host has killed the processes below the supervisors */
    bool pushed, killed; /* the outer supervisor was sent TERM; KILL */
    char *program;       /* for messages */
    ah_process_result result;
};

/* -- descriptors ------------------------------------------------------------------------------- */

typedef struct ends {
    int read, write;
} ends;

static bool set_flag(int fd, int get, int set, int flag)
{
    int flags = fcntl(fd, get);

    return flags >= 0 && fcntl(fd, set, flags | flag) == 0;
}

static bool make_pipe(ends *e)
{
    int fd[2];
#ifdef __linux__
    bool ok = pipe2(fd, O_CLOEXEC) == 0;
#else
    bool ok = pipe(fd) == 0;

    if (ok)
        ok = set_flag(fd[0], F_GETFD, F_SETFD, FD_CLOEXEC) &&
             set_flag(fd[1], F_GETFD, F_SETFD, FD_CLOEXEC);
#endif
    if (ok)
        *e = (ends){fd[0], fd[1]};
    return ok;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void forget(ah_process *p, int *fd)
{
    if (*fd >= 0)
        ah_loop_watch(p->loop, *fd, 0, NULL, NULL, NULL);
    close_fd(fd);
}

/* A write without SIGPIPE, whatever the host does with that signal. */
static ssize_t quiet_write(int fd, const void *bytes, size_t n)
{
    sigset_t pipe_only, before, pending;
    ssize_t wrote;
    int e, sig;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    do
        wrote = write(fd, bytes, n);
    while (wrote < 0 && errno == EINTR);
    e = errno;
    if (wrote < 0 && e == EPIPE && !sigismember(&pending, SIGPIPE)) {
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE))
            sigwait(&pipe_only, &sig);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return wrote;
}

/* -- output ------------------------------------------------------------------------------------ */

static void on_output(void *ud, int fd, int events);

static size_t pending(const stream *s)
{
    return s->buf.len - s->taken;
}

static void end_stream(ah_process *p, stream *s)
{
    forget(p, &s->fd);
}

/* Returns the number of bytes that may be read now. When all writers are gone only what is in the
 * pipe can follow. That is read at once, so that a foreign process that holds the pipe cannot delay
 * the end. */
static size_t room_for(const ah_process *p, const stream *s)
{
    size_t most = p->ended ? READ_BYTES : p->max_pending - pending(s);

    return most < READ_BYTES ? most : READ_BYTES;
}

/* Ends a stream for whose bytes there is no memory; the process is stopped and fails. */
static void cut_stream(ah_process *p, stream *s)
{
    if (!p->ended) {
        ah_err_nomem(&p->result.err);
        p->result.how = AH_PROCESS_FAILED;
        ah_process_stop(p);
    }
    end_stream(p, s);
}

/* Reads once; false if there is nothing more to read now. */
static bool read_once(ah_process *p, stream *s)
{
    size_t most = room_for(p, s);
    char *room;
    ssize_t n;

    if (s->taken)
        ah_buf_drop(&s->buf, s->taken);
    s->taken = 0;
    if (most == 0)
        return false;
    if (!(room = ah_buf_room(&s->buf, most))) {
        cut_stream(p, s);
        return false;
    }
    n = read(s->fd, room, most);
    if (n > 0)
        s->buf.len += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR) || (errno == EAGAIN && p->ended))
        end_stream(p, s);
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Reads what is available; stops watching while nothing is taken. */
static void read_stream(ah_process *p, stream *s)
{
    for (int i = 0; s->fd >= 0 && (p->ended || i < READS) && read_once(p, s); i++)
        ;
    if (s->fd >= 0)
        ah_loop_watch(p->loop, s->fd, pending(s) < p->max_pending ? AH_IN : 0, on_output, p, NULL);
}

static void on_output(void *ud, int fd, int events)
{
    ah_process *p = ud;

    (void)events;
    read_stream(p, &p->out[fd == p->out[AH_STDOUT].fd ? AH_STDOUT : AH_STDERR]);
    p->news(p->ud, p);
}

static ah_slice bytes_of(const stream *s)
{
    return (ah_slice){s->buf.data ? s->buf.data + s->taken : "", pending(s)};
}

ah_slice ah_process_output(const ah_process *p, ah_process_stream which)
{
    return ah_lend(bytes_of(&p->out[which]));
}

void ah_process_take(ah_process *p, ah_process_stream which, size_t n)
{
    stream *s = &p->out[which];

    assert(n <= pending(s));
    s->taken += n;
    if (s->fd >= 0 && n > 0)
        ah_loop_watch(p->loop, s->fd, AH_IN, on_output, p, NULL);
}

bool ah_process_at_end(const ah_process *p, ah_process_stream which)
{
    return p->out[which].fd < 0 && pending(&p->out[which]) == 0;
}

/* -- input ------------------------------------------------------------------------------------- */

static void on_input(void *ud, int fd, int events);

size_t ah_process_unwritten(const ah_process *p)
{
    return p->input.len - p->passed;
}

int64_t ah_process_written(const ah_process *p)
{
    return p->written;
}

bool ah_process_has_input(const ah_process *p)
{
    return p->in >= 0;
}

/* Moves the input's bytes only from time to time, so that large input is copied about once. */
static void drop_passed(ah_process *p)
{
    ah_buf_drop(&p->input, p->passed);
    p->passed = 0;
}

static void drop_input(ah_process *p)
{
    ah_buf_reset(&p->input, 0);
    p->passed = 0;
}

static void pass_on(ah_process *p, size_t n)
{
    p->written += (int64_t)n;
    p->passed += n;
    if (p->passed >= p->input.len / 2)
        drop_passed(p);
}

/* Writes waiting bytes to the command's input; drops them once the command has closed it. */
static void flush_input(ah_process *p)
{
    while (p->in >= 0 && ah_process_unwritten(p) > 0) {
        ssize_t n = quiet_write(p->in, p->input.data + p->passed, ah_process_unwritten(p));

        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            forget(p, &p->in);
        else
            pass_on(p, (size_t)n);
    }
    if (p->in < 0)
        drop_input(p);
    if (p->in >= 0 && ah_process_unwritten(p) == 0 && p->close_input)
        forget(p, &p->in);
    if (p->in >= 0)
        ah_loop_watch(p->loop, p->in, ah_process_unwritten(p) ? AH_OUT : 0, on_input, p, NULL);
}

static void on_input(void *ud, int fd, int events)
{
    ah_process *p = ud;

    (void)fd;
    (void)events;
    flush_input(p);
    if (ah_process_unwritten(p) == 0)
        p->news(p->ud, p);
}

ah_status ah_process_write(ah_process *p, ah_slice bytes, ah_err *err)
{
    if (p->in < 0 || p->close_input)
        return ah_err_set(err, AH_INTERNAL,
                          "'%s' takes no more input: it has closed it, or has ended", p->program);
    if (p->passed && bytes.n > p->input.max - p->input.len)
        drop_passed(p);
    ah_buf_put(&p->input, bytes);
    if (!ah_buf_ok(&p->input)) {
        ah_status st = ah_buf_error(&p->input, "the input that a process has not yet read", err);

        p->input.status = AH_OK;
        return st;
    }
    flush_input(p);
    return AH_OK;
}

void ah_process_close_input(ah_process *p)
{
    p->close_input = true;
    flush_input(p);
}

/* -- the end ----------------------------------------------------------------------------------- */

static void set_failure(ah_process *p, const ah_report *r)
{
    static const char *const words[] = {[AH_STEP_NONE] = "run",
                                        [AH_STEP_FORK] = "start a process for",
                                        [AH_STEP_LIMITS] = "set limits for",
                                        [AH_STEP_CWD] = "enter the folder for",
                                        [AH_STEP_CONFINE] = "confine",
                                        [AH_STEP_EXEC] = "run"};

    ah_err_set(&p->result.err, AH_INTERNAL, "cannot %s '%s': %s", words[r->failed], p->program,
               strerror(r->error));
    p->result.how = AH_PROCESS_FAILED;
}

static void set_lost(ah_process *p)
{
    if (p->result.how == AH_PROCESS_FAILED)
        return;
    ah_err_set(&p->result.err, AH_INTERNAL, "the supervisor of '%s' was killed", p->program);
    p->result.how = AH_PROCESS_FAILED;
}

/* FAILED: the inner supervisor was killed. That is expected if it or the host was ending
 * everything; but only it could report how a command exited. */
static void set_how(ah_process *p, ah_process_end how)
{
    if (p->result.how == AH_PROCESS_FAILED)
        return;
    if ((how == AH_PROCESS_FAILED && (p->ending || p->pushed || p->killed)) ||
        (how == AH_PROCESS_EXITED && p->struck)) /* it did not exit by itself */
        how = p->over;
    if (how == AH_PROCESS_FAILED || (how == AH_PROCESS_EXITED && !p->told))
        set_lost(p);
    else
        p->result.how = how;
}

static void set_end(ah_process *p, const ah_report *r)
{
    ah_process_result *result = &p->result;

    p->told = true;
    set_how(p, r->how);
    if (result->how != AH_PROCESS_FAILED && WIFEXITED(r->status))
        result->code = WEXITSTATUS(r->status);
    else if (result->how != AH_PROCESS_FAILED && WIFSIGNALED(r->status))
        result->signal = WTERMSIG(r->status);
    result->left = r->left;
    result->cpu_ms = r->cpu_us / 1000;
    result->peak_bytes = r->peak_bytes;
}

/* The id may be another process's if the surrounding program waits for all of its children. */
static bool is_ours(const ah_process *p)
{
    siginfo_t info;

    return p->pid && waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void signal_supervisor(const ah_process *p, int sig)
{
    if (is_ours(p))
        kill(p->pid, sig);
}

/* The inner supervisor's id is valid while the outer one has not waited for it. */
static void go_on(const ah_process *p)
{
    if (!is_ours(p))
        return;
    kill(p->pid, SIGCONT);
    if (p->inner > 1 && !p->told)
        kill(p->inner, SIGCONT);
}

/* All reports have come, or none will: kills the supervisor if it has not ended, so that no zombie
 * stays. That takes no time, unless an escaped process traces it. */
static void wait_for_supervisor(ah_process *p)
{
    const struct timespec pause = {0, 100000L};
    int64_t until = ah_loop_now(p->loop) + REAP_MS;
    pid_t got = 0;

    signal_supervisor(p, SIGKILL);
    while (p->pid && (got == 0 || (got < 0 && errno == EINTR)) && ah_loop_now(p->loop) < until)
        if ((got = waitpid(p->pid, NULL, WNOHANG)) == 0)
            nanosleep(&pause, NULL);
    p->pid = 0;
}

/* The supervisors report nothing more. */
static void settle(ah_process *p)
{
    p->ended = true;
    p->result.wall_ms = ah_loop_now(p->loop) - p->started;
    ah_timer_unset(&p->timer);
    forget(p, &p->report);
    forget(p, &p->in);
    drop_input(p);
    close_fd(&p->control);
    wait_for_supervisor(p);
    for (int i = 0; i < 2; i++)
        if (p->out[i].fd >= 0)
            read_stream(p, &p->out[i]);
}

/* The inner supervisor was killed and reported nothing. The outer one has reported, or was killed
 * too; then only the command, which dies with the inner one, and its group are known. */
static void lose_supervisor(ah_process *p, const ah_report *last)
{
    if (!last && p->group > 1)
        kill(-p->group, SIGKILL);
    set_how(p, AH_PROCESS_FAILED);
    p->result.left = last ? last->left : -1;
    p->result.cpu_ms = last ? last->cpu_us / 1000 : 0;
}

static void set_watch(ah_process *p)
{
    if (p->limit && !p->ended)
        ah_timer_set(p->loop, &p->timer, ah_loop_now(p->loop) + NUDGE_MS);
}

static void begin_ending(ah_process *p, ah_process_end how)
{
    p->limit = ah_loop_now(p->loop);
    if (!p->struck && !p->pushed && !p->killed)
        p->over = how;
    set_watch(p);
}

static void take_report(ah_process *p, const ah_report *r)
{
    switch (r->kind) {
    case AH_REPORT_STARTED:
        p->group = r->group;
        p->inner = r->inner;
        break;
    case AH_REPORT_FAILED:
        p->group = 0;
        set_failure(p, r);
        break;
    case AH_REPORT_ENDING:
        p->ending = true;
        begin_ending(p, r->how);
        break;
    case AH_REPORT_ENDED:
        set_end(p, r);
        break;
    case AH_REPORT_GONE:
        if (!p->told)
            lose_supervisor(p, r);
        settle(p);
    }
}

/* Reads one report; false if there is none yet. */
static bool read_report(ah_process *p)
{
    ah_report r;
    ssize_t n = read(p->report, &r, sizeof r);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n == (ssize_t)sizeof r) {
        take_report(p, &r);
        return !p->ended;
    }
    if (!p->told)
        lose_supervisor(p, NULL);
    settle(p);
    return false;
}

static void on_report(void *ud, int fd, int events)
{
    ah_process *p = ud;

    (void)fd;
    (void)events;
    while (read_report(p))
        ;
    if (p->ended)
        p->news(p->ud, p);
}

/* -- the host's own watch ---------------------------------------------------------------------- */

/* After this time the inner supervisor has begun to end everything, or does nothing. */
static int64_t late_at(const ah_process *p)
{
    return p->limit + p->grace_ms + LATE_MS;
}

/* After this time nothing more is expected of either. */
static int64_t hopeless_at(const ah_process *p)
{
    return p->limit + p->grace_ms + 2 * (int64_t)(AH_KILL_MS + GIVE_UP_MS);
}

/* Gives up: only the host's own reason for the end is known. */
static void abandon(ah_process *p)
{
    if (p->inner > 1 && is_ours(p))
        kill(p->inner, SIGKILL);
    p->killed = true;
    if (!p->told)
        lose_supervisor(p, NULL);
    settle(p);
}

/* One round of KILL; processes forked meanwhile are found by the next one. */
static void kill_below(ah_process *p)
{
    ah_descent below;

    if (p->inner <= 1 || !is_ours(p))
        return;
    p->struck = true;
    ah_descent_open_of(&below, p->pid);
    below.spared = p->inner;
    ah_descent_signal(&below, SIGKILL);
    ah_descent_close(&below);
}

/* Neither supervisor ends the processes, or is able to. */
static void push(ah_process *p, int64_t now)
{
    if (now < late_at(p))
        return;
    kill_below(p);
    if (p->ending)
        return;
    if (!p->pushed)
        signal_supervisor(p, SIGTERM);
    p->pushed = true;
    if (p->killed || now < late_at(p) + PUSHED_MS)
        return;
    signal_supervisor(p, SIGKILL);
    if (p->group > 1)
        kill(-p->group, SIGKILL); /* a process that blocks them may be in it */
    p->killed = true;
}

/* Called when the timer is due: never if all goes well, or only after the end has begun. */
static void on_time(ah_timer *t)
{
    ah_process *p = (ah_process *)(void *)((char *)t - offsetof(ah_process, timer));
    int64_t now;

    while (!p->ended && read_report(p)) /* reports that came while the host was busy */
        ;
    now = ah_loop_now(p->loop);
    if (!p->ended && now >= hopeless_at(p))
        abandon(p);
    if (p->ended) {
        p->news(p->ud, p);
        return;
    }
    push(p, now);
    go_on(p);
    set_watch(p);
}

bool ah_process_ended(const ah_process *p, ah_process_result *out)
{
    bool ended = p->ended && p->out[AH_STDOUT].fd < 0 && p->out[AH_STDERR].fd < 0;

    if (ended && out)
        *out = p->result;
    return ended;
}

static void tell(ah_process *p, ah_control what)
{
    const char c = (char)what;

    if (p->control < 0 || p->ended)
        return;
    quiet_write(p->control, &c, 1);
    go_on(p); /* the command may have stopped them */
    if (!p->ending && !p->stopping)
        begin_ending(p, AH_PROCESS_STOPPED);
    p->stopping = true;
}

void ah_process_stop(ah_process *p)
{
    tell(p, AH_CONTROL_STOP);
}

void ah_process_kill(ah_process *p)
{
    tell(p, AH_CONTROL_KILL);
}

void ah_process_signal(ah_process *p, int sig)
{
    const char c = (char)sig;

    assert(sig > 0 && sig <= AH_MOST_SIGNAL);
    if (p->control < 0 || p->ended)
        return;
    quiet_write(p->control, &c, 1);
    go_on(p);
}

/* Waits for the last report or the end, at most FREE_MS. */
static void wait_for_end(ah_process *p)
{
    int64_t until = ah_loop_now(p->loop) + FREE_MS, left;
    struct pollfd f = {.fd = p->report, .events = POLLIN};

    while (!p->ended && (left = until - ah_loop_now(p->loop)) > 0) {
        if (poll(&f, 1, (int)(left < NUDGE_MS ? left : NUDGE_MS)) <= 0)
            go_on(p);
        else
            while (read_report(p))
                ;
    }
}

void ah_process_free(ah_process *p)
{
    if (!p)
        return;
    if (!p->ended && p->report >= 0) {
        tell(p, AH_CONTROL_KILL);
        wait_for_end(p);
    }
    wait_for_supervisor(p); /* killing a running one makes the other end everything */
    ah_timer_unset(&p->timer);
    forget(p, &p->report);
    forget(p, &p->in);
    close_fd(&p->control);
    for (int i = 0; i < 2; i++) {
        forget(p, &p->out[i].fd);
        ah_buf_clear(&p->out[i].buf);
    }
    ah_buf_clear(&p->input);
    ah_free(p->mem, p->program);
    ah_free(p->mem, p);
}

/* -- starting ---------------------------------------------------------------------------------- */

static const char *path_of(const char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "";
}

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* Searches absolute folders of PATH only: files in the working directory are not taken for
 * programs. */
static bool find_in_path(const char *name, const char *path, char *out)
{
    size_t n;

    for (; *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        if (*path != '/' || n + 1 + strlen(name) >= MAX_PATHS)
            continue;
        snprintf(out, MAX_PATHS, "%.*s/%s", (int)n, path, name);
        if (is_program(out))
            return true;
    }
    return false;
}

ah_status ah_process_find(const ah_process_config *cfg, char *out, ah_err *err)
{
    const char *name = cfg->argv[0], *path = path_of(cfg->env);

    if (!name || !*name)
        return ah_err_set(err, AH_USAGE, "a command has no words");
    if (strchr(name, '/')) {
        if (strlen(name) >= MAX_PATHS)
            return ah_err_set(err, AH_USAGE, "the path of a program is longer than %d bytes",
                              MAX_PATHS);
        memcpy(out, name, strlen(name) + 1);
        return AH_OK;
    }
    if (find_in_path(name, path, out))
        return AH_OK;
    return ah_err_set(err, AH_USAGE, "there is no program '%s' in PATH (%s)", name, path);
}

/* The ends of all pipes; -1: none. */
typedef struct pipes {
    ends in, out, err, control, report;
} pipes;

static const ends NO_PIPE = {-1, -1};

static void close_ends(ends *e)
{
    close_fd(&e->read);
    close_fd(&e->write);
}

static void close_pipes(pipes *p)
{
    close_ends(&p->in);
    close_ends(&p->out);
    close_ends(&p->err);
    close_ends(&p->control);
    close_ends(&p->report);
}

static bool open_pipes(const ah_process_config *cfg, pipes *p)
{
    *p = (pipes){NO_PIPE, NO_PIPE, NO_PIPE, NO_PIPE, NO_PIPE};
    if (!make_pipe(&p->out) || !make_pipe(&p->control) || !make_pipe(&p->report) ||
        (!cfg->merge && !make_pipe(&p->err)) ||
        !set_flag(p->control.write, F_GETFL, F_SETFL, O_NONBLOCK)) /* its reader may be stopped */
        return false;
#ifdef F_SETPIPE_SZ
    fcntl(p->out.read, F_SETPIPE_SZ, PIPE_BYTES); /* optional */
#endif
    if (cfg->input)
        return make_pipe(&p->in) && set_flag(p->in.write, F_GETFL, F_SETFL, O_NONBLOCK);
    return (p->in.read = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
}

static ah_status failed(const char *what, ah_err *err)
{
    int e = errno;

    if (e == ENOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, AH_INTERNAL, "cannot %s: %s", what,
                      e == EMFILE || e == ENFILE ? "too many open files (raise ulimit -n)"
                                                 : strerror(e));
}

/* Blocks signals: a handler of the host must not run in the child. */
static pid_t fork_supervisor(const ah_supervisor *s)
{
    sigset_t all, before;
    pid_t pid;
    int e;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0)
        ah_supervise(s);
    e = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return pid;
}

static ah_status watch_all(ah_process *p, ah_err *err)
{
    ah_status st = set_flag(p->report, F_GETFL, F_SETFL, O_NONBLOCK)
                       ? ah_loop_watch(p->loop, p->report, AH_IN, on_report, p, err)
                       : failed("set up a pipe", err);

    for (int i = 0; i < 2 && st == AH_OK; i++)
        if (p->out[i].fd >= 0 && !set_flag(p->out[i].fd, F_GETFL, F_SETFL, O_NONBLOCK))
            st = failed("set up a pipe", err);
        else if (p->out[i].fd >= 0)
            st = ah_loop_watch(p->loop, p->out[i].fd, AH_IN, on_output, p, err);
    /* Reserves room in the loop's table, so that watching it later cannot fail. */
    if (st == AH_OK && p->in >= 0 &&
        (st = ah_loop_watch(p->loop, p->in, AH_OUT, on_input, p, err)) == AH_OK)
        st = ah_loop_watch(p->loop, p->in, 0, NULL, NULL, err);
    return st;
}

static int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

static ah_status launch(ah_process *p, const ah_process_config *cfg, const char *path, ah_err *err)
{
    pipes all;
    ah_supervisor s;
    ah_status st = AH_OK;

    if (!open_pipes(cfg, &all)) {
        st = failed("make a pipe", err);
        goto done;
    }
    p->in = take_fd(&all.in.write);
    p->out[AH_STDOUT].fd = take_fd(&all.out.read);
    p->out[AH_STDERR].fd = take_fd(&all.err.read);
    p->control = take_fd(&all.control.write);
    p->report = take_fd(&all.report.read);
    if ((st = watch_all(p, err)) != AH_OK)
        goto done;
    s = (ah_supervisor){cfg,
                        path,
                        getpid(),
                        all.in.read,
                        all.out.write,
                        cfg->merge ? all.out.write : all.err.write,
                        all.control.read,
                        all.report.write};
    p->started = ah_loop_now(p->loop);
    if ((p->pid = fork_supervisor(&s)) < 0) {
        p->pid = 0;
        st = failed("start a process", err);
    } else if (cfg->timeout_ms > 0) {
        p->limit = p->started + cfg->timeout_ms;
        ah_timer_set(p->loop, &p->timer, p->limit + NUDGE_MS);
    }
done:
    if (st != AH_OK)
        p->ended = true; /* there is no supervisor to command or wait for */
    close_pipes(&all);
    return st;
}

static ah_process *new_process(const ah_mem *mem, ah_loop *loop, const ah_process_config *cfg)
{
    ah_process *p = ah_alloc(mem, sizeof *p);
    size_t n = strlen(cfg->argv[0]) + 1;

    if (!p)
        return NULL;
    p->mem = mem;
    p->loop = loop;
    p->news = cfg->news;
    p->ud = cfg->ud;
    p->in = p->control = p->report = p->out[0].fd = p->out[1].fd = -1;
    p->max_pending = cfg->max_pending ? cfg->max_pending : MAX_PENDING;
    p->result.code = -1;
    p->timer.fn = on_time;
    p->over = AH_PROCESS_TIMED_OUT;
    p->grace_ms = cfg->grace_ms > 0 ? cfg->grace_ms : AH_GRACE_MS;
    for (int i = 0; i < 2; i++)
        ah_buf_init(&p->out[i].buf, mem, p->max_pending + 2 * PIPE_BYTES);
    ah_buf_init(&p->input, mem, MAX_INPUT);
    if ((p->program = ah_alloc(mem, n)))
        memcpy(p->program, cfg->argv[0], n);
    return p;
}

ah_status ah_process_start(const ah_mem *mem, ah_loop *loop, const ah_process_config *cfg,
                           ah_process **out, ah_err *err)
{
    char path[MAX_PATHS];
    ah_status st = ah_process_find(cfg, path, err);
    ah_process *p;

    if (st != AH_OK)
        return st;
    if (!(p = new_process(mem, loop, cfg)) || !p->program) {
        ah_process_free(p);
        return ah_err_nomem(err);
    }
    if ((st = launch(p, cfg, path, err)) != AH_OK) {
        ah_process_free(p);
        return st;
    }
    *out = p;
    return AH_OK;
}
