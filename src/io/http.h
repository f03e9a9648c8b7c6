/* HTTP over libcurl's multi interface, or over a carrier in its place; only http*.c use curl.
 * Transfers run inside ah_loop_wait of the given loop. Received data is kept in the transfer until
 * its owner takes it, so no code of the caller runs inside a curl callback. Redirects, compression,
 * netrc and cookies are off; http and https only; HTTP/2 if TLS negotiates it. Environment
 * variables that count: http_proxy, https_proxy, no_proxy (read by curl at each request);
 * CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR (read by ah_http_new).
 * Callers: its floor, host. */
#ifndef AH_IO_HTTP_H
#define AH_IO_HTTP_H

#include "base/request.h"
#include "base/buf.h"
#include "io/address.h"
#include "io/loop.h"

enum { AH_URL_HOST = 256 };

typedef struct ah_http ah_http;         /* one per host; created on first use */
typedef struct ah_transfer ah_transfer; /* one request and its response */

extern const ah_http_limits ah_http_limits_default;

/* A URL as curl parses it, so that checking and requesting it agree. */
typedef struct ah_url {
    /* Absolute and normalised, without fragment; the caller initialises and clears it. */
    ah_buf whole;
    bool tls;
    char host[AH_URL_HOST]; /* lower case; an IPv6 address in its brackets */
    int port;
} ah_url;

/* Parses `url`, relative to `base` unless that is NULL. Returns AH_USAGE if it is not http or
 * https, is no URL, or contains a user name. */
ah_status ah_http_read_url(const char *url, const char *base, ah_url *out, ah_err *err);

/* Called from ah_loop_wait when a transfer has news (head complete, bytes, end), once for news that
 * came together. Must only take note of it (post a job). */
typedef void (*ah_http_news_fn)(void *ud, ah_transfer *t);

/* Carries requests in place of curl, like an ah_transport (agenthost.h): it reports what it
 * receives through ah_http_head, ah_http_body and ah_http_end, in `start` or later. */
typedef struct ah_http_carrier {
    /* Begins a request. If it fails with *err unchanged, the message is made from the status. */
    ah_status (*start)(void *ud, ah_http *http, const ah_transport_request *request, ah_err *err);
    void (*cancel)(void *ud, uint64_t id);
    void *ud;
    bool connects; /* to addresses that we do not see: requests with `only` are refused */
} ah_http_carrier;

/* Observer of each exchange: gets the checked request, the body's bytes as they come, and the end,
 * before the transfer's owner does. `begin` sets *exchange for the other two, which are not called
 * if it stays NULL. If `begin` fails, so does the request. */
typedef struct ah_http_tap {
    ah_status (*begin)(void *ud, const ah_http_request *req, void **exchange, ah_err *err);
    void (*body)(void *exchange, ah_slice bytes);
    void (*end)(void *exchange, const ah_transfer *t);
    void *ud;
} ah_http_tap;

/* Copies carrier and tap. carrier NULL, or without `start`: libcurl. tap NULL: no observer. */
ah_status ah_http_new(const ah_mem *mem, ah_loop *loop, const ah_http_carrier *carrier,
                      const ah_http_tap *tap, ah_http **out, ah_err *err);
void ah_http_free(ah_http *http); /* all transfers must have been freed */

/* Called by a carrier; an id of an ended request is ignored. error NULL: the response is complete.
 * final: another try will not succeed. */
void ah_http_head(ah_http *http, uint64_t id, int status, const char *const *headers, size_t n);
void ah_http_body(ah_http *http, uint64_t id, ah_slice bytes);
void ah_http_end(ah_http *http, uint64_t id, const char *error, const char *reason, bool final);

/* Returns AH_USAGE for a bad URL or an invalid header. News are never reported before it
 * returns. */
ah_status ah_http_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news, void *ud,
                        ah_transfer **out, ah_err *err);
/* Allowed at any time: a running transfer is aborted. NULL is allowed. */
void ah_http_free_transfer(ah_transfer *t);

int ah_transfer_status(const ah_transfer *t); /* 0 until the head is complete */
/* The trimmed value of the last header of that name, ignoring case; .p NULL: none. */
ah_slice ah_transfer_header(const ah_transfer *t, const char *name);
/* The header number i (from 0) with its trimmed value; false: there are not so many. */
bool ah_transfer_header_at(const ah_transfer *t, size_t i, ah_slice *name, ah_slice *value);
/* Body bytes not taken yet; valid until the next ah_loop_wait or ah_transfer_took, and, once the
 * transfer has ended, until it is freed. */
ah_slice ah_transfer_body(const ah_transfer *t);
/* Drops the first n bytes of the body, which the owner has taken. */
void ah_transfer_took(ah_transfer *t, size_t n);
/* Takes the received but untaken bytes out of the transfer with their buffer, which then belongs to
 * the caller. If it is given back, the buffer is used for later bytes. */
ah_buf ah_transfer_take(ah_transfer *t);
void ah_transfer_give_back(ah_transfer *t, ah_buf *b);
/* True if nothing more will come. *err (may be NULL) is then AH_OK after a complete response of any
 * HTTP status, else AH_NOMEM or AH_HTTP, with a message such as "connection refused by
 * 127.0.0.1:8080" or "127.0.0.1:8080: no data for 2.0 s (limit http.idle_timeout)". It is retryable
 * if another try may succeed (limits of time, not of size). http_status is set if the head has
 * come. */
bool ah_transfer_ended(const ah_transfer *t, ah_err *err);

/* Versions of the libcurl in use, for --version: for example "7.88.1", "OpenSSL/3.0.17" or
 * "none". */
const char *ah_http_version(void);
const char *ah_http_tls(void);

#endif
