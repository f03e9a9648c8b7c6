/* agenthost mock: a model server on this machine, for tests. What is said is decided in Lua
 * (lua/agenthost/command/mock.lua, in the host that is given); here are the socket and the loop. */
#ifndef AH_CLI_MOCK_H
#define AH_CLI_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "agenthost.h"

typedef struct ah_mock {
    const char *address; /* to listen on, numbers only; NULL: 127.0.0.1 */
    int port;            /* 0: any that is free */
    size_t once;         /* ends after so many requests; 0: with a signal */
    FILE *out;           /* gets the address, one line */
    ah_log_fn say;       /* a line a request */
    void *ud;
} ah_mock;

/* Serves until a signal or `once`; the program has read its script. AH_OK; a failure that the host keeps
 * (ah_errmsg), with fault ""; or AH_INTERNAL with words in fault. */
ah_status ah_mock_serve(ah_host *host, const ah_mock *mock, char *fault, size_t size);

#endif
