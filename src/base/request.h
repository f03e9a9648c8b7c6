/* A request over HTTP as data: the bytes to send, and its limits. io/http.h sends it and has the
 * default limits. Callers: wire, io. */
#ifndef AH_BASE_REQUEST_H
#define AH_BASE_REQUEST_H

#include <stdint.h>

#include "base/slice.h"

struct ah_addresses; /* io/address.h */

/* 0 selects the default. Messages use the names below. */
typedef struct ah_http_limits {
    int64_t connect_ms;  /* http.connect_timeout: until connected, TLS included */
    int64_t idle_ms;     /* http.idle_timeout: time without a byte, once connected */
    int64_t total_ms;    /* http.total_timeout: the whole transfer */
    size_t header_bytes; /* http.max_header: all lines of the response's header */
    size_t body_bytes;   /* http.max_body: the response's body, as counted here */
    /* bytes of the body that the owner has not taken: at this number, reading pauses until it
     * takes some. 0: no limit. A program's transport cannot pause: there they count against
     * max_body */
    size_t window_bytes;
} ah_http_limits;

typedef struct ah_http_request {
    const char *method;      /* "POST"; static, or valid during ah_http_start */
    const char *url;         /* static, or valid during ah_http_start */
    const ah_slice *headers; /* "Name: value" lines, copied. Content-Length and Transfer-Encoding
                                follow from the body */
    size_t n_headers;
    ah_slice body[4]; /* sent one after the other; borrowed until the transfer has ended */
    size_t n_body;
    ah_http_limits limits;
    /* The only addresses to connect to, whatever names and redirects say; NULL: any. Borrowed
     * until the transfer has ended. It excludes proxies of the environment, and the connection
     * is neither shared nor kept. With a program's transport it fails with AH_USAGE. */
    const struct ah_addresses *only;
    bool unseen; /* its bodies have secrets that are not known yet: no recording has it */
} ah_http_request;

#endif
