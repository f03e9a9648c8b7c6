/* Finds loops of a model: the same call again and again, or the same two or three calls in turn
 * (seed 004, LoopDetector). Counts calls whether they succeed or not; the state machine, which owns
 * one per run, decides what a warning or a stop means. Needs no memory of its own; `exempt` is
 * borrowed. Callers: its module, lua. */
#ifndef AH_RUN_LOOP_DETECTOR_H
#define AH_RUN_LOOP_DETECTOR_H

#include "base/json.h"

enum {
    AH_LOOP_WARN = 4,   /* from this repetition on, the result has a warning before it */
    AH_LOOP_STOP = 6,   /* this repetition is not run, and ends the run */
    AH_LOOP_MOST = 100, /* most calls that are remembered */
    AH_LOOP_PATTERN = 3 /* calls in the longest pattern */
};

/* stop == 0: the detector is off. */
typedef struct ah_loop_detector_rules {
    int warn, stop;
    int window;         /* number of earlier calls with which a call is compared */
    int pattern_window; /* number of calls, with the current one, in which a pattern is searched */
    ah_slice exempt;    /* JSON list of the names of tools that are not counted; borrowed */
} ah_loop_detector_rules;

extern const ah_loop_detector_rules ah_loop_rules_default;
/* The smallest windows in which `stop` can be reached. */
int ah_loop_detector_least_window(int stop);
int ah_loop_detector_least_pattern_window(int stop);

typedef struct ah_loop_detector {
    ah_loop_detector_rules rules;
    uint64_t seen[AH_LOOP_MOST]; /* hashes of name and arguments, the latest last */
    size_t n;
} ah_loop_detector;

/* The finding about a call; all zero: nothing was found. */
typedef struct ah_repeat {
    int times;  /* occurrences, this one included */
    int length; /* 1: the call itself; 2, 3: length of the pattern that it continues */
    bool warn, stop;
} ah_repeat;

/* Records a call and returns the finding. Arguments are compared by JSON value, or by their bytes
 * if `json` is false. */
ah_repeat ah_loop_detector_note(ah_loop_detector *g, ah_slice name, ah_slice arguments, bool json);

/* Appends, for example: "tool 'x' was called with the same arguments for the 4th time within 11
 * calls" */
void ah_loop_detector_say(const ah_loop_detector *g, const ah_repeat *r, ah_slice name,
                          ah_buf *out);

#endif
