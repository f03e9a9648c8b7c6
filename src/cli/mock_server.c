/* libmicrohttpd without a thread of its own: it reads and writes when ah_mock_server_turn says
 * so, and waits with a descriptor of its own (epoll) in our poll. We accept, so that it is ours to
 * say who is let in and who has to go. A connection that waits (for a time, or for the next piece of
 * its stream to be made) is suspended; what is due is resumed before the next turn.
 *
 * Pieces are made outside of libmicrohttpd's round, first come, first served, for some milliseconds
 * between two rounds: so who comes new waits for no stream, and none is made that nobody takes. */
#include "cli/mock_server.h"

#ifndef AH_WITH_MICROHTTPD

ah_mock_server *ah_mock_server_new(int fd, const ah_mock_script *script)
{
    (void)fd;
    (void)script;
    return NULL;
}

void ah_mock_server_free(ah_mock_server *s)
{
    (void)s;
}

int ah_mock_server_wants(ah_mock_server *s, struct pollfd fds[AH_MOCK_FDS])
{
    (void)s;
    (void)fds;
    return -1;
}

void ah_mock_server_turn(ah_mock_server *s)
{
    (void)s;
}

size_t ah_mock_server_answered(const ah_mock_server *s)
{
    (void)s;
    return 0;
}

