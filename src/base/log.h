/* The logger: passes records with a level and a message to a function of the host. It owns
 * nothing. Secrets are removed first. Callers: prompt, run, host. */
#ifndef AH_BASE_LOG_H
#define AH_BASE_LOG_H

#include "agenthost.h" /* ah_log_level, ah_log_fn */
#include "base/secret.h"

typedef struct ah_log {
    ah_log_level level; /* lower records are dropped without formatting */
    ah_log_fn fn;       /* NULL: no log */
    void *ud;
    const ah_secrets *secrets;
} ah_log;

/* Records longer than 4 KiB are cut. */
void ah_log_put(const ah_log *log, ah_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs an error that a script raised, with its traceback (luaL_traceback): as a warning if it is
 * a `mistake`, otherwise, if raised on purpose, as information. If information is dropped, the
 * warning has no traceback. */
void ah_log_raised(const ah_log *log, bool mistake, ah_slice raised);

const char *ah_log_level_name(ah_log_level level); /* "warning" */

#endif
