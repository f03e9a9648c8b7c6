/* The kept end moves only from time to time, so that a large stream is copied about once. */
#include "base/ends.h"

#include <inttypes.h>

#include "base/json.h"

void ah_ends_init(ah_ends *e, const ah_mem *mem, size_t head_bytes, size_t tail_bytes)
{
    *e = (ah_ends){.tail_bytes = tail_bytes};
    ah_buf_init(&e->head, mem, head_bytes);
    ah_buf_init(&e->tail, mem, 3 * tail_bytes + 1);
}

void ah_ends_clear(ah_ends *e)
{
    ah_buf_clear(&e->head);
    ah_buf_clear(&e->tail);
    e->bytes = 0;
}

static void add_tail(ah_ends *e, ah_slice s)
{
    if (s.n > e->tail_bytes)
        s = (ah_slice){s.p + (s.n - e->tail_bytes), e->tail_bytes};
    ah_buf_put(&e->tail, s);
    if (e->tail.len > 2 * e->tail_bytes)
        ah_buf_drop(&e->tail, e->tail.len - e->tail_bytes);
}

void ah_ends_put(ah_ends *e, ah_slice s)
{
    size_t room = e->head.max - e->head.len, first = s.n < room ? s.n : room;

    ah_buf_add(&e->head, s.p, first);
    if (s.n > first)
        add_tail(e, (ah_slice){s.p + first, s.n - first});
    e->bytes += (int64_t)s.n;
}

bool ah_ends_whole(const ah_ends *e)
{
    return ah_buf_ok(&e->head) && ah_buf_ok(&e->tail);
}

ah_slice ah_ends_head(const ah_ends *e)
{
    return ah_buf_slice(&e->head);
}

ah_slice ah_ends_tail(const ah_ends *e)
{
    size_t n = e->tail.len < e->tail_bytes ? e->tail.len : e->tail_bytes;

    return (ah_slice){n ? e->tail.data + (e->tail.len - n) : "", n};
}

void ah_ends_print(const ah_ends *e, ah_buf *out)
{
    ah_slice head = ah_ends_head(e), tail = ah_ends_tail(e);
    int64_t between = e->bytes - (int64_t)head.n - (int64_t)tail.n;

    ah_utf8_repair(head, out);
    if (between > 0)
        ah_buf_fmt(out, "\n[... %" PRId64 " bytes left out ...]\n", between);
    ah_utf8_repair(tail, out);
}
