/* The logger: records with a level, a message and fields, given to the host's
 * sink. Secrets are taken out before the sink sees anything. */
#ifndef AH_BASE_LOG_H
#define AH_BASE_LOG_H

#include "agenthost.h" /* ah_log_level, ah_log_fn */
#include "base/secret.h"

typedef struct ah_log {
    ah_log_level level; /* records below it are dropped unprinted */
    ah_log_fn fn;       /* NULL: silent */
    void *ud;
    const ah_secrets *secrets;
} ah_log;

/* Records longer than 4 KiB are cut. */
void ah_log_put(const ah_log *log, ah_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs an error raised by a script's code, as luaL_traceback formats it: as information if it was
 * raised on purpose, as a warning if it is a `mistake`. Without the traceback where information is
 * dropped. */
void ah_log_raised(const ah_log *log, bool mistake, ah_slice raised);

const char *ah_log_level_name(ah_log_level level); /* "warning" */

#endif
