/* What the events of a host's runs add up to: for the closing lines, for --json, and for
 * saying what is being waited for. It is told each event as JSON; nothing is printed here. */
#ifndef AH_CLI_TALLY_H
#define AH_CLI_TALLY_H

#include "base/json.h"

typedef struct ah_usage_sum {
    int64_t input, cached, output;
    bool known;  /* a provider said anything */
    double cost; /* US dollars; below 0: no provider said it */
} ah_usage_sum;

/* What the runs at work wait for. */
typedef enum ah_doing { AH_DOING_NOTHING, AH_DOING_REQUEST, AH_DOING_TOOLS, AH_DOING_RETRY } ah_doing;

typedef struct ah_tally {
    int64_t runs, at_work; /* begun; not yet done */
    int64_t turns;         /* answers of models */
    int64_t calls, failed; /* answered tool calls; those without success */
    int64_t begun;         /* monotonic ms, of the first run; 0: none yet */
    ah_usage_sum usage;

    ah_doing doing;
    int64_t since;   /* monotonic ms: when that began */
    int64_t tools;   /* handlers at work */
    char model[128]; /* provider/model of the run that began last, printable ASCII */
    char tool[65];   /* the handler that began last */
    char progress
        [96];      /* what that one, or another, said of how far it is, printable ASCII; "": nothing */
    int64_t retry; /* which */

    /* The last run that no tool's handler began. */
    int64_t root;
    ah_usage_sum root_usage;
    ah_buf root_done; /* its `done` event; empty while it is at work */
    ah_buf scratch;
} ah_tally;

void ah_tally_init(ah_tally *t);
void ah_tally_clear(ah_tally *t);
void ah_tally_event(ah_tally *t, ah_slice json);

/* A member of the last outermost run's `done` event as JSON text; .p NULL where no such run has ended. */
ah_slice ah_tally_done(const ah_tally *t, const char *member);
bool ah_tally_ended_well(const ah_tally *t); /* that run did; false without one */

int64_t ah_tally_now(void); /* monotonic ms */

#endif
