/* The request of a transfer: URL, method, header lines, body and limits, checked and set on its
 * curl handle; and the body, which curl reads while it is sent. A small body is sent with the head,
 * a larger one is read from the parts that its owner keeps. */
#include "io/http_transfer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_HEADER_BYTES = 1 << 30, /* offsets of header lines are 32 bits */
    DAY_MS = 24 * 3600 * 1000   /* the longest connect_ms passed to curl */
};

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

/* curl rewinds the body if a kept connection turns out to be dead. */
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

/* Values are not quoted in errors, as they may be secrets. */
static ah_status check_header(ah_slice line, size_t i, ah_err *err)
{
    ah_slice name = header_name(line);

    if (!is_token(name))
        return ah_err_set(err, AH_USAGE, "request header %zu is no 'Name: value'", i + 1);
    if (memchr(line.p, '\r', line.n) || memchr(line.p, '\n', line.n) ||
        memchr(line.p, '\0', line.n))
        return ah_err_set(err, AH_USAGE,
                          "the value of the request header '%.*s' holds a line break or NUL",
                          AH_FMT(name));
    if (ah_slice_is_word(name, "Content-Length") || ah_slice_is_word(name, "Transfer-Encoding"))
        return ah_err_set(err, AH_USAGE,
                          "the request header '%.*s' follows from the body, it cannot be given",
                          AH_FMT(name));
    return AH_OK;
}

/* Copies a line in curl's notation, in which "Name:" removes a header of curl's and "Name;" sends
 * an empty one. */
static char *copy_header(char *to, ah_slice line, ah_slice name)
{
    bool empty = ah_slice_trim((ah_slice){line.p + name.n + 1, line.n - name.n - 1}).n == 0;

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

/* Sets `off` to the headers that curl must not add, and returns their number: Content-Type if the
 * request has none, and Expect, which curl adds to large bodies only. */
static size_t headers_off(const ah_http_request *req, size_t body, ah_slice off[2])
{
    static const ah_slice expect = AH_LIT("Expect:"), type = AH_LIT("Content-Type:");
    bool typed = false;
    size_t n = 0;

    for (size_t i = 0; i < req->n_headers; i++)
        typed |= ah_slice_is_word(header_name(req->headers[i]), "Content-Type");
    if (!typed)
        off[n++] = type;
    if (body > JOINED_BODY)
        off[n++] = expect;
    return n;
}

/* Makes one block: the list's nodes, then the lines. */
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

/* The part of a URL that may be shown: no credentials, no query, no control characters. */
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

static bool is_tls(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

static bool is_web(const char *url)
{
    return is_tls(url) || strncasecmp(url, "http://", 7) == 0;
}

static ah_status say_code(const char *url, CURLUcode code, ah_err *err)
{
    if (code == CURLUE_OUT_OF_MEMORY)
        return ah_err_nomem(err);
    if (code == CURLUE_USER_NOT_ALLOWED)
        return say_url(url, "it holds a user name; send credentials in a header", err);
    if (code == CURLUE_UNSUPPORTED_SCHEME && is_tls(url))
        return say_url(url, "this libcurl was built without TLS", err);
    if (code == CURLUE_BAD_SCHEME || code == CURLUE_UNSUPPORTED_SCHEME)
        return say_url(url, "it does not begin with http:// or https://", err);
    return say_url(url, curl_url_strerror(code), err);
}

/* Sets the given port, else the default one, which a libcurl without TLS lacks for https. */
static CURLUcode read_port(CURLU *u, bool tls, int *out)
{
    char *said = NULL;
    CURLUcode code = curl_url_get(u, CURLUPART_PORT, &said, 0);

    *out = said ? atoi(said) : tls ? 443 : 80;
    curl_free(said);
    return code == CURLUE_NO_PORT ? CURLUE_OK : code;
}

/* A program's transport may support TLS if libcurl does not. */
static ah_status read_url(ah_transfer *t, CURLU *u, const char *url, ah_err *err)
{
    unsigned any = t->http->carrier.start ? CURLU_NON_SUPPORT_SCHEME : 0;
    CURLUcode code = curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER | any);
    char *name = NULL;
    int port = 0;
    ah_status st = AH_OK;

    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_HOST, &name, 0);
    if (code == CURLUE_OK)
        code = read_port(u, is_tls(url), &port);
    if (code != CURLUE_OUT_OF_MEMORY && code != CURLUE_USER_NOT_ALLOWED && !is_web(url))
        st = say_url(url, "it does not begin with http:// or https://", err);
    else if (code != CURLUE_OK)
        st = say_code(url, code, err);
    if (st == AH_OK) {
        snprintf(t->host, sizeof t->host, "%.*s:%d", HOST_SIZE - 10, name, port);
        t->tls = is_tls(url);
    }
    curl_free(name);
    return st;
}

/* Sets the whole URL without its fragment, the port and the lower-case host, and checks the
 * scheme. */
static CURLUcode take_url(CURLU *u, ah_url *out)
{
    char *whole = NULL, *host = NULL;
    CURLUcode code = curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);

    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_URL, &whole, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_HOST, &host, 0);
    if (code == CURLUE_OK && !is_web(whole))
        code = CURLUE_UNSUPPORTED_SCHEME;
    if (code == CURLUE_OK)
        code = read_port(u, is_tls(whole), &out->port);
    if (code == CURLUE_OK && strlen(host) >= sizeof out->host)
        code = CURLUE_BAD_HOSTNAME;
    if (code == CURLUE_OK) {
        ah_buf_str(&out->whole, whole);
        out->tls = is_tls(whole);
        for (size_t i = 0; i <= strlen(host); i++)
            out->host[i] = (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] + 32 : host[i]);
    }
    curl_free(whole);
    curl_free(host);
    return code;
}

