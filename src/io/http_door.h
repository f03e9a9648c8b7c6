/* The connections of a server. When there is no room for another, one that keeps us waiting is
 * closed, never one that waits for us. Nothing of HTTP is known here, and nothing is closed. */
#ifndef AH_IO_HTTP_DOOR_H
#define AH_IO_HTTP_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which they are let go. */
typedef enum ah_visit_phase {
    AH_VISIT_REFUSED, /* what it still sends is not read */
    AH_VISIT_KEPT,    /* between two requests, or its next head is not whole */
    AH_VISIT_FRESH,   /* its first head is not whole */
    AH_VISIT_BODY,    /* a head is there, its body is not */
    AH_VISIT_ANSWER,  /* a request is there */
    AH_VISIT_PHASES
} ah_visit_phase;

/* A connection. All times are milliseconds of one clock. */
typedef struct ah_visit ah_visit;
struct ah_visit {
    int fd;
    ah_visit_phase phase;
    int64_t since;  /* when the phase began */
    int64_t handed; /* when it was handed bytes that it has not taken; 0: it waits for us */
    int64_t behind; /* since when it does not keep up; 0: it does */
    int64_t left;   /* since when its side is closed, as far as was looked; 0: it is not */
    bool sent_off;  /* it is closed as soon as the server comes to it */
    void *exchange; /* its request; NULL: none has begun */
    ah_visit *next, **link;
};

typedef struct ah_door {
    ah_visit *first;
    size_t n;
    int64_t limit_ms[AH_VISIT_PHASES]; /* while nobody waits to connect; 0: none of ours. Set by the
                                          owner */
} ah_door;

void ah_door_enter(ah_door *d, ah_visit *v, int fd, int64_t now);
void ah_door_leave(ah_door *d, ah_visit *v);

void ah_visit_begin(ah_visit *v, ah_visit_phase phase, int64_t now);
void ah_visit_taken(ah_visit *v, int64_t now); /* all that it was handed is on its way */
void ah_visit_hand(ah_visit *v, int64_t now);

/* True if its time for this phase is over. */
bool ah_visit_overdue(const ah_door *d, const ah_visit *v, int64_t now);
/* True if the client has reset the connection, or has closed its side and waits for so long. To be
 * asked now and then while nothing is read of it. */
bool ah_visit_gone(ah_visit *v, int64_t now);
/* Returns the connection to close for another one, or NULL: one is closing already, or none has
 * kept us waiting long enough. */
ah_visit *ah_door_slowest(const ah_door *d, int64_t now);

#endif
