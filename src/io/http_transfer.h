/* A host's curl and its transfers, as the files http*.c see them, and nobody else:
 *   http.c           the multi handle, sockets, timers; a transfer's life
 *   http_request.c   what a transfer sends, set up on its curl handle
 *   http_response.c  what came, as curl hands it over and as owners take it
 *   http_words.c     why a transfer failed, in words
 *   http_proxy.c     which proxy the environment sets for a request
 *   http_transport.c transfers that somebody else carries in place of curl */
#ifndef AH_IO_HTTP_TRANSFER_H
#define AH_IO_HTTP_TRANSFER_H

#include <curl/curl.h>
#include <strings.h>

#include "io/http.h"

enum {
    MAX_BODY_PARTS = 4,
    JOINED_BODY = 64 << 10, /* up to here curl sends a body in one piece with the head */
    MAX_URL = 64 << 10,
    HOST_SIZE = 300,
    REASON_SIZE = 24
};

/* Why we, and not curl, ended a transfer. */
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
    bool ours;     /* opened for a connection, as opposed to curl's own pairs for its resolver */
    bool expected; /* curl wants to hear of it */
} socket_state;

struct ah_http {
    const ah_mem *mem;
    ah_loop *loop;
    ah_http_carrier carrier; /* start NULL: curl */
    uint64_t last_id;        /* of its requests */
    ah_http_tap tap;         /* begin NULL: nobody looks on */
    CURLM *multi;
    char *ca_file, *ca_dir; /* that the environment names, or NULL */
    const char *ca_from;    /* the variable that named them, or NULL; a literal */
    bool ca_passed_over;    /* another one names some, too, and does not count */
    ah_timer timer;         /* curl's */
    int64_t now;            /* of the batch in which curl is called */
    socket_state *sockets;
    size_t n_sockets;
    bool broken; /* the multi: see give_up */
    ah_transfer *running;
    ah_transfer *news, **last_news;
    ah_transfer *kept;
    int n_kept;
    size_t kept_bytes; /* of their response buffers */
};

struct ah_transfer {
    ah_http *http;
    CURL *easy;                  /* NULL: a carrier has it */
    uint64_t id;                 /* of the carrier's request */
    ah_transfer *next;           /* in http->news or http->kept */
    ah_transfer *beside, **link; /* in http->running */
    bool in_news, running, ended;
    ah_http_news_fn news;
    void *ud;
    ah_http_limits limits;
    const ah_addresses *only;      /* or NULL: any */
    char refused[AH_ADDRESS_TEXT]; /* the address that was not connected to, or "" */
    bool fenced;                   /* what `easy` was told last of it */
    ah_timer timer;
    int64_t started, touched;

    ah_buf url;           /* the last one given to `easy` */
    char host[HOST_SIZE]; /* "name:port" of it */
    bool tls;             /* https */
    struct curl_slist *headers;
    ah_slice parts[MAX_BODY_PARTS];
    size_t n_parts, part, part_off; /* body read by curl up to here */
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
    bool paused;   /* curl reads nothing more until `thaw` has come */
    ah_timer thaw; /* due at once: the owner has taken enough */

    fault fault;
    CURLcode result;
    char *broke;              /* what a carrier says, or NULL */
    char reason[REASON_SIZE]; /* likewise in one word, or "" */
    bool final;               /* and another try goes no better */
    int os_error;
    int tunnel; /* what a proxy answered that was asked to connect; 0: none, or nothing */
    char proxy[HOST_SIZE]; /* "name:port" of the proxy that it went through, as far as is known; ""
                            */
    bool answered;         /* a byte of a response came */
    char curl_says[CURL_ERROR_SIZE];
    void *tapped; /* the tap's; NULL: it is not told of this one */
};

/* http.c: there is something new to look at; and: we end the transfer, for that reason. */
void ah_transfer_note_news(ah_transfer *t);
void ah_transfer_set_fault(ah_transfer *t, fault f);
/* http.c, for http_transport.c: a bare transfer; it is at work; it has ended. */
ah_transfer *ah_transfer_make(ah_http *http);
void ah_transfer_enter(ah_transfer *t);
void ah_transfer_end(ah_transfer *t, CURLcode result);
/* http.c: what is paused goes on, as soon as the loop waits. */
void ah_transfer_thaw(ah_transfer *t);
/* http.c: the tap, if there is one, hears of a request that is about to go out. */
ah_status ah_transfer_tap(ah_transfer *t, const ah_http_request *req, ah_err *err);

/* http_request.c: what is set once for a handle, what a request sets (AH_USAGE where it
 * cannot be sent), and what a request leaves behind. */
void ah_transfer_request_attach(ah_transfer *t);
ah_status ah_transfer_request_set(ah_transfer *t, const ah_http_request *req, ah_err *err);
/* Judges a request and takes its parts and limits, without a curl handle. */
ah_status ah_transfer_request_check(ah_transfer *t, const ah_http_request *req, ah_err *err);
void ah_transfer_request_forget(ah_transfer *t);

/* http_words.c: why a transport failed, in one word that is known; others are passed over. */
void ah_transfer_reason(ah_transfer *t, ah_slice word);

/* http_proxy.c: "name:port" of the proxy that the environment sets for a request; "" where there is
 * none, or the host is excepted. By curl's rules, who does not tell. */
void ah_proxy_of(const ah_transfer *t, char out[HOST_SIZE]);

/* http_response.c: likewise. */
void ah_transfer_response_attach(ah_transfer *t);
void ah_transfer_response_forget(ah_transfer *t);
/* One line of the head; the empty line that ends it; bytes of the body. False: a fault is set. */
bool ah_transfer_response_line(ah_transfer *t, ah_slice line);
bool ah_transfer_response_head(ah_transfer *t, int status);
bool ah_transfer_response_body(ah_transfer *t, ah_slice bytes);

/* http_transport.c */
ah_status ah_transport_start(ah_http *http, const ah_http_request *req, ah_http_news_fn news,
                             void *ud, ah_transfer **out, ah_err *err);
void ah_transport_cancel(ah_transfer *t); /* unless it has ended */

#endif
