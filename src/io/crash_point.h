/* Crash points: places at which the specs end the process, to see what lasts. They are code only
 * in the test module and in build/agenthost-crash, which are compiled with AH_CRASH_POINTS; there,
 * AGENTHOST_CRASH_AT=n ends the process with status 86 at the n-th point, and
 * AGENTHOST_CRASH_COUNT=path gets the number of points when the process ends by itself.
 * Callers: its floor. */
#ifndef AH_IO_CRASH_POINT_H
#define AH_IO_CRASH_POINT_H

/* Before and after each effect that lasts. `what` names it for whoever reads the code. */
void ah_crash_point(const char *what);

#endif
