/* HTTP over curl_multi_socket_action. A curl callback here only copies bytes,
 * counts them and notes that there is news; news are told, and transfers ended,
 * when curl has returned.
 *
 * What makes it quick: transfers are kept with their curl handle and buffers and
 * used again; a socket stays watched while its connection is idle (curl forgets
 * and asks again for each transfer); a small body goes out with the head; time
 * limits cost one timer a transfer, looked at when it fires and not moved before. */
#include "wire/http.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC 0
#endif

enum {
    MAX_BODY_PARTS = 4,
    JOINED_BODY = 64 << 10,  /* up to here curl sends a body in one piece with the head */
    READ_BUFFER = 32 << 10,  /* bytes a read asks for; of each running transfer */
    SEND_BUFFER = 128 << 10, /* likewise for a write, where the body is larger than JOINED_BODY */
    KEPT_BYTES = 1 << 20,    /* of response buffers kept for later transfers, all together */
    KEPT_TRANSFERS = 32,
    MAX_URL = 64 << 10,
    MAX_HEADER_BYTES = 1 << 30,   /* offsets of header lines are 32 bits */
    CURL_LINE_BYTES = 100 * 1024, /* libcurl's own limit of one header line */
    HOST_SIZE = 300
};

const ah_http_limits ah_http_limits_default = {
    .connect_ms = 10 * 1000,
    .idle_ms = 300 * 1000,
    .total_ms = 600 * 1000,
    .header_bytes = 64 << 10,
    .body_bytes = 64 << 20,
};

/* Why we, and not curl, ended a transfer. */
typedef enum fault {
    FAULT_NONE,
    FAULT_NOMEM,
    FAULT_WATCH,
    FAULT_HEADER,
    FAULT_BODY,
    FAULT_CODING,
    FAULT_IDLE,
    FAULT_TOTAL
} fault;

typedef struct header_line {
    uint32_t name, name_n, value, value_n; /* offsets into `head` */
} header_line;

typedef struct socket_state {
    bool ours;     /* opened for a connection, as opposed to curl's own pairs for its resolver */
    bool expected; /* curl wants to hear of it */
} socket_state;

struct ah_http {
    const ah_mem *mem;
    ah_loop *loop;
    CURLM *multi;
    char *ca_file;
    ah_timer timer; /* curl's */
    int64_t now;    /* of the batch in which curl is called */
    socket_state *sockets;
    size_t n_sockets;
    ah_transfer *news, **last_news;
    ah_transfer *kept;
    int n_kept;
    size_t kept_bytes; /* of their response buffers */
};

struct ah_transfer {
    ah_http *http;
    CURL *easy;
    ah_transfer *next; /* in http->news or http->kept */
    bool in_news, running, ended;
    ah_http_news_fn news;
    void *ud;
    ah_http_limits limits;
    ah_timer timer;
    int64_t started, touched;

    ah_buf url;           /* the last one given to `easy` */
    char host[HOST_SIZE]; /* "name:port" of it */
    struct curl_slist *headers;
    ah_slice parts[MAX_BODY_PARTS];
    size_t n_parts, part, part_off; /* body read by curl up to here */
    ah_buf joined;

    ah_buf head;
    header_line *lines;
    size_t n_lines, cap_lines;
    size_t head_bytes;
    bool head_done;
    int status;
    ah_buf body;
    size_t taken;
    uint64_t received;

    fault fault;
    CURLcode result;
    int os_error;
    bool answered; /* a byte of a response came */
    char curl_says[CURL_ERROR_SIZE];
};

/* ---- sockets and timers: curl asks, the loop does ---- */

static void act(ah_http *http, curl_socket_t fd, int bits);

static void note_news(ah_transfer *t)
{
    ah_http *http = t->http;

    if (t->in_news)
        return;
    t->in_news = true;
    t->next = NULL;
    *http->last_news = t;
    http->last_news = &t->next;
}

static void set_fault(ah_transfer *t, fault f)
{
    if (t->fault == FAULT_NONE)
        t->fault = f;
    note_news(t);
}

static socket_state *socket_at(ah_http *http, int fd)
{
    size_t cap = http->n_sockets;
    socket_state *s = ah_grow(http->mem, http->sockets, &cap, (size_t)fd + 1, sizeof *s);

    if (!s)
        return NULL;
    if (cap > http->n_sockets)
        memset(s + http->n_sockets, 0, (cap - http->n_sockets) * sizeof *s);
    http->sockets = s;
    http->n_sockets = cap;
    return &s[fd];
}

static void unwatch(ah_http *http, int fd)
{
    ah_loop_watch(http->loop, fd, 0, NULL, NULL, NULL);
}

/* An idle connection stays watched; when something happens there all the same
 * (the server closed it) it is left to curl to find out. */
static void on_ready(void *ud, int fd, int events)
{
    ah_http *http = ud;

    if (!http->sockets[fd].expected) {
        unwatch(http, fd);
        return;
    }
    act(http, fd, (events & AH_IN ? CURL_CSELECT_IN : 0) | (events & AH_OUT ? CURL_CSELECT_OUT : 0));
}

