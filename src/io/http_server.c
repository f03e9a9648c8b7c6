/* libmicrohttpd without its own thread: it works when called, and waits through its epoll
 * descriptor in our loop. We accept connections ourselves: when all places are taken, we close a
 * slow connection or let new clients wait. A connection without an answer is suspended; writing to
 * it resumes it. */
#include "io/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "io/http_server_mhd.h"

const ah_server_limits ah_server_limits_default = {
    .connections = 512,
    .header_bytes = 32 << 10,
    .body_bytes = 8 << 20,
    .bodies_bytes = 256 << 20,
    .header_ms = 10 * 1000,
    .body_ms = 60 * 1000,
    .idle_ms = 60 * 1000,
};

static ah_status missing(ah_err *err, const char *why)
{
    ah_err_set(err, AH_HTTP, "the HTTP server needs libmicrohttpd, %s", why);
    if (err)
        ah_json_detail(err, "reason", ah_slice_of("missing"));
    return AH_HTTP;
}

#ifndef AH_WITH_MICROHTTPD

ah_status ah_server_new(const ah_mem *mem, ah_loop *loop, const char *listen,
                        const ah_server_limits *limits, const ah_server_owner *owner,
                        ah_server **out, ah_err *err)
{
    (void)mem;
    (void)loop;
    (void)listen;
    (void)limits;
    (void)owner;
    (void)out;
    return missing(err,
                   "which this agenthost was built without; install it with its header (Debian: "
                   "libmicrohttpd-dev), then make again");
}

void ah_server_free(ah_server *s)
{
    (void)s;
}

void ah_server_shut(ah_server *s, int64_t ms)
{
    (void)s;
    (void)ms;
}

const char *ah_server_address(const ah_server *s)
{
    (void)s;
    return "";
}

int ah_server_port(const ah_server *s)
{
    (void)s;
    return 0;
}

bool ah_server_is_any(const ah_server *s)
{
    (void)s;
    return false;
}

const char *ah_server_version(void)
{
    return NULL;
}

#else

#include "io/http_door.h"
#include "io/http_server_hit.h"

enum {
    MAX_HEADER = 256 << 10, /* the limit that libmicrohttpd supports */
    /* Memory of a connection, in heads of requests: it also holds a piece of the answer. */
    POOL = 2,
    UNSENT = 64 << 10, /* approximate bytes that the system buffers per connection */
    REFUSED_MS = 2000, /* the rest of a refused request is read for this time */
    SHUT_MS = 100,     /* without room, no connection is accepted for this time */
    SWEEP_MS = 250,    /* between checks for connections whose time is over */
    ROUND_MS = 10,     /* between rounds if libmicrohttpd has no descriptor */
    MOST_NEW = 64,     /* limit of connections accepted between two rounds */
    BLOCK = 16 << 10   /* size of a block of an answer */
};

struct ah_server {
    ah_mhd mhd;
    const ah_mem *mem;
    ah_loop *loop;
    ah_server_limits limits;
    ah_server_owner owner;
    struct MHD_Daemon *daemon;
    int fd, epoll; /* the listening socket; libmicrohttpd's descriptor, -1: none */
    char address[AH_SERVER_TEXT];
    int port;
    bool any;
    ah_door door;
    /* Connections given to libmicrohttpd that it reports in its next round. */
    size_t coming;
    int64_t shut;  /* no connection is accepted before this time, ms */
    int64_t swept; /* time of the last check for connections whose time is over */
    ah_timer timer;
    int64_t until; /* end given to ah_server_shut; 0: not called */
    bool closed;   /* its owner was informed that it is closed */
    bool running;  /* libmicrohttpd is running */
    ah_hit *first;
    size_t bodies; /* bytes held of incomplete requests */
};

static int64_t now_of(const ah_server *s)
{
    return ah_loop_now(s->loop);
}

/* Runs a round as soon as the loop waits. */
static void turn_soon(ah_server *s)
{
    ah_timer_set(s->loop, &s->timer, now_of(s));
}

static enum MHD_Result suspend(ah_hit *x)
{
    x->suspended = true;
    x->server->mhd.suspend_connection(x->connection);
    return MHD_YES;
}

