/* HTTP over curl_multi_socket_action: one curl multi handle per host, on the host's loop, and the
 * life of each transfer from its start to its news, its end, and its reuse. A curl callback only
 * copies bytes, counts them and notes that there is news; news are reported and transfers ended
 * after curl has returned. http_*.c has requests, responses and error texts.
 *
 * For speed: transfers are kept with their curl handle and buffers and reused; a socket stays
 * watched while its connection is idle (curl forgets it and asks again for each transfer); a small
 * body is sent with the head; time limits cost one timer per transfer, which is examined when it
 * fires and not moved before. */
#include "io/http.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/http_transfer.h"

#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC 0
#endif

enum {
    READ_BUFFER = 32 << 10,  /* bytes per read; for each running transfer */
    SEND_BUFFER = 128 << 10, /* bytes per write, if the body is larger than JOINED_BODY */
    KEPT_BYTES = 1 << 20,    /* limit of all response buffers kept for later transfers */
    KEPT_TRANSFERS = 32,
    MOST_FILES = 16 << 10, /* of the process's descriptors, if it may have more */
    LEFT_FILES = 16        /* descriptors that connections leave for other uses, at least */
};

const ah_http_limits ah_http_limits_default = {
    .connect_ms = 10 * 1000,
    .idle_ms = 300 * 1000,
    .total_ms = 600 * 1000,
    .header_bytes = 64 << 10,
    .body_bytes = 64 << 20,
};

void ah_transfer_note_news(ah_transfer *t)
{
    ah_http *http = t->http;

    if (t->in_news)
        return;
    t->in_news = true;
    t->next = NULL;
    *http->last_news = t;
    http->last_news = &t->next;
}

void ah_transfer_set_fault(ah_transfer *t, fault f)
{
    if (t->fault == FAULT_NONE)
        t->fault = f;
    ah_transfer_note_news(t);
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

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void on_time_limit(ah_timer *timer);

void ah_transfer_enter(ah_transfer *t)
{
    ah_http *http = t->http;

    t->running = true;
    t->beside = http->running;
    t->link = &http->running;
    if (t->beside)
        t->beside->link = &t->beside;
    http->running = t;
    t->started = t->touched = ah_loop_now(http->loop);
    t->timer.fn = on_time_limit;
    ah_timer_set(http->loop, &t->timer, t->started + sooner(t->limits.total_ms, t->limits.idle_ms));
}

static void leave(ah_transfer *t)
{
    if (!t->running)
        return;
    t->running = false;
    *t->link = t->beside;
    if (t->beside)
        t->beside->link = t->link;
    ah_timer_unset(&t->timer);
    ah_timer_unset(&t->thaw);
    if (t->easy)
        curl_multi_remove_handle(t->http->multi, t->easy);
    else
        ah_transport_cancel(t);
    ah_free(t->http->mem, t->headers);
    t->headers = NULL;
}

ah_status ah_transfer_tap(ah_transfer *t, const ah_http_request *req, ah_err *err)
{
    const ah_http_tap *tap = &t->http->tap;

    return tap->begin && !req->unseen ? tap->begin(tap->ud, req, &t->tapped, err) : AH_OK;
}

/* Reports the end to the tap, once per exchange. */
static void tell_end(ah_transfer *t)
{
    void *exchange = t->tapped;

    t->tapped = NULL;
    if (exchange)
        t->http->tap.end(exchange, t);
}

void ah_transfer_end(ah_transfer *t, CURLcode result)
{
    curl_off_t first_byte = 0;
    long os_error = 0, tunnel = 0;

    if (result != CURLE_OK && t->easy) {
        curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
        curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
        curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte);
    }
    t->result = result;
    t->os_error = os_error ? (int)os_error : t->unopened;
    t->tunnel = (int)tunnel;
    if (result != CURLE_OK && t->easy)
        ah_proxy_of(t, t->proxy);
    t->answered = first_byte > 0;
    leave(t);
    t->ended = true;
    tell_end(t);
    ah_transfer_note_news(t);
}

static ah_transfer *transfer_of(CURL *easy)
{
    char *t = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
    return (ah_transfer *)(void *)t;
}

static void collect_ended(ah_http *http)
{
    const CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(http->multi, &left)))
        if (m->msg == CURLMSG_DONE)
            ah_transfer_end(transfer_of(m->easy_handle), m->data.result);
}

