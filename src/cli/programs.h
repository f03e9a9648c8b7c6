/* The command's own programs: Lua on the public interface (lua/agenthost/command), compiled into
 * the binary alone. They run in a host that the command opens for them, where no script of a user
 * runs, but for those of `agenthost mock`. */
#ifndef AH_CLI_PROGRAMS_H
#define AH_CLI_PROGRAMS_H

#include <stddef.h>

#include "agenthost.h"

/* The text of one. */
typedef struct ah_program {
    const char *name; /* "mock.plan"; NULL ends the list */
    const char *text;
    size_t len;
} ah_program;

extern const ah_program ah_programs[];
extern const ah_program ah_pages[]; /* of the reference: "reference.run" */

/* The folder of programs, for whoever needs one now and then. */
typedef struct ah_program_door {
    ah_host *(*host)(void *ud); /* NULL: there is no memory for one */
    void *ud;
} ah_program_door;

/* Makes the programs known in a host. As ah_load. */
ah_status ah_program_open(ah_host *host);

/* Adds the pages to the texts of a host's programs. As ah_load. */
ah_status ah_program_pages(ah_host *host);

/* Calls `member` of a program ("": the program itself) with these strings; what it returns is
 * ah_returned's. As ah_load. */
ah_status ah_program_call(ah_host *host, const char *name, const char *member, int argc,
                          const char *const *argv);

/* The name of these (a line each) that the word may have been meant for; NULL: none is near. Valid
 * until the programs are asked again. */
const char *ah_program_near(const ah_program_door *door, const char *word, const char *names);

#endif
