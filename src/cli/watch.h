/* --watch: runs the line in a child process, with the same terminal and standard input, and again
 * when a Lua file of its project has changed. The program lua/agenthost/command/watch.lua says
 * which files have. Owns the child. Callers: its floor. */
#ifndef AH_CLI_WATCH_H
#define AH_CLI_WATCH_H

#include <stdbool.h>

#include "agenthost.h"
#include "cli/line.h"
#include "cli/terminal.h"

typedef struct ah_watching {
    ah_host *host; /* of the programs; it has begun to watch */
    const ah_line *line;
    ah_terminal *terminal;
    char **argv;      /* of the command */
    const char *what; /* the script's name in messages; NULL: the specs */
    bool quiet;
} ah_watching;

/* True in the child: it runs the line once. To be called once, before scripts can look. */
bool ah_watch_is_child(void);

/* Runs the line until a signal ends it. Returns the exit code: 130 or 143; 1: it cannot be run, as
 * a message has said. */
int ah_watch_serve(const ah_watching *w);

#endif
