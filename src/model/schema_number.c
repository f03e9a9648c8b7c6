/* Numbers of schemas and values, compared and divided by their digits where doubles
 * would round. Literals may have any length and any exponent; nothing here takes
 * memory, and the time is that of reading the digits. */
#include "model/schema_program.h"

enum { DIVISOR_DIGITS = 18 };

/* The significant digits of a literal, from the first that is not 0 to the last:
 * value = 0.d1d2d3... * 10^scale, or 0 where n is 0. Points are skipped when read. */
typedef struct decimal {
    bool negative;
    const char *p;   /* first significant digit */
    const char *end; /* behind the last */
    size_t n;        /* digits between */
    int64_t scale;
} decimal;

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t exponent_of(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    for (p += p < end && !digit(*p); p < end && digit(*p); p++)
        if (v < INT64_MAX / 1000)
            v = v * 10 + (*p - '0');
    return negative ? -v : v;
}

static decimal decimal_of(ah_slice lit)
{
    const char *p = lit.n ? lit.p : "", *end = p + lit.n;
    decimal d = {.negative = p < end && *p == '-'};
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
    d.scale = whole + (p < end ? exponent_of(p + 1, end) : 0);
    return d;
}

static int compare_digits(decimal a, decimal b)
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

static int compare_decimals(ah_slice x, ah_slice y)
{
    decimal a = decimal_of(x), b = decimal_of(y);
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

static bool is_whole_literal(ah_slice lit)
{
    for (size_t i = 0; i < lit.n; i++)
        if (!digit(lit.p[i]) && lit.p[i] != '-')
            return false;
    return true;
}

bool schema_number(ah_slice literal, number *out)
{
    ah_json_num *num = &out->n;
    bool held = ah_json_number(literal, num);

    out->literal = literal;
    if (held && !num->is_int && num->d >= -TWO_63 && num->d < TWO_63 &&
        (double)(int64_t)num->d == num->d) {
        num->is_int = true;
        num->i = (int64_t)num->d;
    }
    return held;
}

static int compare_int_double(int64_t i, double d)
{
    int64_t whole;

    if (d >= TWO_63)
        return -1;
    if (d < -TWO_63)
        return 1;
    whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    return (d < (double)whole) - (d > (double)whole);
}

int schema_compare_numbers(number a, number b)
{
    if (a.n.is_int && b.n.is_int)
        return (a.n.i > b.n.i) - (a.n.i < b.n.i);
    if (a.n.is_int)
        return compare_int_double(a.n.i, b.n.d);
    if (b.n.is_int)
        return -compare_int_double(b.n.i, a.n.d);
    if (a.n.d < b.n.d || a.n.d > b.n.d)
        return a.n.d < b.n.d ? -1 : 1;
    if (is_whole_literal(a.literal) || is_whole_literal(b.literal) || a.n.d - a.n.d != 0)
        return compare_decimals(a.literal, b.literal); /* long integers, and what no double holds */
    return 0;
}

static uint64_t times(uint64_t a, uint64_t b, uint64_t of)
{
    return (uint64_t)((unsigned __int128)a * b % of);
}

static uint64_t power_of_ten(uint64_t e, uint64_t of)
{
    uint64_t r = 1 % of, base = 10 % of;

    for (; e; e >>= 1) {
        if (e & 1)
            r = times(r, base, of);
        base = times(base, base, of);
    }
    return r;
}

static uint64_t digits_of(decimal d, uint64_t of) /* of 0: whole, where they fit */
{
    uint64_t r = 0;

    for (; d.p < d.end; d.p++)
        if (*d.p != '.')
            r = of ? (times(r, 10, of) + (uint64_t)(*d.p - '0')) % of : r * 10 + (uint64_t)(*d.p - '0');
    return r;
}

bool schema_is_divisor(ah_slice literal)
{
    decimal d = decimal_of(literal);

    return !d.negative && d.n > 0 && d.n <= DIVISOR_DIGITS;
}

/* a * 10^x is a multiple of b * 10^y; a does not end in 0, so where x < y it is none
 * unless it is 0. */
bool schema_is_multiple(ah_slice literal, ah_slice of)
{
    decimal a = decimal_of(literal), b = decimal_of(of);
    int64_t x = a.scale - (int64_t)a.n, y = b.scale - (int64_t)b.n;
    uint64_t divisor = digits_of(b, 0);

    if (a.n == 0)
        return true;
    if (x < y)
        return false;
    return times(digits_of(a, divisor), power_of_ten((uint64_t)(x - y), divisor), divisor) == 0;
}
