/* Numbers of schemas and values, compared and divided by their digits where doubles would round.
 * Literals may have any length and any exponent; nothing here allocates, and the time is
 * proportional to the digits. */
#include "base/decimal.h"
#include "schema/program.h"

enum { DIVISOR_DIGITS = 18 };

bool schema_number(ah_slice literal, number *out)
{
    ah_json_num *num = &out->n;
    bool held = ah_json_number(literal, num);

    out->literal = literal;
    if (held && !num->is_int && num->d >= -TWO_63 && num->d <= TWO_63)
        num->is_int = ah_decimal_int(ah_decimal_of(literal), &num->i);
    return held;
}

/* Rounding keeps the order, so different doubles decide. */
int schema_compare_numbers(number a, number b)
{
    if (a.n.is_int && b.n.is_int)
        return (a.n.i > b.n.i) - (a.n.i < b.n.i);
    if (a.n.d < b.n.d || a.n.d > b.n.d)
        return a.n.d < b.n.d ? -1 : 1;
    return ah_decimal_cmp(ah_decimal_of(a.literal), ah_decimal_of(b.literal));
}

/* a * b % of, by four bits of b at a time, because a wider type is not available everywhere: a
 * and the sum so far are below `of`, which is below 10^18, so sixteen times `of` fits 64 bits. */
static uint64_t times(uint64_t a, uint64_t b, uint64_t of)
{
    uint64_t sum = 0;

    for (; b; b >>= 4) {
        sum = (sum + a * (b & 15)) % of;
        a = a * 16 % of;
    }
    return sum;
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

static uint64_t digits_of(ah_decimal d, uint64_t of) /* of 0: the whole number, if it fits */
{
    uint64_t r = 0;

    for (; d.p < d.end; d.p++) {
        if (*d.p != '.')
            r = r * 10 + (uint64_t)(*d.p - '0');
        if (of)
            r %= of;
    }
    return r;
}

bool schema_is_divisor(ah_slice literal)
{
    ah_decimal d = ah_decimal_of(literal);

    return !d.negative && d.n > 0 && d.n <= DIVISOR_DIGITS;
}

/* True if a * 10^x is a multiple of b * 10^y. a does not end in 0; if x < y, only a = 0
 * is a multiple. */
bool schema_is_multiple(ah_slice literal, ah_slice of)
{
    ah_decimal a = ah_decimal_of(literal), b = ah_decimal_of(of);
    int64_t x = a.scale - (int64_t)a.n, y = b.scale - (int64_t)b.n;
    uint64_t divisor = digits_of(b, 0);

    if (a.n == 0)
        return true;
    if (x < y)
        return false;
    return times(digits_of(a, divisor), power_of_ten((uint64_t)(x - y), divisor), divisor) == 0;
}
