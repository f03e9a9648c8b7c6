/* Shared code of the fuzz targets of response readers. The first byte of an input selects
 * streamed or whole, success or error status; the second is a chunk size. The rest is fed whole
 * and in chunks, which must give the same entry or the same status. An entry must be sound JSON
 * and lower to sound JSON. */
#ifndef FUZZ_READER_H
#define FUZZ_READER_H

#include <stdint.h>
#include <stdlib.h>

#include "wire/providers.h"

typedef struct fuzzed {
    uint8_t mode;
    const char *stream; /* media type of streams */
} fuzzed;

static ah_slice header(const void *ud, const char *name)
{
    const fuzzed *f = ud;

    if (strcmp(name, "content-type") == 0)
        return ah_slice_of(f->mode & 1 ? f->stream : "application/json");
    return (ah_slice){NULL, 0};
}

static ah_status feed(ah_reader *r, ah_slice in, size_t chunk, ah_err *err)
{
    ah_status st = AH_OK;

    while (in.n && st == AH_OK) {
        size_t n = chunk < in.n ? chunk : in.n;

        st = r->adapter->vt->feed(r, (ah_slice){in.p, n}, err);
        in = (ah_slice){in.p + n, in.n - n};
    }
    return st == AH_OK ? r->adapter->vt->end(r, err) : st;
}

/* The next request must be JSON, whatever the model's answer. */
static void check_lowering(ah_adapter *a, ah_transcript *t, ah_text *entry)
{
    ah_wire w;
    ah_break brk;
    ah_buf all;
    ah_slice body[3];
    size_t at;
    ah_err err;

    if (ah_transcript_begin(t, ah_text_ref(entry), &err) != AH_OK)
        abort();
    for (size_t i = 0; i < t->n_slots; i++)
        ah_transcript_settle(t, i, "settled", 0);
    ah_transcript_commit(t);
    if (ah_transcript_sound(t, &err) != AH_OK)
        abort();
    ah_wire_init(&w, &ah_mem_libc, a, t);
    ah_buf_init(&all, &ah_mem_libc, SIZE_MAX);
    if (ah_wire_update(&w, &brk, &at, &err) != AH_OK)
        abort();
    for (size_t i = 0, n = ah_wire_body(&w, body); i < n; i++)
        ah_buf_put(&all, body[i]);
    if (ah_json_check(&ah_mem_libc, ah_buf_slice(&all), AH_JSON_MAX_DEPTH, NULL) != AH_OK)
        abort();
    ah_buf_clear(&all);
    ah_wire_clear(&w);
}

static void read_once(ah_adapter *a, const fuzzed *f, ah_slice in, size_t chunk, ah_buf *out)
{
    ah_response_head head = {.status = f->mode & 2 ? 500 : 200, .header = header, .ud = f};
    ah_transcript *t = ah_transcript_new(&ah_mem_libc);
    ah_origin origin = ah_adapter_origin(a);
    ah_text *entry = NULL;
    ah_assembly msg;
    ah_reader *r;
    ah_err err = {0};
    ah_status st;

    ah_assembly_init(&msg, &ah_mem_libc, NULL, NULL, NULL);
    a->vt->open(a, &msg, &r, &err);
    a->vt->head_came(r, &head, &err);
    st = feed(r, in, chunk, &err);
    if (st == AH_OK && ah_assembly_entry(&msg, t, &origin, 0, &entry, &err) == AH_OK) {
        if (ah_json_check(&ah_mem_libc, ah_text_slice(entry), AH_JSON_MAX_DEPTH, NULL) != AH_OK)
            abort();
        ah_buf_put(out, ah_text_slice(entry));
        check_lowering(a, t, entry);
    }
    ah_buf_fmt(out, " %d %s", st, err.message);
    ah_text_unref(entry);
    a->vt->close(r);
    ah_assembly_clear(&msg);
    ah_transcript_unref(t);
}

static int fuzz_reader(const char *provider, const char *model, const uint8_t *data, size_t size)
{
    fuzzed f = {0};
    ah_secrets secrets = {.mem = &ah_mem_libc};
    ah_provider_options o = {.mem = &ah_mem_libc, .secrets = &secrets, .stream = true};
    ah_buf whole, cut;
    ah_adapter *a;
    ah_err err;
    ah_slice in;

    if (size < 2)
        return 0;
    o.base_url = ah_slice_of("http://127.0.0.1");
    if (ah_provider_open(ah_slice_of(provider), ah_slice_of(model), &o, &a, &err) != AH_OK)
        abort();
    f.stream =
        ((const ah_wire_native *)a)->service->lines ? "application/x-ndjson" : "text/event-stream";
    f.mode = data[0];
    in = (ah_slice){(const char *)data + 2, size - 2};
    ah_buf_init(&whole, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&cut, &ah_mem_libc, SIZE_MAX);
    read_once(a, &f, in, SIZE_MAX, &whole);
    read_once(a, &f, in, data[1] ? data[1] : 1, &cut);
    if (!ah_slice_eq(ah_buf_slice(&whole), ah_buf_slice(&cut)))
        abort();
    ah_buf_clear(&whole);
    ah_buf_clear(&cut);
    ah_adapter_unref(a);
    ah_secrets_clear(&secrets);
    return 0;
}

#endif