static ah_transfer *transfer_of(CURL *easy)
{
    char *t = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
    return (ah_transfer *)(void *)t;
}

/* curl has a handle of its own, too, for connections it closes. */
static void blame(CURL *easy, fault f)
{
    ah_transfer *t = transfer_of(easy);

    if (t)
        set_fault(t, f);
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ud, void *unused)
{
    ah_http *http = ud;
    socket_state *s = socket_at(http, fd);
    int events = (what & CURL_POLL_IN ? AH_IN : 0) | (what & CURL_POLL_OUT ? AH_OUT : 0);
    ah_status st;

    (void)unused;
    if (!s) {
        blame(easy, FAULT_NOMEM);
        return 0;
    }
    s->expected = what != CURL_POLL_REMOVE;
    if (!s->expected) {
        if (!s->ours)
            unwatch(http, fd);
        return 0;
    }
    st = ah_loop_watch(http->loop, fd, events, on_ready, http, NULL);
    if (st != AH_OK)
        blame(easy, st == AH_NOMEM ? FAULT_NOMEM : FAULT_WATCH);
    return 0;
}

static curl_socket_t open_socket(void *ud, curlsocktype purpose, struct curl_sockaddr *a)
{
    ah_transfer *t = ud;
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    socket_state *s;

    (void)purpose;
    if (fd < 0)
        return CURL_SOCKET_BAD;
    s = socket_at(t->http, fd);
    if (!s) {
        set_fault(t, FAULT_NOMEM);
        close(fd);
        return CURL_SOCKET_BAD;
    }
    *s = (socket_state){.ours = true};
    return fd;
}

/* Told of connections after their transfer is gone: knows the ah_http only. */
static int close_socket(void *ud, curl_socket_t fd)
{
    ah_http *http = ud;

    unwatch(http, fd);
    http->sockets[fd] = (socket_state){0};
    return close(fd);
}

/* One more than asked, as the loop's clock counts whole milliseconds: curl does
 * not set a timer again that came too early. */
static int set_curl_timer(CURLM *multi, long ms, void *ud)
{
    ah_http *http = ud;

    (void)multi;
    if (ms < 0)
        ah_timer_unset(&http->timer);
    else
        ah_timer_set(http->loop, &http->timer, ah_loop_now(http->loop) + ms + (ms > 0));
    return 0;
}

/* The loop's clock may be another than curl's: what is still to come is set again. */
static void on_curl_timer(ah_timer *timer)
{
    ah_http *http = (ah_http *)((char *)timer - offsetof(ah_http, timer));
    long ms = -1;

    act(http, CURL_SOCKET_TIMEOUT, 0);
    if (!timer->loop && curl_multi_timeout(http->multi, &ms) == CURLM_OK && ms >= 0)
        set_curl_timer(http->multi, ms, http);
}

/* ---- bytes out ---- */

static size_t read_body(char *to, size_t size, size_t n, void *ud)
{
    ah_transfer *t = ud;
    size_t room = size * n, done = 0;

    t->touched = t->http->now;
    while (done < room && t->part < t->n_parts) {
        ah_slice part = t->parts[t->part];
        size_t left = part.n - t->part_off, k = left < room - done ? left : room - done;

        if (k)
            memcpy(to + done, part.p + t->part_off, k);
        done += k;
        t->part_off += k;
        if (t->part_off == part.n) {
            t->part++;
            t->part_off = 0;
        }
    }
    return done;
}

