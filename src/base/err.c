/* Names of statuses and phases, and messages of errors. lua/lua_error.c shows errors to scripts. */
#include "base/err.h"

#include <stdio.h>

#include "base/json_chars.h"

static const struct {
    ah_status status;
    const char *code;
} codes[] = {
    {AH_OK, "ok"},
    {AH_INTERNAL, "internal"},
    {AH_NOMEM, "internal"},
    {AH_USAGE, "usage"},
    {AH_PROMPT_VALIDATION, "prompt_validation"},
    {AH_PROMPT_RENDER, "prompt_render"},
    {AH_PROMPT_EVALUATION, "prompt_evaluation"},
    {AH_TOOL_VALIDATION, "tool_validation"},
    {AH_TOOL_NOT_FOUND, "tool_not_found"},
    {AH_MAX_ITERATIONS, "max_iterations_exceeded"},
    {AH_INVALID_TOOL_PROVIDER, "invalid_tool_provider"},
    {AH_VISIBILITY_EXPANSION, "visibility_expansion_required"},
    {AH_DEADLINE, "deadline_exceeded"},
    {AH_BUDGET, "budget_exceeded"},
    {AH_LOOP, "loop_detected"},
    {AH_PROVIDER, "provider"},
    {AH_HTTP, "http"},
    {AH_CANCELLED, "cancelled"},
    {AH_GUARD, "guard_tripped"},
    {AH_WAITING, "waiting"},
    {AH_CONTEXT_FULL, "context_full"},
    {AH_STORE, "store"},
    {AH_CONFLICT, "conflict"},
    {AH_DIVERGED, "diverged"},
    {AH_NOT_RECORDED, "not_recorded"},
};

const char *ah_status_name(ah_status st)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == st)
            return codes[i].code;
    return "internal";
}

ah_status ah_status_from_code(ah_slice code)
{
    for (size_t i = 1; i < sizeof codes / sizeof *codes; i++)
        if (ah_slice_is(code, codes[i].code))
            return codes[i].status;
    return AH_OK;
}

const char *ah_phase_name(ah_phase phase)
{
    static const char *const names[] = {NULL, "request", "tool", "response"};

    return names[phase];
}

void ah_err_clear(ah_err *err)
{
    err->status = AH_OK;
    err->phase = AH_PHASE_NONE;
    err->retryable = false;
    err->http_status = 0;
    err->message[0] = err->details[0] = '\0';
}

/* A precision may have split a character, and a path may not be UTF-8. */
static void tidy(char *p, const char *end)
{
    while (p < end) {
        size_t n = ah_utf8_len(p, end);

        if (n == 0)
            *p = '?';
        p += n ? n : 1;
    }
}

enum { MOST_MARK = 48 }; /* bytes of AH_LEFT_OUT */

size_t ah_vprint(char *out, size_t size, const char *fmt, va_list ap)
{
    int n = vsnprintf(out, size, fmt, ap);
    bool marked = size > 2 * MOST_MARK;
    size_t kept;

    if (n < 0)
        n = 0;
    kept = (size_t)n;
    if (kept >= size)
        kept = ah_utf8_cut(out, marked ? size - MOST_MARK : size - 1);
    out[kept] = '\0';
    tidy(out, out + kept);
    if (kept < (size_t)n && marked)
        kept += (size_t)snprintf(out + kept, size - kept, AH_LEFT_OUT, (size_t)n - kept);
    return kept;
}

size_t ah_print(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    size_t n;

    va_start(ap, fmt);
    n = ah_vprint(out, size, fmt, ap);
    va_end(ap);
    return n;
}

ah_status ah_err_vset(ah_err *err, ah_status st, const char *fmt, va_list ap)
{
    if (!err)
        return st;
    ah_err_clear(err);
    err->status = st;
    ah_vprint(err->message, sizeof err->message, fmt, ap);
    return st;
}

ah_status ah_err_set(ah_err *err, ah_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ah_err_vset(err, st, fmt, ap);
    va_end(ap);
    return st;
}

ah_status ah_err_nomem(ah_err *err)
{
    return ah_err_set(err, AH_NOMEM, "out of memory");
}
