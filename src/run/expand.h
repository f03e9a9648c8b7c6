/* A handler that cannot do its work before sections are open raises visibility_expansion_required
 * with what it asks for (seed 000, MainLoop; seed 002, Adapter Behavior): the session shows them
 * so, this conversation gets their tools in its adapter's way, and the run goes on. For inject.c
 * alone. */
#ifndef AH_RUN_EXPAND_H
#define AH_RUN_EXPAND_H

#include "run/config.h"
#include "run/call.h"

/* True if the call asks for sections and the run may still restart; beyond max_restarts false, and
 * leave_why says so. */
bool ah_expands(ah_run *run, ah_call *call);
/* Opens and closes what the call asks for; what the model is to know of that is put behind its
 * answer, and the names of new tools into *hint. AH_OK, or why the run must end. */
ah_status ah_expand(ah_run *run, ah_call *call, ah_buf *hint, ah_err *err);

#endif
