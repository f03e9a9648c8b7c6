/* The names of statuses and phases, and words put into an error. What an error looks like to a
 * script is in lua/lua_error.c. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

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

ah_status ah_err_set(ah_err *err, ah_status st, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (!err)
        return st;
    ah_err_clear(err);
    err->status = st;
    va_start(ap, fmt);
    n = vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    if (n < 0)
        err->message[0] = '\0';
    else if ((size_t)n >= sizeof err->message)
        err->message[ah_utf8_cut(err->message, sizeof err->message - 1)] = '\0';
    return st;
}

ah_status ah_err_nomem(ah_err *err)
{
    return ah_err_set(err, AH_NOMEM, "out of memory");
}