/* curl begins anew when a kept connection turns out to be dead. */
static int seek_body(void *ud, curl_off_t offset, int origin)
{
    ah_transfer *t = ud;
    size_t i = 0;

    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_FAIL;
    for (; i < t->n_parts && (uint64_t)offset >= t->parts[i].n; i++)
        offset -= (curl_off_t)t->parts[i].n;
    t->part = i;
    t->part_off = (size_t)offset;
    return offset && i == t->n_parts ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

/* ---- bytes in ---- */

static size_t refuse(ah_transfer *t, fault f)
{
    set_fault(t, f);
    return 0; /* less than curl gave: it ends the transfer */
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static ah_slice trim(ah_slice s)
{
    while (s.n && is_blank(*s.p)) {
        s.p++;
        s.n--;
    }
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool same_word(ah_slice a, const char *b)
{
    return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static ah_slice at(const ah_transfer *t, uint32_t off, uint32_t n)
{
    return (ah_slice){t->head.data + off, n};
}

/* We ask for no compression; curl would undo it without telling of a broken end. */
static bool is_plain(const ah_transfer *t)
{
    for (size_t i = 0; i < t->n_lines; i++) {
        const header_line *l = &t->lines[i];
        ah_slice name = at(t, l->name, l->name_n), value = at(t, l->value, l->value_n);

        if (same_word(name, "Content-Encoding") && value.n && !same_word(value, "identity"))
            return false;
        if (same_word(name, "Transfer-Encoding") && !same_word(value, "chunked") &&
            !same_word(value, "identity"))
            return false;
    }
    return true;
}

/* Lines that are no "name: value" (folded ones too, which RFC 9112 5.2 made
 * obsolete) are counted, not kept. */
static bool keep_line(ah_transfer *t, ah_slice line)
{
    const char *colon = memchr(line.p, ':', line.n);
    size_t start = t->head.len;
    ah_slice value;
    header_line *lines;

    if (!colon || colon == line.p || *line.p == ' ' || *line.p == '\t')
        return true;
    lines = ah_grow(t->http->mem, t->lines, &t->cap_lines, t->n_lines + 1, sizeof *lines);
    if (!lines)
        return false;
    t->lines = lines;
    ah_buf_put(&t->head, line);
    value = trim((ah_slice){colon + 1, line.n - (size_t)(colon + 1 - line.p)});
    lines[t->n_lines++] = (header_line){
        .name = (uint32_t)start,
        .name_n = (uint32_t)trim((ah_slice){line.p, (size_t)(colon - line.p)}).n,
        .value = (uint32_t)(start + (size_t)(value.p - line.p)),
        .value_n = (uint32_t)value.n,
    };
    return ah_buf_ok(&t->head);
}

static void forget_lines(ah_transfer *t)
{
    ah_buf_reset(&t->head, 0);
    t->n_lines = 0;
}

/* A head with a status below 200 is an interim one: another head follows. */
static bool complete_head(ah_transfer *t)
{
    long status = 0;

    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return true;
    if (!is_plain(t))
        return false;
    t->status = (int)status;
    t->head_done = true;
    note_news(t);
    return true;
}

static size_t write_header(char *p, size_t size, size_t n, void *ud)
{
    ah_transfer *t = ud;
    ah_slice line = {p, size * n};

    t->touched = t->http->now;
    t->head_bytes += line.n;
    if (t->head_bytes > t->limits.header_bytes)
        return refuse(t, FAULT_HEADER);
    if (t->head_done)
        return line.n; /* a trailer */
    if (line.n >= 5 && memcmp(p, "HTTP/", 5) == 0)
        forget_lines(t);
    else if (trim(line).n == 0)
        return complete_head(t) ? line.n : refuse(t, FAULT_CODING);
    else if (!keep_line(t, line))
        return refuse(t, FAULT_NOMEM);
    return line.n;
}

static void drop_taken(ah_transfer *t)
{
    if (t->taken == 0 || t->taken < t->body.len / 2)
        return;
    ah_buf_drop(&t->body, t->taken);
    t->taken = 0;
}

static size_t write_body(char *p, size_t size, size_t n, void *ud)
{
    ah_transfer *t = ud;

    n *= size;
    t->touched = t->http->now;
    t->received += n;
    if (t->received > t->limits.body_bytes)
        return refuse(t, FAULT_BODY);
    drop_taken(t);
    ah_buf_add(&t->body, p, n);
    if (!ah_buf_ok(&t->body))
        return refuse(t, FAULT_NOMEM);
    note_news(t);
    return n;
}

/* ---- the end of a transfer ---- */

static void leave_curl(ah_transfer *t)
{
    if (!t->running)
        return;
    t->running = false;
    ah_timer_unset(&t->timer);
    curl_multi_remove_handle(t->http->multi, t->easy);
    ah_free(t->http->mem, t->headers);
    t->headers = NULL;
}

static void end(ah_transfer *t, CURLcode result)
{
    curl_off_t first_byte = 0;
    long os_error = 0;

    if (result != CURLE_OK) {
        curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
        curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte);
    }
    t->result = result;
    t->os_error = (int)os_error;
    t->answered = first_byte > 0;
    t->ended = true;
    leave_curl(t);
    note_news(t);
}

static void collect_ended(ah_http *http)
{
    const CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(http->multi, &left)))
        if (m->msg == CURLMSG_DONE)
            end(transfer_of(m->easy_handle), m->data.result);
}

static ah_transfer *next_news(ah_http *http)
{
    ah_transfer *t = http->news;

    if (!t)
        return NULL;
    http->news = t->next;
    if (!http->news)
        http->last_news = &http->news;
    t->in_news = false;
    return t;
}

static void tell_news(ah_http *http)
{
    ah_transfer *t;

    while ((t = next_news(http))) {
        if (t->fault != FAULT_NONE && !t->ended) {
            end(t, CURLE_ABORTED_BY_CALLBACK);
            continue; /* it is in the list again */
        }
        t->news(t->ud, t);
    }
}

static void act(ah_http *http, curl_socket_t fd, int bits)
{
    int running;

    http->now = ah_loop_now(http->loop);
    curl_multi_socket_action(http->multi, fd, bits, &running);
    collect_ended(http);
    tell_news(http);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Idle time counts once the connection stands; before that curl counts. */
static int64_t idle_since(const ah_transfer *t, int64_t now)
{
    curl_off_t connected_us = 0;

    curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    return connected_us > 0 ? later(t->touched, t->started + connected_us / 1000) : now;
}

static void on_time_limit(ah_timer *timer)
{
    ah_transfer *t = (ah_transfer *)((char *)timer - offsetof(ah_transfer, timer));
    ah_http *http = t->http;
    int64_t now = ah_loop_now(http->loop);
    int64_t total = t->started + t->limits.total_ms, idle = idle_since(t, now) + t->limits.idle_ms;

    if (now < total && now < idle) {
        ah_timer_set(http->loop, timer, sooner(total, idle));
        return;
    }
    set_fault(t, now >= total ? FAULT_TOTAL : FAULT_IDLE);
    tell_news(http);
}

/* ---- errors in words ---- */

static const char *words_for_size(size_t n, char *out, size_t size)
{
    if (n >= 1 << 20 && n % (1 << 20) == 0)
        snprintf(out, size, "%zu MiB", n >> 20);
    else if (n >= 1 << 10 && n % (1 << 10) == 0)
        snprintf(out, size, "%zu KiB", n >> 10);
    else
        snprintf(out, size, "%zu bytes", n);
    return out;
}

static const char *words_for_ms(int64_t ms, char *out, size_t size)
{
    if (ms < 1000)
        snprintf(out, size, "%d ms", (int)ms);
    else
        snprintf(out, size, "%lld.%d s", (long long)(ms / 1000), (int)(ms % 1000 / 100));
    return out;
}

static ah_status say_size(const ah_transfer *t, const char *what, size_t limit, const char *name,
                          ah_err *err)
{
    char words[32];

    return ah_err_set(err, AH_HTTP, "%s: %s larger than %s (limit %s)", t->host, what,
                      words_for_size(limit, words, sizeof words), name);
}

static ah_status say_time(const ah_transfer *t, const char *what, int64_t limit, const char *name,
                          ah_err *err)
{
    char words[32];
    ah_status st = ah_err_set(err, AH_HTTP, "%s: %s %s (limit %s)", t->host, what,
                              words_for_ms(limit, words, sizeof words), name);

    if (err)
        err->retryable = true;
    return st;
}

static ah_status say_coding(const ah_transfer *t, ah_err *err)
{
    return ah_err_set(err, AH_HTTP, "%s: the response is compressed, though that was not asked for",
                      t->host);
}

static ah_status say_fault(const ah_transfer *t, ah_err *err)
{
    switch (t->fault) {
    case FAULT_NONE:
        return AH_OK;
    case FAULT_NOMEM:
        return ah_err_nomem(err);
    case FAULT_WATCH:
        return ah_err_set(err, AH_HTTP, "%s: the socket cannot be watched", t->host);
    case FAULT_HEADER:
        return say_size(t, "response header", t->limits.header_bytes, "http.max_header", err);
    case FAULT_BODY:
        return say_size(t, "response body", t->limits.body_bytes, "http.max_body", err);
    case FAULT_CODING:
        return say_coding(t, err);
    case FAULT_IDLE:
        return say_time(t, "no data for", t->limits.idle_ms, "http.idle_timeout", err);
    case FAULT_TOTAL:
        return say_time(t, "not done within", t->limits.total_ms, "http.total_timeout", err);
    }
    return AH_INTERNAL;
}

/* What the C library says of errno, in a buffer; strerror is not thread-safe. */
static const char *words_for_errno(int e, char *out, size_t size)
{
    if (e == 0 || strerror_r(e, out, size) != 0)
        snprintf(out, size, "no reason given");
    return out;
}

/* curl does not tell whether it went through a proxy; the environment does. */
static const char *proxy_hint(const ah_transfer *t)
{
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    bool is_tls = t->url.len > 4 && t->url.data[4] != ':';
    const char *const *names = is_tls ? tls : plain;

    for (size_t i = 0; i < (is_tls ? 4 : 3); i++)
        if (getenv(names[i]))
            return " (a proxy is set in the environment)";
    return "";
}

static ah_status say_connect(const ah_transfer *t, ah_err *err)
{
    char words[128];

    if (t->os_error == ECONNREFUSED)
        return ah_err_set(err, AH_HTTP, "connection refused by %s%s", t->host, proxy_hint(t));
    return ah_err_set(err, AH_HTTP, "cannot connect to %s: %s%s", t->host,
                      words_for_errno(t->os_error, words, sizeof words), proxy_hint(t));
}

static ah_status say_broken(const ah_transfer *t, ah_err *err)
{
    if (strstr(t->curl_says, "chunk"))
        return ah_err_set(err, AH_HTTP, "malformed chunk in the response of %s", t->host);
    if (t->os_error == ECONNRESET || t->os_error == EPIPE)
        return ah_err_set(err, AH_HTTP, "connection reset by %s", t->host);
    return ah_err_set(err, AH_HTTP, "connection to %s broke%s", t->host,
                      t->answered ? " in the middle of the response" : "");
}

/* curl keeps a header line in a buffer of its own; one that outgrows it is told
 * as being out of memory. */
static ah_status say_memory(const ah_transfer *t, ah_err *err)
{
    if (!t->answered || t->head_done)
        return ah_err_nomem(err);
    if (t->limits.header_bytes <= CURL_LINE_BYTES)
        return say_size(t, "response header", t->limits.header_bytes, "http.max_header", err);
    return say_size(t, "response header line", CURL_LINE_BYTES, "of libcurl", err);
}

/* curl's words on TLS come from certificates and the like: ASCII only. */
static ah_status say_tls(const ah_transfer *t, ah_err *err)
{
    char words[CURL_ERROR_SIZE];
    const char *from = *t->curl_says ? t->curl_says : curl_easy_strerror(t->result);
    size_t n = 0;

    for (; from[n] && n < sizeof words - 1; n++)
        words[n] = from[n];
    words[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (words[i] < ' ' || words[i] > '~')
            words[i] = '?';
    return ah_err_set(err, AH_HTTP, "TLS with %s failed: %s%s", t->host, words,
                      t->result == CURLE_PEER_FAILED_VERIFICATION ||
                              t->result == CURLE_SSL_CACERT_BADFILE
                          ? " (are ca-certificates installed? SSL_CERT_FILE names others)"
                          : "");
}

static bool is_retryable(CURLcode code)
{
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

static ah_status say_code(const ah_transfer *t, ah_err *err)
{
    switch ((int)t->result) {
    case CURLE_OUT_OF_MEMORY:
        return say_memory(t, err);
    case CURLE_COULDNT_RESOLVE_HOST:
        return ah_err_set(err, AH_HTTP, "no such host: %s", t->host);
    case CURLE_COULDNT_RESOLVE_PROXY:
        return ah_err_set(err, AH_HTTP, "no such host: the proxy for %s (see http_proxy)", t->host);
    case CURLE_COULDNT_CONNECT:
        return say_connect(t, err);
    case CURLE_OPERATION_TIMEDOUT:
        return say_time(t, "no connection within", t->limits.connect_ms, "http.connect_timeout", err);
    case CURLE_GOT_NOTHING:
        return ah_err_set(err, AH_HTTP, "connection closed by %s without a response", t->host);
    case CURLE_PARTIAL_FILE:
        return ah_err_set(err, AH_HTTP, "connection closed in the middle of the response by %s",
                          t->host);
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return say_broken(t, err);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return ah_err_set(err, AH_HTTP, "%s does not answer in HTTP", t->host);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return say_tls(t, err);
    default:
        return ah_err_set(err, AH_HTTP, "transfer with %s failed: %s", t->host,
                          curl_easy_strerror(t->result));
    }
}

bool ah_transfer_ended(const ah_transfer *t, ah_err *err)
{
    if (!t->ended || !err)
        return t->ended;
    ah_err_set(err, AH_OK, "%s", "");
    if (t->fault != FAULT_NONE)
        say_fault(t, err);
    else if (t->result != CURLE_OK) {
        say_code(t, err);
        err->retryable = err->status == AH_HTTP && is_retryable(t->result);
    }
    err->http_status = t->status;
    return true;
}

/* ---- starting ---- */

static bool is_token(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && c != '-' && (c == '\0' || !strchr("!#$%&'*+.^_`|~", c)))
            return false;
    }
    return s.n > 0;
}

static ah_slice header_name(ah_slice line)
{
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;

    return (ah_slice){line.p, colon ? (size_t)(colon - line.p) : 0};
}

/* Values are not quoted: they may be secrets. */
static ah_status check_header(ah_slice line, size_t i, ah_err *err)
{
    ah_slice name = header_name(line);

    if (!is_token(name))
        return ah_err_set(err, AH_USAGE, "request header %zu is no 'Name: value'", i + 1);
    if (memchr(line.p, '\r', line.n) || memchr(line.p, '\n', line.n) || memchr(line.p, '\0', line.n))
        return ah_err_set(err, AH_USAGE,
                          "the value of the request header '%.*s' holds a line break or NUL",
                          AH_FMT(name));
    if (same_word(name, "Content-Length") || same_word(name, "Transfer-Encoding"))
        return ah_err_set(err, AH_USAGE,
                          "the request header '%.*s' follows from the body, it cannot be given",
                          AH_FMT(name));
    return AH_OK;
}

/* curl's notation: "Name:" takes a header of its own away, "Name;" sends an empty one. */
static char *copy_header(char *to, ah_slice line, ah_slice name)
{
    bool empty = trim((ah_slice){line.p + name.n + 1, line.n - name.n - 1}).n == 0;

    memcpy(to, line.p, line.n);
    if (empty) {
        to[name.n] = ';';
        to[name.n + 1] = '\0';
    }
    to[line.n] = '\0';
    return to + line.n + 1;
}

static char *add_header(struct curl_slist **list, char *to, ah_slice line, ah_slice name)
{
    struct curl_slist *node = *list;

    node->data = to;
    node->next = node + 1;
    *list = node->next;
    if (name.n)
        return copy_header(to, line, name);
    memcpy(to, line.p, line.n);
    to[line.n] = '\0';
    return to + line.n + 1;
}

/* What curl must not add: a type nobody gave, and (it does so for large bodies
 * only) the wish to be asked for the body. */
static size_t headers_off(const ah_http_request *req, size_t body, ah_slice off[2])
{
    static const ah_slice expect = AH_LIT("Expect:"), type = AH_LIT("Content-Type:");
    bool typed = false;
    size_t n = 0;

    for (size_t i = 0; i < req->n_headers; i++)
        typed |= same_word(header_name(req->headers[i]), "Content-Type");
    if (!typed)
        off[n++] = type;
    if (body > JOINED_BODY)
        off[n++] = expect;
    return n;
}

/* One block: the list's nodes, then the lines. */
static ah_status set_headers(ah_transfer *t, const ah_http_request *req, size_t body, ah_err *err)
{
    ah_slice off[2];
    size_t n_off = headers_off(req, body, off), n = req->n_headers + n_off, bytes = 0;
    struct curl_slist *node;
    char *to;

    for (size_t i = 0; i < req->n_headers; i++) {
        if (check_header(req->headers[i], i, err) != AH_OK)
            return AH_USAGE;
        bytes += req->headers[i].n + 1;
    }
    for (size_t i = 0; i < n_off; i++)
        bytes += off[i].n + 1;
    t->headers = node = n ? ah_resize(t->http->mem, NULL, n * sizeof *node + bytes) : NULL;
    if (n && !node)
        return ah_err_nomem(err);
    to = (char *)(node + n);
    for (size_t i = 0; i < req->n_headers; i++)
        to = add_header(&node, to, req->headers[i], header_name(req->headers[i]));
    for (size_t i = 0; i < n_off; i++)
        to = add_header(&node, to, off[i], (ah_slice){0});
    if (n)
        node[-1].next = NULL;
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    return AH_OK;
}

/* The part of a URL that may be shown: no credentials, no query, nothing that
 * would spoil a terminal. */
static ah_slice shown_url(const char *url)
{
    size_t n = 0;

    while (url[n] > ' ' && url[n] <= '~' && !strchr("?#", url[n]) && n < 200)
        n++;
    return memchr(url, '@', n) ? ah_slice_of("...") : (ah_slice){url, n};
}

static ah_status say_url(const char *url, const char *what, ah_err *err)
{
    return ah_err_set(err, AH_USAGE, "'%.*s' is no URL that can be requested: %s",
                      AH_FMT(shown_url(url)), what);
}

static ah_status check_url(CURLU *u, const char *url, char *host, bool *tls, ah_err *err)
{
    CURLUcode code = curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER);
    char *name = NULL, *port = NULL;
    ah_status st = AH_OK;

    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_HOST, &name, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (code == CURLUE_OUT_OF_MEMORY)
        st = ah_err_nomem(err);
    else if (code == CURLUE_USER_NOT_ALLOWED)
        st = say_url(url, "it holds a user name; send credentials in a header", err);
    else if (strncasecmp(url, "http://", 7) && strncasecmp(url, "https://", 8))
        st = say_url(url, "it does not begin with http:// or https://", err);
    else if (code != CURLUE_OK)
        st = say_url(url, curl_url_strerror(code), err);
    if (st == AH_OK) {
        snprintf(host, HOST_SIZE, "%.*s:%s", HOST_SIZE - 10, name, port);
        *tls = url[4] != ':';
    }
    curl_free(name);
    curl_free(port);
    return st;
}

/* PIPEWAIT: wait for a connection that may turn out to be HTTP/2 rather than open
 * a hundred. Without TLS there is no HTTP/2 to wait for. */
static ah_status set_url(ah_transfer *t, const char *url, ah_err *err)
{
    ah_slice s = ah_slice_of(url ? url : "");
    bool tls = false;
    CURLU *u;
    ah_status st;

    if (s.n && ah_slice_eq(s, ah_buf_slice(&t->url)))
        return AH_OK;
    ah_buf_reset(&t->url, 0);
    if (!(u = curl_url()))
        return ah_err_nomem(err);
    st = check_url(u, s.p, t->host, &tls, err);
    curl_url_cleanup(u);
    if (st != AH_OK)
        return st;
    ah_buf_put(&t->url, s);
    if (!ah_buf_ok(&t->url))
        return t->url.status == AH_NOMEM ? ah_err_nomem(err) : say_url(url, "it is too long", err);
    curl_easy_setopt(t->easy, CURLOPT_PIPEWAIT, tls ? 1L : 0L);
    if (curl_easy_setopt(t->easy, CURLOPT_URL, url) == CURLE_OK)
        return AH_OK;
    ah_buf_reset(&t->url, 0);
    return ah_err_nomem(err);
}

/* What curl can send from one place goes out with the head. Larger bodies are
 * read from their parts, which also shows that they go on (idle_ms). */
static const char *one_piece(ah_transfer *t, size_t total)
{
    if (total == 0)
        return "";
    if (total > JOINED_BODY)
        return NULL;
    if (t->n_parts == 1)
        return t->parts[0].p;
    ah_buf_reset(&t->joined, 0);
    for (size_t i = 0; i < t->n_parts; i++)
        ah_buf_put(&t->joined, t->parts[i]);
    return ah_buf_ok(&t->joined) ? t->joined.data : NULL;
}

static void set_body(ah_transfer *t, size_t total)
{
    curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, one_piece(t, total));
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)total);
}

