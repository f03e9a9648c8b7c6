/* Completion of words for bash, zsh and fish, made from the tables of options.h. */
#ifndef AH_CLI_COMPLETION_H
#define AH_CLI_COMPLETION_H

#include <stdio.h>

void ah_completion(FILE *out, const char *shell); /* one of "bash", "zsh", "fish" */

#endif
