/* For fuzz targets whose reader takes its input in pieces: the output must not depend on the
 * cuts. The first byte of an input is the size of the pieces. */
#ifndef FUZZ_CUT_H
#define FUZZ_CUT_H

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"

/* Appends the whole output for `in`, read in pieces of `chunk` bytes. */
typedef void fuzz_run(ah_slice in, size_t chunk, ah_buf *out);

/* Aborts if the output for the whole differs from the one for the pieces. Returns the input
 * without its first byte. */
static ah_slice check_cut(const uint8_t *data, size_t size, fuzz_run *run)
{
    ah_slice in = {(const char *)data + 1, size - 1};
    ah_buf whole, cut;

    ah_buf_init(&whole, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&cut, &ah_mem_libc, SIZE_MAX);
    run(in, SIZE_MAX, &whole);
    run(in, data[0] ? data[0] : 1, &cut);
    if (!ah_slice_eq(ah_buf_slice(&whole), ah_buf_slice(&cut)))
        abort();
    ah_buf_clear(&whole);
    ah_buf_clear(&cut);
    return in;
}

#endif
