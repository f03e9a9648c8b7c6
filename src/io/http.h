/* HTTP over libcurl's multi interface, or over whoever carries requests in its place; only http*.c
 * know curl. Transfers run inside ah_loop_wait of the loop given; what arrives is kept in the
 * transfer until its owner takes it, so no caller's code runs inside a curl
 * callback. Redirects, compression, netrc and cookies are off; http and https only;
 * HTTP/2 where TLS negotiates it. The environment is obeyed: http_proxy, https_proxy,
 * no_proxy (by curl, at each request); CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR (at
 * ah_http_new). */
#ifndef AH_IO_HTTP_H
#define AH_IO_HTTP_H

#include "base/request.h"
#include "base/buf.h"
#include "io/address.h"
#include "io/loop.h"

enum { AH_URL_HOST = 256 };

typedef struct ah_http ah_http;         /* one a host; made on first use */
typedef struct ah_transfer ah_transfer; /* one request and its response */

extern const ah_http_limits ah_http_limits_default;

/* A URL as curl reads it, so that whoever judges it and whoever requests it agree. */
typedef struct ah_url {
    ah_buf whole; /* absolute and normal, without fragment; initialised and cleared by the caller */
    bool tls;
    char host[AH_URL_HOST]; /* lower case, [::1] with its brackets */
    int port;
} ah_url;

/* Reads `url`, relative to `base` unless that is NULL. AH_USAGE: it is not http or https, no URL,
 * or has a user name in it. */
ah_status ah_http_read_url(const char *url, const char *base, ah_url *out, ah_err *err);

/* Called from ah_loop_wait whenever there is something new to look at in the transfer (head
 * complete, bytes, end), once for what came together; must only take note of it (post a job). */
typedef void (*ah_http_news_fn)(void *ud, ah_transfer *t);

/* Carries requests in place of curl, as an ah_transport (agenthost.h) does: it feeds what comes
 * through ah_http_head, ah_http_body and ah_http_end, in `start` or later. */
typedef struct ah_http_carrier {
    /* Begins a request. If it fails and leaves *err as it is, the message is made from the
     * status. */
    ah_status (*start)(void *ud, ah_http *http, const ah_transport_request *request, ah_err *err);
    void (*cancel)(void *ud, uint64_t id);
    void *ud;
    bool connects; /* to addresses that we do not see: requests with `only` are refused */
} ah_http_carrier;

/* Observer of each exchange: gets its checked request, the bytes of the body as they come, and the
 * end, before the transfer's owner does. `begin` sets *exchange for the other two, which are not
 * called if that stays NULL; if `begin` fails, so does the request. */
typedef struct ah_http_tap {
    ah_status (*begin)(void *ud, const ah_http_request *req, void **exchange, ah_err *err);
    void (*body)(void *exchange, ah_slice bytes);
    void (*end)(void *exchange, const ah_transfer *t);
    void *ud;
} ah_http_tap;

/* Both are copied. carrier: NULL, or without `start`: libcurl. tap: NULL: no observer. */
ah_status ah_http_new(const ah_mem *mem, ah_loop *loop, const ah_http_carrier *carrier,
                      const ah_http_tap *tap, ah_http **out, ah_err *err);
void ah_http_free(ah_http *http); /* all transfers must have been freed */

/* Fed by a carrier; an id that is over changes nothing. error NULL: the response is complete;
 * final: and no other try goes better. */
void ah_http_head(ah_http *http, uint64_t id, int status, const char *const *headers, size_t n);
void ah_http_body(ah_http *http, uint64_t id, ah_slice bytes);
void ah_http_end(ah_http *http, uint64_t id, const char *error, const char *reason, bool final);

/* A bad URL or an impossible header is AH_USAGE. News never come before it returns. */
ah_status ah_http_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news, void *ud,
                        ah_transfer **out, ah_err *err);
void ah_http_free_transfer(
    ah_transfer *t); /* at any time: a running one is aborted; NULL is fine */

int ah_transfer_status(const ah_transfer *t); /* 0 until the head is complete */
ah_slice ah_transfer_header(const ah_transfer *t,
                            const char *name); /* trimmed value of the last
                                                  such header, case ignored; .p NULL */
bool ah_transfer_header_at(const ah_transfer *t, size_t i, ah_slice *name, ah_slice *value);
/* Body bytes not yet taken; valid until the next ah_loop_wait or ah_transfer_took, and to
 * the end of the transfer's life once it has ended. */
ah_slice ah_transfer_body(const ah_transfer *t);
void ah_transfer_took(ah_transfer *t, size_t n);
/* Takes what has come and was not taken out of the transfer, buffer and all: it is the caller's
 * own, whatever comes meanwhile. Given back, the buffer serves what comes next. */
ah_buf ah_transfer_take(ah_transfer *t);
void ah_transfer_give_back(ah_transfer *t, ah_buf *b);
/* True when nothing more will come. *err (may be NULL) then has status AH_OK after a
 * complete response, of whatever HTTP status, else AH_NOMEM or AH_HTTP: message
 * "connection refused by 127.0.0.1:8080" or "127.0.0.1:8080: no data for 2.0 s (limit
 * http.idle_timeout)"; retryable where another try may go better (limits of time, not of
 * size). http_status is what the head said, if it came. */
bool ah_transfer_ended(const ah_transfer *t, ah_err *err);

/* "7.88.1", "OpenSSL/3.0.17" or "none": of the libcurl in use, for --version. */
const char *ah_http_version(void);
const char *ah_http_tls(void);

#endif
