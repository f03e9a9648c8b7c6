/* Finds long strings, and writes and reads lists of cuts. */
#include "io/store_cut.h"

#include "base/json_walk.h"

bool ah_store_cut_find(ah_slice *text, ah_slice *found)
{
    ah_json_reader r;
    const char *from;

    if (text->n <= AH_STORE_CUT_LONGEST)
        return false;
    r = (ah_json_reader){text->p, text->p + text->n};
    while (r.end - r.p > AH_STORE_CUT_LONGEST &&
           (from = memchr(r.p, '"', (size_t)(r.end - r.p))) != NULL) {
        r.p = from;
        read_string(&r);
        if (r.p - from > AH_STORE_CUT_LONGEST) {
            *found = (ah_slice){from, (size_t)(r.p - from)};
            *text = (ah_slice){r.p, (size_t)(r.end - r.p)};
            return true;
        }
    }
    return false;
}

static void put_number(ah_buf *b, size_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        ah_buf_char(b, (char)(unsigned char)(v >> shift));
}

static size_t read_number(const char *p)
{
    size_t v = 0;

    for (int i = 0; i < 4; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

void ah_store_cut_put(ah_buf *cuts, const ah_store_cut *cut)
{
    put_number(cuts, cut->at);
    put_number(cuts, cut->n);
    ah_buf_put(cuts, cut->hash);
}

bool ah_store_cut_next(ah_slice *cuts, ah_store_cut *out)
{
    if (cuts->n < AH_STORE_CUT_BYTES)
        return false;
    *out = (ah_store_cut){.at = read_number(cuts->p),
                          .n = read_number(cuts->p + 4),
                          .hash = {cuts->p + 8, AH_SHA256_BYTES}};
    cuts->p += AH_STORE_CUT_BYTES;
    cuts->n -= AH_STORE_CUT_BYTES;
    return true;
}
