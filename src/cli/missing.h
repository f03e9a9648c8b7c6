/* What a person who named a script that cannot be opened may have meant. */
#ifndef AH_CLI_MISSING_H
#define AH_CLI_MISSING_H

#include <stddef.h>

#include "cli/programs.h"

/* 0, or the errno. Looks without opening: opening and closing a pipe would break it. */
int ah_unreadable(const char *path);

/* The command or option that is near (NULL: none is), the same name with .lua, the nearest file of
 * the folder; or what to give at all. One line into `out`. */
void ah_advise(const char *path, const char *near, const ah_program_door *programs, char *out,
               size_t size);

#endif
