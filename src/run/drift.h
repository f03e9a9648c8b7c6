/* Drift: the definition of a tool differs from the one in the conversation that is continued. The
 * model learned the old definition and does not see a new one, and the change may be hostile. So
 * the script gets a warning, or calls of the tool are refused. Changes that the script makes while
 * the conversation is open are no drift. Owns only the texts in ah_drift_warnings.
 * Callers: its floor. */
#ifndef AH_RUN_DRIFT_H
#define AH_RUN_DRIFT_H

#include "model/tool.h"

struct ah_run;

typedef enum ah_on_drift {
    AH_DRIFT_BY_ORIGIN, /* refuses untrusted tools, and warns for all others */
    AH_DRIFT_TELL,      /* declares the new definition, with a warning */
    AH_DRIFT_REFUSE /* keeps the old definition declared, with a warning, and runs no calls of it */
} ah_on_drift;

/* Returns how `now` differs from the stale tool of its name, as flags of ah_spec_differences. */
unsigned ah_drift_of(const ah_tool *stale, const ah_tool *now);
bool ah_drift_is_refused(ah_on_drift rule, const ah_tool *stale, const ah_tool *now);

/* Appends the message of the warning, and a JSON list of the differences. */
void ah_drift_put_warning(const ah_tool *now, unsigned set, bool refused, ah_buf *out);
void ah_drift_put_list(unsigned set, ah_buf *out);
/* Appends the answer to a call of a tool whose drift was refused (ah_tool.drift). */
void ah_drift_put_answer(const ah_tool *stale, ah_buf *out);

/* Warnings of changes made while no run was active, kept for the events of the next run. */
typedef struct ah_drift_warnings {
    const ah_mem *mem;
    struct ah_drift_warnings_item {
        ah_text *message, *tool_name, *changed; /* changed NULL: unknown */
    } * item;
    size_t n, cap;
} ah_drift_warnings;

/* Adds a warning, or nothing if memory runs out: the log has it too. changed .p NULL: unknown. */
void ah_drift_warnings_add(ah_drift_warnings *u, ah_slice message, ah_slice tool_name,
                           ah_slice changed);
/* Adds the warnings of `from`. */
void ah_drift_warnings_copy(ah_drift_warnings *u, const ah_drift_warnings *from);
void ah_drift_warnings_clear(ah_drift_warnings *u);
/* Emits them as events of the run, and clears them. */
void ah_drift_warnings_tell(ah_drift_warnings *u, struct ah_run *run);

#endif
