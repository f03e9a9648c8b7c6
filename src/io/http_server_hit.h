/* A hit as the server sees it, and nobody else. */
#ifndef AH_IO_HTTP_SERVER_HIT_H
#define AH_IO_HTTP_SERVER_HIT_H

#include "io/http_server.h"

struct MHD_Connection;

enum { AH_HIT_METHOD = 24, AH_HIT_WHY = 96 };

typedef struct ah_place {
    uint32_t at, n;
} ah_place;

struct ah_hit {
    ah_server *server;
    const ah_mem *mem;
    void (*go_on)(ah_hit *hit);        /* its connection, if it is suspended */
    size_t *bodies;                    /* bytes held, of all of the server */
    struct MHD_Connection *connection; /* NULL: the head is not there, or it is over */
    struct ah_visit *visit;            /* NULL: it is over */
    void *owner;
    char method[AH_HIT_METHOD];
    char remote[AH_SERVER_TEXT];
    ah_buf target, head, body; /* head: names and values of the header lines */
    ah_place *line;            /* by turns in head */
    size_t n_lines, cap_lines;
    bool lost;      /* of its head: there was no memory */
    size_t held;    /* of the body, as the server counts it */
    bool asked;     /* it was handed to its owner */
    bool owned;     /* who has not freed it */
    bool suspended; /* its connection is, until something is said */
    int status;     /* of the answer; 0: it has not begun */
    int64_t length; /* of its body */
    bool bodyless;  /* an answer without a body */
    bool ended, broken;
    bool out_whole; /* all of it went out */
    int refused;    /* the status; 0: it is not */
    char why[AH_HIT_WHY];
    bool told;    /* of its refusal */
    bool leaving; /* its connection closes with that */
    ah_buf lines; /* header lines of the answer: a NUL behind each name and value */
    size_t n_answer_lines;
    ah_buf out; /* of the body */
    size_t sent;
    ah_hit *next, **link; /* in server->first */
};

bool ah_hit_keep_line(ah_hit *x, const char *name,
                      const char *value); /* of its head; false: no room */
void ah_hit_destroy(ah_hit *x);

#endif
