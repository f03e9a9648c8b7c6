/* The checks of a budget of steps. */
#include "base/work.h"

enum { LOOK = 1 << 15 }; /* steps between two checks: some milliseconds */

ah_work ah_work_of(uint64_t most, const ah_interrupt *interrupt)
{
    return (ah_work){.interrupt = interrupt, .most = most, .look = most < LOOK ? most : LOOK};
}

/* Sets `look` to 0 once the work has ended, so that each later step calls this again. */
bool ah_work_look(ah_work *w)
{
    uint64_t left;

    if (w->end == AH_WORK_GOES_ON && w->steps > w->most)
        w->end = AH_WORK_SPENT;
    else if (w->end == AH_WORK_GOES_ON && ah_interrupted(w->interrupt))
        w->end = AH_WORK_STOPPED;
    left = w->end == AH_WORK_GOES_ON ? w->most - w->steps : 0;
    w->look = w->end == AH_WORK_GOES_ON ? w->steps + (left < LOOK ? left : LOOK) : 0;
    return w->end == AH_WORK_GOES_ON;
}
