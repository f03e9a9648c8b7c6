/* libmicrohttpd without a thread of its own: it reads and writes when ah_mock_server_turn says
 * so. A wait of a plan suspends the connection; what is due is resumed before the next turn. */
#include "cli/mock_server.h"

#ifndef AH_WITH_MICROHTTPD

ah_mock_server *ah_mock_server_new(int fd, ah_mock_ask ask, void *ud)
{
    (void)fd;
    (void)ask;
    (void)ud;
    return NULL;
}

void ah_mock_server_free(ah_mock_server *s)
{
    (void)s;
}

int ah_mock_server_wants(ah_mock_server *s, ah_mock_fds *fds)
{
    (void)s;
    (void)fds;
    return -1;
}

void ah_mock_server_turn(ah_mock_server *s, const ah_mock_fds *fds)
{
    (void)s;
    (void)fds;
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

#include <microhttpd.h>
#include <time.h>

enum { MAX_HEAD = 64 << 10, MAX_WAIT_MS = 3600 * 1000 };

/* One request and its answer. */
typedef struct exchange exchange;
struct exchange {
    ah_mock_server *server;
    struct MHD_Connection *connection;
    ah_buf target, body;
    ah_plan *plan;
    size_t step, sent; /* of the plan: which step, how many of its bytes */
    int64_t due;       /* suspended until then, ms; 0: it is not */
    bool waited;       /* the wait of this step (before the head: of the plan) is over */
    exchange *next, **link;
};

struct ah_mock_server {
    struct MHD_Daemon *daemon;
    ah_mock_ask ask;
    void *ud;
    exchange *first;
    size_t answered;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -- waits ----------------------------------------------------------------------------------- */

/* Has the wait that stands here still to be waited for? Then the connection is suspended. */
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
    MHD_resume_connection(x->connection);
}

/* -- the answer -------------------------------------------------------------------------------- */

static void next_step(exchange *x)
{
    x->step++;
    x->sent = 0;
    x->waited = false;
}

/* A piece of the body: never of more than one step, so that each goes out by itself. */
static ssize_t read_body(void *ud, uint64_t pos, char *out, size_t max)
{
    exchange *x = ud;
    const ah_plan *p = x->plan;

    (void)pos;
    while (x->step < p->n_steps) {
        const ah_plan_step *s = &p->step[x->step];
        size_t n = s->n - x->sent < max ? s->n - x->sent : max;

        if (must_wait(x, s->wait_ms))
            return 0;
        if (s->close)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (n) {
            memcpy(out, p->bytes.data + s->at + x->sent, n);
            x->sent += n;
            return (ssize_t)n;
        }
        next_step(x);
    }
    return MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result send_answer(exchange *x)
{
    const ah_plan *p = x->plan;
    uint64_t length = p->streamed ? MHD_SIZE_UNKNOWN : (uint64_t)p->length;
    struct MHD_Response *r = MHD_create_response_from_callback(length, 16 << 10, read_body, x, NULL);
    enum MHD_Result done;

    if (!r)
        return MHD_NO;
    x->waited = false;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, p->type);
    for (size_t i = 0; i < p->n_headers; i++)
        MHD_add_response_header(r, p->header[i].name, p->header[i].value);
    done = MHD_queue_response(x->connection, (unsigned)p->status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result refuse_body(struct MHD_Connection *c)
{
    static const char text[] = "{\"error\":{\"message\":\"the request is larger than 64 MiB\"}}";
    struct MHD_Response *r = MHD_create_response_from_buffer(sizeof text - 1, (void *)(uintptr_t)text,
                                                             MHD_RESPMEM_PERSISTENT);
    enum MHD_Result done;

    if (!r)
        return MHD_NO;
    done = MHD_queue_response(c, MHD_HTTP_CONTENT_TOO_LARGE, r);
    MHD_destroy_response(r);
    return done;
}

/* -- the request -------------------------------------------------------------------------------- */

static enum MHD_Result put_header(void *ud, enum MHD_ValueKind kind, const char *name, const char *value)
{
    ah_buf *b = ud;

    (void)kind;
    ah_buf_fmt(b, "%s: %s\n", name, value ? value : "");
    return MHD_YES;
}

static void ask(exchange *x, const char *method)
{
    ah_mock_request q = {.method = method};
    ah_buf headers;

    ah_buf_init(&headers, &ah_mem_libc, MAX_HEAD * 2);
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, put_header, &headers);
    ah_buf_char(&headers, '\0');
    ah_buf_char(&x->target, '\0');
    ah_buf_char(&x->body, '\0');
    if (ah_buf_ok(&headers) && ah_buf_ok(&x->target) && ah_buf_ok(&x->body)) {
        q.target = x->target.data;
        q.headers = headers.data;
        q.body = x->body.data;
        x->plan = x->server->ask(x->server->ud, &q);
    }
    ah_buf_clear(&headers);
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
    if (!x)
        return MHD_NO;
    if (!x->connection) {
        x->connection = c;
        return MHD_YES;
    }
    if (*n) {
        ah_buf_add(&x->body, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (x->body.status == AH_BUDGET || (!x->plan && x->body.len > AH_MOCK_BODY))
        return refuse_body(c);
    if (!x->plan)
        ask(x, method);
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
    exchange *x = ah_alloc(&ah_mem_libc, sizeof *x);

    (void)c;
    if (!x)
        return NULL;
    *x = (exchange){.server = s, .next = s->first, .link = &s->first};
    ah_buf_init(&x->target, &ah_mem_libc, MAX_HEAD + 1);
    ah_buf_init(&x->body, &ah_mem_libc, AH_MOCK_BODY + 1);
    ah_buf_str(&x->target, target);
    if (x->next)
        x->next->link = &x->next;
    s->first = x;
    return x;
}

static void on_over(void *ud, struct MHD_Connection *c, void **state,
                    enum MHD_RequestTerminationCode why)
{
    exchange *x = *state;

    (void)ud;
    (void)c;
    (void)why;
    if (!x)
        return;
    *state = NULL;
    x->server->answered++;
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    ah_buf_clear(&x->target);
    ah_buf_clear(&x->body);
    ah_plan_free(x->plan);
    ah_free(&ah_mem_libc, x);
}

/* -- the server ---------------------------------------------------------------------------------- */

ah_mock_server *ah_mock_server_new(int fd, ah_mock_ask fn, void *ud)
{
    ah_mock_server *s = ah_alloc(&ah_mem_libc, sizeof *s);

    if (!s)
        return NULL;
    *s = (ah_mock_server){.ask = fn, .ud = ud};
    s->daemon = MHD_start_daemon(MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)AH_MOCK_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)AH_MOCK_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)MAX_HEAD, MHD_OPTION_URI_LOG_CALLBACK, on_target, s,
                                 MHD_OPTION_NOTIFY_COMPLETED, on_over, s, MHD_OPTION_END);
    if (s->daemon)
        return s;
    ah_free(&ah_mem_libc, s);
    return NULL;
}

/* It must not be stopped with connections that are suspended. */
void ah_mock_server_free(ah_mock_server *s)
{
    if (!s)
        return;
    for (exchange *x = s->first; x; x = x->next)
        if (x->due)
            resume(x);
    MHD_stop_daemon(s->daemon);
    ah_free(&ah_mem_libc, s);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 || b < a ? b : a;
}

int ah_mock_server_wants(ah_mock_server *s, ah_mock_fds *fds)
{
    int64_t now = now_ms(), least = -1;
    MHD_UNSIGNED_LONG_LONG ms;

    FD_ZERO(&fds->in);
    FD_ZERO(&fds->out);
    FD_ZERO(&fds->bad);
    fds->max = -1;
    MHD_get_fdset(s->daemon, &fds->in, &fds->out, &fds->bad, &fds->max);
    if (MHD_get_timeout(s->daemon, &ms) == MHD_YES)
        least = (int64_t)(ms > MAX_WAIT_MS ? MAX_WAIT_MS : ms);
    for (const exchange *x = s->first; x; x = x->next)
        if (x->due)
            least = earlier(least, x->due > now ? x->due - now : 0);
    return (int)least;
}

void ah_mock_server_turn(ah_mock_server *s, const ah_mock_fds *fds)
{
    int64_t now = now_ms();

    for (exchange *x = s->first; x; x = x->next)
        if (x->due && x->due <= now)
            resume(x);
    MHD_run_from_select(s->daemon, &fds->in, &fds->out, &fds->bad);
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