const char *ah_mock_server_version(void)
{
    return NULL;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/mock_door.h"

enum {
    POOL = 64 << 10,     /* bytes of a connection: the head of a request, a piece of an answer */
    MAX_HEAD = 32 << 10, /* so that the head of an answer finds room beside it */
    UNSENT = 64 << 10,   /* that the system takes of a connection and keeps, about */
    MAX_WAIT_MS = 3600 * 1000,
    MAKING_MS = 3,  /* spent on pieces of streams between two rounds */
    SHUT_MS = 100,  /* nobody is accepted for so long where there is no room */
    SWEEP_MS = 250, /* between looks for connections whose time is over */
    ROUND_MS = 10,  /* between rounds where libmicrohttpd has no descriptor */
    MOST_NEW = 64   /* that are let in between two rounds */
};

/* An answer that the server gives by itself. */
typedef struct refusal {
    int status;
    const char *reason, *words;
} refusal;

static const refusal late = {408, "Request Timeout", "the request did not come in time"};
static const refusal large = {413, "Content Too Large", "the request is larger than 64 MiB"};
static const refusal large_head = {431, "Request Header Fields Too Large",
                                   "the request's head is larger than 32 KiB"};
static const refusal silent = {500, "Internal Server Error",
                               "agenthost mock has no answer; its stderr says why"};
static const refusal unsendable = {500, "Internal Server Error",
                                   "agenthost mock cannot send this answer"};
static const refusal crowded = {503, "Service Unavailable",
                                "the requests under way are larger than 256 MiB"};

/* One request and its answer. */
typedef struct exchange exchange;
struct exchange {
    ah_mock_server *server;
    struct MHD_Connection *connection; /* NULL: the head is not there */
    ah_mock_visit *visit;
    char method[16];
    ah_bytes target, body;
    size_t held; /* of the body, as the server counts it */
    ah_plan *plan;
    size_t step, sent; /* of the plan: which step, how many of its bytes */
    int64_t due;       /* suspended until then, ms; 0: it is not */
    bool waited;       /* the wait of this step (before the head: of the plan) is over */
    bool broken;       /* the rest of the stream cannot be said */
    bool queued;       /* suspended until its next piece is made */
    exchange *behind;  /* in the queue */
    exchange *next, **link;
};

struct ah_mock_server {
    struct MHD_Daemon *daemon;
    ah_mock_script script;
    int fd; /* listens */
    ah_mock_door door;
    size_t coming; /* handed to libmicrohttpd, which will say in its next round that they are there */
    int64_t shut;  /* nobody is accepted until then, ms */
    int64_t swept; /* when it was last looked for those whose time is over */
    exchange *first;
    exchange *queue, **last; /* whose next pieces are to be made */
    bool resumed;            /* a round is due: libmicrohttpd does not say so itself */
    size_t bodies;           /* bytes held of requests that are not whole */
    size_t answered;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -- waits ----------------------------------------------------------------------------------- */

/* True if the wait that stands here has still to be waited for: the connection is suspended then. */
static bool must_wait(exchange *x, int64_t ms)
{
    if (x->waited || ms <= 0)
        return false;
    x->waited = true;
    x->due = now_ms() + (ms > MAX_WAIT_MS ? MAX_WAIT_MS : ms);
    MHD_suspend_connection(x->connection);
    return true;
}

static void resume(exchange *x)
{
    x->due = 0;
    x->server->resumed = true;
    MHD_resume_connection(x->connection);
}

static void enqueue(exchange *x)
{
    ah_mock_server *s = x->server;

    x->queued = true;
    x->behind = NULL;
    *s->last = x;
    s->last = &x->behind;
}

static exchange *dequeue(ah_mock_server *s)
{
    exchange *x = s->queue;

    s->queue = x->behind;
    if (!s->queue)
        s->last = &s->queue;
    x->queued = false;
    return x;
}

/* -- asking for a plan ----------------------------------------------------------------------- */

static enum MHD_Result put_header(void *ud, enum MHD_ValueKind kind, const char *name, const char *value)
{
    ah_bytes *b = ud;

    (void)kind;
    ah_bytes_fmt(b, "%s: %s\n", name, value ? value : "");
    return MHD_YES;
}

/* The script's plan for a request whose head is there, or for its refusal. To be asked for once. */
static ah_plan *ask(exchange *x, const char *body, const refusal *r)
{
    const ah_mock_script *script = &x->server->script;
    ah_mock_request q = {.method = x->method, .body = body};
    ah_plan *p = NULL;
    ah_bytes headers;

    if (r) {
        q.status = r->status;
        q.fault = r->words;
    }
    ah_bytes_init(&headers, POOL * 2);
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, put_header, &headers);
    ah_bytes_char(&headers, '\0');
    ah_bytes_char(&x->target, '\0');
    if (ah_bytes_ok(&headers) && ah_bytes_ok(&x->target)) {
        q.target = x->target.data;
        q.headers = headers.data;
        p = script->ask(script->ud, &q);
    }
    ah_bytes_clear(&headers);
    return p;
}

/* -- words without libmicrohttpd ------------------------------------------------------------------- */

static void put_headers(ah_bytes *out, const ah_plan *p)
{
    const char *at = p->headers.data, *end = at + p->headers.len;

    while (at < end) {
        const char *value = at + strlen(at) + 1;

        ah_bytes_fmt(out, "%s: %s\r\n", at, value);
        at = value + strlen(value) + 1;
    }
}

/* An answer where libmicrohttpd takes none: in the middle of a body, before the end of a head. What
 * does not fit into the socket at once is left unsaid. `p`: in the words of a protocol; NULL: in ours. */
static void tell(const ah_mock_visit *v, const refusal *r, const ah_plan *p)
{
    ah_bytes text, body;

    ah_bytes_init(&text, MAX_HEAD);
    ah_bytes_init(&body, MAX_HEAD);
    ah_bytes_fmt(&text, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\n",
                 r->status, r->reason);
    if (p) {
        put_headers(&text, p);
        ah_bytes_add(&body, p->bytes.data, p->bytes.len);
    } else {
        ah_bytes_fmt(&body, "{\"error\":{\"message\":\"%s\"}}", r->words);
    }
    ah_bytes_fmt(&text, "Content-Length: %zu\r\n\r\n", body.len);
    ah_bytes_add(&text, body.data, body.len);
    if (ah_bytes_ok(&text) && ah_bytes_ok(&body))
        send(v->fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    ah_bytes_clear(&text);
    ah_bytes_clear(&body);
}

/* In the words of the protocol that the request is of, where its head tells which one that is. */
static void tell_asker(const ah_mock_visit *v, const refusal *r)
{
    exchange *x = v->exchange;
    ah_plan *p = x && x->connection ? ask(x, "", r) : NULL;

    tell(v, r, p);
    ah_plan_free(p);
}

static void drop_body(exchange *x)
{
    x->server->bodies -= x->held;
    x->held = 0;
    ah_bytes_clear(&x->body);
}

/* The rest of its request is read and dropped for a moment: with bytes unread, closing would take the
 * answer away from a client that is still sending. */
static void refuse(exchange *x, const refusal *r)
{
    tell_asker(x->visit, r);
    shutdown(x->visit->fd, SHUT_WR);
    ah_mock_visit_begin(x->visit, AH_MOCK_VISIT_REFUSED, now_ms());
    drop_body(x);
}

/* Lets a client go: libmicrohttpd finds the socket closed. */
static void send_off(ah_mock_visit *v)
{
    exchange *x = v->exchange;

    if (v->phase == AH_MOCK_VISIT_FRESH || v->phase == AH_MOCK_VISIT_BODY)
        tell_asker(v, &late);
    v->sent_off = true;
    shutdown(v->fd, SHUT_RDWR);
    if (x && x->due)
        resume(x);
}

/* -- the answer -------------------------------------------------------------------------------- */

static void next_step(exchange *x)
{
    x->step++;
    x->sent = 0;
    x->waited = false;
}

/* A piece of the body: never of more than one step, so that each goes out by itself. */
static ssize_t read_step(exchange *x, char *out, size_t max)
{
    const ah_plan *p = x->plan;

    for (; x->step < p->n_steps; next_step(x)) {
        const ah_plan_step *s = &p->step[x->step];
        size_t n = s->n - x->sent < max ? s->n - x->sent : max;

        if (must_wait(x, s->wait_ms))
            return 0;
        if (s->close)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (n) {
            memcpy(out, p->bytes.data + s->at + x->sent, n);
            x->sent += n;
            ah_mock_visit_hand(x->visit, now_ms());
            return (ssize_t)n;
        }
    }
    if (!p->more)
        return MHD_CONTENT_READER_END_OF_STREAM;
    enqueue(x);
    MHD_suspend_connection(x->connection);
    return 0;
}

/* It comes when the client has taken what there was before. */
static ssize_t read_body(void *ud, uint64_t pos, char *out, size_t max)
{
    exchange *x = ud;

    (void)pos;
    if (x->broken || x->visit->sent_off)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ah_mock_visit_taken(x->visit, now_ms());
    return read_step(x, out, max);
}

static bool add_headers(struct MHD_Response *r, const ah_plan *p)
{
    const char *at = p->headers.data, *end = at + p->headers.len;
    bool ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, p->type) == MHD_YES;

    while (ok && at < end) {
        const char *value = at + strlen(at) + 1;

        ok = MHD_add_response_header(r, at, value) == MHD_YES;
        at = value + strlen(value) + 1;
    }
    return ok;
}

static enum MHD_Result send_answer(exchange *x)
{
    const ah_plan *p = x->plan;
    uint64_t length = p->streamed ? MHD_SIZE_UNKNOWN : (uint64_t)p->length;
    struct MHD_Response *r = MHD_create_response_from_callback(length, 16 << 10, read_body, x, NULL);
    enum MHD_Result done = MHD_NO;

    if (r && add_headers(r, p))
        done = MHD_queue_response(x->connection, (unsigned)p->status, r);
    if (r)
        MHD_destroy_response(r);
    x->waited = false;
    if (done == MHD_NO)
        tell(x->visit, &unsendable, NULL);
    return done;
}

/* Makes the next piece of one stream, unless its client is gone. */
static void make_piece(ah_mock_server *s)
{
    exchange *x = dequeue(s);

    if (ah_mock_visit_gone(x->visit)) {
        x->visit->sent_off = true;
    } else {
        x->broken = !s->script.go_on(s->script.ud, x->plan);
        x->step = x->sent = 0;
        x->waited = false;
    }
    if (!x->broken && !x->visit->sent_off && !x->plan->n_steps && x->plan->more)
        enqueue(x);
    else
        resume(x);
}

static void make_pieces(ah_mock_server *s, int64_t now)
{
    while (s->queue && now_ms() - now < MAKING_MS)
        make_piece(s);
}

/* -- the request -------------------------------------------------------------------------------- */

static void take_request(exchange *x)
{
    ah_mock_visit_begin(x->visit, AH_MOCK_VISIT_ANSWER, now_ms());
    ah_bytes_char(&x->body, '\0');
    if (ah_bytes_ok(&x->body))
        x->plan = ask(x, x->body.data, NULL);
    drop_body(x);
    if (!x->plan)
        tell(x->visit, &silent, NULL);
}

static enum MHD_Result count_header(void *ud, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    size_t *n = ud;

    (void)kind;
    *n += strlen(name) + (value ? strlen(value) : 0) + 4;
    return MHD_YES;
}

/* The head is there: what can be refused by it alone is. */
static void take_head(exchange *x, struct MHD_Connection *c, const char *method)
{
    const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    size_t n = x->target.len;

    x->connection = c;
    snprintf(x->method, sizeof x->method, "%s", method);
    ah_mock_visit_begin(x->visit, AH_MOCK_VISIT_BODY, now_ms());
    MHD_get_connection_values(c, MHD_HEADER_KIND, count_header, &n);
    if (n > MAX_HEAD || !ah_bytes_ok(&x->target))
        refuse(x, &large_head);
    else if (length && strtoull(length, NULL, 10) > AH_MOCK_BODY)
        refuse(x, &large);
}

/* A piece of the body. */
static void take_bytes(exchange *x, const char *data, size_t n)
{
    ah_mock_server *s = x->server;

    if (x->body.len + n > AH_MOCK_BODY) {
        refuse(x, &large);
        return;
    }
    ah_bytes_add(&x->body, data, n);
    x->held += n;
    s->bodies += n;
    if (s->bodies > AH_MOCK_BODIES || !ah_bytes_ok(&x->body))
        refuse(x, &crowded);
}

/* Called for the head, for each piece of the body, at its end, and after each wait before the
 * answer. */
static enum MHD_Result on_request(void *ud, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data, size_t *n,
                                  void **state)
{
    exchange *x = *state;

    (void)ud;
    (void)url;
    (void)version;
    if (!x || x->visit->sent_off)
        return MHD_NO;
    if (!x->connection) {
        take_head(x, c, method);
        return MHD_YES;
    }
    if (*n) {
        if (x->visit->phase == AH_MOCK_VISIT_BODY)
            take_bytes(x, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (x->visit->phase == AH_MOCK_VISIT_REFUSED)
        return MHD_NO;
    if (!x->plan)
        take_request(x);
    if (!x->plan)
        return MHD_NO;
    if (must_wait(x, x->plan->wait_ms))
        return MHD_YES;
    return x->plan->drop ? MHD_NO : send_answer(x);
}

/* The beginning of each request, with its target before it is taken apart. */
static void *on_target(void *ud, const char *target, struct MHD_Connection *c)
{
    ah_mock_server *s = ud;
    ah_mock_visit *v = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    exchange *x = v ? malloc(sizeof *x) : NULL;

    if (!x)
        return NULL;
    *x = (exchange){.server = s, .visit = v, .next = s->first, .link = &s->first};
    ah_bytes_init(&x->target, MAX_HEAD + 1);
    ah_bytes_init(&x->body, AH_MOCK_BODY + 1);
    ah_bytes_str(&x->target, target);
    if (x->next)
        x->next->link = &x->next;
    s->first = x;
    v->exchange = x;
    return x;
}

static void on_over(void *ud, struct MHD_Connection *c, void **state,
                    enum MHD_RequestTerminationCode why)
{
    exchange *x = *state;
    ah_mock_server *s = ud;

    (void)c;
    (void)why;
    if (!x)
        return;
    *state = NULL;
    s->answered += x->visit->phase == AH_MOCK_VISIT_ANSWER || x->visit->phase == AH_MOCK_VISIT_REFUSED;
    s->bodies -= x->held;
    if (x->plan && x->plan->more && !x->broken)
        s->script.forget(s->script.ud, x->plan);
    x->visit->exchange = NULL;
    ah_mock_visit_begin(x->visit, AH_MOCK_VISIT_KEPT, now_ms());
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    ah_bytes_clear(&x->target);
    ah_bytes_clear(&x->body);
    ah_plan_free(x->plan);
    free(x);
}

/* -- who is let in -------------------------------------------------------------------------------- */

static void on_connection(void *ud, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    ah_mock_server *s = ud;
    ah_mock_visit *v = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        s->coming -= s->coming > 0;
        if ((v = malloc(sizeof *v)))
            ah_mock_door_enter(&s->door, v,
                               MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                               now_ms());
        *context = v;
    } else if (v) {
        ah_mock_door_leave(&s->door, v);
        free(v);
        *context = NULL;
        s->shut = 0;
    }
}

static bool is_waiting_outside(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* One has to go, or the others wait. */
static void make_room(ah_mock_server *s, int64_t now)
{
    ah_mock_visit *v = ah_mock_door_slowest(&s->door, now);

    s->shut = now + SHUT_MS;
    if (v)
        send_off(v);
}

/* The system would take some MiB for a client that does not read: all of it made for nobody, and each
 * connection would seem to keep up for as long as it is made. */
static void bound_unsent(int fd)
{
    int most = UNSENT;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
}

/* False: nobody more can be let in now. */
static bool let_one_in(ah_mock_server *s)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    int fd = accept(s->fd, (struct sockaddr *)&a, &n);

    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    bound_unsent(fd);
    s->coming++; /* first: some versions say at once that it is there */
    MHD_add_connection(s->daemon, fd, (struct sockaddr *)&a, n); /* closes it where it fails */
    return true;
}

/* Never more than libmicrohttpd takes: it would close those that are too many. */
static void let_in(ah_mock_server *s, int64_t now)
{
    if (now < s->shut)
        return;
    for (int i = 0; i < MOST_NEW && is_waiting_outside(s->fd); i++)
        if (s->door.n + s->coming >= AH_MOCK_CONNECTIONS || !let_one_in(s)) {
            make_room(s, now);
            return;
        }
}

/* Those whose time is over, and those that wait for an answer and are gone. */
static void sweep(ah_mock_server *s, int64_t now)
{
    if (now - s->swept < SWEEP_MS)
        return;
    s->swept = now;
    for (ah_mock_visit *v = s->door.first; v; v = v->next) {
        const exchange *x = v->exchange;

        if (!v->sent_off && (ah_mock_visit_overdue(v, now) || (x && x->due && ah_mock_visit_gone(v))))
            send_off(v);
    }
}

/* -- the server ---------------------------------------------------------------------------------- */

static struct MHD_Daemon *start(ah_mock_server *s)
{
    bool epoll = MHD_is_feature_supported(MHD_FEATURE_EPOLL) == MHD_YES;
    unsigned flags = MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | (epoll ? MHD_USE_EPOLL : 0);

    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)AH_MOCK_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)AH_MOCK_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL,
                            MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_NOTIFY_COMPLETED,
                            on_over, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
}

