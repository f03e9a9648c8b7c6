/* Background calls. The call of a model is answered at once with a ticket, and its handler goes on
 * in a run of its own that has this one call and no model. When the handler has ended, the call is
 * held: its changes are neither made nor taken back until its owner takes the result, which makes
 * the changes and adds a note to the conversation. The owner (the Lua floor, for each agent) begins
 * these runs, keeps them, and has at most AH_MAX_TICKETS. Callers: its module, lua. */
#ifndef AH_RUN_BACKGROUND_H
#define AH_RUN_BACKGROUND_H

#include "run/run.h"

/* The owner's half. */
typedef struct ah_background {
    /* Begins a run for the call, which has passed the gate. */
    ah_status (*begin)(void *ud, const ah_call *call, int64_t *ticket, ah_err *err);
    /* True if calls that `run` has begun are outstanding; `at_work`: if handlers of such calls
     * are. */
    bool (*has)(void *ud, const ah_run *run, bool at_work);
    /* Calls ah_background_take for each call that is held, in the order in which they ended. */
    void (*take)(void *ud, ah_run *into);
    /* The run, which awaits its calls, ends: so do those that are outstanding. */
    void (*end)(void *ud, ah_run *run);
    /* `run`, of a background call, holds its call from now on. */
    void (*ready)(void *ud, ah_run *run);
    void *ud;
} ah_background;

/* Makes the run of a background call. cfg: as for ah_run_new, with the ticket; the agent's
 * transcript and registry. */
ah_status ah_background_new(const ah_run_config *cfg, const ah_call *call, int64_t now,
                            ah_run **out, ah_err *err);
const ah_call *ah_background_call(const ah_run *run);
bool ah_background_held(const ah_run *run);
/* Makes the changes of a held call, or drops them if it has failed, and adds its note: to the next
 * commit of `into`; NULL: no run is at work, at once. The run is then over. */
void ah_background_take(ah_run *run, ah_run *into);
/* Drops the call, held or stopped, with its changes. The run is then over. */
void ah_background_drop(ah_run *run);

#endif
