/* Fuzz target: keys from the bytes of a terminal. The first byte is a chunk size; the rest is
 * fed whole, and again in chunks of that size. Both must give the same events. After a pause the
 * next key must be recognized, unless a paste is open. The harmless form of the bytes has no
 * controls, and its width equals that of its parts. */
#include "base/harmless.h"
#include "base/keys.h"
#include "base/width.h"
#include "cut.h"

enum { MAX_PASTE = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(ah_keys *k, ah_keys_event e, const ah_key *key, ah_buf *out)
{
    if (e == AH_KEYS_KEY)
        ah_buf_fmt(out, "%s %s %d%d%d%d\n", key->name, key->text, key->ctrl, key->alt, key->shift,
                   key->super);
    else if (e == AH_KEYS_PASTE)
        ah_buf_fmt(out, "paste %d\n", ah_keys_pasted(k, out));
}

static void feed(ah_keys *k, ah_slice in, ah_buf *out)
{
    ah_keys_event e;
    ah_key key;

    while ((e = ah_keys_next(k, &in, &key)) != AH_KEYS_NOTHING)
        put(k, e, &key, out);
}

static void run(ah_slice in, size_t chunk, ah_buf *out)
{
    ah_slice up = AH_LIT("\033[A");
    ah_keys_event e;
    ah_keys k;
    ah_key key;

    ah_keys_init(&k, &ah_mem_libc, MAX_PASTE);
    while (in.n) {
        size_t n = chunk < in.n ? chunk : in.n;

        feed(&k, (ah_slice){in.p, n}, out);
        in = (ah_slice){in.p + n, in.n - n};
    }
    if ((e = ah_keys_quiet(&k, &key)) != AH_KEYS_NOTHING)
        put(&k, e, &key, out);
    if (ah_keys_wait_for(&k) != AH_KEYS_COMPLETE)
        abort();
    feed(&k, (ah_slice)AH_LIT("\033[201~"), out); /* ends a paste that is open */
    e = ah_keys_next(&k, &up, &key);
    if (e != AH_KEYS_KEY || strcmp(key.name, "up") != 0)
        abort();
    ah_keys_clear(&k);
}

static void show(ah_slice in)
{
    ah_buf b, *out = &b;
    size_t columns = 0;
    unsigned n = 0;

    ah_buf_init(out, &ah_mem_libc, SIZE_MAX);
    ah_harmless(in, false, out);
    for (size_t i = 0; i < out->len;
         i += ah_width_next((ah_slice){out->data + i, out->len - i}, &n), columns += n)
        if (out->data[i] != '\t' && ah_control_len((ah_slice){out->data + i, out->len - i}))
            abort();
    if (columns > ah_width(ah_buf_slice(out), 0))
        abort();
    ah_width(in, 3);
    ah_buf_clear(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size)
        show(check_cut(data, size, run));
    return 0;
}