ah_mock_server *ah_mock_server_new(int fd, const ah_mock_script *script)
{
    ah_mock_server *s = malloc(sizeof *s);

    if (!s)
        return NULL;
    *s = (ah_mock_server){.script = *script, .fd = fd};
    s->last = &s->queue;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && (s->daemon = start(s)))
        return s;
    free(s);
    return NULL;
}

/* It must not be stopped with connections that are suspended. */
void ah_mock_server_free(ah_mock_server *s)
{
    if (!s)
        return;
    for (exchange *x = s->first; x; x = x->next)
        if (x->due || x->queued)
            resume(x);
    MHD_stop_daemon(s->daemon);
    close(s->fd);
    free(s);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 || b < a ? b : a;
}

/* Until the next of our own times comes; -1: there is none. */
static int64_t next_time(const ah_mock_server *s, int64_t now)
{
    int64_t least = s->door.n ? SWEEP_MS : -1;

    if (s->shut > now)
        least = earlier(least, s->shut - now);
    for (const exchange *x = s->first; x; x = x->next)
        if (x->due)
            least = earlier(least, x->due > now ? x->due - now : 0);
    return s->queue || s->resumed ? 0 : least;
}

int ah_mock_server_wants(ah_mock_server *s, struct pollfd fds[AH_MOCK_FDS])
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int64_t now = now_ms(), least = next_time(s, now);
    MHD_UNSIGNED_LONG_LONG ms;

    fds[0] = (struct pollfd){.fd = s->shut > now ? -1 : s->fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = info ? info->epoll_fd : -1, .events = POLLIN};
    if (MHD_get_timeout(s->daemon, &ms) == MHD_YES)
        least = earlier(least, (int64_t)(ms > MAX_WAIT_MS ? MAX_WAIT_MS : ms));
    return (int)(fds[1].fd < 0 ? earlier(least, ROUND_MS) : least);
}

void ah_mock_server_turn(ah_mock_server *s)
{
    int64_t now = now_ms();

    for (exchange *x = s->first; x; x = x->next)
        if (x->due && x->due <= now)
            resume(x);
    sweep(s, now);
    let_in(s, now);
    s->resumed = false;
    MHD_run(s->daemon);
    s->coming = 0;
    make_pieces(s, now_ms());
}

size_t ah_mock_server_answered(const ah_mock_server *s)
{
    return s->answered;
}

const char *ah_mock_server_version(void)
{
    return MHD_get_version();
}

#endif
