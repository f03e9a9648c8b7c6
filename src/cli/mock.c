/* Requests go to the program as strings, and it returns their plans (cli/mock_plan.h). */
#include "cli/mock.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/mock_server.h"
#include "cli/programs.h"
#include "cli/signals.h"

enum {
    BACKLOG = 128,
    ROUND_MS = 1000 /* between looks at signals, where nothing wakes us */
};

typedef struct serving {
    ah_host *host;
    const ah_mock *mock;
} serving;

/* -- the socket -------------------------------------------------------------------------------- */

static ah_status cannot(char *fault, size_t size, const ah_mock *m, const char *why)
{
    snprintf(fault, size, "cannot listen on %s port %d: %s", m->address ? m->address : "127.0.0.1",
             m->port, why);
    return AH_INTERNAL;
}

static bool bind_to(int fd, const struct addrinfo *a)
{
    int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
           bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
}

static ah_status listen_on(const ah_mock *m, int *fd, char *fault, size_t size)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM},
                    *found;
    char port[16];
    int code;

    snprintf(port, sizeof port, "%d", m->port);
    if ((code = getaddrinfo(m->address ? m->address : "127.0.0.1", port, &hints, &found)))
        return cannot(fault, size, m, gai_strerror(code));
    *fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    code = *fd >= 0 && bind_to(*fd, found) ? 0 : errno;
    freeaddrinfo(found);
    if (!code)
        return AH_OK;
    if (*fd >= 0)
        close(*fd);
    return cannot(fault, size, m, strerror(code));
}

/* Where clients find it, in a line of its own. */
static void tell_address(int fd, FILE *out)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    char name[128], port[16];
    bool six;

    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0 ||
        getnameinfo((struct sockaddr *)&a, n, name, sizeof name, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    six = a.ss_family == AF_INET6;
    fprintf(out, "http://%s%s%s:%s\n", six ? "[" : "", name, six ? "]" : "", port);
    fflush(out);
}

/* -- serving --------------------------------------------------------------------------------------- */

/* The words of the host's last failure, unless a signal is to blame. */
static void say_failure(const serving *s)
{
    if (!ah_signals_caught())
        s->mock->say(s->mock->ud, AH_LOG_ERROR, ah_errmsg(s->host));
}

/* Nothing is told of what a signal has broken off. */
static void say(const serving *s, const ah_plan *p)
{
    if (*p->say && !ah_signals_caught())
        s->mock->say(s->mock->ud, p->warn ? AH_LOG_WARNING : AH_LOG_INFO, p->say);
}

static ah_plan *ask(void *ud, const ah_mock_request *q)
{
    char status[16];
    const char *args[] = {q->method, q->target, q->headers, q->body, status, q->fault};
    const serving *s = ud;
    ah_plan *p = NULL;

    snprintf(status, sizeof status, "%d", q->status);
    if (ah_program_call(s->host, "mock", "answer", q->status ? 6 : 4, args) == AH_OK &&
        ah_returned(s->host))
        p = ah_plan_read(ah_returned(s->host));
    if (p)
        say(s, p);
    else
        say_failure(s);
    return p;
}

static ah_status call_about(const serving *s, const ah_plan *p, const char *member)
{
    char number[32];
    const char *args[] = {number};

    snprintf(number, sizeof number, "%lld", (long long)p->number);
    return ah_program_call(s->host, "mock", member, 1, args);
}

static bool go_on(void *ud, ah_plan *p)
{
    const serving *s = ud;
    bool ok = call_about(s, p, "go_on") == AH_OK && ah_returned(s->host) &&
              ah_plan_go_on(p, ah_returned(s->host));

    if (ok)
        say(s, p);
    else
        say_failure(s);
    return ok;
}

static void forget(void *ud, const ah_plan *p)
{
    const serving *s = ud;

    call_about(s, p, "forget");
}

/* Waits for a request, a wait that is over, or a signal (which wakes the host). */
static void wait_for(ah_host *host, ah_mock_server *server)
{
    struct pollfd fds[AH_MOCK_FDS + 1];
    int ms = ah_mock_server_wants(server, fds), wake = ah_pollfd(host);

    if (ms < 0 || (wake < 0 && ms > ROUND_MS))
        ms = ROUND_MS;
    fds[AH_MOCK_FDS] = (struct pollfd){.fd = wake, .events = POLLIN};
    poll(fds, AH_MOCK_FDS + 1, ms);
}

static void serve(ah_host *host, const ah_mock *m, ah_mock_server *server)
{
    while (!ah_signals_caught() && (!m->once || ah_mock_server_answered(server) < m->once)) {
        wait_for(host, server);
        ah_step(host, 0);
        if (!ah_signals_caught())
            ah_mock_server_turn(server);
    }
}

ah_status ah_mock_serve(ah_host *host, const ah_mock *m, char *fault, size_t size)
{
    serving s = {host, m};
    ah_mock_script script = {.ask = ask, .go_on = go_on, .forget = forget, .ud = &s};
    ah_mock_server *server;
    ah_status st;
    int fd = -1;

    *fault = 0;
    if (!ah_mock_server_version()) {
        snprintf(fault, size,
                 "this agenthost was built without an HTTP server\n"
                 "Install libmicrohttpd with its header (Debian: libmicrohttpd-dev), then make again.");
        return AH_INTERNAL;
    }
    if ((st = listen_on(m, &fd, fault, size)) != AH_OK)
        return st;
    if (!(server = ah_mock_server_new(fd, &script))) {
        close(fd);
        return cannot(fault, size, m, "the HTTP server does not start");
    }
    tell_address(fd, m->out);
    serve(host, m, server);
    ah_mock_server_free(server);
    return AH_OK;
}
