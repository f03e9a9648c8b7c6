/* A hit as http_server*.c see it. It owns its buffers and borrows server, visit and connection;
 * the last two are NULL once it is over. Callers: its floor. */
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
    void (*go_on)(ah_hit *hit);        /* resumes its connection if it is suspended */
    size_t *bodies;                    /* the server's count of held bytes */
    struct MHD_Connection *connection; /* NULL: the head is not complete, or the hit is over */
    struct ah_visit *visit;            /* NULL: the hit is over */
    void *owner;
    char method[AH_HIT_METHOD];
    char remote[AH_SERVER_TEXT];
    ah_buf target, head, body; /* head: names and values of the header lines */
    ah_place *line;            /* places of name and value, in turn, in head */
    size_t n_lines, cap_lines;
    bool lost;      /* part of its head was lost for lack of memory */
    size_t held;    /* bytes of the body in the server's count */
    bool asked;     /* its owner was asked */
    bool owned;     /* its owner has not freed it */
    bool suspended; /* its connection is suspended until there is data to send */
    int status;     /* of the answer; 0: not begun */
    int64_t length; /* of its body */
    bool bodyless;  /* the answer has no body */
    bool ended, broken;
    bool out_whole; /* the whole answer was sent */
    int refused;    /* the status of its refusal; 0: not refused */
    char why[AH_HIT_WHY];
    bool told;    /* the client was sent its refusal */
    bool leaving; /* its connection closes after the refusal */
    ah_buf lines; /* header lines of the answer: a NUL after each name and value */
    size_t n_answer_lines;
    ah_buf out; /* unsent and sent bytes of the body */
    size_t sent;
    ah_hit *next, **link; /* True while the hit is in the list server->first. */
};

/* Keeps a line of its head; false: out of memory. */
bool ah_hit_keep_line(ah_hit *x, const char *name, const char *value);
void ah_hit_destroy(ah_hit *x);

#endif
