/* Fuzz target: schemas. The first line is a schema, the rest a value. A schema that
 * compiles must compile again from its own canonical text, to the same text; a value
 * with its defaults must be JSON; messages must be UTF-8. */
#include <stdint.h>
#include <stdlib.h>

#include "schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_that(bool holds)
{
    if (!holds)
        abort();
}

static bool is_json(ah_slice text)
{
    ah_json_fault fault;

    return ah_json_check(&ah_mem_libc, text, AH_JSON_MAX_DEPTH, &fault) == AH_OK;
}

static ah_schema *compile(ah_slice text, bool any_keywords)
{
    ah_schema_document documents[] = {
        {AH_LIT("http://e.com/d"), AH_LIT("{\"$dynamicAnchor\":\"T\",\"type\":\"string\"}")},
        {AH_LIT("http://e.com/broken"),
         AH_LIT("{\"$defs\":{\"a\":{\"$id\":\"in\"}},\"type\":\"\"}")},
        {AH_LIT("http://e.com/m"),
         AH_LIT("{\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vocab/core\":true,"
                "\"https://json-schema.org/draft/2020-12/vocab/applicator\":true}}")}};
    ah_schema_options options = {
        .documents = documents, .n = 3, .formats = true, .any_keywords = any_keywords};
    ah_err err = {0};
    ah_schema *s = NULL;

    if (!is_json(text))
        return NULL;
    if (ah_schema_compile_with(&ah_mem_libc, text, &options, &s, &err) != AH_OK)
        require_that(!s && err.message[0] && ah_utf8_valid(ah_slice_of(err.message)));
    return s;
}

static void compile_again(const ah_schema *s, bool any_keywords)
{
    ah_slice text = ah_text_slice(ah_schema_text(s));
    ah_schema *again = compile(text, any_keywords);

    require_that(again && ah_slice_eq(text, ah_text_slice(ah_schema_text(again))));
    ah_schema_unref(again);
}

/* The value with its defaults may be invalid: one property too many for maxProperties. */
static void check_filled(const ah_schema *s, ah_slice filled, ah_extra extra)
{
    ah_faults faults;
    ah_buf again;

    ah_faults_init(&faults, &ah_mem_libc);
    ah_buf_init(&again, &ah_mem_libc, 1 << 20);
    require_that(is_json(filled));
    if (ah_schema_check(s, filled, extra, &faults, &again) == AH_OK && !faults.n)
        require_that(is_json(ah_buf_slice(&again)));
    ah_buf_clear(&again);
    ah_faults_clear(&faults);
}

static void check(const ah_schema *s, ah_slice value, ah_extra extra)
{
    ah_faults faults;
    ah_buf out, words;

    ah_faults_init(&faults, &ah_mem_libc);
    ah_buf_init(&out, &ah_mem_libc, 1 << 20);
    ah_buf_init(&words, &ah_mem_libc, 1 << 20);
    if (ah_schema_check(s, value, extra, &faults, &out) == AH_OK) {
        ah_faults_print(&faults, &words);
        require_that(ah_utf8_valid(ah_buf_slice(&words)));
        require_that((faults.n > 0) == (words.len > 0) && faults.total >= faults.n);
        if (faults.n == 0)
            check_filled(s, ah_buf_slice(&out), extra);
    }
    ah_buf_clear(&words);
    ah_buf_clear(&out);
    ah_faults_clear(&faults);
}

/* The value with its coercions must be JSON; the list of coercions is written, too. */
static void coerce(const ah_schema *s, ah_slice value)
{
    ah_check_options options = {.coerce = true};
    ah_faults faults;
    ah_buf out, words;

    ah_faults_init(&faults, &ah_mem_libc);
    ah_buf_init(&out, &ah_mem_libc, 1 << 20);
    ah_buf_init(&words, &ah_mem_libc, 1000);
    options.coerced = &words;
    if (ah_schema_check_with(s, value, &options, &faults, &out) == AH_OK && !faults.n)
        require_that(is_json(ah_buf_slice(&out)));
    ah_buf_clear(&words);
    ah_buf_clear(&out);
    ah_faults_clear(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice in = {(const char *)data, size}, value;
    const char *line = size ? memchr(in.p, '\n', in.n) : NULL;
    bool any_keywords;
    ah_schema *s;

    if (!line)
        return 0;
    any_keywords = (line - in.p) % 2;
    value = (ah_slice){line + 1, (size_t)(in.p + in.n - line - 1)};
    if (!(s = compile((ah_slice){in.p, (size_t)(line - in.p)}, any_keywords)))
        return 0;
    compile_again(s, any_keywords);
    if (is_json(value)) {
        check(s, value, AH_EXTRA_SCHEMA);
        check(s, value, AH_EXTRA_FORBID);
        coerce(s, value);
    }
    ah_schema_unref(s);
    return 0;
}