static void tell_news(ah_http *http)
{
    ah_transfer *t;

    while ((t = next_news(http))) {
        if (t->fault != FAULT_NONE && !t->ended) {
            ah_transfer_end(t, CURLE_ABORTED_BY_CALLBACK);
            continue; /* it is in the list again */
        }
        t->news(t->ud, t);
    }
}

/* A multi handle without memory for a socket's table destroys the table and keeps using it
 * (singlesocket of 7.88 then divides by zero). So all transfers are ended, and the next request
 * gets a new handle. */
static void give_up(ah_http *http)
{
    http->broken = true;
    while (http->running) {
        ah_transfer_set_fault(http->running, FAULT_NOMEM);
        ah_transfer_end(http->running, CURLE_OUT_OF_MEMORY);
    }
}

static void act(ah_http *http, curl_socket_t fd, int bits)
{
    bool failed;
    int running;

    if (http->broken)
        return;
    http->now = ah_loop_now(http->loop);
    failed = curl_multi_socket_action(http->multi, fd, bits, &running) != CURLM_OK;
    collect_ended(http);
    if (failed)
        give_up(http);
    tell_news(http);
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

/* An idle connection stays watched. If an event comes (the server closed it), curl is left to find
 * out. */
static void on_ready(void *ud, int fd, int events)
{
    ah_http *http = ud;

    if (!http->sockets[fd].expected) {
        unwatch(http, fd);
        return;
    }
    act(http, fd,
        (events & AH_IN ? CURL_CSELECT_IN : 0) | (events & AH_OUT ? CURL_CSELECT_OUT : 0));
}

/* curl also has a handle of its own, for connections that it closes. */
static void blame(CURL *easy, fault f)
{
    ah_transfer *t = transfer_of(easy);

    if (t)
        ah_transfer_set_fault(t, f);
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

/* Called for each connection, with its destination address. */
static curl_socket_t open_socket(void *ud, curlsocktype purpose, struct curl_sockaddr *a)
{
    ah_transfer *t = ud;
    socket_state *s;
    int fd;

    (void)purpose;
    if (t->only && !ah_address_allowed(t->only, &a->addr)) {
        ah_address_words(&a->addr, t->refused);
        return CURL_SOCKET_BAD;
    }
    fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    if (fd < 0) {
        t->unopened = errno;
        return CURL_SOCKET_BAD;
    }
    s = socket_at(t->http, fd);
    if (!s) {
        ah_transfer_set_fault(t, FAULT_NOMEM);
        close(fd);
        return CURL_SOCKET_BAD;
    }
    *s = (socket_state){.ours = true};
    return fd;
}

/* Called even after the transfer is gone, so it uses the ah_http only. */
static int close_socket(void *ud, curl_socket_t fd)
{
    ah_http *http = ud;

    unwatch(http, fd);
    http->sockets[fd] = (socket_state){0};
    return close(fd);
}

/* Adds one millisecond, as the loop's clock counts whole ones: curl does not set a timer again that
 * fired too early. */
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

/* The loop's clock may differ from curl's: sets the timer again if curl still needs one. */
static void on_curl_timer(ah_timer *timer)
{
    ah_http *http = (ah_http *)((char *)timer - offsetof(ah_http, timer));
    long ms = -1;

    act(http, CURL_SOCKET_TIMEOUT, 0);
    if (!timer->loop && curl_multi_timeout(http->multi, &ms) == CURLM_OK && ms >= 0)
        set_curl_timer(http->multi, ms, http);
}

/* curl delivers what it had kept at once, and reads on when it is called for elapsed time. */
static void on_thaw(ah_timer *timer)
{
    ah_transfer *t = (ah_transfer *)((char *)timer - offsetof(ah_transfer, thaw));
    ah_http *http = t->http;

    if (!t->paused || !t->easy || http->broken)
        return;
    t->paused = false;
    http->now = ah_loop_now(http->loop);
    if (curl_easy_pause(t->easy, CURLPAUSE_CONT) == CURLE_OUT_OF_MEMORY)
        ah_transfer_set_fault(t, FAULT_NOMEM);
    t->touched = http->now;
    act(http, CURL_SOCKET_TIMEOUT, 0);
}

void ah_transfer_thaw(ah_transfer *t)
{
    t->thaw.fn = on_thaw;
    if (t->running && !t->thaw.loop)
        ah_timer_set(t->http->loop, &t->thaw, ah_loop_now(t->http->loop));
}

/* Idle time counts from the connection on; before that curl counts it. A paused transfer is not
 * idle. */
static int64_t idle_since(const ah_transfer *t, int64_t now)
{
    curl_off_t connected_us = 0;

    if (t->paused)
        return now;
    if (!t->easy)
        return t->touched;
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
    ah_transfer_set_fault(t, now >= total ? FAULT_TOTAL : FAULT_IDLE);
    tell_news(http);
}

/* Returns the number of files that the process may have open, at most MOST_FILES. */
static long most_descriptors(void)
{
    struct rlimit r;

    return getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > MOST_FILES ? MOST_FILES
                                                                        : (long)r.rlim_cur;
}

/* Further requests wait in libcurl until a connection is free. */
static long max_connections(void)
{
    long most = most_descriptors(), left = most / 64 > LEFT_FILES ? most / 64 : LEFT_FILES;

    return most > 2 * left ? most - left : left;
}

/* Idle connections may use a quarter of the process's descriptors. libcurl counts those at work,
 * too, so with fewer it would close connections that are about to be used again. */
static long max_idle_connections(void)
{
    long most = most_descriptors();

    return most < 64 ? 16 : most / 4;
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
           curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, max_idle_connections()) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_MAX_TOTAL_CONNECTIONS, max_connections()) == CURLM_OK;
}

