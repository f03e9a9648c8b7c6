/* The connections of a server. If there is no room for another, chooses one to close that makes the
 * server wait, never one that waits for the server. Knows nothing of HTTP, and closes no
 * descriptor. Visits are the caller's memory, linked into the door. Callers: its floor. */
#ifndef AH_IO_HTTP_DOOR_H
#define AH_IO_HTTP_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which they are closed. */
typedef enum ah_visit_phase {
    AH_VISIT_REFUSED, /* the rest of its request is discarded */
    AH_VISIT_KEPT,    /* between two requests, or its next head is incomplete */
    AH_VISIT_FRESH,   /* its first head is incomplete */
    AH_VISIT_BODY,    /* its head is complete, its body is not */
    AH_VISIT_ANSWER,  /* its request is complete */
    AH_VISIT_PHASES
} ah_visit_phase;

/* A connection. All times are ms of one clock. */
typedef struct ah_visit ah_visit;
struct ah_visit {
    int fd;
    ah_visit_phase phase;
    int64_t since;  /* when the phase began */
    int64_t handed; /* when it was handed bytes that it has not taken yet; 0: none */
    int64_t behind; /* since when it is too slow; 0: it is not */
    int64_t left;   /* since when the client's side is seen closed; 0: it is open */
    bool sent_off;  /* the server closes it on its next round */
    void *exchange; /* its request; NULL: none yet */
    ah_visit *next, **link;
};

typedef struct ah_door {
    ah_visit *first;
    size_t n;
    /* Time limits while no client waits to connect; 0: none. Set by the owner. */
    int64_t limit_ms[AH_VISIT_PHASES];
} ah_door;

/* Adds a connection, which is in the memory of the caller, until ah_door_leave. */
void ah_door_enter(ah_door *d, ah_visit *v, int fd, int64_t now);
void ah_door_leave(ah_door *d, ah_visit *v);

void ah_visit_begin(ah_visit *v, ah_visit_phase phase, int64_t now);
void ah_visit_taken(ah_visit *v, int64_t now); /* everything handed to it was sent */
void ah_visit_hand(ah_visit *v, int64_t now);

/* True if its time for this phase is over. */
bool ah_visit_overdue(const ah_door *d, const ah_visit *v, int64_t now);
/* True if the client has reset the connection, or closed its side and stayed closed for a while.
 * Call it from time to time while nothing is read from the connection. */
bool ah_visit_gone(ah_visit *v, int64_t now);
/* Returns the connection to close for another one. NULL: one is closing already, or none has made
 * the server wait long enough. */
ah_visit *ah_door_slowest(const ah_door *d, int64_t now);

#endif
