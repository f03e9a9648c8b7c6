/* Decimals: JSON's number literals by their digits, compared and written without
 * rounding, where a double would. Literals may have any length and any exponent;
 * nothing takes memory, and the time is that of reading the digits. No arithmetic. */
#ifndef AH_BASE_DECIMAL_H
#define AH_BASE_DECIMAL_H

#include "base/buf.h"

/* The significant digits of a literal, from the first that is not 0 to the last:
 * value = 0.d1d2d3... * 10^scale, or 0 where n is 0. Scales beyond 10^15 count as that. */
typedef struct ah_decimal {
    bool negative;
    const char *p;   /* first significant digit; a point may stand among them */
    const char *end; /* behind the last */
    size_t n;        /* digits between */
    int64_t scale;
} ah_decimal;

/* Of a checked literal, which must outlive it. */
ah_decimal ah_decimal_of(ah_slice literal);
/* -1, 0 or 1, as the values compare; -0 is 0. */
int ah_decimal_cmp(ah_decimal a, ah_decimal b);
static inline bool ah_decimal_is_whole(ah_decimal d)
{
    return d.scale >= (int64_t)d.n;
}
/* False, and *out untouched, where it is not whole or not within 64 bits. */
bool ah_decimal_int(ah_decimal d, int64_t *out);
/* As a literal that is no integer's: with '.', an exponent, or both. The same value gives
 * the same text, at most 32 bytes longer than its digits. */
void ah_decimal_put(ah_buf *b, ah_decimal d);

#endif
