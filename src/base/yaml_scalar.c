/* Each kind is recognized by its grammar, never by a conversion, so that no locale and no C
 * library decides. Numbers keep all their digits, as in JSON. */
#include "base/yaml_scalar.h"

#include <ctype.h>

#include "base/json.h"

static bool is_one_of(ah_slice s, const char *const *words)
{
    while (*words && !ah_slice_is(s, *words))
        words++;
    return *words != NULL;
}

static bool is_null(ah_slice s)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

    return is_one_of(s, words);
}

static bool is_true(ah_slice s)
{
    static const char *const words[] = {"true", "True", "TRUE", NULL};

    return is_one_of(s, words);
}

static bool is_false(ah_slice s)
{
    static const char *const words[] = {"false", "False", "FALSE", NULL};

    return is_one_of(s, words);
}

/* True for infinity and not-a-number, which JSON lacks. */
static bool is_beyond(ah_slice s)
{
    static const char *const words[] = {".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
                                        "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
                                        ".NaN",  ".NAN",  NULL};

    return is_one_of(s, words);
}

/* -- numbers ----------------------------------------------------------------------------- */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the number of digits at the beginning. */
static size_t digits(ah_slice s)
{
    size_t n = 0;

    while (n < s.n && digit(s.p[n]))
        n++;
    return n;
}

static ah_slice behind(ah_slice s, size_t n)
{
    return (ah_slice){s.p + n, s.n - n};
}

typedef struct number {
    bool negative, point;
    ah_slice whole, part, power; /* digits before and after the point; the exponent with its sign */
} number;

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool read_number(ah_slice s, number *n)
{
    size_t sign;

    *n = (number){.negative = s.n && s.p[0] == '-'};
    if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
        s = behind(s, 1);
    n->whole = (ah_slice){s.p, digits(s)};
    s = behind(s, n->whole.n);
    if ((n->point = s.n && s.p[0] == '.')) {
        s = behind(s, 1);
        n->part = (ah_slice){s.p, digits(s)};
        s = behind(s, n->part.n);
    }
    if (n->whole.n + n->part.n == 0)
        return false;
    if (s.n && (s.p[0] == 'e' || s.p[0] == 'E')) {
        sign = s.n > 1 && (s.p[1] == '-' || s.p[1] == '+');
        n->power = behind(s, 1);
        s = behind(s, 1 + sign);
        if (digits(s) == 0)
            return false;
        s = behind(s, digits(s));
    }
    return s.n == 0;
}

static bool is_whole(const number *n)
{
    return !n->point && !n->power.p;
}

/* JSON has no plus, no leading zeros, and digits on both sides of a point. -0 is the integer 0. */
static const char *put_number(const number *n, bool as_float, ah_buf *out)
{
    ah_slice whole = n->whole;
    size_t start = out->len;
    ah_json_num value;

    while (whole.n && whole.p[0] == '0')
        whole = behind(whole, 1);
    if (n->negative && (whole.n || as_float))
        ah_buf_char(out, '-');
    ah_buf_put(out, whole.n ? whole : ah_slice_of("0"));
    if (n->point || (as_float && !n->power.p)) {
        ah_buf_char(out, '.');
        ah_buf_put(out, n->part.n ? n->part : ah_slice_of("0"));
    }
    if (n->power.p) {
        ah_buf_char(out, 'e');
        ah_buf_put(out, n->power);
    }
    if (!ah_buf_ok(out) || ah_json_number((ah_slice){out->data + start, out->len - start}, &value))
        return NULL;
    ah_buf_reset(out, start);
    return "a number that is out of range";
}

/* Returns the base of 0x1f or 0o17; 0: neither. */
static unsigned base_of(ah_slice s)
{
    unsigned base = ah_slice_begins(s, "0x") ? 16 : ah_slice_begins(s, "0o") ? 8 : 0;

    if (s.n < 3)
        return 0;
    for (size_t i = 2; i < s.n; i++)
        if (base == 16 ? !isxdigit((unsigned char)s.p[i]) : s.p[i] < '0' || s.p[i] > '7')
            return 0;
    return base;
}

static const char *put_based(ah_slice s, unsigned base, ah_buf *out)
{
    uint64_t v = 0;

    for (size_t i = 2; i < s.n; i++) {
        unsigned d = digit(s.p[i]) ? (unsigned)(s.p[i] - '0') : ((unsigned)s.p[i] | 32) - 'a' + 10;

        if (v > ((uint64_t)INT64_MAX - d) / base)
            return "an integer of more than 64 bits";
        v = v * base + d;
    }
    ah_buf_int(out, (int64_t)v);
    return NULL;
}

/* -- all of them ---------------------------------------------------------------------------- */

static const char *put_int(ah_slice s, ah_buf *out)
{
    unsigned base = base_of(s);
    number n;

    if (base)
        return put_based(s, base, out);
    if (!read_number(s, &n) || !is_whole(&n))
        return "a value with the tag !!int that is no integer";
    return put_number(&n, false, out);
}

static const char *put_float(ah_slice s, ah_buf *out)
{
    number n;

    if (is_beyond(s))
        return "a number that JSON does not have (a text needs quotes)";
    if (!read_number(s, &n))
        return "a value with the tag !!float that is no number";
    return put_number(&n, true, out);
}

static const char *put_bool(ah_slice s, ah_buf *out)
{
    if (!is_true(s) && !is_false(s))
        return "a value with the tag !!bool that is neither true nor false";
    ah_buf_str(out, is_true(s) ? "true" : "false");
    return NULL;
}

static const char *put_null(ah_slice s, ah_buf *out)
{
    if (!is_null(s))
        return "a value with the tag !!null that is not null";
    ah_buf_str(out, "null");
    return NULL;
}

static const char *put_plain(ah_slice s, ah_buf *out)
{
    number n;

    if (is_null(s))
        return put_null(s, out);
    if (is_true(s) || is_false(s))
        return put_bool(s, out);
    if (base_of(s))
        return put_int(s, out);
    if (is_beyond(s))
        return put_float(s, out);
    if (read_number(s, &n))
        return put_number(&n, !is_whole(&n), out);
    ah_json_put_string(out, s);
    return NULL;
}

const char *ah_yaml_scalar(ah_slice text, ah_yaml_tag tag, ah_buf *out)
{
    switch (tag) {
    case AH_YAML_PLAIN:
        return put_plain(text, out);
    case AH_YAML_INT:
        return put_int(text, out);
    case AH_YAML_FLOAT:
        return put_float(text, out);
    case AH_YAML_BOOL:
        return put_bool(text, out);
    case AH_YAML_NULL:
        return put_null(text, out);
    case AH_YAML_STR:
        break;
    }
    ah_json_put_string(out, text);
    return NULL;
}