static size_t take_parts(ah_transfer *t, const ah_http_request *req)
{
    size_t total = 0;

    assert(req->n_body <= MAX_BODY_PARTS);
    t->n_parts = req->n_body;
    for (size_t i = 0; i < req->n_body; i++) {
        t->parts[i] = req->body[i];
        total += req->body[i].n;
    }
    return total;
}

static ah_status set_method(ah_transfer *t, const char *method, size_t total, ah_err *err)
{
    const char *natural = "GET";

    if (!method || !is_token(ah_slice_of(method)))
        return ah_err_set(err, AH_USAGE, "the HTTP method is missing or no word");
    if (total || strcmp(method, "POST") == 0) {
        natural = "POST";
        set_body(t, total);
    } else if (strcmp(method, "HEAD") == 0) {
        natural = "HEAD";
        curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
    }
    method = strcmp(method, natural) ? method : NULL;
    if (curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, method) != CURLE_OK)
        return ah_err_nomem(err);
    return AH_OK;
}

static void set_limits(ah_transfer *t, const ah_http_limits *l)
{
    const ah_http_limits *d = &ah_http_limits_default;

    t->limits = (ah_http_limits){
        .connect_ms = l->connect_ms > 0 ? l->connect_ms : d->connect_ms,
        .idle_ms = l->idle_ms > 0 ? l->idle_ms : d->idle_ms,
        .total_ms = l->total_ms > 0 ? l->total_ms : d->total_ms,
        .header_bytes = l->header_bytes ? l->header_bytes : d->header_bytes,
        .body_bytes = l->body_bytes ? l->body_bytes : d->body_bytes,
    };
    if (t->limits.header_bytes > MAX_HEADER_BYTES)
        t->limits.header_bytes = MAX_HEADER_BYTES;
    t->body.max = t->limits.body_bytes;
    t->head.max = t->limits.header_bytes;
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)sooner(t->limits.connect_ms, 24 * 3600 * 1000));
}

