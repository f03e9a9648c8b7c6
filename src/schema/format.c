/* Formats that can be asserted, by syntax only: dates and times (RFC 3339), pointers (RFC 6901),
 * UUIDs, and the table of all. Host names and email are in format_host.c, web addresses in
 * format_web.c. */
#include "schema/format.h"

/* Reads n digits at the beginning; -1: not digits. */
static int number_at(ah_slice s, size_t n)
{
    int v = 0;

    if (s.n < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!schema_is_digit(s.p[i]))
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

/* Returns the number of days in the month that the text begins with, or 0; *day is the text's
 * day. */
static int read_date(ah_slice s, int *day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y, m;

    if (s.n != 10 || s.p[4] != '-' || s.p[7] != '-')
        return 0;
    y = number_at(s, 4);
    m = number_at(schema_from(s, 5), 2);
    *day = number_at(schema_from(s, 8), 2);
    if (y < 0 || m < 1 || m > 12)
        return 0;
    return days[m - 1] + (m == 2 && ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0));
}

static bool is_date(ah_slice s)
{
    int day, days = read_date(s, &day);

    return days && day >= 1 && day <= days;
}

enum { NO_ZONE = -10000, A_DAY = 1440 };

/* Returns minutes east of UTC, or NO_ZONE. */
static int zone_of(ah_slice s)
{
    int h, m;

    if (s.n == 1 && (s.p[0] == 'Z' || s.p[0] == 'z'))
        return 0;
    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':')
        return NO_ZONE;
    h = number_at(schema_from(s, 1), 2);
    m = number_at(schema_from(s, 4), 2);
    if (h < 0 || h > 23 || m < 0 || m > 59)
        return NO_ZONE;
    return (s.p[0] == '-' ? -1 : 1) * (h * 60 + m);
}

/* *leap: it is a leap second, which is the last second of a UTC day; *ahead is then the number
 * of days by which UTC is ahead of the zone. */
static bool read_time(ah_slice s, bool *leap, int *ahead)
{
    int h, m, sec, zone, minutes;
    size_t n = 8;

    if (s.n < 9 || s.p[2] != ':' || s.p[5] != ':')
        return false;
    h = number_at(s, 2);
    m = number_at(schema_from(s, 3), 2);
    sec = number_at(schema_from(s, 6), 2);
    if (s.p[8] == '.')
        for (n = 9; n < s.n && schema_is_digit(s.p[n]); n++)
            ;
    zone = zone_of(schema_from(s, n));
    if (n == 9 || zone == NO_ZONE || h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60)
        return false;
    minutes = h * 60 + m - zone;
    *leap = sec == 60;
    *ahead = minutes < 0 ? -1 : minutes / A_DAY;
    return !*leap || (minutes + A_DAY) % A_DAY == A_DAY - 1;
}

static bool is_time(ah_slice s)
{
    bool leap;
    int ahead;

    return read_time(s, &leap, &ahead);
}

/* Leap seconds are at the end of a UTC month. */
static bool is_date_time(ah_slice s)
{
    ah_slice date = {s.p, 10};
    int day, days, ahead;
    bool leap;

    if (s.n <= 11 || (s.p[10] != 'T' && s.p[10] != 't') || !is_date(date) ||
        !read_time(schema_from(s, 11), &leap, &ahead))
        return false;
    days = read_date(date, &day);
    return !leap || (day + ahead) % days == 0;
}

/* Passes numbers with units in order, each unit directly after the one before: 1Y2M, but not
 * 1Y2D. */
static size_t take_units(ah_slice *s, const char *units)
{
    size_t taken = 0;

    for (;;) {
        const char *unit;
        size_t n = 0;

        while (n < s->n && schema_is_digit(s->p[n]))
            n++;
        if (n == 0 || n == s->n || !(unit = strchr(units, s->p[n])) || !*unit ||
            (taken && unit != units))
            return taken;
        units = unit + 1;
        *s = schema_from(*s, n + 1);
        taken++;
    }
}

/* RFC 3339, appendix A: weeks alone, or a date, a time after T, or both. */
static bool is_duration(ah_slice s)
{
    size_t date;

    if (s.n == 0 || s.p[0] != 'P')
        return false;
    s = schema_from(s, 1);
    if (take_units(&s, "W"))
        return s.n == 0;
    date = take_units(&s, "YMD");
    if (s.n == 0 || s.p[0] != 'T')
        return date && s.n == 0;
    s = schema_from(s, 1);
    return take_units(&s, "HMS") && s.n == 0;
}

static bool is_uuid(ah_slice s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < 36; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? s.p[i] != '-' : !schema_is_hex(s.p[i]))
            return false;
    return true;
}

