/* Fuzz target: the event-stream parser. The first byte is a chunk size; the rest
 * is fed whole, and again in chunks of that size. Both must give the same events
 * and the same status. The limit is small, so that inputs reach it. */
#include "cut.h"
#include "wire/sse.h"

enum { MAX_EVENT = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ah_status record(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    ah_buf *out = ud;

    (void)err;
    ah_buf_fmt(out, "%zu %zu ", event.n, data.n);
    ah_buf_put(out, event);
    ah_buf_put(out, data);
    return AH_OK;
}

static void run(ah_slice in, size_t chunk, ah_buf *out)
{
    ah_err err = {0};
    ah_status st = AH_OK;
    ah_sse s;

    ah_sse_init(&s, &ah_mem_libc, MAX_EVENT);
    while (in.n && st == AH_OK) {
        size_t n = chunk < in.n ? chunk : in.n;

        st = ah_sse_feed(&s, (ah_slice){in.p, n}, record, out, &err);
        in = (ah_slice){in.p + n, in.n - n};
    }
    if (st == AH_OK)
        st = ah_sse_end(&s, record, out, &err);
    ah_buf_fmt(out, "status %d %s", st, err.message);
    ah_sse_clear(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size)
        check_cut(data, size, run);
    return 0;
}
