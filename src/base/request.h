/* A request over HTTP as data: what is sent, and within which limits. Who sends it, and what the
 * limits are where nothing is said, is io/http.h's. */
#ifndef AH_BASE_REQUEST_H
#define AH_BASE_REQUEST_H

#include <stdint.h>

#include "base/slice.h"

struct ah_addresses; /* io/address.h */

/* 0 stands for the default. Each has a name in messages. */
typedef struct ah_http_limits {
    int64_t connect_ms;  /* http.connect_timeout: until the connection (TLS included) stands */
    int64_t idle_ms;     /* http.idle_timeout: without a byte sent or received once it stands */
    int64_t total_ms;    /* http.total_timeout: the whole transfer */
    size_t header_bytes; /* http.max_header: all response header lines together */
    size_t body_bytes;   /* http.max_body: response body as counted by us */
    /* of the body that the owner has not taken: with so many nothing more is read until it
     * takes some. 0: no such limit. A transport of the program's cannot be told to wait: there
     * what was not taken counts against max_body */
    size_t window_bytes;
} ah_http_limits;

typedef struct ah_http_request {
    const char *method;      /* "POST"; static or valid during ah_http_start */
    const char *url;         /* likewise */
    const ah_slice *headers; /* "Name: value" lines, n_headers of them; copied. Not Content-Length
                                and Transfer-Encoding: they follow from the body */
    size_t n_headers;
    ah_slice body[4]; /* sent one after the other; borrowed until the transfer has ended */
    size_t n_body;
    ah_http_limits limits;
    /* The only addresses to connect to, whatever names and redirects say; NULL: any. Borrowed until
     * the transfer has ended. With it, proxies of the environment are not used, and the connection
     * is neither shared nor kept. Not with a transport of the program's (AH_USAGE). */
    const struct ah_addresses *only;
} ah_http_request;

#endif
