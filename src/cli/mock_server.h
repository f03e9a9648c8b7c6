/* HTTP for the mock: takes requests, asks for a plan for each, and plays it. The only user of
 * libmicrohttpd; without it (see the Makefile) nothing can be opened. One thread, no callbacks
 * but those of ah_mock_script; whoever owns it waits for its descriptors and calls ah_mock_server_turn.
 * Streams are asked for piece by piece, by turns, as their clients take them. */
#ifndef AH_CLI_MOCK_SERVER_H
#define AH_CLI_MOCK_SERVER_H

#include <poll.h>

#include "cli/mock_plan.h"

enum {
    AH_MOCK_CONNECTIONS = 256,
    AH_MOCK_BODY = 64 << 20,    /* bytes of a request's body; more: 413 */
    AH_MOCK_BODIES = 256 << 20, /* of all that are not whole yet; more: 503 */
    AH_MOCK_HEAD_S = 10, /* until the head of a new connection's first request is there; else 408 */
    AH_MOCK_IDLE_S = 60  /* a connection on which nothing moves for so long is closed */
};

/* Valid during the call. Strings, not slices: they go to Lua as arguments of a script. */
typedef struct ah_mock_request {
    const char *method, *target; /* target: path and query, as they came */
    const char *headers;         /* "Name: value" lines */
    const char *body;
    int status; /* with which the server refuses it, and `fault` why; 0: it does not */
    const char *fault;
} ah_mock_request;

/* The source of answers: a script, through the host. */
typedef struct ah_mock_script {
    ah_plan *(*ask)(void *ud, const ah_mock_request *q); /* the server's then; NULL: it failed */
    bool (*go_on)(void *ud, ah_plan *p);                 /* gets the next steps; false: it failed */
    void (*forget)(void *ud, const ah_plan *p);          /* nobody wants the further steps */
    void *ud;
} ah_mock_script;

typedef struct ah_mock_server ah_mock_server;

/* Serves a socket that listens; it is closed with the server, but not after a failure. NULL:
 * it cannot be, no memory. */
ah_mock_server *ah_mock_server_new(int fd, const ah_mock_script *script);
void ah_mock_server_free(ah_mock_server *s); /* NULL is fine */

enum { AH_MOCK_FDS = 2 };

/* What to wait for (fds; a descriptor may be -1), and at most how many ms (-1: no limit). */
int ah_mock_server_wants(ah_mock_server *s, struct pollfd fds[AH_MOCK_FDS]);
void ah_mock_server_turn(ah_mock_server *s);             /* does what is due */
size_t ah_mock_server_answered(const ah_mock_server *s); /* requests that are over */

const char *ah_mock_server_version(void); /* of libmicrohttpd; NULL: there is none */

#endif
