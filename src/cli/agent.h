/* What follows a script that has ended well: the agent that it returned answers the words of the
 * command line; and what is to be said where a script did nothing at all. */
#ifndef AH_CLI_AGENT_H
#define AH_CLI_AGENT_H

#include <stdio.h>

#include "cli/bytes.h"
#include "cli/options.h"

/* True if the script has returned an agent. */
bool ah_agent_returned(ah_host *host);
/* The words behind the script, with a space between two. */
void ah_agent_words(const ah_options *o, ah_bytes *out);
/* Begins a conversation of the returned agent, says the words and waits for the answer, which is
 * printed to `out` (NULL: it is not). Else ah_errmsg says why there is none. */
ah_status ah_agent_answer(ah_host *host, const char *words, FILE *out);

/* True if no run was begun in the host. */
bool ah_agent_idle(ah_host *host);
/* True if the script can have seen its words: its text has `...` or `arg` in it, or cannot be read
 * again. */
bool ah_agent_reads_words(const ah_options *o);

#endif
