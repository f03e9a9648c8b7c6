/* Decimals over the bytes of a literal: reading, comparing, and one way of writing. Conversion
 * to a double is in json.c. */
#include "base/decimal.h"

enum {
    PLAIN_MOST = 21, /* with more digits before the point, an exponent is written */
    PLAIN_LEAST = -5 /* negative: with more zeros after the point, an exponent is written */
};
#define MAX_EXPONENT 1000000000000000 /* more than any count of digits */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t exponent_of(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    for (p += p < end && !digit(*p); p < end && digit(*p); p++)
        v = v < MAX_EXPONENT / 10 ? v * 10 + (*p - '0') : MAX_EXPONENT;
    return negative ? -v : v;
}

/* Limits the scale, so that the text of ah_decimal_put reads back equal. */
static int64_t within(int64_t scale)
{
    return scale > MAX_EXPONENT ? MAX_EXPONENT : scale <= -MAX_EXPONENT ? 1 - MAX_EXPONENT : scale;
}

ah_decimal ah_decimal_of(ah_slice lit)
{
    const char *p = lit.n ? lit.p : "", *end = p + lit.n;
    ah_decimal d = {.negative = p < end && *p == '-'};
    bool point = false;
    int64_t whole = 0; /* digits before the point, from the first significant one */
    size_t seen = 0;

    for (p += d.negative; p < end && (digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (!d.p && *p == '0') {
            whole -= point;
            continue;
        }
        if (!d.p)
            d.p = p;
        seen++;
        whole += !point;
        if (*p != '0') {
            d.end = p + 1;
            d.n = seen;
        }
    }
    if (d.n)
        d.scale = within(whole + (p < end ? exponent_of(p + 1, end) : 0));
    return d;
}

static int compare_digits(ah_decimal a, ah_decimal b)
{
    while (a.p < a.end && b.p < b.end) {
        a.p += *a.p == '.';
        b.p += *b.p == '.';
        if (*a.p != *b.p)
            return *a.p < *b.p ? -1 : 1;
        a.p++;
        b.p++;
    }
    return (a.p < a.end) - (b.p < b.end);
}

int ah_decimal_cmp(ah_decimal a, ah_decimal b)
{
    int sign = a.negative ? -1 : 1;

    if (a.n == 0 || b.n == 0) {
        if (a.n == b.n)
            return 0;
        return a.n ? sign : b.negative ? 1 : -1;
    }
    if (a.negative != b.negative)
        return sign;
    if (a.scale != b.scale)
        return a.scale < b.scale ? -sign : sign;
    return sign * compare_digits(a, b);
}

bool ah_decimal_int(ah_decimal d, int64_t *out)
{
    enum { MAX_DIGITS = 19 };
    uint64_t u = 0, max = (uint64_t)INT64_MAX + d.negative;

    if (d.n && (!ah_decimal_is_whole(d) || d.scale > MAX_DIGITS))
        return false;
    for (int64_t i = 0; i < d.scale; i++) {
        uint64_t next = 0;

        if (d.p < d.end) {
            d.p += *d.p == '.';
            next = (uint64_t)(*d.p++ - '0');
        }
        if (u > (max - next) / 10)
            return false;
        u = u * 10 + next;
    }
    *out = d.negative ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* Appends the next n digits, and 0 after the last. */
static void put_digits(ah_buf *b, ah_decimal *d, int64_t n)
{
    for (; n > 0; n--) {
        d->p += d->p < d->end && *d->p == '.';
        ah_buf_char(b, d->p < d->end ? *d->p++ : '0');
    }
}

/* Writes at least one digit before the point and one after it. */
static void put_plain(ah_buf *b, ah_decimal d)
{
    int64_t behind = (int64_t)d.n - d.scale;

    if (d.scale <= 0)
        ah_buf_char(b, '0');
    put_digits(b, &d, d.scale);
    ah_buf_char(b, '.');
    for (int64_t i = d.scale; i < 0; i++, behind--)
        ah_buf_char(b, '0');
    put_digits(b, &d, behind < 1 ? 1 : behind);
}

void ah_decimal_put(ah_buf *b, ah_decimal d)
{
    size_t n = d.n;

    if (d.negative)
        ah_buf_char(b, '-');
    if (d.scale >= PLAIN_LEAST && d.scale <= PLAIN_MOST) {
        put_plain(b, d);
        return;
    }
    put_digits(b, &d, 1);
    if (n > 1)
        ah_buf_char(b, '.');
    put_digits(b, &d, (int64_t)n - 1);
    ah_buf_fmt(b, "e%+03lld", (long long)d.scale - 1);
}
