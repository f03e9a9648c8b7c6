/* A growing buffer with a limit. It owns its bytes. A failure sticks: every later add does nothing,
 * so a sequence of adds is checked once, with ah_buf_ok.
 *
 * A buffer that failed holds a part of its content, or nothing. Its users call ah_buf_ok (or
 * ah_buf_error, ah_buf_cut_short) before they read, reset or clear it. The checking build
 * (AH_CHECKING) aborts if a full buffer was not checked; `make check-torture` tests lack of
 * memory. Callers: its floor, floors above. */
#ifndef AH_BASE_BUF_H
#define AH_BASE_BUF_H

#include <stdarg.h>
#include <stdint.h>

#include "base/err.h"

typedef struct ah_buf {
    const ah_mem *mem;
    char *data; /* not NUL-terminated */
    size_t len, cap;
    size_t max;       /* limit of len, in bytes */
    ah_status status; /* AH_OK, AH_NOMEM, or AH_BUDGET when `max` was reached */
#ifdef AH_CHECKING
    bool unasked; /* the buffer was full, and ah_buf_ok was not called since */
#endif
} ah_buf;

#ifdef AH_CHECKING
void ah_buf_check(const ah_buf *b); /* aborts if `unasked` */
#endif

void ah_buf_init(ah_buf *b, const ah_mem *mem, size_t max);
void ah_buf_clear(ah_buf *b);             /* frees the bytes; the buffer is as after init */
void ah_buf_reset(ah_buf *b, size_t len); /* cuts to len, forgets a failure, keeps the memory */

void ah_buf_add(ah_buf *b, const void *p, size_t n);
void ah_buf_put(ah_buf *b, ah_slice s);
void ah_buf_str(ah_buf *b, const char *s);
void ah_buf_char(ah_buf *b, char c);
void ah_buf_int(ah_buf *b, int64_t v);
void ah_buf_fmt(ah_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ah_buf_vfmt(ah_buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Returns room for n more bytes at data + len; the caller fills it and adds to len. NULL on
 * failure, which sticks. */
char *ah_buf_room(ah_buf *b, size_t n);

/* ah_buf_take moves the bytes and their memory to the caller; if the buffer is used meanwhile it
 * allocates anew. ah_buf_give_back returns the memory for reuse. */
ah_buf ah_buf_take(ah_buf *b);
void ah_buf_give_back(ah_buf *b, ah_buf *taken);

/* Discards the first n bytes. */
void ah_buf_drop(ah_buf *b, size_t n);

static inline bool ah_buf_ok(const ah_buf *b)
{
#ifdef AH_CHECKING
    ((ah_buf *)b)->unasked = false;
#endif
    return b->status == AH_OK;
}
static inline ah_slice ah_buf_slice(const ah_buf *b)
{
#ifdef AH_CHECKING
    ah_buf_check(b);
#endif
    return (ah_slice){b->data ? b->data : "", b->len};
}

/* Adds at most `most` bytes of s, cut between characters, and a mark with the number of bytes
 * left out. For text that is useful in part. */
void ah_buf_put_most(ah_buf *b, ah_slice s, size_t most);
/* Makes a full buffer usable again; if there is room, a mark at its end reports the cut. False:
 * out of memory. */
bool ah_buf_cut_short(ah_buf *b);

/* Sets *err to the buffer's failure: out of memory, or AH_BUDGET "<what> is larger than <max>
 * bytes". Returns the status. */
ah_status ah_buf_error(const ah_buf *b, const char *what, ah_err *err);

#endif
