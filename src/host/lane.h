/* Lanes: requests of all runs of a host to one provider, address and key share the places of a lane
 * (max_in_flight). Those to one of its models also share the limits that response heads report, and
 * one back-off when the provider refuses them for load. The host owns the lanes, and frees idle
 * ones when it makes others; a place lives in its run, so waiting takes no memory. Nothing here
 * calls code of a script. Only asking for a place can fail, for memory. Callers: its floor. */
#ifndef AH_HOST_LANE_H
#define AH_HOST_LANE_H

#include "run/run.h"
#include "wire/advice.h"

struct ah_host;
struct ah_lane;
struct ah_lane_model;

enum { AH_LANE_BUCKETS = 256 };

/* The lanes of a host. All zero: none. */
typedef struct ah_lanes {
    struct ah_lane *bucket[AH_LANE_BUCKETS];
    struct ah_lane_rule *rule; /* what settings say of providers */
    uint64_t asked;            /* places asked for so far */
    uint64_t alone;            /* adapters with a number of their own so far, see ah_adapter */
    size_t waiting;            /* runs in all queues */
} ah_lanes;

typedef enum ah_place_state { AH_PLACE_NONE, AH_PLACE_WAITING, AH_PLACE_HELD } ah_place_state;

/* A run's place in a lane, or in its queue. All zero: none. */
typedef struct ah_place {
    ah_place_state state;
    struct ah_lane_model *at;
    struct ah_driver_run *of;
    struct ah_place *next, *prev; /* neighbours in the queue, or among the places of the lane */
    uint64_t number;              /* later ones are larger; kept after the end for a next try */
    uint64_t round;               /* back-offs of the model before it was given */
    int64_t tokens;               /* of the input, about */
    int most;                     /* requests that may be at work at once; 0: no limit */
    bool exempt;                  /* the runs that hold places may wait for this one */
    bool proven;                  /* the provider has accepted the request */
} ah_place;

/* max_in_flight of a provider; most 0: none. */
typedef struct ah_lane_limit {
    ah_slice provider;
    int most;
} ah_lane_limit;

/* The reasons of a wait. */
typedef enum ah_wait_reason {
    AH_WAIT_NONE,
    AH_WAIT_IN_FLIGHT, /* max_in_flight requests are at work */
    AH_WAIT_LIMIT,     /* a limit of the provider is used up */
    AH_WAIT_BACKOFF    /* the provider has refused requests for load */
} ah_wait_reason;

/* A run's request for a place. */
typedef struct ah_place_def {
    const ah_adapter *adapter;
    int64_t tokens; /* of the input, about */
    int tries;      /* before this one: 1 and more keep the turn of the first */
    int most;       /* max_in_flight of the run; 0: no limit */
    bool exempt;    /* it waits for times only, never for other requests */
} ah_place_def;

/* Asks for a place, which the run gets by ah_run_placed, at once or later. Returns false without
 * memory. If it waits: *reason is why, *until the end of the wait at the earliest, loop clock,
 * ms, 0 if not known. */
bool ah_place_ask(struct ah_host *h, struct ah_driver_run *of, ah_place *p, const ah_place_def *def,
                  ah_wait_reason *reason, int64_t *until);
/* Gives the place back, or leaves the queue; no effect without a place. The next in turn get
 * theirs. */
void ah_place_leave(ah_place *p);
/* The head of the response to its request has come. */
void ah_place_heard(ah_place *p, const ah_response_head *head);
/* The request was answered, by an adapter without heads. */
void ah_place_answered(ah_place *p);
/* The provider has refused the request for load: the model's requests wait. advised: ms to wait;
 * -1: the provider did not say. tries: refusals of the run's request before this one. Returns the
 * time for which the request must wait, ms. */
int64_t ah_place_back_off(ah_place *p, int64_t advised, int tries);
/* True if it is held in the lane of this adapter. */
bool ah_place_in_lane(const ah_place *p, const ah_adapter *a);

/* While only the runs within `scope` are driven, those that wait must not wait for others. */
void ah_lanes_free_scope(struct ah_host *h, struct ah_driver_run *scope);
/* Sets the limits of providers, in place of the ones before. Names are copied. Returns false, and
 * changes nothing, without memory. */
bool ah_lanes_limit(struct ah_host *h, const ah_lane_limit *list, size_t n);
void ah_lanes_free(struct ah_host *h); /* all places were given back */

const char *ah_wait_reason_name(ah_wait_reason reason); /* "in_flight"; NULL for NONE */

#endif
