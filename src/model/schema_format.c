/* Formats that can be asserted: syntax only, nothing is looked up. Dates are checked by
 * the calendar, addresses by their grammar (RFC 3339, 3986, 4291, 5321, 6901); names of
 * hosts and the local part of an address in other scripts are taken as they are. */
#include "model/schema_program.h"

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool alpha(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool hex(char c)
{
    return digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static ah_slice from(ah_slice s, size_t n)
{
    return (ah_slice){s.p + n, s.n - n};
}

/* n digits at the beginning, or -1. */
static int number_at(ah_slice s, size_t n)
{
    int v = 0;

    if (s.n < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!digit(s.p[i]))
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

static bool is_date(ah_slice s)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y, m, d;
    bool leap;

    if (s.n != 10 || s.p[4] != '-' || s.p[7] != '-')
        return false;
    y = number_at(s, 4);
    m = number_at(from(s, 5), 2);
    d = number_at(from(s, 8), 2);
    if (y < 0 || m < 1 || m > 12 || d < 1)
        return false;
    leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return d <= days[m - 1] + (m == 2 && leap);
}

/* Minutes east of UTC, or -10000. */
static int zone_of(ah_slice s)
{
    int h, m;

    if (s.n == 1 && (s.p[0] | 32) == 'z')
        return 0;
    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':')
        return -10000;
    h = number_at(from(s, 1), 2);
    m = number_at(from(s, 4), 2);
    if (h < 0 || h > 23 || m < 0 || m > 59)
        return -10000;
    return (s.p[0] == '-' ? -1 : 1) * (h * 60 + m);
}

static bool is_time(ah_slice s)
{
    int h, m, sec, zone, minutes;
    size_t n = 8;

    if (s.n < 9 || s.p[2] != ':' || s.p[5] != ':')
        return false;
    h = number_at(s, 2);
    m = number_at(from(s, 3), 2);
    sec = number_at(from(s, 6), 2);
    if (s.p[8] == '.')
        for (n = 9; n < s.n && digit(s.p[n]); n++)
            ;
    zone = zone_of(from(s, n));
    if (n == 9 || zone == -10000 || h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60)
        return false;
    minutes = (h * 60 + m - zone + 2 * 1440) % 1440; /* a leap second is the last of a day in UTC */
    return sec < 60 || minutes == 1439;
}

static bool is_date_time(ah_slice s)
{
    return s.n > 11 && (s.p[10] | 32) == 't' && is_date((ah_slice){s.p, 10}) && is_time(from(s, 11));
}

/* P, units in order, each after digits; T before those of time; weeks alone. */
static bool is_duration(ah_slice s)
{
    const char *units = "YMD";
    size_t i = 1, parts = 0;
    bool time = false;

    if (s.n < 3 || s.p[0] != 'P')
        return false;
    while (i < s.n) {
        size_t start = i;
        const char *unit;

        if (s.p[i] == 'T' && !time) {
            time = true;
            units = "HMS";
            start = ++i;
        }
        while (i < s.n && digit(s.p[i]))
            i++;
        if (i == start || i == s.n)
            return false;
        if (s.p[i] == 'W')
            return parts == 0 && !time && i + 1 == s.n;
        if (!(unit = strchr(units, s.p[i])))
            return false;
        units = unit + 1;
        parts++;
        i++;
    }
    return s.p[s.n - 1] != 'T';
}

static bool is_hostname(ah_slice s)
{
    size_t label = 0;

    if (s.n == 0 || s.n > 253)
        return false;
    for (size_t i = 0; i <= s.n; i++) {
        if (i == s.n || s.p[i] == '.') {
            if (label == 0 || label > 63 || s.p[i - 1] == '-')
                return false;
            label = 0;
        } else {
            if (!(alpha(s.p[i]) || digit(s.p[i]) || (s.p[i] == '-' && label)))
                return false;
            label++;
        }
    }
    return true;
}

static bool is_ipv4(ah_slice s)
{
    for (int part = 0; part < 4; part++) {
        size_t n = 0;

        while (n < s.n && n < 4 && digit(s.p[n]))
            n++;
        if (n == 0 || n > 3 || (n > 1 && s.p[0] == '0') || number_at(s, n) > 255)
            return false;
        s = from(s, n);
        if (part < 3) {
            if (s.n == 0 || s.p[0] != '.')
                return false;
            s = from(s, 1);
        }
    }
    return s.n == 0;
}

static bool is_ipv6(ah_slice s)
{
    bool gap = s.n >= 2 && s.p[0] == ':' && s.p[1] == ':';
    int groups = 0;

    s = gap ? from(s, 2) : s;
    while (s.n) {
        size_t n = 0;

        while (n < s.n && hex(s.p[n]))
            n++;
        if (n < s.n && s.p[n] == '.')
            return is_ipv4(s) && (gap ? groups <= 5 : groups == 6);
        if (n == 0 || n > 4 || ++groups > 8)
            return false;
        s = from(s, n);
        if (s.n == 0)
            break;
        if (s.p[0] != ':' || s.n == 1)
            return false;
        s = from(s, 1);
        if (s.p[0] == ':') {
            if (gap)
                return false;
            gap = true;
            s = from(s, 1);
        }
    }
    return gap ? groups <= 7 : groups == 8;
}

static size_t find(ah_slice s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

static bool is_local(ah_slice s, bool any_script)
{
    char before = '.';

    if (s.n == 0 || s.n > 64)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '.' ? before == '.'
                     : !(alpha(c) || digit(c) || one_of(c, "!#$%&'*+-/=?^_`{|}~") ||
                         (any_script && (unsigned char)c >= 0x80)))
            return false;
        before = c;
    }
    return before != '.';
}