/* Replaces a broken multi handle, which has no transfers. */
static bool renew_multi(ah_http *http)
{
    if (!http->broken)
        return true;
    if (http->multi)
        curl_multi_cleanup(http->multi);
    http->multi = NULL;
    ah_timer_unset(&http->timer);
    http->broken = !set_up_multi(http);
    return !http->broken;
}

/* Sets a folder of certificates. libcurl also uses its default file, and fails if that is missing,
 * so a missing one is unset if the folder is `alone`. */
static bool set_folder(ah_transfer *t, const char *dir, bool alone)
{
    const char *own = curl_version_info(CURLVERSION_NOW)->cainfo;

    if (alone && own && access(own, R_OK) != 0 &&
        (curl_easy_setopt(t->easy, CURLOPT_CAINFO, NULL) == CURLE_OUT_OF_MEMORY ||
         curl_easy_setopt(t->easy, CURLOPT_PROXY_CAINFO, NULL) == CURLE_OUT_OF_MEMORY))
        return false;
    return curl_easy_setopt(t->easy, CURLOPT_CAPATH, dir) != CURLE_OUT_OF_MEMORY &&
           curl_easy_setopt(t->easy, CURLOPT_PROXY_CAPATH, dir) != CURLE_OUT_OF_MEMORY;
}

/* Sets the certificates for servers and for proxies with TLS. A libcurl that does not support a
 * folder for proxies goes on without one. */
static bool set_authorities(ah_transfer *t)
{
    const char *file = t->http->ca_file, *dir = t->http->ca_dir;

    if (file && (curl_easy_setopt(t->easy, CURLOPT_CAINFO, file) == CURLE_OUT_OF_MEMORY ||
                 curl_easy_setopt(t->easy, CURLOPT_PROXY_CAINFO, file) == CURLE_OUT_OF_MEMORY))
        return false;
    return !dir || set_folder(t, dir, file == NULL);
}

static bool set_always(ah_transfer *t)
{
    CURL *e = t->easy;

    ah_transfer_request_attach(t);
    ah_transfer_response_attach(t);
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
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, t->http);
    if (!set_authorities(t))
        return false;
    return curl_easy_setopt(e, CURLOPT_USERAGENT, "agenthost/" AH_VERSION) == CURLE_OK &&
           (curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK ||
            curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK); /* built without TLS */
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
    ah_free(t->http->mem, t->broke);
    ah_free(t->http->mem, t);
}

ah_transfer *ah_transfer_make(ah_http *http)
{
    ah_transfer *t = ah_alloc(http->mem, sizeof *t);

    if (!t)
        return NULL;
    t->http = http;
    ah_buf_init(&t->url, http->mem, MAX_URL);
    ah_buf_init(&t->joined, http->mem, JOINED_BODY);
    ah_buf_init(&t->head, http->mem, 0);
    ah_buf_init(&t->body, http->mem, 0);
    return t;
}

static ah_transfer *make_with_curl(ah_http *http)
{
    ah_transfer *t = ah_transfer_make(http);

    if (!t)
        return NULL;
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
        return make_with_curl(http);
    http->kept = t->next;
    http->n_kept--;
    http->kept_bytes -= t->body.cap;
    return t;
}

