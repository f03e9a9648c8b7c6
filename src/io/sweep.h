/* Removes a folder whose creator may have tried to make that impossible. Allocates nothing;
 * async-signal-safe. Callers: its floor. */
#ifndef AH_IO_SWEEP_H
#define AH_IO_SWEEP_H

#include <stdbool.h>

/* Removes the folder and everything in it, whatever its depth, the length of its paths and the
 * modes of its folders. Links are removed, not followed. Works at most for_ms milliseconds (-1:
 * until done). True if nothing more can be done: it is gone, or the rest cannot be removed. False
 * if the time was over. Uses three descriptors and no memory but the stack. */
bool ah_sweep(const char *path, long for_ms);

#endif
