/* Fuzzes src/base/json*.c: any bytes may be checked and walked. Accepted text must be walked in
 * balance, have one canonical text that is its own canonical text, with ascending keys, and
 * numbers that are the same after printing. Expected outputs are in spec/base/json_spec.lua. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static ah_buf new_buf(void)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, (size_t)1 << 26);
    return b;
}

/* The reader must end on any input; on checked text brackets are in balance. */
static void walk(ah_slice text, bool checked)
{
    ah_json_reader r = ah_json_read(text);
    ah_json_token t;
    ah_buf b = new_buf();
    long depth = 0;

    while ((t = ah_json_next(&r)).kind != AH_JSON_END) {
        depth += t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT;
        depth -= t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_OBJECT_END;
        if (t.kind == AH_JSON_STRING || t.kind == AH_JSON_KEY) {
            ah_buf_reset(&b, 0);
            ah_json_unescape(t.raw, &b);
            must(b.len <= t.raw.n || !checked);
            must(ah_utf8_valid(ah_buf_slice(&b)) || !checked);
        }
    }
    must(depth == 0 || !checked);
    r = ah_json_read(text);
    while ((t = ah_json_next(&r)).kind != AH_JSON_END)
        ah_json_skip(&r, t);
    ah_json_member(ah_json_member(text, "a"), "b");
    ah_buf_clear(&b);
}

/* An accepted string, written by us, must be accepted and read back the same. */
static void rewrite(ah_json_token t)
{
    ah_buf plain = new_buf(), text = new_buf(), again = new_buf();

    ah_json_unescape(t.raw, &plain);
    ah_json_put_string(&text, ah_buf_slice(&plain));
    must(ah_json_check(&ah_mem_libc, ah_buf_slice(&text), 0, NULL) == AH_OK);
    must(ah_json_string(ah_buf_slice(&text), &again));
    must(ah_slice_eq(ah_buf_slice(&plain), ah_buf_slice(&again)));
    ah_buf_clear(&plain);
    ah_buf_clear(&text);
    ah_buf_clear(&again);
}

static void reprint(ah_slice literal)
{
    ah_json_num num, back;
    ah_buf b = new_buf();

    if (ah_json_number(literal, &num)) {
        if (num.is_int)
            ah_buf_int(&b, num.i);
        else
            ah_json_put_double(&b, num.d);
        must(ah_json_check(&ah_mem_libc, ah_buf_slice(&b), 0, NULL) == AH_OK);
        must(ah_json_number(ah_buf_slice(&b), &back));
        must(back.is_int == num.is_int && back.i == num.i &&
             memcmp(&back.d, &num.d, sizeof num.d) == 0);
    }
    ah_buf_clear(&b);
}

/* In canonical text the keys of the object that was just opened strictly ascend. */
static void ascend(ah_json_reader r)
{
    ah_buf last = new_buf(), key = new_buf();
    ah_json_token t;

    for (bool first = true; (t = ah_json_next(&r)).kind == AH_JSON_KEY; first = false) {
        ah_buf_reset(&key, 0);
        ah_json_unescape(t.raw, &key);
        must(first || ah_slice_cmp(ah_buf_slice(&last), ah_buf_slice(&key)) < 0);
        ah_buf_reset(&last, 0);
        ah_buf_put(&last, ah_buf_slice(&key));
        ah_json_skip(&r, ah_json_next(&r));
    }
    must(t.kind == AH_JSON_OBJECT_END);
    ah_buf_clear(&last);
    ah_buf_clear(&key);
}

static void examine(ah_slice canon)
{
    ah_json_reader r = ah_json_read(canon);
    ah_json_token t;

    while ((t = ah_json_next(&r)).kind != AH_JSON_END) {
        if (t.kind == AH_JSON_STRING || t.kind == AH_JSON_KEY)
            rewrite(t);
        else if (t.kind == AH_JSON_NUMBER)
            reprint(t.raw);
        else if (t.kind == AH_JSON_OBJECT)
            ascend(r);
    }
}

static void accepted(ah_slice text)
{
    ah_json_reader r = ah_json_read(text);
    ah_buf once = new_buf(), twice = new_buf();

    walk(text, true);
    ah_json_skip(&r, ah_json_next(&r));
    must(ah_json_next(&r).kind == AH_JSON_END);
    must(ah_json_canon(&ah_mem_libc, text, &once) == AH_OK);
    must(ah_json_check(&ah_mem_libc, ah_buf_slice(&once), AH_JSON_MAX_DEPTH, NULL) == AH_OK);
    must(ah_json_canon(&ah_mem_libc, ah_buf_slice(&once), &twice) == AH_OK);
    must(ah_slice_eq(ah_buf_slice(&once), ah_buf_slice(&twice)));
    must(ah_json_kind_of(text) == ah_json_kind_of(ah_buf_slice(&once)));
    must(ah_json_hash(text) == ah_json_hash(ah_buf_slice(&once)));
    examine(ah_buf_slice(&once));
    ah_buf_clear(&once);
    ah_buf_clear(&twice);
}

static void refused(ah_slice text, const ah_json_fault *fault)
{
    ah_err err;

    must(fault->what && fault->offset <= text.n && fault->line >= 1 && fault->column >= 1);
    must(ah_json_check_err(&ah_mem_libc, text, "input", &err) == AH_TOOL_VALIDATION);
    must(ah_utf8_valid(ah_slice_of(err.message)));
    for (const char *p = err.message; *p; p++)
        must((unsigned char)*p >= 0x20 && *p != 0x7f);
    walk(text, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice text = {(const char *)data, size};
    ah_buf b = new_buf();
    ah_json_fault fault;

    if (ah_json_check(&ah_mem_libc, text, AH_JSON_MAX_DEPTH, &fault) == AH_OK)
        accepted(text);
    else
        refused(text, &fault);
    ah_utf8_repair(text, &b);
    must(ah_utf8_valid(ah_buf_slice(&b)));
    must(b.len == size || !ah_utf8_valid(text));
    ah_buf_clear(&b);
    return 0;
}
