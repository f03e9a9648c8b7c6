/* What adapters share: references, origin, retry advice, and the table of providers. */
#include "base/near.h"
#include "wire/claude.h"
#include "wire/openai.h"

const char *const ah_tool_change_mode_names[] = {
    [AH_TOOLS_RESTART] = "restart",
    [AH_TOOLS_APPEND] = "append",
    [AH_TOOLS_INLINE] = "inline",
    [AH_TOOLS_REFERENCE] = "reference",
    [AH_TOOLS_ADDITIONAL] = "additional_tools",
    [AH_TOOLS_SEARCH_PAIR] = "search_pair",
    [AH_TOOLS_LIST_CHANGED] = "list_changed",
    [AH_TOOLS_DISPATCHER] = "dispatcher",
    NULL,
};

#include <stdio.h>
#include <stdlib.h>

enum { LONGEST_WAIT_MS = 60000 }; /* a longer Retry-After means: do not retry */

ah_adapter *ah_adapter_ref(ah_adapter *a)
{
    if (a)
        a->refs++;
    return a;
}

void ah_adapter_unref(ah_adapter *a)
{
    if (!a || --a->refs > 0)
        return;
    ah_text_unref(a->provider);
    ah_text_unref(a->model);
    ah_text_unref(a->endpoint);
    a->vt->free(a);
}

ah_origin ah_adapter_origin(const ah_adapter *a)
{
    return (ah_origin){ah_text_slice(a->provider), ah_text_slice(a->model), ah_text_slice(a->endpoint)};
}

/* -- retry advice (wire/NOTES.md 0.3) ------------------------------------------- */

/* A header's number, or -1: digits with an optional fraction, nothing else. */
static double header_number(ah_slice s)
{
    double v = 0, scale = 1;
    size_t i = 0;

    if (s.n == 0 || s.n > 12)
        return -1;
    for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
        v = v * 10 + (s.p[i] - '0');
    if (i < s.n && s.p[i] == '.' && i > 0)
        for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
            v += (s.p[i] - '0') * (scale /= 10);
    return i == s.n ? v : -1;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days(int y, int m, int d)
{
    int64_t era, year_of_era, day_of_year;

    y -= m <= 2;
    era = y / 400;
    year_of_era = y - era * 400;
    day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" in ms since the epoch, or -1. */
static int64_t http_date(ah_slice s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[40], mon[4];
    const char *at;
    int d, y, h, m, sec;

    if (s.n >= sizeof text || s.n < 25)
        return -1;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &d, mon, &y, &h, &m, &sec) != 6 || y < 1970)
        return -1;
    if (strlen(mon) != 3 || !(at = strstr(months, mon)) || (at - months) % 3)
        return -1;
    return ((days(y, (int)(at - months) / 3 + 1, d) * 24 + h) * 60 + m) * 60000 + sec * 1000;
}

static int64_t retry_after(const ah_response_head *head)
{
    ah_slice after = head->header(head->ud, "retry-after");
    double ms = header_number(head->header(head->ud, "retry-after-ms"));

    if (ms <= 0)
        ms = header_number(after) * 1000;
    if (ms < 0 && after.p && http_date(after) >= 0)
        ms = (double)(http_date(after) - head->wall_ms);
    if (ms <= 0)
        return -1; /* zero is no advice */
    return ms <= LONGEST_WAIT_MS ? (int64_t)ms : -2;
}

void ah_reader_note_head(ah_reader *r, const ah_response_head *head)
{
    ah_slice should = head->header(head->ud, "x-should-retry");

    r->status = head->status;
    r->should_retry = ah_slice_is(should, "true") ? 1 : ah_slice_is(should, "false") ? 0 : -1;
    r->retry_after_ms = head->status >= 300 ? retry_after(head) : -1;
}

static bool retryable_status(int s)
{
    return s == 408 || s == 409 || s == 429 || s >= 500;
}

void ah_reader_judge(const ah_reader *r, ah_err *err, bool never)
{
    err->phase = AH_PHASE_RESPONSE;
    err->http_status = r->status;
    if (r->should_retry >= 0)
        err->retryable = r->should_retry == 1;
    else
        err->retryable =
            !never && r->retry_after_ms != -2 && (r->status < 300 || retryable_status(r->status));
}

/* -- providers ------------------------------------------------------------------- */

/* Those with a wire of their own; what else there is speaks OpenAI's (wire/servers.h). */
static const struct {
    const char *name;
    ah_status (*open)(ah_slice model, const ah_provider_options *o, ah_adapter **out, ah_err *err);
} providers[] = {
    {"anthropic", ah_anthropic_new},
    {"gemini", ah_gemini_new},
    {"ollama", ah_ollama_new},
    {"ollama_chat", ah_ollama_new}, /* LiteLLM's name for the same */
};

enum { PROVIDERS = sizeof providers / sizeof *providers };

static ah_status unknown_provider(ah_slice provider, ah_err *err)
{
    ah_near near = {.to = provider};
    char names[600] = "";
    size_t n = 0;

    for (const ah_server *s = ah_servers; s->at.name; s++) {
        ah_near_offer(&near, ah_slice_of(s->at.name));
        n += (size_t)snprintf(names + n, sizeof names - n, "%s, ", s->at.name);
    }
    for (size_t i = 0; i < PROVIDERS; i++) {
        ah_near_offer(&near, ah_slice_of(providers[i].name));
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", providers[i].name,
                              i + 1 < PROVIDERS ? ", " : "");
    }
    ah_near_offer(&near, ah_slice_of(AH_CLAUDE));
    return ah_err_set(err, AH_USAGE,
                      "model: unknown provider '%.*s'%s%.*s%s; known are %s, " AH_CLAUDE " and demo",
                      AH_FMT(provider), near.best.p ? " (did you mean '" : "", AH_FMT(near.best),
                      near.best.p ? "'?)" : "", names);
}

ah_status ah_provider_open(ah_slice provider, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err)
{
    const ah_server *server = ah_server_find(provider);

    for (size_t i = 0; i < PROVIDERS; i++)
        if (ah_slice_is(provider, providers[i].name))
            return providers[i].open(model, o, out, err);
    return server ? ah_openai_new(server, model, o, out, err) : unknown_provider(provider, err);
}
