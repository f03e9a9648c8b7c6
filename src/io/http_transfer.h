/* A host's curl and its transfers, for the files http*.c only. A transfer owns its curl handle and
 * buffers; the parts of a request's body are its owner's until it ends.
 *    http.c           the multi handle, sockets, timers; a transfer's life
 *    http_request.c   what a transfer sends, set up on its curl handle
 *    http_response.c  the received response, from curl to its owner
 *    http_words.c     the error text of a failed transfer
 *    http_proxy.c     the proxy that the environment sets for a request
 *    http_transport.c transfers that a carrier runs in place of curl
 *
 * Callers: its floor. */
#ifndef AH_IO_HTTP_TRANSFER_H
#define AH_IO_HTTP_TRANSFER_H

#include <curl/curl.h>
#include <strings.h>

#include "io/http.h"

enum {
    MAX_BODY_PARTS = 4,
    JOINED_BODY = 64 << 10, /* bodies up to this size are sent in one piece with the head */
    MAX_URL = 64 << 10,
    HOST_SIZE = 300,
    REASON_SIZE = 24
};

/* The reason for which we, and not curl, ended a transfer. */
typedef enum fault {
    FAULT_NONE,
    FAULT_NOMEM,
    FAULT_WATCH,
    FAULT_HEADER,
    FAULT_BODY,
    FAULT_CODING,
    FAULT_IDLE,
    FAULT_TOTAL
} fault;

typedef struct header_line {
    uint32_t name, name_n, value, value_n; /* offsets into `head` */
} header_line;

typedef struct socket_state {
    bool ours;     /* opened for a connection, not one of the socket pairs of curl's resolver */
    bool expected; /* curl wants its events */
} socket_state;

struct ah_http {
    const ah_mem *mem;
    ah_loop *loop;
    ah_http_carrier carrier; /* start NULL: curl */
    uint64_t last_id;        /* of the carrier's requests */
    ah_http_tap tap;         /* begin NULL: no observer */
    CURLM *multi;
    char *ca_file, *ca_dir; /* set by the environment, or NULL */
    const char *ca_from;    /* name of that variable, or NULL; a literal */
    bool ca_passed_over;    /* another variable is set too, and ignored */
    ah_timer timer;         /* curl's timer */
    int64_t now;            /* time of the current batch of calls to curl */
    socket_state *sockets;
    size_t n_sockets;
    bool broken; /* the multi handle is broken: see give_up */
    ah_transfer *running;
    ah_transfer *news, **last_news;
    ah_transfer *kept;
    int n_kept;
    size_t kept_bytes; /* size of their response buffers */
};

struct ah_transfer {
    ah_http *http;
    CURL *easy;                  /* NULL: run by a carrier */
    uint64_t id;                 /* of the carrier's request */
    ah_transfer *next;           /* in http->news or http->kept */
    ah_transfer *beside, **link; /* in http->running */
    bool in_news, running, ended;
    ah_http_news_fn news;
    void *ud;
    ah_http_limits limits;
    const ah_addresses *only;      /* NULL: all addresses */
    char refused[AH_ADDRESS_TEXT]; /* the address that was refused, or "" */
    bool fenced;                   /* `easy` is set up for `only` */
    ah_timer timer;
    int64_t started, touched;

    ah_buf url;           /* the last one given to `easy` */
    char host[HOST_SIZE]; /* "name:port" of the URL */
    bool tls;             /* the URL is https */
    struct curl_slist *headers;
    ah_slice parts[MAX_BODY_PARTS];
    size_t n_parts, part, part_off; /* position up to which curl has read the body */
    ah_buf joined;

    ah_buf head;
    header_line *lines;
    size_t n_lines, cap_lines;
    size_t head_bytes;
    bool head_done;
    int status;
    ah_buf body;
    size_t taken;
    uint64_t received;
    bool paused;   /* curl reads nothing more until `thaw` fires */
    ah_timer thaw; /* due at once: the owner has taken enough */

    fault fault;
    CURLcode result;
    char *broke;              /* the carrier's error text, or NULL */
    char reason[REASON_SIZE]; /* the carrier's error word, or "" */
    bool final;               /* another try will not succeed */
    int os_error;
    int unopened; /* the errno of a socket that could not be opened; 0: none */
    int tunnel;   /* the HTTP status of a proxy's CONNECT; 0: none */
    /* "name:port" of the proxy in use, if known; "" otherwise. */
    char proxy[HOST_SIZE];
    bool answered; /* a byte of a response has come */
    char curl_says[CURL_ERROR_SIZE];
    void *tapped; /* the tap's exchange; NULL: it does not observe this transfer */
};

/* http.c: notes that a transfer has news; ends a transfer for that reason. */
void ah_transfer_note_news(ah_transfer *t);
void ah_transfer_set_fault(ah_transfer *t, fault f);
/* http.c, for http_transport.c: makes a bare transfer; marks it as running; ends it. */
ah_transfer *ah_transfer_make(ah_http *http);
/* Initialises libcurl, once per process. Fails with AH_HTTP if it cannot be used. */
ah_status ah_http_library(ah_err *err);
void ah_transfer_enter(ah_transfer *t);
void ah_transfer_end(ah_transfer *t, CURLcode result);
/* http.c: continues a paused transfer as soon as the loop waits. */
void ah_transfer_thaw(ah_transfer *t);
/* http.c: reports a request that is about to be sent to the tap, if there is one. */
ah_status ah_transfer_tap(ah_transfer *t, const ah_http_request *req, ah_err *err);

/* http_request.c: sets what is constant for a handle; sets a request (AH_USAGE if it cannot be
 * sent); resets a request. */
void ah_transfer_request_attach(ah_transfer *t);
ah_status ah_transfer_request_set(ah_transfer *t, const ah_http_request *req, ah_err *err);
/* Checks a request and takes its parts and limits, without a curl handle. */
ah_status ah_transfer_request_check(ah_transfer *t, const ah_http_request *req, ah_err *err);
void ah_transfer_request_forget(ah_transfer *t);

/* http_words.c: sets the reason of a carrier's failure, in one word; unknown words are ignored. */
void ah_transfer_reason(ah_transfer *t, ah_slice word);

/* http_proxy.c: "name:port" of the proxy that the environment sets for a request; "" if there is
 * none, or the host is excepted. Follows curl's rules, since curl does not report it. */
void ah_proxy_of(const ah_transfer *t, char out[HOST_SIZE]);

/* http_response.c: sets what is constant for a handle; resets a response. */
void ah_transfer_response_attach(ah_transfer *t);
void ah_transfer_response_forget(ah_transfer *t);
/* One line of the head; the empty line that ends it; bytes of the body. False: a fault is set. */
bool ah_transfer_response_line(ah_transfer *t, ah_slice line);
bool ah_transfer_response_head(ah_transfer *t, int status);
bool ah_transfer_response_body(ah_transfer *t, ah_slice bytes);

/* http_transport.c */
ah_status ah_transport_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news,
                             void *ud, ah_transfer **out, ah_err *err);
void ah_transport_cancel(ah_transfer *t); /* no effect if it has ended */

#endif
