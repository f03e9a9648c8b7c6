/* Growing a buffer, and putting bytes, numbers and formatted texts into it. What does not fit is
 * not put at all, not even in part. JSON's escapes are json.c's. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

void ah_buf_init(ah_buf *b, const ah_mem *mem, size_t max)
{
    *b = (ah_buf){.mem = mem, .max = max};
}

void ah_buf_clear(ah_buf *b)
{
    if (!b->mem)
        return;
    ah_free(b->mem, b->data);
    ah_buf_init(b, b->mem, b->max);
}

void ah_buf_reset(ah_buf *b, size_t len)
{
    if (len < b->len)
        b->len = len;
    b->status = AH_OK;
}

char *ah_buf_room(ah_buf *b, size_t n)
{
    char *p;

    if (b->status != AH_OK)
        return NULL;
    if (n > b->max - b->len) {
        b->status = AH_BUDGET;
        return NULL;
    }
    if (n <= b->cap - b->len && b->data)
        return b->data + b->len;
    p = ah_grow(b->mem, b->data, &b->cap, b->len + n, 1);
    if (!p) {
        b->status = AH_NOMEM;
        return NULL;
    }
    b->data = p;
    return p + b->len;
}

void ah_buf_add(ah_buf *b, const void *p, size_t n)
{
    char *to;

    if (n == 0 || !(to = ah_buf_room(b, n)))
        return;
    memcpy(to, p, n);
    b->len += n;
}

void ah_buf_put(ah_buf *b, ah_slice s)
{
    ah_buf_add(b, s.p, s.n);
}

void ah_buf_str(ah_buf *b, const char *s)
{
    ah_buf_add(b, s, strlen(s));
}

void ah_buf_char(ah_buf *b, char c)
{
    char *to = ah_buf_room(b, 1);

    if (!to)
        return;
    *to = c;
    b->len++;
}

void ah_buf_int(ah_buf *b, int64_t v)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do
        *--p = (char)('0' + u % 10);
    while ((u /= 10));
    if (v < 0)
        *--p = '-';
    ah_buf_add(b, p, (size_t)(digits + sizeof digits - p));
}

void ah_buf_fmt(ah_buf *b, const char *fmt, ...)
{
    char small[256], *to;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n < sizeof small) {
        ah_buf_add(b, small, (size_t)n);
        return;
    }
    if (!(to = ah_buf_room(b, (size_t)n + 1)))
        return;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void ah_buf_drop(ah_buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

ah_status ah_buf_error(const ah_buf *b, const char *what, ah_err *err)
{
    if (b->status == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, AH_BUDGET, "%s is larger than %zu bytes", what, b->max);
}
