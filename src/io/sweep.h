/* The end of a folder whose content was made by who may have wanted it to stay. */
#ifndef AH_IO_SWEEP_H
#define AH_IO_SWEEP_H

#include <stdbool.h>

/* Removes the folder and all in it, whatever its depth, the length of its paths and the modes of
 * its folders; links are removed, not followed. Works at most for_ms milliseconds (-1: to the end).
 * True if nothing more can be done: it is gone, or what is left cannot be removed. False when the
 * time was over. Only async-signal-safe calls, three descriptors, no memory but the stack. */
bool ah_sweep(const char *path, long for_ms);

#endif
