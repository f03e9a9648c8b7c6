/* HTTP for the mock: takes requests, asks for a plan for each, and plays it. The only user of
 * libmicrohttpd; without it (see the Makefile) nothing can be opened. One thread, no callbacks
 * but `ask`; whoever owns it waits with select and calls ah_mock_server_turn. */
#ifndef AH_CLI_MOCK_SERVER_H
#define AH_CLI_MOCK_SERVER_H

#include <sys/select.h>

#include "cli/mock_plan.h"

enum {
    AH_MOCK_CONNECTIONS = 256,
    AH_MOCK_BODY = 64 << 20, /* bytes of a request's body; more: 413 */
    AH_MOCK_IDLE_S = 60      /* a connection on which nothing moves for so long is closed */
};

/* Valid during the call. Strings, not slices: they go to Lua as arguments of a script. */
typedef struct ah_mock_request {
    const char *method, *target; /* target: path and query, as they came */
    const char *headers;         /* "Name: value" lines */
    const char *body;
} ah_mock_request;

/* The plan is the server's then; NULL: the connection is closed. */
typedef ah_plan *(*ah_mock_ask)(void *ud, const ah_mock_request *request);

typedef struct ah_mock_server ah_mock_server;

/* Serves a socket that listens; it is closed with the server, but not after a failure. NULL:
 * it cannot be, no memory. */
ah_mock_server *ah_mock_server_new(int fd, ah_mock_ask ask, void *ud);
void ah_mock_server_free(ah_mock_server *s); /* NULL is fine */

typedef struct ah_mock_fds {
    fd_set in, out, bad;
    int max; /* -1: none */
} ah_mock_fds;

/* What to wait for, and at most how many ms (-1: no limit). */
int ah_mock_server_wants(ah_mock_server *s, ah_mock_fds *fds);
/* Does what is due, with what select left in fds. */
void ah_mock_server_turn(ah_mock_server *s, const ah_mock_fds *fds);
size_t ah_mock_server_answered(const ah_mock_server *s); /* requests that are over */

const char *ah_mock_server_version(void); /* of libmicrohttpd; NULL: there is none */

#endif
