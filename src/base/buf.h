/* A growing buffer with a maximum. Failure sticks: after the first one every
 * add does nothing, so a sequence of adds is checked once, with ah_buf_ok.
 *
 * A buffer that failed holds only a part, or nothing. Its users ask whether it is whole (ah_buf_ok
 * and its like) before they read, reset or clear it. The checking build (AH_CHECKING) ends the
 * program where a full buffer was not asked; failing memory is the subject of make
 * check-torture. */
#ifndef AH_BASE_BUF_H
#define AH_BASE_BUF_H

#include <stdarg.h>
#include <stdint.h>

#include "base/err.h"

typedef struct ah_buf {
    const ah_mem *mem;
    char *data; /* not NUL-terminated */
    size_t len, cap;
    size_t max;       /* most bytes it may hold */
    ah_status status; /* AH_OK, AH_NOMEM, or AH_BUDGET when `max` was reached */
#ifdef AH_CHECKING
    bool unasked; /* it was full, and ah_buf_ok was not called since */
#endif
} ah_buf;

#ifdef AH_CHECKING
void ah_buf_check(const ah_buf *b); /* ends the program if `unasked` */
#endif

void ah_buf_init(ah_buf *b, const ah_mem *mem, size_t max);
void ah_buf_clear(ah_buf *b);             /* frees; the buffer is as after init */
void ah_buf_reset(ah_buf *b, size_t len); /* cuts to len, forgets a failure, keeps the memory */

void ah_buf_add(ah_buf *b, const void *p, size_t n);
void ah_buf_put(ah_buf *b, ah_slice s);
void ah_buf_str(ah_buf *b, const char *s);
void ah_buf_char(ah_buf *b, char c);
void ah_buf_int(ah_buf *b, int64_t v);
void ah_buf_fmt(ah_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ah_buf_vfmt(ah_buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Room for n more bytes at data + len, for the caller to fill and then add to len.
 * NULL on failure (sticky). */
char *ah_buf_room(ah_buf *b, size_t n);

/* Moves the bytes and their memory to the caller; the buffer gets other memory when it is used
 * meanwhile. ah_buf_give_back returns the memory for reuse. */
ah_buf ah_buf_take(ah_buf *b);
void ah_buf_give_back(ah_buf *b, ah_buf *taken);

/* Drops the first n bytes. */
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

/* Adds at most `most` bytes of s, cut at a character, and a mark with the number of bytes left out.
 * For text that is useful in part. */
void ah_buf_put_most(ah_buf *b, ah_slice s, size_t most);
/* Makes a full buffer whole again; a mark at its end (if there is room) says that the rest is left
 * out. False: out of memory. */
bool ah_buf_cut_short(ah_buf *b);

/* The buffer's failure in words: out of memory, or "<what> is larger than <max> bytes". */
ah_status ah_buf_error(const ah_buf *b, const char *what, ah_err *err);

#endif
