/* HTTP over libcurl's multi interface, or over a transport of the program's own
 * (agenthost.h); only http*.c know curl. Transfers
 * run inside ah_loop_wait of the loop given; what arrives is kept in the
 * transfer until its owner takes it, so no caller's code runs inside a curl
 * callback. Redirects, compression, netrc and cookies are off; http and https only;
 * HTTP/2 where TLS negotiates it. The environment is obeyed: http_proxy, https_proxy,
 * no_proxy (by curl, at each request); CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR (at
 * ah_http_new). */
#ifndef AH_IO_HTTP_H
#define AH_IO_HTTP_H

#include "base/request.h"
#include "base/secret.h"
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

/* `url`, relative to `base` where that is not NULL. AH_USAGE: not http or https, or none; with a
 * user name in it. */
ah_status ah_http_read_url(const char *url, const char *base, ah_url *out, ah_err *err);

/* Told from ah_loop_wait whenever there is something new to look at in the
 * transfer (head complete, bytes, end), once for what came together; must only
 * take note of it (post a job). */
typedef void (*ah_http_news_fn)(void *ud, ah_transfer *t);

/* transport: copied, its ud is the host it is called with; NULL, or without `start`: libcurl. */
ah_status ah_http_new(const ah_mem *mem, ah_loop *loop, const ah_transport *transport, ah_http **out,
                      ah_err *err);
/* One whose answers come from a recording: no curl, no network. AH_USAGE where the file is none. */
ah_status ah_http_new_replay(const ah_mem *mem, ah_loop *loop, const char *path, ah_http **out,
                             ah_err *err);
/* From now on each exchange becomes a line of the file (made anew), secrets taken out. */
ah_status ah_http_record(ah_http *http, const char *path, const ah_secrets *secrets, ah_err *err);
/* How many recorded exchanges were not asked for; of the first of them: file and line. 0 for all
 * but replays. */
size_t ah_http_unused(const ah_http *http, const char **path, size_t *line);
void ah_http_free(ah_http *http); /* all transfers must have been freed */

/* What a transport feeds (ah_transport_head and so on); an id that is over changes nothing. */
void ah_http_head(ah_http *http, uint64_t id, int status, const char *const *headers, size_t n);
void ah_http_body(ah_http *http, uint64_t id, ah_slice bytes);
void ah_http_end(ah_http *http, uint64_t id, const char *error, const char *reason);

/* A bad URL or an impossible header is AH_USAGE. News never come before it returns. */
ah_status ah_http_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news, void *ud,
                        ah_transfer **out, ah_err *err);
void ah_http_free_transfer(ah_transfer *t); /* at any time: a running one is aborted; NULL is fine */

int ah_transfer_status(const ah_transfer *t);                        /* 0 until the head is complete */
ah_slice ah_transfer_header(const ah_transfer *t, const char *name); /* trimmed value of the last
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