/* Resets everything but the curl handle, its URL and the buffers. */
static void keep(ah_transfer *t)
{
    ah_http *http = t->http;

    if (!t->easy || http->n_kept >= KEPT_TRANSFERS) {
        destroy(t);
        return;
    }
    if (t->body.cap > KEPT_BYTES - http->kept_bytes)
        ah_buf_clear(&t->body);
    http->kept_bytes += t->body.cap;
    ah_transfer_request_forget(t);
    ah_transfer_response_forget(t);
    t->running = t->ended = t->answered = false;
    t->os_error = t->unopened = t->tunnel = 0;
    t->proxy[0] = '\0';
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
    ah_transfer *t;
    ah_status st;

    if (http->carrier.start)
        return ah_transport_start(http, req, news, ud, out, err);
    if (!renew_multi(http) || !(t = take_kept(http)))
        return ah_err_nomem(err);
    t->news = news;
    t->ud = ud;
    st = ah_transfer_request_set(t, req, err);
    if (st == AH_OK)
        st = ah_transfer_tap(t, req, err);
    if (st == AH_OK && curl_multi_add_handle(http->multi, t->easy) != CURLM_OK)
        st = ah_err_nomem(err);
    if (st != AH_OK) {
        tell_end(t);
        keep(t);
        return st;
    }
    ah_transfer_enter(t);
    *out = t;
    return AH_OK;
}

void ah_http_free_transfer(ah_transfer *t)
{
    if (!t)
        return;
    leave(t);
    tell_end(t);
    leave_news(t);
    keep(t);
}

static CURLcode started;

static void start_curl(void)
{
    started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

ah_status ah_http_library(ah_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* curl is initialised once per process */

    pthread_once(&once, start_curl);
    if (started == CURLE_OK)
        return AH_OK;
    return ah_err_set(err, AH_HTTP, "HTTP is not possible: %s", curl_easy_strerror(started));
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static bool copy_path(const ah_http *http, const char *value, char **out)
{
    size_t n = value ? strlen(value) + 1 : 0;

    *out = n ? ah_resize(http->mem, NULL, n) : NULL;
    if (*out)
        memcpy(*out, value, n);
    return *out || !n;
}

/* Follows the curl command: CURL_CA_BUNDLE only if it is set, else SSL_CERT_FILE and SSL_CERT_DIR,
 * one or both. */
static bool note_authorities(ah_http *http)
{
    const char *bundle = variable("CURL_CA_BUNDLE");
    const char *file = variable("SSL_CERT_FILE"), *dir = variable("SSL_CERT_DIR");

    if (bundle) {
        http->ca_from = "CURL_CA_BUNDLE";
        http->ca_passed_over = dir || (file && strcmp(file, bundle) != 0);
        return copy_path(http, bundle, &http->ca_file);
    }
    http->ca_from = file ? "SSL_CERT_FILE" : dir ? "SSL_CERT_DIR" : NULL;
    return copy_path(http, file, &http->ca_file) && copy_path(http, dir, &http->ca_dir);
}

static ah_status set_up_curl(ah_http *http, ah_err *err)
{
    ah_status st = ah_http_library(err);

    http->timer.fn = on_curl_timer;
    if (st == AH_OK && !(note_authorities(http) && set_up_multi(http)))
        st = ah_err_nomem(err);
    return st;
}

static void on_foreign_news(ah_timer *timer)
{
    tell_news((ah_http *)((char *)timer - offsetof(ah_http, timer)));
}

/* Makes an ah_http without curl: a timer due at once reports news. */
static ah_http *make_http(const ah_mem *mem, ah_loop *loop)
{
    ah_http *http = ah_alloc(mem, sizeof *http);

    if (!http)
        return NULL;
    http->mem = mem;
    http->loop = loop;
    http->last_news = &http->news;
    http->timer.fn = on_foreign_news;
    return http;
}

ah_status ah_http_new(const ah_mem *mem, ah_loop *loop, const ah_http_carrier *carrier,
                      const ah_http_tap *tap, ah_http **out, ah_err *err)
{
    ah_http *http = make_http(mem, loop);
    ah_status st = AH_OK;

    if (!http)
        return ah_err_nomem(err);
    if (carrier)
        http->carrier = *carrier;
    if (tap)
        http->tap = *tap;
    if (!http->carrier.start)
        st = set_up_curl(http, err);
    if (st == AH_OK)
        *out = http;
    else
        ah_http_free(http);
    return st;
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
    ah_free(http->mem, http->ca_dir);
    ah_free(http->mem, http);
}

const char *ah_http_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}

const char *ah_http_tls(void)
{
    const char *tls = curl_version_info(CURLVERSION_NOW)->ssl_version;

    return tls && *tls ? tls : "none";
}
