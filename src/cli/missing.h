/* Advice for the error that a script cannot be opened. Keeps no state. Callers: its floor. */
#ifndef AH_CLI_MISSING_H
#define AH_CLI_MISSING_H

#include <stddef.h>

#include "cli/programs.h"

/* Returns 0 if the file can be read, else the errno. Does not open it: opening and closing a pipe
 * would break it. */
int ah_unreadable(const char *path);

/* Writes one line of advice into `out`: `near` (the command or option that may be meant; NULL:
 * none), the same name with .lua, the nearest file name in the folder, or what can be given at
 * all. */
void ah_advise(const char *path, const char *near, const ah_program_door *programs, char *out,
               size_t size);

#endif
