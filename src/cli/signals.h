/* Signal handling of the process. The first SIGINT or SIGTERM ends the script: its runs settle,
 * none begins any more; the second ends the process at once. In a script that said it is a chat
 * (ah.interactive) the Ctrl-C of a terminal cancels only the answer that is waited for. SIGPIPE is
 * only a failed write (EPIPE), but if the reader of our stdout is gone, the host is cancelled as
 * well, as its work has no reader left. Children inherit none of it. */
#ifndef AH_CLI_SIGNALS_H
#define AH_CLI_SIGNALS_H

#include <stdbool.h>

#include "agenthost.h"

void ah_signals_init(void); /* from the main thread: handlers do their work there */

/* Escape sequences that take away the line of progress below the cursor. */
#define AH_ERASE_LINE "\0337\033D\r\033[J\0338"

void ah_signals_drawn(void);    /* a line was shown: ending at once takes it away */
void ah_signals_output(int fd); /* the descriptor whose reader matters, in place of stdout */

void ah_signals_watch(ah_host *host); /* from now on SIGINT and SIGTERM cancel this host */
void ah_signals_forget(void);         /* before the host is closed */

int ah_signals_caught(void);       /* the last one, SIGINT or SIGTERM, or 0 */
int ah_signals_ending(void);       /* the one that ended the script, or 0 */
bool ah_signals_reader_gone(void); /* a write to stdout met a closed pipe */

#endif
