/* Decimals: compares and writes JSON's number literals by their digits, without the rounding of
 * a double. Literals may have any length and any exponent. Nothing allocates, and the time is
 * proportional to the digits. There is no arithmetic. Callers: its floor, schema. */
#ifndef AH_BASE_DECIMAL_H
#define AH_BASE_DECIMAL_H

#include "base/buf.h"

/* The significant digits of a literal, from the first to the last that is not 0: value =
 * 0.d1d2d3... * 10^scale, or 0 if n is 0. Scales beyond 10^15 are cut to that. */
typedef struct ah_decimal {
    bool negative;
    const char *p;   /* first significant digit; a point may be among the digits */
    const char *end; /* after the last digit */
    size_t n;        /* number of digits in between */
    int64_t scale;
} ah_decimal;

/* Reads a checked literal, which must outlive the result. */
ah_decimal ah_decimal_of(ah_slice literal);
/* Compares the values: -1, 0 or 1. -0 equals 0. */
int ah_decimal_cmp(ah_decimal a, ah_decimal b);
static inline bool ah_decimal_is_whole(ah_decimal d)
{
    return d.scale >= (int64_t)d.n;
}
/* Returns false, and leaves *out untouched, if the value is not whole or does not fit 64 bits. */
bool ah_decimal_int(ah_decimal d, int64_t *out);
/* Appends a literal that is not an integer's: with '.', an exponent, or both. Equal values give
 * equal text, at most 32 bytes longer than the digits. */
void ah_decimal_put(ah_buf *b, ah_decimal d);

#endif
