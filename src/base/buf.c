/* Grows a buffer, and adds bytes, numbers and formatted text. An addition that does not fit is
 * left out whole. JSON's escapes are in json.c. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef AH_CHECKING
#ifdef __SANITIZE_ADDRESS__
void __sanitizer_print_stack_trace(void);
#define SAY_WHERE() __sanitizer_print_stack_trace()
#else
#define SAY_WHERE() ((void)0)
#endif

void ah_buf_check(const ah_buf *b)
{
    if (!b->unasked)
        return;
    fprintf(stderr, "agenthost: a buffer of at most %zu bytes was full, and is used unasked\n",
            b->max);
    SAY_WHERE();
    abort();
}
#define CHECK(b)     ah_buf_check(b)
#define NOTE_FULL(b) ((b)->unasked = true)
#else
#define CHECK(b)     ((void)0)
#define NOTE_FULL(b) ((void)0)
#endif

void ah_buf_init(ah_buf *b, const ah_mem *mem, size_t max)
{
    *b = (ah_buf){.mem = mem, .max = max};
}

void ah_buf_clear(ah_buf *b)
{
    if (!b->mem)
        return;
    CHECK(b);
    ah_free(b->mem, b->data);
    ah_buf_init(b, b->mem, b->max);
}

void ah_buf_reset(ah_buf *b, size_t len)
{
    CHECK(b);
    if (len < b->len)
        b->len = len;
    b->status = AH_OK;
}

static char *fail(ah_buf *b, ah_status st)
{
    b->status = st;
    if (st == AH_BUDGET)
        NOTE_FULL(b);
    return NULL;
}

char *ah_buf_room(ah_buf *b, size_t n)
{
    char *p;

    if (b->status != AH_OK)
        return NULL;
    if (n > b->max - b->len)
        return fail(b, AH_BUDGET);
    if (n <= b->cap - b->len && b->data)
        return b->data + b->len;
    p = ah_grow(b->mem, b->data, &b->cap, b->len + n, 1);
    if (!p)
        return fail(b, AH_NOMEM);
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

void ah_buf_vfmt(ah_buf *b, const char *fmt, va_list ap)
{
    char small[256], *to;
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof small)
        ah_buf_add(b, small, (size_t)n);
    else if (n >= 0 && (to = ah_buf_room(b, (size_t)n + 1))) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void ah_buf_fmt(ah_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ah_buf_vfmt(b, fmt, ap);
    va_end(ap);
}

void ah_buf_put_most(ah_buf *b, ah_slice s, size_t most)
{
    size_t n = s.n > most ? ah_utf8_cut(s.p, most) : s.n;

    ah_buf_add(b, s.p, n);
    if (n < s.n)
        ah_buf_fmt(b, AH_LEFT_OUT, s.n - n);
}

bool ah_buf_cut_short(ah_buf *b)
{
    static const char mark[] = " [... the rest is left out]";
    size_t n = sizeof mark - 1;

    if (ah_buf_ok(b) || b->status != AH_BUDGET)
        return ah_buf_ok(b);
    b->len = b->len + n <= b->max ? b->len : b->max > n ? ah_utf8_cut(b->data, b->max - n) : 0;
    b->status = AH_OK;
    ah_buf_add(b, mark, b->max < n ? 0 : n);
    return ah_buf_ok(b);
}

ah_buf ah_buf_take(ah_buf *b)
{
    ah_buf taken = *b;

    ah_buf_init(b, b->mem, b->max);
    return taken;
}

void ah_buf_give_back(ah_buf *b, ah_buf *taken)
{
#ifdef AH_LENT /* frees the bytes, so that ASan finds stale pointers */
    ah_buf_clear(taken);
#endif
    if (b->data || !taken->data) {
        ah_buf_clear(taken);
        return;
    }
    ah_buf_reset(taken, 0);
    *b = *taken;
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
    if (!ah_buf_ok(b) && b->status == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, AH_BUDGET, "%s is larger than %zu bytes", what, b->max);
}
