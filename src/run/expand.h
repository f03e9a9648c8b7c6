/* Opens and closes the sections that a handler asks for by raising visibility_expansion_required
 * (seed 000, MainLoop; seed 002, Adapter Behavior). The session shows them as asked, this
 * conversation gets their tools in the way of its adapter, and the run goes on. Keeps no state of
 * its own. Used by inject.c only. Callers: its module. */
#ifndef AH_RUN_EXPAND_H
#define AH_RUN_EXPAND_H

#include "run/config.h"
#include "run/call.h"

/* True if the call asks for sections and the run may still restart. Once max_restarts is reached:
 * false, and leave_why names that limit. */
bool ah_expands(ah_run *run, ah_call *call);
/* Opens and closes what the call asks for. Appends to its answer what the model must know of it,
 * and to *hint the names of new tools. Returns AH_OK, or the reason why the run must end. */
ah_status ah_expand(ah_run *run, ah_call *call, ah_buf *hint, ah_err *err);

#endif
