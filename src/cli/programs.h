/* The command's own programs: Lua on the public interface (lua/agenthost/command), compiled into
 * the binary only. They run in a host that the command opens for them, in which no user's script
 * runs except those of `agenthost mock`. Callers: its floor. */
#ifndef AH_CLI_PROGRAMS_H
#define AH_CLI_PROGRAMS_H

#include <stddef.h>

#include "agenthost.h"

/* The text of one program; static. */
typedef struct ah_program {
    const char *name; /* for example "mock.plan"; NULL ends the list */
    const char *text;
    size_t len;
} ah_program;

extern const ah_program ah_programs[];
extern const ah_program ah_pages[]; /* of the reference: "reference.run" */

/* Access to the programs' host, for code that needs it only at times. */
typedef struct ah_program_door {
    ah_host *(*host)(void *ud); /* NULL: out of memory */
    void *ud;
} ah_program_door;

/* Makes the programs available in a host. Returns as ah_load. */
ah_status ah_program_open(ah_host *host);

/* Adds the pages to the texts of a host's programs. Returns as ah_load. */
ah_status ah_program_pages(ah_host *host);

/* Calls `member` of a program ("": the program itself) with these strings; ah_returned has the
 * result. Returns as ah_load. */
ah_status ah_program_call(ah_host *host, const char *name, const char *member, int argc,
                          const char *const *argv);

/* The name in the list (one per line) that the word may mean; NULL: none is similar. Valid until
 * the next call of a program. */
const char *ah_program_near(const ah_program_door *door, const char *word, const char *names);

#endif
