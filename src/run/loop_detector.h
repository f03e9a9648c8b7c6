/* Loops of a model: the same call again and again, or the same two or three in turn (seed 004,
 * LoopDetector). It counts what is asked for, successful or not; what becomes of a call that is
 * warned about or stopped is decided by the state machine, which owns one a run. Needs no memory of
 * its own. */
#ifndef AH_RUN_LOOP_DETECTOR_H
#define AH_RUN_LOOP_DETECTOR_H

#include "base/json.h"

enum {
    AH_LOOP_WARN = 4,   /* from this time on a call is answered with a warning before its result */
    AH_LOOP_STOP = 6,   /* this time it is not run, and the run ends */
    AH_LOOP_MOST = 100, /* most calls that it remembers */
    AH_LOOP_PATTERN = 3 /* calls in the longest pattern */
};

/* Zero `stop` is one that is off. */
typedef struct ah_loop_detector_rules {
    int warn, stop;
    int window;         /* how many calls before it a call is compared with */
    int pattern_window; /* how many calls, itself included, a pattern is looked for in */
    ah_slice exempt;    /* JSON list of the names of tools that are not counted; borrowed */
} ah_loop_detector_rules;

extern const ah_loop_detector_rules ah_loop_rules_default;
/* The least windows in which `stop` can be reached. */
int ah_loop_detector_least_window(int stop);
int ah_loop_detector_least_pattern_window(int stop);

typedef struct ah_loop_detector {
    ah_loop_detector_rules rules;
    uint64_t seen[AH_LOOP_MOST]; /* hashes of name and arguments, the latest last */
    size_t n;
} ah_loop_detector;

/* The finding about a call. Zero: there is nothing to be said. */
typedef struct ah_repeat {
    int times;  /* how often it has come, this time included */
    int length; /* 1: the call itself; 2, 3: the pattern that it goes on with */
    bool warn, stop;
} ah_repeat;

/* Takes note of a call. Arguments are compared by their value; those that are no JSON by their
 * bytes. */
ah_repeat ah_loop_detector_note(ah_loop_detector *g, ah_slice name, ah_slice arguments, bool json);

/* "tool 'x' was called with the same arguments for the 4th time within 11 calls" */
void ah_loop_detector_say(const ah_loop_detector *g, const ah_repeat *r, ah_slice name,
                          ah_buf *out);

#endif
