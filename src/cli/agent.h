/* Runs the agent that a successful script returned on the words of the command line, and detects
 * scripts that began no run and ignored their words. Keeps no state. Callers: its floor. */
#ifndef AH_CLI_AGENT_H
#define AH_CLI_AGENT_H

#include <stdio.h>

#include "cli/bytes.h"
#include "cli/options.h"
#include "cli/report.h"

/* True if the script has returned an agent. */
bool ah_agent_returned(ah_host *host);
/* Appends the words after the script's name, separated by spaces, and a NUL. */
void ah_agent_words(const ah_options *o, ah_bytes *out);
/* Begins a conversation of the returned agent with the words, waits for the answer and prints it to
 * `out` (NULL: prints nothing). Notes what a store keeps of it. On failure, ah_errmsg has the
 * reason. */
ah_status ah_agent_answer(ah_host *host, const char *words, FILE *out, ah_kept *kept);

/* True if the returned agent keeps this conversation in a store. */
bool ah_agent_has(ah_host *host, const char *conversation);
/* Lets the returned agent go on with the conversation that the script has opened for it, or asks it
 * the words (NULL: none). Prints and fails as ah_agent_answer. */
ah_status ah_agent_go_on(ah_host *host, const char *words, FILE *out, ah_kept *kept);

/* True if no run was begun in the host. */
bool ah_agent_idle(ah_host *host);
/* True if the script may use its words: its text contains `...` or `arg`, or cannot be read
 * again. */
bool ah_agent_reads_words(const ah_options *o);

#endif