static bool is_json_pointer(ah_slice s)
{
    if (s.n && s.p[0] != '/')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '~' && (i + 1 == s.n || (s.p[i + 1] != '0' && s.p[i + 1] != '1')))
            return false;
    return true;
}

/* Returns the number of digits of a number without leading zeros; 0: none. */
static size_t whole_length(ah_slice s)
{
    size_t n = 0;

    while (n < s.n && schema_is_digit(s.p[n]))
        n++;
    return n > 1 && s.p[0] == '0' ? 0 : n;
}

/* Levels up, items forward or back, then a pointer from there, or # for the name. */
static bool is_relative_json_pointer(ah_slice s)
{
    size_t n = whole_length(s), moved;

    if (n == 0)
        return false;
    s = schema_from(s, n);
    if (s.n && (s.p[0] == '+' || s.p[0] == '-')) {
        if (!(moved = whole_length(schema_from(s, 1))))
            return false;
        s = schema_from(s, 1 + moved);
    }
    return (s.n == 1 && s.p[0] == '#') || is_json_pointer(s);
}

/* Matches an expression that ECMAScript accepts, even if PCRE2 cannot match it. */
static ah_match is_regex(const format_asker *a, ah_slice s)
{
    enum { ROOM = 4 << 20 };
    ah_buf out, why;
    ah_status st;

    ah_buf_init(&out, a->mem, ROOM);
    ah_buf_init(&why, a->mem, 256);
    st = ah_pattern_translate(a->mem, s, AH_PATTERN_SYNTAX, NULL, &out, &why);
    (void)ah_buf_ok(&out); /* its content is not used */
    (void)ah_buf_ok(&why);
    ah_buf_clear(&out);
    ah_buf_clear(&why);
    return st == AH_NOMEM ? AH_MATCH_NOMEM : st == AH_OK ? AH_MATCH_YES : AH_MATCH_NO;
}

static const struct {
    const char *name, *words;
    bool (*has)(ah_slice s);
    ah_match (*asks)(const format_asker *a, ah_slice s); /* used if `has` is NULL */
} formats[] = {
    {"date", "a date such as 2024-02-29", is_date, NULL},
    {"date-time", "a date and time with its zone such as 2024-02-29T12:00:00Z", is_date_time, NULL},
    {"duration", "a duration such as P1DT2H", is_duration, NULL},
    {"email", "an email address", NULL, schema_is_email},
    {"hostname", "the name of a host", NULL, schema_is_hostname},
    {"idn-email", "an email address", NULL, schema_is_idn_email},
    {"idn-hostname", "the name of a host", NULL, schema_is_idn_hostname},
    {"ipv4", "an IPv4 address", schema_is_ipv4, NULL},
    {"ipv6", "an IPv6 address", schema_is_ipv6, NULL},
    {"iri", "an IRI with its scheme", schema_is_iri, NULL},
    {"iri-reference", "an IRI or a relative reference", schema_is_iri_reference, NULL},
    {"json-pointer", "a JSON pointer such as /a/0", is_json_pointer, NULL},
    {"regex", "a regular expression of ECMAScript", NULL, is_regex},
    {"relative-json-pointer", "a relative JSON pointer such as 1/a", is_relative_json_pointer,
     NULL},
    {"time", "a time with its zone such as 12:00:00Z", is_time, NULL},
    {"uri", "a URI with its scheme such as https://example.com/a%20b", schema_is_uri, NULL},
    {"uri-reference", "a URI or a relative reference", schema_is_uri_reference, NULL},
    {"uri-template", "a URI template such as /users/{id}", schema_is_uri_template, NULL},
    {"uuid", "a UUID", is_uuid, NULL},
};
enum { FORMATS = sizeof formats / sizeof *formats };

uint32_t schema_find_format(ah_slice name)
{
    for (uint32_t i = 0; i < FORMATS; i++)
        if (ah_slice_is(name, formats[i].name))
            return i;
    return NONE;
}

ah_match schema_has_format(const ah_mem *mem, uint32_t format, ah_slice text, ah_work *work,
                           ah_pattern **names)
{
    enum { BYTES = 64, EXPRESSION_BYTES = 4 }; /* bytes read in a step */
    const format_asker a = {mem, work, names};

    text.p = text.p ? text.p : "";
    if (!ah_work_do(work, text.n / (formats[format].has ? BYTES : EXPRESSION_BYTES)))
        return AH_MATCH_ENDED;
    if (!formats[format].has)
        return formats[format].asks(&a, text);
    return formats[format].has(text) ? AH_MATCH_YES : AH_MATCH_NO;
}

const char *schema_format_words(uint32_t format)
{
    return formats[format].words;
}
