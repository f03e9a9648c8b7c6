/* The connections of the mock. When there is no room for another, one that keeps us waiting is
 * closed, never one that waits for us. Nothing of HTTP is known here, and nothing is closed. */
#ifndef AH_CLI_MOCK_DOOR_H
#define AH_CLI_MOCK_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which they are let go. */
typedef enum ah_mock_visit_phase {
    AH_MOCK_VISIT_REFUSED, /* what it still sends is not read */
    AH_MOCK_VISIT_KEPT,    /* between two requests, or its next head is not whole */
    AH_MOCK_VISIT_FRESH,   /* its first head is not whole */
    AH_MOCK_VISIT_BODY,    /* a head is there, its body is not */
    AH_MOCK_VISIT_ANSWER   /* a request is there */
} ah_mock_visit_phase;

/* A connection. All times are milliseconds of one clock. */
typedef struct ah_mock_visit ah_mock_visit;
struct ah_mock_visit {
    int fd;
    ah_mock_visit_phase phase;
    int64_t since;  /* when the phase began */
    int64_t handed; /* when it was handed bytes that it has not taken; 0: it waits for us */
    int64_t behind; /* since when it does not keep up; 0: it does */
    bool sent_off;  /* it is closed as soon as the server comes to it */
    void *exchange; /* its request; NULL: none has begun */
    ah_mock_visit *next, **link;
};

typedef struct ah_mock_door {
    ah_mock_visit *first;
    size_t n;
} ah_mock_door;

void ah_mock_door_enter(ah_mock_door *d, ah_mock_visit *v, int fd, int64_t now);
void ah_mock_door_leave(ah_mock_door *d, ah_mock_visit *v);

void ah_mock_visit_begin(ah_mock_visit *v, ah_mock_visit_phase phase, int64_t now);
void ah_mock_visit_taken(ah_mock_visit *v, int64_t now); /* all that it was handed is on its way */
void ah_mock_visit_hand(ah_mock_visit *v, int64_t now);

/* True if its time for this phase is over. */
bool ah_mock_visit_overdue(const ah_mock_visit *v, int64_t now);
/* True if the client has reset the connection. */
bool ah_mock_visit_gone(const ah_mock_visit *v);
/* Returns the connection to close for another one, or NULL: one is closing already, or none has
 * kept us waiting long enough. */
ah_mock_visit *ah_mock_door_slowest(const ah_mock_door *d, int64_t now);

#endif
