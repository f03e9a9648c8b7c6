/* Drift: a tool is defined otherwise than when the conversation that goes on was written. A model
 * that learned what a tool does from its old definition is told nothing of a new one, and whoever
 * defines the tool may have changed it on purpose; so the script is told, or nothing is run. What
 * the script itself changes while the conversation is open is no drift. Injection compares,
 * dispatch answers calls of refused ones, and the Lua floor keeps the warnings that no run is there
 * to tell. */
#ifndef AH_RUN_DRIFT_H
#define AH_RUN_DRIFT_H

#include "model/tool.h"

struct ah_run;

typedef enum ah_on_drift {
    AH_DRIFT_BY_ORIGIN, /* refused for tools that are untrusted, else told */
    AH_DRIFT_TELL,      /* a warning, and the new definition is declared */
    AH_DRIFT_REFUSE     /* a warning, the old one stays declared, and calls of it are not run */
} ah_on_drift;

/* In what `now` differs from the stale tool of its name, as ah_spec_differences says it. */
unsigned ah_drift_of(const ah_tool *stale, const ah_tool *now);
bool ah_drift_is_refused(ah_on_drift rule, const ah_tool *stale, const ah_tool *now);

/* The message of the warning, and a JSON list of what differs. */
void ah_drift_put_warning(const ah_tool *now, unsigned set, bool refused, ah_buf *out);
void ah_drift_put_list(unsigned set, ah_buf *out);
/* The answer to a call of a tool whose drift was refused (ah_tool.drift). */
void ah_drift_put_answer(const ah_tool *stale, ah_buf *out);

/* Warnings of changes that were made while no run was at work, for the events of the next one. */
typedef struct ah_drift_warnings {
    const ah_mem *mem;
    struct ah_drift_warnings_item {
        ah_text *message, *tool_name, *changed; /* changed NULL: does not say */
    } * item;
    size_t n, cap;
} ah_drift_warnings;

/* Left out where memory does not reach: they are in the log, too. changed .p NULL: does not say. */
void ah_drift_warnings_add(ah_drift_warnings *u, ah_slice message, ah_slice tool_name,
                           ah_slice changed);
void ah_drift_warnings_copy(ah_drift_warnings *u,
                            const ah_drift_warnings *from); /* adds those of `from` */
void ah_drift_warnings_clear(ah_drift_warnings *u);
/* Tells them as events of the run, and clears them. */
void ah_drift_warnings_tell(ah_drift_warnings *u, struct ah_run *run);

#endif