/* ---- transfers kept for the next request ---- */

static bool set_always(ah_transfer *t)
{
    CURL *e = t->easy;
    const char *ca = t->http->ca_file;

    curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->curl_says);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)READ_BUFFER);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_BUFFER);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* an abort must not wait for the resolver */
#endif
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, write_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, write_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(e, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(e, CURLOPT_READDATA, t);
    curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, seek_body);
    curl_easy_setopt(e, CURLOPT_SEEKDATA, t);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, t->http);
    if (ca && curl_easy_setopt(e, CURLOPT_CAINFO, ca) != CURLE_OK)
        return false;
    return curl_easy_setopt(e, CURLOPT_USERAGENT, "agenthost/" AH_VERSION) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
}

static void destroy(ah_transfer *t)
{
    if (t->easy)
        curl_easy_cleanup(t->easy);
    ah_buf_clear(&t->url);
    ah_buf_clear(&t->joined);
    ah_buf_clear(&t->head);
    ah_buf_clear(&t->body);
    ah_free(t->http->mem, t->headers);
    ah_free(t->http->mem, t->lines);
    ah_free(t->http->mem, t);
}

static ah_transfer *make(ah_http *http)
{
    ah_transfer *t = ah_alloc(http->mem, sizeof *t);

    if (!t)
        return NULL;
    t->http = http;
    ah_buf_init(&t->url, http->mem, MAX_URL);
    ah_buf_init(&t->joined, http->mem, JOINED_BODY);
    ah_buf_init(&t->head, http->mem, 0);
    ah_buf_init(&t->body, http->mem, 0);
    t->easy = curl_easy_init();
    if (t->easy && set_always(t))
        return t;
    destroy(t);
    return NULL;
}

