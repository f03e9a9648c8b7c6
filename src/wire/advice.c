/* Durations and dates as servers write them; see advice.h. */
#include "wire/advice.h"

#include <stdio.h>

enum { MAX_TEXT = 48 };

/* -- numbers and durations ------------------------------------------------------------ */

/* Reads digits with an optional fraction at the beginning of s, and moves s behind them; -1:
 * none. */
static double take_number(ah_slice *s)
{
    double v = 0, scale = 1;
    size_t i = 0;

    for (; i < s->n && i < 16 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
        v = v * 10 + (s->p[i] - '0');
    if (i == 0)
        return -1;
    if (i < s->n && s->p[i] == '.')
        for (i++; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
            v += (s->p[i] - '0') * (scale /= 10);
    *s = (ah_slice){s->p + i, s->n - i};
    return v;
}

/* Reads the unit at the beginning of s, in ms; 0: none. */
static double take_unit(ah_slice *s)
{
    static const struct {
        const char *word;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].word);

        if (s->n < n || memcmp(s->p, units[i].word, n) != 0)
            continue;
        *s = (ah_slice){s->p + n, s->n - n};
        return units[i].ms;
    }
    return 0;
}

/* Reads "6m0s", "8.64s", "2ms"; -1: no duration. */
static double duration(ah_slice s)
{
    double sum = 0;

    if (!s.n)
        return -1;
    while (s.n) {
        double n = take_number(&s), unit = take_unit(&s);

        if (n < 0 || unit == 0)
            return -1;
        sum += n * unit;
    }
    return sum;
}

/* A plain number: seconds, or, if it is large enough, a point in time in seconds or ms. */
static double number(ah_slice s, int64_t wall_ms)
{
    double v = take_number(&s);

    if (v < 0 || s.n)
        return -1;
    if (v >= 1e11)
        return v - (double)wall_ms;
    return v >= 1e8 ? v * 1000 - (double)wall_ms : v * 1000;
}

/* -- dates ------------------------------------------------------------------------------ */

typedef struct moment {
    int y, month, d, h, m, s;
    char name[4]; /* of the month, in HTTP's forms */
} moment;

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days(int y, int m, int d)
{
    int64_t era, year_of_era, day_of_year;

    y -= m <= 2;
    era = y / 400;
    year_of_era = y - era * 400;
    day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static int month_of(const char *name)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *at = strlen(name) == 3 ? strstr(months, name) : NULL;

    return at && (at - months) % 3 == 0 ? (int)(at - months) / 3 + 1 : 0;
}

static bool scan_http(const char *text, moment *t)
{
    if (sscanf(text, "%*3[A-Za-z], %2d %3s %4d %2d:%2d:%2d GMT", &t->d, t->name, &t->y, &t->h,
               &t->m, &t->s) == 6) /* Sun, 06 Nov 1994 08:49:37 GMT */
        return true;
    if (sscanf(text, "%*9[A-Za-z], %2d-%3s-%2d %2d:%2d:%2d GMT", &t->d, t->name, &t->y, &t->h,
               &t->m, &t->s) == 6) { /* Sunday, 06-Nov-94 08:49:37 GMT */
        t->y += t->y < 70 ? 2000 : 1900;
        return true;
    }
    return sscanf(text, "%*3[A-Za-z] %3s %2d %2d:%2d:%2d %4d", t->name, &t->d, &t->h, &t->m, &t->s,
                  &t->y) == 6; /* Sun Nov  6 08:49:37 1994 */
}

/* Reads 1994-11-06T08:49:37Z, with an optional fraction or offset; *offset is in minutes. */
static bool scan_rfc3339(const char *text, moment *t, int *offset)
{
    int at = 0, h = 0, m = 0;
    char sign = '+';

    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t->y, &t->month, &t->d, &t->h, &t->m, &t->s,
               &at) != 6 ||
        !at)
        return false;
    text += at;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    if (*text != 'Z' && (sscanf(text, "%c%2d:%2d", &sign, &h, &m) != 3 || !strchr("+-", sign)))
        return false;
    *offset = (h * 60 + m) * (sign == '-' ? -1 : 1);
    return true;
}

