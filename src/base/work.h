/* A long computation's budget, and who may end it early.
 *
 * The rule: whatever takes time in proportion to more than the size of what it was given counts
 * its steps in an ah_work, and between two looks at it does a bounded amount. A step stands for
 * about a tenth of a microsecond. The number of steps that are allowed is the same on every
 * machine; time is known only to the caller, who says by an ah_interrupt when the result is no
 * longer wanted. */
#ifndef AH_BASE_WORK_H
#define AH_BASE_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `wanted` returns true once the result is no longer wanted. It is called again and again, and
 * neither raises nor waits. */
typedef struct ah_interrupt {
    bool (*wanted)(void *ud);
    void *ud;
} ah_interrupt;

typedef enum ah_work_end { AH_WORK_GOES_ON, AH_WORK_SPENT, AH_WORK_STOPPED } ah_work_end;

typedef struct ah_work {
    const ah_interrupt *interrupt; /* NULL: cannot be ended early */
    uint64_t steps, most;          /* done, and allowed */
    uint64_t look;                 /* at so many steps the interrupt is asked for next */
    ah_work_end end;
} ah_work;

/* Work of at most `most` steps. */
ah_work ah_work_of(uint64_t most, const ah_interrupt *interrupt);
/* Compares the steps with the limit and asks the interrupt; ah_work_do calls it now and then. False
 * once the work has ended. */
bool ah_work_look(ah_work *w);

/* Counts n steps; false once the work has ended, and from then on. */
static inline bool ah_work_do(ah_work *w, uint64_t n)
{
    w->steps += n;
    return w->steps <= w->look || ah_work_look(w);
}

static inline bool ah_interrupted(const ah_interrupt *i)
{
    return i && i->wanted(i->ud);
}

#endif