static ah_transfer *take_kept(ah_http *http)
{
    ah_transfer *t = http->kept;

    if (!t)
        return make(http);
    http->kept = t->next;
    http->n_kept--;
    http->kept_bytes -= t->body.cap;
    return t;
}

/* All but the curl handle, the URL it knows and the buffers goes back to zero. */
static void keep(ah_transfer *t)
{
    ah_http *http = t->http;

    if (http->n_kept >= KEPT_TRANSFERS) {
        destroy(t);
        return;
    }
    if (t->body.cap > KEPT_BYTES - http->kept_bytes)
        ah_buf_clear(&t->body);
    http->kept_bytes += t->body.cap;
    ah_buf_reset(&t->body, 0);
    forget_lines(t);
    ah_free(http->mem, t->headers);
    t->headers = NULL;
    t->n_parts = t->part = t->part_off = 0;
    t->running = t->ended = t->head_done = t->answered = false;
    t->head_bytes = t->taken = 0;
    t->received = 0;
    t->status = t->os_error = 0;
    t->fault = FAULT_NONE;
    t->result = CURLE_OK;
    t->curl_says[0] = '\0';
    t->next = http->kept;
    http->kept = t;
    http->n_kept++;
}

ah_status ah_http_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news, void *ud,
                        ah_transfer **out, ah_err *err)
{
    ah_transfer *t = take_kept(http);
    size_t body;
    ah_status st;

    if (!t)
        return ah_err_nomem(err);
    body = take_parts(t, req);
    t->news = news;
    t->ud = ud;
    set_limits(t, &req->limits);
    st = set_url(t, req->url, err);
    if (st == AH_OK)
        st = set_method(t, req->method, body, err);
    if (st == AH_OK)
        st = set_headers(t, req, body, err);
    if (st == AH_OK && curl_multi_add_handle(http->multi, t->easy) != CURLM_OK)
        st = ah_err_nomem(err);
    if (st != AH_OK) {
        keep(t);
        return st;
    }
    t->running = true;
    t->started = t->touched = ah_loop_now(http->loop);
    t->timer.fn = on_time_limit;
    ah_timer_set(http->loop, &t->timer, t->started + sooner(t->limits.total_ms, t->limits.idle_ms));
    *out = t;
    return AH_OK;
}

