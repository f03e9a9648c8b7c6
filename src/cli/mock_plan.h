/* What the mock sends in answer to one request, read from what lua/agenthost/command/mock/plan.lua makes, lines
 * and bytes behind them: a head, then steps of bytes and waits. Of a stream only the steps that go out next are
 * there. Nothing of HTTP is known here. */
#ifndef AH_CLI_MOCK_PLAN_H
#define AH_CLI_MOCK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/bytes.h"

enum { AH_PLAN_TEXT = 1024 };

typedef struct ah_plan_step {
    size_t at, n;    /* bytes: where in the plan's `bytes`, how many */
    int64_t wait_ms; /* before them */
    bool close;      /* the connection breaks here */
} ah_plan_step;

typedef struct ah_plan {
    int64_t number; /* of the request, by which further steps are asked for */
    int status;
    bool drop;      /* no answer at all: the connection closes */
    bool streamed;  /* of unknown length */
    bool more;      /* there are steps behind these */
    int64_t length; /* that the head tells, where not streamed */
    int64_t wait_ms;
    char type[AH_PLAN_TEXT];
    ah_bytes headers; /* names and values by turns, a NUL behind each */
    ah_plan_step *step;
    size_t n_steps;
    ah_bytes bytes;
    bool warn;              /* `say` tells of a request that was refused */
    char say[AH_PLAN_TEXT]; /* a line for people; "": none */
} ah_plan;

/* NULL: no memory, or no plan. To be freed with ah_plan_free. */
ah_plan *ah_plan_read(const char *text);
/* Takes the next steps in place of those that it has. False as above: the plan has no steps then. */
bool ah_plan_go_on(ah_plan *p, const char *text);
void ah_plan_free(ah_plan *p); /* NULL is fine */

#endif
