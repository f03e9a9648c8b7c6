/* A record is one line: formatted, cut, without secrets and control characters. The host's
 * function receives it. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

const char *ah_log_level_name(ah_log_level level)
{
    static const char *const names[] = {"debug", "info", "warning", "error", "off"};

    return names[level];
}

void ah_log_raised(const ah_log *log, bool mistake, ah_slice raised)
{
    const char *trace = ah_slice_find(raised, (ah_slice)AH_LIT("\nstack traceback:\n"));

    if (trace && log->level > AH_LOG_INFO)
        raised.n = (size_t)(trace - raised.p);
    ah_log_put(log, mistake ? AH_LOG_WARNING : AH_LOG_INFO, "%.*s", AH_FMT(raised));
}

void ah_log_put(const ah_log *log, ah_log_level level, const char *fmt, ...)
{
    char line[4096];
    va_list ap;
    size_t n;

    if (!log->fn || level < log->level)
        return;
    va_start(ap, fmt);
    n = ah_vprint(line, sizeof line, fmt, ap);
    va_end(ap);
    line[ah_flatten(line, ah_secrets_redact(log->secrets, line, n))] = '\0';
    log->fn(log->ud, level, line);
}