ah_status ah_http_read_url(const char *url, const char *base, ah_url *out, ah_err *err)
{
    const unsigned any = CURLU_DISALLOW_USER | CURLU_NON_SUPPORT_SCHEME;
    ah_status st = ah_http_library(err);
    CURLU *u = st == AH_OK ? curl_url() : NULL;
    CURLUcode code = u ? CURLUE_OK : CURLUE_OUT_OF_MEMORY;

    if (st != AH_OK)
        return st;
    if (code == CURLUE_OK && base)
        code = curl_url_set(u, CURLUPART_URL, base, any);
    if (code == CURLUE_OK)
        code = curl_url_set(u, CURLUPART_URL, url, any | CURLU_URLENCODE);
    if (code == CURLUE_OK)
        code = take_url(u, out);
    if (code == CURLUE_OK && !ah_buf_ok(&out->whole))
        st = ah_buf_error(&out->whole, "the URL", err);
    else if (code != CURLUE_OK)
        st = say_code(url, code, err);
    curl_url_cleanup(u);
    return st;
}

static ah_status check_url(ah_transfer *t, const char *url, ah_err *err)
{
    ah_status st = ah_http_library(err);
    CURLU *u = st == AH_OK ? curl_url() : NULL;

    if (st != AH_OK)
        return st;
    st = u ? read_url(t, u, url, err) : ah_err_nomem(err);
    curl_url_cleanup(u);
    return st;
}

/* PIPEWAIT: wait for a connection that may become HTTP/2 rather than open a hundred. Without TLS
 * there is no HTTP/2 to wait for. */
static ah_status set_url(ah_transfer *t, const char *url, ah_err *err)
{
    ah_slice s = ah_slice_of(url ? url : "");
    ah_status st;

    if (s.n && ah_slice_eq(s, ah_buf_slice(&t->url)))
        return AH_OK;
    ah_buf_reset(&t->url, 0);
    if ((st = check_url(t, s.p, err)) != AH_OK)
        return st;
    ah_buf_put(&t->url, s);
    if (!ah_buf_ok(&t->url))
        return t->url.status == AH_NOMEM ? ah_err_nomem(err) : say_url(url, "it is too long", err);
    curl_easy_setopt(t->easy, CURLOPT_PIPEWAIT, t->tls ? 1L : 0L);
    if (curl_easy_setopt(t->easy, CURLOPT_URL, url) == CURLE_OK)
        return AH_OK;
    ah_buf_reset(&t->url, 0);
    return ah_err_nomem(err);
}

/* Returns the body in one piece, which is sent with the head. NULL if curl must read it from its
 * parts: a large body, whose parts also show progress (idle_ms), or out of memory. */
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

static ah_status check_method(const char *method, ah_err *err)
{
    if (method && is_token(ah_slice_of(method)))
        return AH_OK;
    return ah_err_set(err, AH_USAGE, "the HTTP method is missing or no word");
}

static ah_status set_method(ah_transfer *t, const char *method, size_t total, ah_err *err)
{
    const char *natural = "GET";

    if (check_method(method, err) != AH_OK)
        return AH_USAGE;
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
        .window_bytes = l->window_bytes,
    };
    if (t->limits.header_bytes > MAX_HEADER_BYTES)
        t->limits.header_bytes = MAX_HEADER_BYTES;
    t->body.max = t->limits.body_bytes;
    t->head.max = t->limits.header_bytes;
}

/* A proxy would resolve names itself, and an existing connection was not checked, so both are
 * switched off. */
static bool set_fence(ah_transfer *t, const ah_addresses *only)
{
    bool on = only != NULL;

    t->only = only;
    if (on == t->fenced)
        return true;
    if (curl_easy_setopt(t->easy, CURLOPT_PROXY, on ? "" : NULL) != CURLE_OK)
        return false;
    curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, on ? 1L : 0L);
    curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, on ? 1L : 0L);
    t->fenced = on;
    return true;
}

void ah_transfer_request_attach(ah_transfer *t)
{
    curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, seek_body);
    curl_easy_setopt(t->easy, CURLOPT_SEEKDATA, t);
}

ah_status ah_transfer_request_set(ah_transfer *t, const ah_http_request *req, ah_err *err)
{
    size_t body = take_parts(t, req);
    ah_status st;

    set_limits(t, &req->limits);
    if (!set_fence(t, req->only))
        return ah_err_nomem(err);
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     t->limits.connect_ms < DAY_MS ? (long)t->limits.connect_ms : DAY_MS);
    st = set_url(t, req->url, err);
    if (st == AH_OK)
        st = set_method(t, req->method, body, err);
    if (st == AH_OK)
        st = set_headers(t, req, body, err);
    return st;
}

ah_status ah_transfer_request_check(ah_transfer *t, const ah_http_request *req, ah_err *err)
{
    ah_status st = check_method(req->method, err);

    take_parts(t, req);
    set_limits(t, &req->limits);
    if (st == AH_OK)
        st = check_url(t, req->url ? req->url : "", err);
    for (size_t i = 0; st == AH_OK && i < req->n_headers; i++)
        st = check_header(req->headers[i], i, err);
    return st;
}

void ah_transfer_request_forget(ah_transfer *t)
{
    ah_free(t->http->mem, t->headers);
    t->headers = NULL;
    t->only = NULL;
    t->refused[0] = '\0';
    t->n_parts = t->part = t->part_off = 0;
}
