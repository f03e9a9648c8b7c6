/* A record is one line: formatted, cut, without secrets, with controls as numbers. The host's
 * function receives it. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/harmless.h"

enum { LINE = 4096 };

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

/* Copies the text as one line: white space is blanks, other controls are numbers. */
static void put_line(ah_slice text, char out[LINE])
{
    size_t to = 0;

    for (size_t i = 0, n; i < text.n && to + AH_CONTROL_CODE < LINE; i += n ? n : 1) {
        n = ah_hidden_len((ah_slice){text.p + i, text.n - i});
        if (n && !(text.p[i] >= '\t' && text.p[i] <= '\r'))
            to += ah_control_code(text.p + i, n, out + to);
        else
            out[to++] = n ? ' ' : text.p[i];
    }
    out[ah_utf8_cut(out, to)] = '\0';
}

void ah_log_put(const ah_log *log, ah_log_level level, const char *fmt, ...)
{
    char line[LINE], shown[LINE];
    va_list ap;
    size_t n;

    if (!log->fn || level < log->level)
        return;
    va_start(ap, fmt);
    n = ah_vprint(line, sizeof line, fmt, ap);
    va_end(ap);
    put_line((ah_slice){line, ah_secrets_redact(log->secrets, line, n)}, shown);
    log->fn(log->ud, level, shown);
}
