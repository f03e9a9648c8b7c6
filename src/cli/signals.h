/* Signal handling of the process. The first SIGINT or SIGTERM ends the script: its runs settle, and
 * none begins any more. The second ends the process at once. In a script that declared itself a
 * chat (ah.interactive), a terminal's Ctrl-C cancels only the pending answer. SIGPIPE makes a write
 * fail (EPIPE); if the reader of our stdout is gone, it also cancels the host. Children inherit
 * none of this. The state is the process's: at most one host at a time. Callers: its floor. */
#ifndef AH_CLI_SIGNALS_H
#define AH_CLI_SIGNALS_H

#include <stdbool.h>

#include "agenthost.h"

void ah_signals_init(void); /* call from the main thread: handlers do their work there */

/* Escape sequences that remove the line of progress below the cursor. */
#define AH_ERASE_LINE "\0337\033D\r\033[J\0338"

void ah_signals_drawn(void);    /* a line was shown, which ending at once must remove */
void ah_signals_spare(void);    /* in a chat, a Ctrl-C ends code without a wait, but no script */
void ah_signals_settled(void);  /* the script waits: what a Ctrl-C has ended is over */
void ah_signals_output(int fd); /* the descriptor whose reader matters, in place of stdout */

void ah_signals_watch(ah_host *host); /* from now on SIGINT and SIGTERM cancel this host */
void ah_signals_forget(void);         /* before the host is closed */

int ah_signals_caught(void);       /* the last one: SIGINT, SIGTERM or 0 */
int ah_signals_ending(void);       /* the one that ended the script, or 0 */
bool ah_signals_reader_gone(void); /* a write to stdout has met a closed pipe */

#endif