static void leave_news(ah_transfer *t)
{
    ah_http *http = t->http;
    ah_transfer **p = &http->news;

    if (!t->in_news)
        return;
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
    if (http->last_news == &t->next)
        http->last_news = p;
    t->in_news = false;
}

void ah_http_free_transfer(ah_transfer *t)
{
    if (!t)
        return;
    leave_curl(t);
    leave_news(t);
    keep(t);
}

/* ---- what came ---- */

int ah_transfer_status(const ah_transfer *t)
{
    return t->status;
}

bool ah_transfer_header_at(const ah_transfer *t, size_t i, ah_slice *name, ah_slice *value)
{
    if (!t->head_done || i >= t->n_lines)
        return false;
    *name = at(t, t->lines[i].name, t->lines[i].name_n);
    *value = at(t, t->lines[i].value, t->lines[i].value_n);
    return true;
}

ah_slice ah_transfer_header(const ah_transfer *t, const char *name)
{
    ah_slice found = {NULL, 0}, n, v;

    for (size_t i = 0; ah_transfer_header_at(t, i, &n, &v); i++)
        if (same_word(n, name))
            found = v;
    return found;
}

ah_slice ah_transfer_body(const ah_transfer *t)
{
    ah_slice all = ah_buf_slice(&t->body);

    return (ah_slice){all.p + t->taken, all.n - t->taken};
}

