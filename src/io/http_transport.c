/* Transfers run by a carrier in place of curl (ah_http_carrier). Limits, headers, bodies and news
 * are those of every transfer. Each request has an id, so that what the carrier reports for an
 * ended one is ignored. A timer due at once reports news, never the carrier's own calls. */
#include "base/json.h"
#include "io/http_transfer.h"

enum { MAX_BODY = 1 << 30, MAX_WORDS = 1000 };

static ah_transfer *find(ah_http *http, uint64_t id)
{
    ah_transfer *t = http && id ? http->running : NULL;

    while (t && t->id != id)
        t = t->beside;
    return t;
}

static void tell_soon(ah_http *http)
{
    if (http->news)
        ah_timer_set(http->loop, &http->timer, ah_loop_now(http->loop));
}

/* -- the request ---------------------------------------------------------------------------- */

/* Makes one block of the list and the lines that it points to. */
static const char **copy_headers(ah_transfer *t, const ah_http_request *req)
{
    size_t bytes = 0;
    const char **list;
    char *to;

    for (size_t i = 0; i < req->n_headers; i++)
        bytes += req->headers[i].n + 1;
    list = ah_resize(t->http->mem, NULL, req->n_headers * sizeof *list + bytes + 1);
    if (!list)
        return NULL;
    to = (char *)(list + req->n_headers);
    for (size_t i = 0; i < req->n_headers; i++) {
        list[i] = to;
        memcpy(to, req->headers[i].p, req->headers[i].n);
        to += req->headers[i].n;
        *to++ = '\0';
    }
    return list;
}

static bool join_body(ah_transfer *t)
{
    t->joined.max = MAX_BODY;
    for (size_t i = 0; i < t->n_parts; i++)
        ah_buf_put(&t->joined, t->parts[i]);
    return ah_buf_ok(&t->joined);
}

static ah_status begin(ah_transfer *t, const ah_http_request *req, ah_err *err)
{
    ah_http *http = t->http;
    const char **headers = copy_headers(t, req);
    ah_transport_request r = {.id = ++http->last_id,
                              .method = req->method,
                              .url = req->url,
                              .headers = headers,
                              .n_headers = req->n_headers,
                              .connect_timeout = (double)t->limits.connect_ms / 1000};
    ah_status st;

    if (!headers || !join_body(t)) {
        ah_free(http->mem, headers);
        return ah_err_nomem(err);
    }
    r.body = ah_buf_slice(&t->joined).p;
    r.body_len = t->joined.len;
    t->id = r.id;
    ah_transfer_enter(t);
    err->status = AH_OK;
    st = http->carrier.start(http->carrier.ud, http, &r, err);
    ah_free(http->mem, headers);
    if (st == AH_OK)
        return AH_OK;
    t->id = 0; /* it never began, so there is nothing to cancel */
    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    if (err->status != AH_OK)
        return st;
    ah_err_set(err, st, "%s: the program's transport cannot begin: %s", t->host,
               ah_status_name(st));
    if (st == AH_HTTP)
        ah_json_detail(err, "reason", ah_slice_of("broken"));
    return st;
}

ah_status ah_transport_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news,
                             void *ud, ah_transfer **out, ah_err *err)
{
    ah_transfer *t;
    ah_status st;

    if (req->only && http->carrier.connects)
        return ah_err_set(err, AH_USAGE,
                          "addresses cannot be limited here: this program carries HTTP itself");
    if (!(t = ah_transfer_make(http)))
        return ah_err_nomem(err);
    t->news = news;
    t->ud = ud;
    st = ah_transfer_request_check(t, req, err);
    if (st == AH_OK)
        st = ah_transfer_tap(t, req, err);
    if (st == AH_OK)
        st = begin(t, req, err);
    if (st == AH_OK)
        *out = t;
    else
        ah_http_free_transfer(t);
    return st;
}

void ah_transport_cancel(ah_transfer *t)
{
    ah_http_carrier *carrier = &t->http->carrier;
    uint64_t id = t->id;

    t->id = 0;
    if (id)
        carrier->cancel(carrier->ud, id);
}

/* -- the response --------------------------------------------------------------------------- */

void ah_http_head(ah_http *http, uint64_t id, int status, const char *const *headers, size_t n)
{
    ah_transfer *t = find(http, id);
    bool ok = true;

    if (!t || t->head_done)
        return;
    t->touched = ah_loop_now(http->loop);
    for (size_t i = 0; ok && i < n; i++)
        ok = ah_transfer_response_line(t, ah_slice_of(headers[i]));
    if (ok)
        ah_transfer_response_head(t, status);
    tell_soon(http);
}

void ah_http_body(ah_http *http, uint64_t id, ah_slice bytes)
{
    ah_transfer *t = find(http, id);

    if (!t || !t->head_done || t->fault != FAULT_NONE || bytes.n == 0)
        return;
    t->touched = ah_loop_now(http->loop);
    ah_transfer_response_body(t, bytes);
    tell_soon(http);
}

static char *copy_words(const ah_http *http, const char *error)
{
    size_t n = ah_utf8_cut(error, strnlen(error, MAX_WORDS));
    char *words = ah_alloc(http->mem, n + 1);

    if (!words)
        return NULL;
    memcpy(words, error, n);
    words[n = ah_flatten(words, n)] = '\0';
    for (size_t i = 0; i < n && !ah_utf8_valid((ah_slice){words, n}); i++)
        if ((unsigned char)words[i] >= 0x80)
            words[i] = '?';
    return words;
}

/* A response without a head is an error, whatever the carrier reports. */
void ah_http_end(ah_http *http, uint64_t id, const char *error, const char *reason, bool final)
{
    ah_transfer *t = find(http, id);

    if (!t)
        return;
    if (!error && !t->head_done)
        error = "the transport ended without a response";
    if (error)
        t->broke = copy_words(http, error);
    if (reason)
        ah_transfer_reason(t, ah_slice_of(reason));
    t->final = final;
    t->id = 0;
    ah_transfer_end(t, error ? CURLE_RECV_ERROR : CURLE_OK);
    tell_soon(http);
}
