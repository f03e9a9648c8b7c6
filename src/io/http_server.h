/* An HTTP/1.1 server on a loop, over libmicrohttpd; only http_server*.c know that. It has no
 * thread: it reads and writes in ah_loop_wait, and tells its owner there, who must only take note
 * (post a job). Bounded are connections, heads, bodies, and the time that clients take for them;
 * where another client waits to connect, one that keeps us waiting is let go (io/http_door.h).
 *
 * A hit is one request and its answer. Once asked for, it is its owner's, who answers and then
 * frees it; what was written still goes out. */
#ifndef AH_IO_HTTP_SERVER_H
#define AH_IO_HTTP_SERVER_H

#include "base/buf.h"
#include "io/loop.h"

typedef struct ah_server ah_server;
typedef struct ah_hit ah_hit;

enum { AH_SERVER_TEXT = 80 /* bytes of an address and port in words */ };

typedef struct ah_server_limits {
    size_t connections;
    size_t header_bytes; /* target and header lines of a request; more: 431 */
    size_t body_bytes;   /* more: 413 */
    size_t bodies_bytes; /* of all that their owner has not dropped; more: 503 */
    int64_t header_ms;   /* until the first head of a connection is there; else 408 */
    int64_t body_ms;     /* from the head to the end of the body; else 408 */
    int64_t idle_ms;     /* without a byte sent or received, or between two requests */
} ah_server_limits;

extern const ah_server_limits ah_server_limits_default;

/* A refusal of a request: a status and its words. */
typedef struct ah_refusal {
    int status; /* 0: it is not */
    const char *why;
    size_t limit; /* bytes, which its words end with; 0: none */
} ah_refusal;

enum {
    AH_REFUSAL_BYTES = 32 << 10 /* of an answer to a request that was refused, head and body */
};

/* Calls of the owner. ud is its own. */
typedef struct ah_server_owner {
    /* The head is there. Only looks. NULL: nothing is refused by it. */
    ah_refusal (*judge)(void *ud, const ah_hit *hit);
    /* All of a request is there. With `refuses`, too, where a head is there and the server refuses
     * its request (ah_hit_refusal): what is answered then is said, and the server's own words where
     * that breaks off, is too large, or comes too late. */
    void (*asked)(void *ud, ah_hit *hit);
    bool refuses;
    void (*moved)(void *ud, ah_hit *hit); /* all that was written is taken, or the hit is over */
    void (*closed)(void *ud);             /* after ah_server_shut: the last answer is out */
    void *ud;
} ah_server_owner;

/* listen: "127.0.0.1:0", "[::1]:8080", "localhost:8080"; port 0: any that is free. AH_USAGE: it is
 * none; AH_HTTP: it cannot be listened on; there is no libmicrohttpd. */
ah_status ah_server_new(const ah_mem *mem, ah_loop *loop, const char *listen,
                        const ah_server_limits *limits, const ah_server_owner *owner,
                        ah_server **out, ah_err *err);
/* Ends all connections at once; not inside a call to its owner. Hits that are their owner's are
 * over. */
void ah_server_free(ah_server *s);
/* Nobody more is let in. Answers that are under way have ms to end; then comes `closed`. */
void ah_server_shut(ah_server *s, int64_t ms);
const char *ah_server_address(const ah_server *s); /* "127.0.0.1", "::1" */
int ah_server_port(const ah_server *s);
bool ah_server_is_any(const ah_server *s); /* it listens on all addresses of the machine */
const char *ah_server_version(void);       /* of libmicrohttpd; NULL: there is none */

/* All good until the hit is freed. */
const char *ah_hit_method(const ah_hit *hit);
ah_slice ah_hit_target(const ah_hit *hit);    /* path and query as they came */
const char *ah_hit_remote(const ah_hit *hit); /* "127.0.0.1:49152" */
bool ah_hit_header_at(const ah_hit *hit, size_t i, ah_slice *name, ah_slice *value);
/* The first of them, case ignored, and how many there are; .p NULL: none. */
ah_slice ah_hit_header(const ah_hit *hit, const char *name, size_t *n);
ah_slice ah_hit_body(const ah_hit *hit);
/* Its words are good until the hit is freed. */
ah_refusal ah_hit_refusal(const ah_hit *hit);
void ah_hit_drop_body(ah_hit *hit); /* its owner has what it needs of it */
void ah_hit_set_owner(ah_hit *hit, void *p);
void *ah_hit_owner(const ah_hit *hit);

/* Appends a line to the head of the answer. False: it cannot be sent (a byte that no header has, a
 * name that the server says itself), or no memory. */
bool ah_hit_add_header(ah_hit *hit, ah_slice name, ah_slice value);
void ah_hit_forget_headers(ah_hit *hit); /* of an answer that has not begun */
/* The head. length: of the body; -1: not known, it is streamed. */
void ah_hit_begin(ah_hit *hit, int status, int64_t length);
bool ah_hit_begun(const ah_hit *hit);
bool ah_hit_write(ah_hit *hit,
                  ah_slice bytes);    /* copied; false: no memory, and the answer breaks off */
bool ah_hit_taken(const ah_hit *hit); /* all that was written was taken, or it is over */
void ah_hit_end(ah_hit *hit);         /* of the body */
bool ah_hit_ended(const ah_hit *hit);
void ah_hit_break(ah_hit *hit); /* the connection closes where it is */
bool ah_hit_broken(const ah_hit *hit);
bool ah_hit_over(const ah_hit *hit); /* it went out, or its client is gone */
bool ah_hit_out(const ah_hit *hit);  /* it is over, and all of the answer went out */
void ah_hit_free(ah_hit *hit);       /* one that did not end breaks off; NULL is fine */

#endif