static bool is_email(ah_slice s)
{
    size_t at = find(s, '@');

    return at < s.n && is_local((ah_slice){s.p, at}, false) && is_hostname(from(s, at + 1));
}

static bool is_idn_email(ah_slice s)
{
    size_t at = find(s, '@');

    return at + 1 < s.n && is_local((ah_slice){s.p, at}, true) &&
           !memchr(s.p + at + 1, '@', s.n - at - 1);
}

static bool is_uri_text(ah_slice s)
{
    size_t hashes = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '%' && (s.n - i < 3 || !hex(s.p[i + 1]) || !hex(s.p[i + 2])))
            return false;
        if (!alpha(c) && !digit(c) && !one_of(c, "-._~:/?#[]@!$&'()*+,;=%"))
            return false;
        hashes += c == '#';
    }
    return hashes <= 1;
}

/* Length of the scheme, or 0. */
static size_t scheme_of(ah_slice s)
{
    size_t n = 0;

    while (n < s.n && (alpha(s.p[n]) || (n && (digit(s.p[n]) || one_of(s.p[n], "+-.")))))
        n++;
    return n < s.n && s.p[n] == ':' ? n : 0;
}

static bool is_uri(ah_slice s)
{
    return scheme_of(s) > 0 && is_uri_text(s);
}

static bool is_uri_reference(ah_slice s)
{
    size_t colon = find(s, ':'), slash = find(s, '/'), rest = find(s, '?'), hash = find(s, '#');

    if (!is_uri_text(s))
        return false;
    return scheme_of(s) > 0 || colon == s.n || slash < colon || rest < colon || hash < colon;
}

static bool is_uuid(ah_slice s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < 36; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? s.p[i] != '-' : !hex(s.p[i]))
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

static bool is_relative_json_pointer(ah_slice s)
{
    size_t n = 0;

    while (n < s.n && digit(s.p[n]))
        n++;
    if (n == 0 || (n > 1 && s.p[0] == '0'))
        return false;
    s = from(s, n);
    return (s.n == 1 && s.p[0] == '#') || is_json_pointer(s);
}

static bool is_regex(const ah_mem *mem, ah_slice s)
{
    ah_pattern *p = NULL;
    ah_buf why;
    bool is;

    ah_buf_init(&why, mem, 256);
    is = ah_pattern_new(mem, s, 0, &p, &why) == AH_OK;
    ah_pattern_free(p);
    (void)ah_buf_ok(&why); /* nobody reads it */
    ah_buf_clear(&why);
    return is;
}

static const struct {
    const char *name, *words;
    bool (*has)(ah_slice s); /* NULL: is_regex, which takes memory */
} formats[] = {
    {"date", "a date such as 2024-02-29", is_date},
    {"date-time", "a date and time such as 2024-02-29T12:00:00Z", is_date_time},
    {"duration", "a duration such as P1DT2H", is_duration},
    {"email", "an email address", is_email},
    {"hostname", "the name of a host", is_hostname},
    {"idn-email", "an email address", is_idn_email},
    {"ipv4", "an IPv4 address", is_ipv4},
    {"ipv6", "an IPv6 address", is_ipv6},
    {"json-pointer", "a JSON pointer", is_json_pointer},
    {"regex", "a regular expression", NULL},
    {"relative-json-pointer", "a relative JSON pointer", is_relative_json_pointer},
    {"time", "a time with its zone such as 12:00:00Z", is_time},
    {"uri", "a URI with its scheme", is_uri},
    {"uri-reference", "a URI or a relative reference", is_uri_reference},
    {"uuid", "a UUID", is_uuid},
};
enum { FORMATS = sizeof formats / sizeof *formats };

uint32_t schema_find_format(ah_slice name)
{
    for (uint32_t i = 0; i < FORMATS; i++)
        if (ah_slice_is(name, formats[i].name))
            return i;
    return NONE;
}

bool schema_format_compiles(uint32_t format)
{
    return !formats[format].has;
}

bool schema_has_format(const ah_mem *mem, uint32_t format, ah_slice text)
{
    text.p = text.p ? text.p : "";
    return formats[format].has ? formats[format].has(text) : is_regex(mem, text);
}

const char *schema_format_words(uint32_t format)
{
    return formats[format].words;
}
