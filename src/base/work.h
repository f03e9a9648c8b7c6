/* The budget of a long computation, and its early end.
 *
 * The rule: a computation that may take more time than in proportion to its input counts its
 * steps in an ah_work, with a bounded amount of work between two checks. A step is about 0.1
 * microseconds. The limit in steps is equal on every machine; only the caller knows the time,
 * and ends the work with an ah_interrupt. Callers: its floor, schema, io. */
#ifndef AH_BASE_WORK_H
#define AH_BASE_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `wanted` returns true once the result is no longer wanted. It is called repeatedly, and
 * neither raises nor waits. */
typedef struct ah_interrupt {
    bool (*wanted)(void *ud);
    void *ud;
} ah_interrupt;

typedef enum ah_work_end { AH_WORK_GOES_ON, AH_WORK_SPENT, AH_WORK_STOPPED } ah_work_end;

typedef struct ah_work {
    const ah_interrupt *interrupt; /* NULL: cannot be ended early */
    uint64_t steps, most;          /* steps done, and the limit */
    uint64_t look;                 /* number of steps at the next call of the interrupt */
    ah_work_end end;
} ah_work;

/* Returns work of at most `most` steps. */
ah_work ah_work_of(uint64_t most, const ah_interrupt *interrupt);
/* Checks the limit and calls the interrupt; ah_work_do calls it from time to time. Returns false
 * once the work has ended. */
bool ah_work_look(ah_work *w);

/* Counts n steps. Returns false once the work has ended. */
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
