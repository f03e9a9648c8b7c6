/* An HTTP/1.1 server on a loop, over libmicrohttpd; only http_server*.c use that. It has no thread:
 * it reads and writes in ah_loop_wait and calls its owner from there, which must only take note
 * (post a job). Connections, heads, bodies and clients' times are limited; if a client waits to
 * connect, a connection that makes the server wait is closed (io/http_door.h). A hit is one request
 * and its answer. From `asked` on it belongs to the owner, which answers and then frees it; data
 * already written is still sent. Callers: its floor, lua. */
#ifndef AH_IO_HTTP_SERVER_H
#define AH_IO_HTTP_SERVER_H

#include "base/buf.h"
#include "io/loop.h"

typedef struct ah_server ah_server;
typedef struct ah_hit ah_hit;

enum { AH_SERVER_TEXT = 80 /* size of an address and port as text, in bytes */ };

typedef struct ah_server_limits {
    size_t connections;
    size_t header_bytes; /* of target and header lines of a request; more is 431 */
    size_t body_bytes;   /* more is 413 */
    size_t bodies_bytes; /* of all bodies that are not dropped yet; more is 503 */
    int64_t header_ms;   /* time for the first head of a connection, else 408 */
    int64_t body_ms;     /* from the head to the end of the body, else 408 */
    int64_t idle_ms;     /* without a byte sent or received, or between two requests */
} ah_server_limits;

extern const ah_server_limits ah_server_limits_default;

/* A refusal of a request: a status and its text. */
typedef struct ah_refusal {
    int status; /* 0: not refused */
    const char *why;
    size_t limit; /* in bytes, appended to the text; 0: none */
} ah_refusal;

enum {
    AH_REFUSAL_BYTES = 32 << 10 /* limit of an answer to a refused request, head and body */
};

/* Callbacks of the owner; ud is its own. */
typedef struct ah_server_owner {
    /* The head is complete; decides without side effects. NULL: refuses nothing. */
    ah_refusal (*judge)(void *ud, const ah_hit *hit);
    /* The request is complete. With `refuses`, also called if the server refuses a request with a
     * complete head (ah_hit_refusal): the owner's answer is sent, or the server's own text if that
     * answer is broken off, too large, or too late. */
    void (*asked)(void *ud, ah_hit *hit);
    bool refuses;
    void (*moved)(void *ud, ah_hit *hit); /* everything written was sent, or the hit is over */
    void (*closed)(void *ud);             /* after ah_server_shut: the last answer was sent */
    void *ud;
} ah_server_owner;

/* `listen`: "127.0.0.1:0", "[::1]:8080", "localhost:8080"; port 0: any free one. Returns AH_USAGE
 * if it is no address, AH_HTTP if it cannot be listened on or libmicrohttpd is missing. */
ah_status ah_server_new(const ah_mem *mem, ah_loop *loop, const char *listen,
                        const ah_server_limits *limits, const ah_server_owner *owner,
                        ah_server **out, ah_err *err);
/* Closes all connections at once; not allowed inside a call to the owner. Hits of the owner are
 * then over. */
void ah_server_free(ah_server *s);
/* Accepts no more connections. Current answers have `ms` to end; then `closed` is called. */
void ah_server_shut(ah_server *s, int64_t ms);
const char *ah_server_address(const ah_server *s); /* for example "127.0.0.1", "::1" */
int ah_server_port(const ah_server *s);
bool ah_server_is_any(const ah_server *s); /* it listens on all addresses of the machine */
const char *ah_server_version(void);       /* of libmicrohttpd; NULL: not found */

/* Valid until the hit is freed. */
const char *ah_hit_method(const ah_hit *hit);
ah_slice ah_hit_target(const ah_hit *hit);    /* path and query as received */
const char *ah_hit_remote(const ah_hit *hit); /* for example "127.0.0.1:49152" */
bool ah_hit_header_at(const ah_hit *hit, size_t i, ah_slice *name, ah_slice *value);
/* The first header of that name, ignoring case; *n is their number. .p NULL: none. */
ah_slice ah_hit_header(const ah_hit *hit, const char *name, size_t *n);
ah_slice ah_hit_body(const ah_hit *hit);
/* Its text is valid until the hit is freed. */
ah_refusal ah_hit_refusal(const ah_hit *hit);
void ah_hit_drop_body(ah_hit *hit); /* the owner no longer needs the body */
void ah_hit_set_owner(ah_hit *hit, void *p);
void *ah_hit_owner(const ah_hit *hit);

/* Appends a line to the head of the answer. False: it is not allowed (an invalid byte, or a header
 * that the server sets itself), or out of memory. */
bool ah_hit_add_header(ah_hit *hit, ah_slice name, ah_slice value);
void ah_hit_forget_headers(ah_hit *hit); /* removes the headers of an answer that has not begun */
/* Begins the answer. length: bytes of the body; -1: unknown, it is streamed. */
void ah_hit_begin(ah_hit *hit, int status, int64_t length);
bool ah_hit_begun(const ah_hit *hit);
/* Copies the bytes. False: out of memory, and the answer is broken off. */
bool ah_hit_write(ah_hit *hit, ah_slice bytes);
bool ah_hit_taken(const ah_hit *hit); /* everything written was sent, or the hit is over */
void ah_hit_end(ah_hit *hit);         /* ends the body */
bool ah_hit_ended(const ah_hit *hit);
void ah_hit_break(ah_hit *hit); /* closes the connection at once */
bool ah_hit_broken(const ah_hit *hit);
bool ah_hit_over(const ah_hit *hit); /* its answer was sent, or the client is gone */
bool ah_hit_out(const ah_hit *hit);  /* it is over, and the whole answer was sent */
void ah_hit_free(ah_hit *hit);       /* breaks off an answer that did not end; NULL is allowed */

#endif