void ah_transfer_took(ah_transfer *t, size_t n)
{
    assert(n <= t->body.len - t->taken);
    t->taken += n;
    if (t->taken == t->body.len) {
        ah_buf_reset(&t->body, 0);
        t->taken = 0;
    }
}

/* ---- one a host ---- */

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Idle connections may hold a quarter of the descriptors the process may have. */
static long max_idle_connections(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > 4096)
        return 1024;
    return r.rlim_cur < 64 ? 16 : (long)(r.rlim_cur / 4);
}

static ah_status copy_ca_file(ah_http *http)
{
    const char *bundle = getenv("CURL_CA_BUNDLE"), *file = getenv("SSL_CERT_FILE");
    const char *ca = bundle && *bundle ? bundle : file;
    size_t n = ca ? strlen(ca) + 1 : 0;

    if (n <= 1)
        return AH_OK;
    http->ca_file = ah_resize(http->mem, NULL, n);
    if (!http->ca_file)
        return AH_NOMEM;
    memcpy(http->ca_file, ca, n);
    return AH_OK;
}

static bool set_up_multi(ah_http *http)
{
    CURLM *m = curl_multi_init();

    if (!m)
        return false;
    http->multi = m;
    return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, watch_socket) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_SOCKETDATA, http) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, set_curl_timer) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_TIMERDATA, http) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, max_idle_connections()) == CURLM_OK;
}

ah_status ah_http_new(const ah_mem *mem, ah_loop *loop, ah_http **out, ah_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* curl's start is the process's */
    ah_http *http = ah_alloc(mem, sizeof *http);

    if (!http)
        return ah_err_nomem(err);
    pthread_once(&once, start_curl);
    http->mem = mem;
    http->loop = loop;
    http->last_news = &http->news;
    http->timer.fn = on_curl_timer;
    if (copy_ca_file(http) != AH_OK || !set_up_multi(http)) {
        ah_http_free(http);
        return ah_err_nomem(err);
    }
    *out = http;
    return AH_OK;
}

void ah_http_free(ah_http *http)
{
    ah_transfer *t;

    if (!http)
        return;
    while ((t = http->kept)) {
        http->kept = t->next;
        destroy(t);
    }
    if (http->multi)
        curl_multi_cleanup(http->multi);
    ah_timer_unset(&http->timer);
    ah_free(http->mem, http->sockets);
    ah_free(http->mem, http->ca_file);
    ah_free(http->mem, http);
}

const char *ah_http_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}