/* Returns ms since the epoch, or -1. */
static int64_t date(ah_slice s)
{
    moment t = {0};
    int offset = 0;
    char text[MAX_TEXT];

    if (s.n >= sizeof text)
        return -1;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (scan_http(text, &t))
        t.month = month_of(t.name);
    else if (!scan_rfc3339(text, &t, &offset))
        return -1;
    if (t.y < 1970 || t.month < 1 || t.month > 12)
        return -1;
    return ((days(t.y, t.month, t.d) * 24 + t.h) * 60 + t.m - offset) * 60000 + t.s * 1000;
}

/* -- headers ------------------------------------------------------------------------------ */

double ah_advice_span(ah_slice s, int64_t wall_ms)
{
    double ms = s.p ? number(s, wall_ms) : -1;

    if (s.p && ms < 0)
        ms = duration(s);
    if (s.p && ms < 0 && date(s) >= 0)
        ms = (double)(date(s) - wall_ms);
    return ms;
}

static int64_t bounded(double ms)
{
    if (ms <= 0)
        return -1;
    return ms <= AH_LONGEST_WAIT_MS ? (int64_t)(ms + 1e-6) : -2; /* rounding: 8.64 s are 8640 ms */
}

int64_t ah_advice_retry(const ah_response_head *head)
{
    ah_slice given = head->header(head->ud, "retry-after-ms");
    double ms = take_number(&given);

    if (ms <= 0 || given.n)
        ms = ah_advice_span(head->header(head->ud, "retry-after"), head->wall_ms);
    return bounded(ms);
}

/* If that limit is used up, raises *ms to the time until it is renewed. */
static void look_at(const ah_response_head *head, const char *remaining, const char *reset,
                    double *ms)
{
    ah_slice left = head->header(head->ud, remaining);
    double span;

    if (!ah_slice_is(left, "0"))
        return;
    span = ah_advice_span(head->header(head->ud, reset), head->wall_ms);
    if (span > *ms)
        *ms = span;
}

#define OPENAI_LIMIT(kind)                                                                         \
    {                                                                                              \
        "x-ratelimit-remaining-" kind, "x-ratelimit-reset-" kind                                   \
    }
#define ANTHROPIC_LIMIT(kind)                                                                      \
    {                                                                                              \
        "anthropic-ratelimit-" kind "-remaining", "anthropic-ratelimit-" kind "-reset"             \
    }

static const struct {
    const char *remaining, *reset;
} limits[AH_ADVICE_LIMITS] = {{"x-ratelimit-remaining", "x-ratelimit-reset"},
                              OPENAI_LIMIT("requests"),
                              ANTHROPIC_LIMIT("requests"),
                              OPENAI_LIMIT("tokens"),
                              ANTHROPIC_LIMIT("tokens"),
                              OPENAI_LIMIT("input-tokens"),
                              ANTHROPIC_LIMIT("input-tokens"),
                              OPENAI_LIMIT("output-tokens"),
                              ANTHROPIC_LIMIT("output-tokens")};

const ah_advice_kind ah_advice_kinds[AH_ADVICE_LIMITS] = {
    AH_ADVICE_REQUESTS, AH_ADVICE_REQUESTS, AH_ADVICE_REQUESTS, AH_ADVICE_TOKENS, AH_ADVICE_TOKENS,
    AH_ADVICE_TOKENS,   AH_ADVICE_TOKENS,   AH_ADVICE_OUTPUT,   AH_ADVICE_OUTPUT};

int64_t ah_advice_limit(const ah_response_head *head)
{
    double ms = -1;

    for (size_t i = 0; i < AH_ADVICE_LIMITS; i++)
        look_at(head, limits[i].remaining, limits[i].reset, &ms);
    return bounded(ms);
}

bool ah_advice_limits(const ah_response_head *head, int64_t now,
                      ah_advice_left left[AH_ADVICE_LIMITS])
{
    bool any = false;

    for (size_t i = 0; i < AH_ADVICE_LIMITS; i++) {
        ah_slice told = head->header(head->ud, limits[i].remaining);
        double n = told.p ? take_number(&told) : -1;
        int64_t ms;

        if (n < 0 || told.n)
            continue;
        ms = bounded(ah_advice_span(head->header(head->ud, limits[i].reset), head->wall_ms));
        left[i] = (ah_advice_left){n < 1e15 ? (int64_t)n : (int64_t)1e15, ms > 0 ? now + ms : 0};
        any = any || left[i].at;
    }
    return any;
}