static void resume(ah_hit *x)
{
    if (!x->suspended)
        return;
    x->suspended = false;
    x->server->mhd.resume_connection(x->connection);
    turn_soon(x->server);
}

static void tell_moved(ah_hit *x)
{
    if (x->owned && x->server && x->server->owner.moved)
        x->server->owner.moved(x->server->owner.ud, x);
}

/* -- answers without libmicrohttpd ------------------------------------------------------------- */

static const char *reason_of(const ah_server *s, int status)
{
    static const struct {
        int status;
        const char *words;
    } known[] = {{400, "Bad Request"},         {403, "Forbidden"},
                 {408, "Request Timeout"},     {413, "Content Too Large"},
                 {421, "Misdirected Request"}, {431, "Request Header Fields Too Large"},
                 {503, "Service Unavailable"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status)
            return known[i].words;
    return s->mhd.get_reason_phrase_for((unsigned)status);
}

/* Sends an answer when libmicrohttpd accepts none: within a body, or before the end of a head. What
 * does not fit into the socket at once is not sent. */
static void tell(const ah_server *s, const ah_visit *v, int status, const char *why)
{
    char text[512];
    int n = snprintf(
        text, sizeof text,
        "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
        "Content-Length: %zu\r\n\r\n%s\n",
        status, reason_of(s, status), strlen(why) + 1, why);

    if (n > 0 && (size_t)n < sizeof text)
        send(v->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The same with the owner's answer. False: that is not possible. */
static bool tell_answer(const ah_hit *x)
{
    const char *at = x->lines.data, *end = x->lines.len ? at + x->lines.len : at;
    bool ok = x->status && ah_buf_ok(&x->lines) && ah_buf_ok(&x->out);
    ah_buf text;

    ah_buf_init(&text, x->mem, AH_REFUSAL_BYTES);
    ah_buf_fmt(&text, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n", x->status,
               reason_of(x->server, x->status), x->out.len);
    while (ok && at < end) {
        const char *value = at + strlen(at) + 1;

        ah_buf_fmt(&text, "%s: %s\r\n", at, value);
        at = value + strlen(value) + 1;
    }
    ah_buf_str(&text, "\r\n");
    if (ok)
        ah_buf_put(&text, ah_buf_slice(&x->out));
    if ((ok = ah_buf_ok(&text) && ok))
        send(x->visit->fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    ah_buf_clear(&text);
    return ok;
}

/* Sends a refusal, once, when its owner has ended the answer or broken it off. The rest of the
 * request is read and discarded for a short time: closing with unread bytes would destroy the
 * answer for a client that is still sending. */
static void tell_refusal(ah_hit *x)
{
    if (x->told || !(x->ended || x->broken))
        return;
    x->told = true;
    if (x->broken || !tell_answer(x))
        tell(x->server, x->visit, x->refused, x->why);
    shutdown(x->visit->fd, x->leaving ? SHUT_RDWR : SHUT_WR);
    x->visit->sent_off = x->leaving;
}

/* Called when the owner has added to its answer. */
static void go_on(ah_hit *x)
{
    if (x->refused)
        tell_refusal(x);
    if (!x->refused || x->told)
        resume(x);
}

/* Writes for example "..., larger than 64 MiB". */
static void put_why(const ah_refusal *r, char *out, size_t size)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB"};
    size_t n = r->limit, u = 0;

    for (; u < 2 && n && n % 1024 == 0; u++)
        n /= 1024;
    if (n)
        snprintf(out, size, "%s %zu %s", r->why, n, unit[u]);
    else
        snprintf(out, size, "%s", r->why);
}

static void refuse(ah_hit *x, ah_refusal r)
{
    const ah_server_owner *owner = &x->server->owner;

    x->refused = r.status;
    put_why(&r, x->why, sizeof x->why);
    ah_visit_begin(x->visit, AH_VISIT_REFUSED, now_of(x->server));
    ah_hit_drop_body(x);
    if (owner->refuses) {
        x->asked = x->owned = true;
        owner->asked(owner->ud, x);
    } else {
        x->broken = true;
        tell_refusal(x);
    }
}

/* Closes a connection: libmicrohttpd then finds the socket closed. */
static void send_off(ah_server *s, ah_visit *v)
{
    static const ah_refusal late = {408, "the request did not come in time", 0};
    ah_hit *x = v->exchange;

    if (v->phase == AH_VISIT_BODY && x && x->connection) {
        x->leaving = true;
        refuse(x, late);
        return;
    }
    if (v->phase == AH_VISIT_REFUSED && x && !x->told) {
        x->broken = true;
        tell_refusal(x);
    } else if (v->phase == AH_VISIT_FRESH || v->phase == AH_VISIT_BODY) {
        tell(s, v, late.status, late.why);
    }
    v->sent_off = true;
    shutdown(v->fd, SHUT_RDWR);
    if (x)
        resume(x);
}

/* -- the answer -------------------------------------------------------------------------------- */

/* The next bytes of the body; without any the connection is suspended. */
static ssize_t read_body(void *ud, uint64_t pos, char *out, size_t max)
{
    ah_hit *x = ud;
    size_t n = x->out.len - x->sent < max ? x->out.len - x->sent : max;

    (void)pos;
    if (x->broken || x->visit->sent_off)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ah_visit_taken(x->visit, now_of(x->server));
    if (n) {
        memcpy(out, x->out.data + x->sent, n);
        x->sent += n;
        ah_visit_hand(x->visit, now_of(x->server));
        return (ssize_t)n;
    }
    if (x->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    ah_buf_reset(&x->out, 0);
    x->sent = 0;
    suspend(x);
    tell_moved(x);
    return 0;
}

static bool add_lines(const ah_hit *x, struct MHD_Response *r)
{
    const char *at = x->lines.data, *end = x->lines.len ? at + x->lines.len : at;
    bool ok = ah_buf_ok(&x->lines);

    while (ok && at < end) {
        const char *value = at + strlen(at) + 1;

        ok = x->server->mhd.add_response_header(r, at, value) == MHD_YES;
        at = value + strlen(value) + 1;
    }
    return ok;
}

static enum MHD_Result send_answer(ah_hit *x)
{
    const ah_mhd *m = &x->server->mhd;
    uint64_t length = x->length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)x->length;
    struct MHD_Response *r = m->create_response_from_callback(length, BLOCK, read_body, x, NULL);
    enum MHD_Result done = MHD_NO;

    if (r && add_lines(x, r))
        done = m->queue_response(x->connection, (unsigned)x->status, r);
    if (r)
        m->destroy_response(r);
    if (done == MHD_NO)
        tell(x->server, x->visit, 500, "this answer cannot be sent");
    return done;
}

/* -- the request ------------------------------------------------------------------------------- */

static enum MHD_Result take_line(void *ud, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    ah_hit *x = ud;

    (void)kind;
    x->lost = !ah_hit_keep_line(x, name, value);
    return x->lost ? MHD_NO : MHD_YES;
}

/* Two contradicting lengths of a body could hide one request inside another. */
static const char *odd_framing(const ah_hit *x)
{
    size_t lengths, codings;
    ah_slice length = ah_hit_header(x, "Content-Length", &lengths),
             coding = ah_hit_header(x, "Transfer-Encoding", &codings);

    if (lengths > 1 || codings > 1 || (lengths && codings))
        return "the request gives the length of its body twice";
    if (codings && !(coding.n == 7 && strncasecmp(coding.p, "chunked", 7) == 0))
        return "the transfer coding of the body is not supported";
    for (size_t i = 0; i < length.n; i++)
        if (length.p[i] < '0' || length.p[i] > '9')
            return "the length of the body is no number";
    return NULL;
}

/* Compares a length of digits only. */
static bool is_large(const ah_hit *x)
{
    size_t n;
    ah_slice length = ah_hit_header(x, "Content-Length", &n);
    uint64_t bytes = 0;

    for (size_t i = 0; i < length.n && bytes <= x->server->limits.body_bytes; i++)
        bytes = 10 * bytes + (uint64_t)(length.p[i] - '0');
    return bytes > x->server->limits.body_bytes;
}

/* The head is complete: refuses what can be refused by it. */
static void take_head(ah_hit *x, struct MHD_Connection *c, const char *method, const char *version)
{
    ah_server *s = x->server;
    ah_refusal r = {0, NULL, 0};
    const char *odd;
    size_t hosts;

    x->connection = c;
    snprintf(x->method, sizeof x->method, "%s", method);
    ah_visit_begin(x->visit, AH_VISIT_BODY, now_of(s));
    s->mhd.get_connection_values(c, MHD_HEADER_KIND, take_line, x);
    if (!ah_buf_ok(&x->target) || x->lost)
        r = (ah_refusal){503, "there is no memory for the request", 0};
    else if (x->head.len + 2 * x->n_lines + x->target.len > s->limits.header_bytes)
        r = (ah_refusal){431, "the request's head is larger than", s->limits.header_bytes};
    else if ((odd = odd_framing(x)))
        r = (ah_refusal){400, odd, 0};
    else if (!ah_hit_header(x, "Host", &hosts).p && strcmp(version, "HTTP/1.0") != 0)
        r = (ah_refusal){400, "the request has no Host", 0};
    else if (strlen(method) >= sizeof x->method)
        r = (ah_refusal){400, "the request's method is too long", 0};
    else if (s->owner.judge)
        r = s->owner.judge(s->owner.ud, x);
    if (!r.status && is_large(x))
        r = (ah_refusal){413, "the request is larger than", s->limits.body_bytes};
    if (r.status)
        refuse(x, r);
}

/* Takes a piece of the body. */
static void take_bytes(ah_hit *x, const char *data, size_t n)
{
    ah_server *s = x->server;

    if (x->body.len + n > s->limits.body_bytes) {
        refuse(x, (ah_refusal){413, "the request is larger than", s->limits.body_bytes});
        return;
    }
    ah_buf_add(&x->body, data, n);
    x->held += n;
    s->bodies += n;
    if (s->bodies > s->limits.bodies_bytes || !ah_buf_ok(&x->body))
        refuse(x,
               (ah_refusal){503, "the requests under way are larger than", s->limits.bodies_bytes});
}

/* The request is complete and becomes the owner's, which is called while libmicrohttpd waits. */
static enum MHD_Result hand_over(ah_hit *x)
{
    ah_server *s = x->server;

    x->asked = x->owned = true;
    ah_visit_begin(x->visit, AH_VISIT_ANSWER, now_of(s));
    suspend(x);
    s->owner.asked(s->owner.ud, x);
    return MHD_YES;
}

/* Called for the head, for each piece of the body, at its end, and once the answer has begun. */
static enum MHD_Result on_request(void *ud, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state)
{
    ah_hit *x = *state;

    (void)ud;
    (void)url;
    if (!x || x->visit->sent_off || (x->broken && x->asked && !x->refused))
        return MHD_NO;
    if (!x->connection) {
        take_head(x, c, method, version);
        return MHD_YES;
    }
    if (*n) {
        if (x->visit->phase == AH_VISIT_BODY)
            take_bytes(x, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (x->refused)
        return x->told ? MHD_NO : suspend(x);
    if (!x->asked)
        return hand_over(x);
    return x->status ? send_answer(x) : MHD_NO;
}

static void words_of(const struct sockaddr *a, char *out, size_t size)
{
    char name[AH_SERVER_TEXT / 2], port[16];
    socklen_t n =
        a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    *out = '\0';
    if (getnameinfo(a, n, name, sizeof name, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) ==
        0)
        snprintf(out, size, a->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", name, port);
}

static void enter(ah_server *s, ah_hit *x)
{
    x->next = s->first;
    x->link = &s->first;
    if (x->next)
        x->next->link = &x->next;
    s->first = x;
}

/* Called at the beginning of each request, with its unparsed target. */
static void *on_target(void *ud, const char *target, struct MHD_Connection *c)
{
    ah_server *s = ud;
    ah_visit *v = s->mhd.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    ah_hit *x = v ? ah_alloc(s->mem, sizeof *x) : NULL;

    if (!x)
        return NULL;
    *x = (ah_hit){.server = s, .visit = v, .go_on = go_on, .mem = s->mem, .bodies = &s->bodies};
    ah_buf_init(&x->target, s->mem, POOL * s->limits.header_bytes);
    ah_buf_init(&x->head, s->mem, POOL * s->limits.header_bytes);
    ah_buf_init(&x->body, s->mem, s->limits.body_bytes);
    ah_buf_init(&x->lines, s->mem, s->limits.header_bytes);
    ah_buf_init(&x->out, s->mem, SIZE_MAX / 2);
    words_of(s->mhd.get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr,
             x->remote, sizeof x->remote);
    ah_buf_str(&x->target, target);
    enter(s, x);
    v->exchange = x;
    return x;
}

static void on_over(void *ud, struct MHD_Connection *c, void **state,
                    enum MHD_RequestTerminationCode why)
{
    ah_hit *x = *state;
    ah_server *s = ud;

    (void)c;
    if (!x)
        return;
    *state = NULL;
    x->out_whole = why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    s->bodies -= x->held;
    x->held = 0;
    x->visit->exchange = NULL;
    ah_visit_begin(x->visit, AH_VISIT_KEPT, now_of(s));
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    x->connection = NULL;
    x->visit = NULL;
    x->suspended = false;
    if (x->owned)
        tell_moved(x);
    else
        ah_hit_destroy(x);
    if (s->until)
        turn_soon(s);
}

/* -- accepting clients ------------------------------------------------------------------------ */

static void on_connection(void *ud, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    ah_server *s = ud;
    ah_visit *v = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        s->coming -= s->coming > 0;
        if ((v = ah_alloc(s->mem, sizeof *v)))
            ah_door_enter(
                &s->door, v,
                s->mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                now_of(s));
        *context = v;
    } else if (v) {
        ah_door_leave(&s->door, v);
        ah_free(s->mem, v);
        *context = NULL;
        s->shut = 0;
    }
}

static bool is_waiting_outside(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* Closes a slow connection, if there is one; otherwise new clients wait. */
static void make_room(ah_server *s, int64_t now)
{
    ah_visit *v = ah_door_slowest(&s->door, now);

    s->shut = now + SHUT_MS;
    if (v)
        send_off(s, v);
}

/* Limits the socket's buffer. By default the system would buffer several MiB for a client that does
 * not read, and the connection would seem to keep up until that is full. */
static void bound_unsent(int fd)
{
    int most = UNSENT;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
}

/* Accepts one connection. False: no more can be accepted now. */
static bool let_one_in(ah_server *s)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    int fd = accept(s->fd, (struct sockaddr *)&a, &n);

    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    bound_unsent(fd);
    s->coming++; /* first: some versions report it at once */
    s->mhd.add_connection(s->daemon, fd, (struct sockaddr *)&a, n); /* closes it on failure */
    return true;
}

/* Accepts no more than libmicrohttpd takes, as it would close the rest. */
static void let_in(ah_server *s, int64_t now)
{
    if (now < s->shut || s->fd < 0)
        return;
    for (int i = 0; i < MOST_NEW && is_waiting_outside(s->fd); i++)
        if (s->door.n + s->coming >= s->limits.connections || !let_one_in(s)) {
            make_room(s, now);
            return;
        }
}

/* Closes visits whose time is over, and those that wait for an answer but whose client is gone; at
 * most once per SWEEP_MS. */
static void sweep(ah_server *s, int64_t now)
{
    if (now - s->swept < SWEEP_MS)
        return;
    s->swept = now;
    for (ah_visit *v = s->door.first; v; v = v->next) {
        const ah_hit *x = v->exchange;

        if (!v->sent_off &&
            (ah_visit_overdue(&s->door, v, now) || (x && x->suspended && ah_visit_gone(v, now))))
            send_off(s, v);
    }
}

/* -- rounds ------------------------------------------------------------------------------------ */

static void on_ready(void *ud, int fd, int events);

static void watch(ah_server *s, int fd, bool on)
{
    if (fd >= 0)
        ah_loop_watch(s->loop, fd, on ? AH_IN : 0, on_ready, s, NULL);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 || b < a ? b : a;
}

/* The time until the next round without an event, ms; -1: none. */
static int64_t next_time(ah_server *s, int64_t now)
{
    MHD_UNSIGNED_LONG_LONG ms;
    int64_t least = s->door.n || s->until ? SWEEP_MS : -1;

    if (s->shut > now)
        least = earlier(least, s->shut - now);
    if (s->mhd.get_timeout(s->daemon, &ms) == MHD_YES)
        least = earlier(least, ms < SWEEP_MS ? (int64_t)ms : SWEEP_MS);
    return s->epoll < 0 ? earlier(least, ROUND_MS) : least;
}

static void plan_next(ah_server *s)
{
    int64_t now = now_of(s), ms = next_time(s, now);

    watch(s, s->fd, s->shut <= now);
    if (ms < 0)
        return;
    if (!s->timer.loop || s->timer.at > now + ms)
        ah_timer_set(s->loop, &s->timer, now + ms);
}

static bool is_done(const ah_server *s)
{
    for (const ah_visit *v = s->door.first; v; v = v->next)
        if (v->phase == AH_VISIT_ANSWER || v->phase == AH_VISIT_REFUSED)
            return false;
    return true;
}

static void look_for_end(ah_server *s, int64_t now)
{
    if (!s->until || s->closed || !(is_done(s) || now >= s->until))
        return;
    s->closed = true;
    if (s->owner.closed)
        s->owner.closed(s->owner.ud);
}

static void turn(ah_server *s)
{
    int64_t now = now_of(s);

    sweep(s, now);
    let_in(s, now);
    s->running = true;
    s->mhd.run(s->daemon);
    s->running = false;
    s->coming = 0;
    look_for_end(s, now);
    plan_next(s);
}

static void on_ready(void *ud, int fd, int events)
{
    (void)fd;
    (void)events;
    turn(ud);
}

static void on_timer(ah_timer *timer)
{
    turn((ah_server *)((char *)timer - offsetof(ah_server, timer)));
}

/* -- the socket -------------------------------------------------------------------------------- */

static ah_status cannot(const char *listen, const char *why, ah_err *err)
{
    return ah_err_set(err, AH_HTTP, "cannot listen on %s: %s", listen, why);
}

/* Splits "localhost:80", "[::1]:80" into name and port. */
static bool split(const char *listen, char name[AH_SERVER_TEXT], const char **port)
{
    const char *colon = strrchr(listen, ':');
    size_t n = colon ? (size_t)(colon - listen) : 0;

    if (!colon || n >= AH_SERVER_TEXT || !colon[1] ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
        atoi(colon + 1) > 65535)
        return false;
    if (n > 2 && *listen == '[' && listen[n - 1] == ']')
        snprintf(name, AH_SERVER_TEXT, "%.*s", (int)n - 2, listen + 1);
    else if (n && !memchr(listen, ':', n))
        snprintf(name, AH_SERVER_TEXT, "%.*s", (int)n, listen);
    else
        return false;
    if (strcasecmp(name, "localhost") == 0)
        strcpy(name, "127.0.0.1");
    *port = colon + 1;
    return true;
}

static int bind_to(const struct addrinfo *a)
{
    int on = 1,
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    on = errno;
    if (fd >= 0)
        close(fd);
    errno = on;
    return -1;
}

static void note_address(ah_server *s)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    char port[16] = "0";

    if (getsockname(s->fd, (struct sockaddr *)&a, &n) == 0)
        getnameinfo((struct sockaddr *)&a, n, s->address, sizeof s->address, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    s->port = atoi(port);
    s->any = strcmp(s->address, "0.0.0.0") == 0 || strcmp(s->address, "::") == 0;
}

static ah_status open_socket(ah_server *s, const char *listen, ah_err *err)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM},
                    *found;
    char name[AH_SERVER_TEXT], words[128];
    const char *port;

    if (!split(listen, name, &port) || getaddrinfo(name, port, &hints, &found) != 0)
        return ah_err_set(
            err, AH_USAGE,
            "'%s' is no address to listen on; one is \"127.0.0.1:0\", \"[::1]:8080\" or "
            "\"localhost:8080\", port 0: any that is free",
            listen);
    s->fd = bind_to(found);
    freeaddrinfo(found);
    if (s->fd >= 0) {
        note_address(s);
        return AH_OK;
    }
    if (strerror_r(errno, words, sizeof words) != 0)
        strcpy(words, "no reason given");
    return cannot(listen, words, err);
}

/* -- the server -------------------------------------------------------------------------------- */

static struct MHD_Daemon *start(ah_server *s)
{
    bool epoll = s->mhd.is_feature_supported(MHD_FEATURE_EPOLL) == MHD_YES;
    unsigned flags =
        MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | (epoll ? MHD_USE_EPOLL : 0);

    return s->mhd.start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_CONNECTION_LIMIT,
                               (unsigned)s->limits.connections, MHD_OPTION_CONNECTION_TIMEOUT,
                               (unsigned)((s->limits.idle_ms + 999) / 1000),
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL * s->limits.header_bytes,
                               MHD_OPTION_URI_LOG_CALLBACK, on_target, s,
                               MHD_OPTION_NOTIFY_COMPLETED, on_over, s,
                               MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
}

static ah_status set_up(ah_server *s, const char *listen, ah_err *err)
{
    const union MHD_DaemonInfo *info;
    ah_status st;

    if (!ah_mhd_load(&s->mhd))
        return missing(err, "which is not on this machine (Debian: libmicrohttpd12)");
    if ((st = open_socket(s, listen, err)) != AH_OK)
        return st;
    if (!(s->daemon = start(s)))
        return cannot(listen, "the HTTP server does not start", err);
    info = s->mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    s->epoll = info ? info->epoll_fd : -1;
    if ((st = ah_loop_watch(s->loop, s->fd, AH_IN, on_ready, s, err)) == AH_OK && s->epoll >= 0)
        st = ah_loop_watch(s->loop, s->epoll, AH_IN, on_ready, s, err);
    return st;
}

ah_status ah_server_new(const ah_mem *mem, ah_loop *loop, const char *listen,
                        const ah_server_limits *limits, const ah_server_owner *owner,
                        ah_server **out, ah_err *err)
{
    ah_server *s = ah_alloc(mem, sizeof *s);
    ah_status st;

    if (!s)
        return ah_err_nomem(err);
    *s = (ah_server){
        .mem = mem, .loop = loop, .limits = *limits, .owner = *owner, .fd = -1, .epoll = -1};
    s->timer.fn = on_timer;
    if (s->limits.header_bytes > MAX_HEADER)
        s->limits.header_bytes = MAX_HEADER;
    s->door.limit_ms[AH_VISIT_REFUSED] = REFUSED_MS;
    s->door.limit_ms[AH_VISIT_KEPT] = s->limits.idle_ms;
    s->door.limit_ms[AH_VISIT_FRESH] = s->limits.header_ms;
    s->door.limit_ms[AH_VISIT_BODY] = s->limits.body_ms;
    if ((st = set_up(s, listen, err)) == AH_OK)
        *out = s;
    else
        ah_server_free(s);
    return st;
}

static void stop_listening(ah_server *s)
{
    watch(s, s->fd, false);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* libmicrohttpd must not be stopped with suspended connections. */
void ah_server_free(ah_server *s)
{
    ah_hit *next;

    if (!s)
        return;
    stop_listening(s);
    watch(s, s->epoll, false);
    for (ah_hit *x = s->first; x; x = next) {
        next = x->next;
        x->broken = true;
        if (x->suspended)
            s->mhd.resume_connection(x->connection);
        x->suspended = false;
    }
    s->owner.moved = NULL;
    if (s->daemon)
        s->mhd.stop_daemon(s->daemon);
    ah_timer_unset(&s->timer);
    ah_free(s->mem, s);
}

void ah_server_shut(ah_server *s, int64_t ms)
{
    if (s->until)
        return;
    s->until = now_of(s) + ms;
    stop_listening(s);
    for (ah_visit *v = s->door.first; v; v = v->next)
        if (v->phase < AH_VISIT_BODY && v->phase != AH_VISIT_REFUSED)
            send_off(s, v);
    turn_soon(s);
}

const char *ah_server_address(const ah_server *s)
{
    return s->address;
}

int ah_server_port(const ah_server *s)
{
    return s->port;
}

bool ah_server_is_any(const ah_server *s)
{
    return s->any;
}

const char *ah_server_version(void)
{
    ah_mhd m;

    return ah_mhd_load(&m) ? m.get_version() : NULL;
}

#endif
