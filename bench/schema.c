/* schema: the cost of checking a value compared with reading it. Checks a typical tool call of
 * under 1 KB many times after one compile, and a document of about 1 MB, compared with cJSON's
 * parser, which checks nothing. Also measures compiling, for the first time and from the cache.
 *
 *   schema ROUNDS   prints its figures as JSON
 *   schema case     prints the schema and the call, for other validators */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "schema/schema.h"

static const char call_schema[] =
    "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"maxLength\":400},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
    "\"sort\":{\"enum\":[\"date\",\"relevance\"]},"
    "\"filters\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"field\":{\"type\":\"string\"},\"value\":{\"type\":\"string\"}},"
    "\"required\":[\"field\",\"value\"],\"additionalProperties\":false}}},"
    "\"required\":[\"query\"],\"additionalProperties\":false}";
static const char call[] =
    "{\"query\":\"customers in Lyon who bought a bicycle last year and have not come back since\","
    "\"limit\":20,\"sort\":\"date\",\"filters\":["
    "{\"field\":\"city\",\"value\":\"Lyon\"},{\"field\":\"product\",\"value\":\"bicycle\"},"
    "{\"field\":\"since\",\"value\":\"2023-01-01\"},{\"field\":\"until\",\"value\":\"2023-12-31\"}]"
    "}";

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void fail(const char *what)
{
    fprintf(stderr, "schema: %s\n", what);
    exit(1);
}

static ah_schema *compile(const char *text)
{
    ah_schema *s = NULL;
    ah_err err = {0};

    if (ah_schema_compile(&ah_mem_libc, ah_slice_of(text), &s, &err) != AH_OK)
        fail(err.message);
    return s;
}

/* Returns the microseconds of one check. */
static double check(const ah_schema *s, ah_slice value, long times)
{
    double start = now_us();
    ah_faults faults;

    ah_faults_init(&faults, &ah_mem_libc);
    for (long i = 0; i < times; i++)
        if (ah_schema_check(s, value, AH_EXTRA_FORBID, &faults, NULL) != AH_OK || faults.n)
            fail("the value does not conform");
    ah_faults_clear(&faults);
    return (now_us() - start) / (double)times;
}

/* Returns the microseconds of one compile; with a cache, of one that finds the schema there. */
static double compile_again(ah_schema_cache *cache, long times)
{
    double start = now_us();
    ah_schema_options options = {.cache = cache};
    ah_err err = {0};

    for (long i = 0; i < times; i++) {
        ah_schema *s = NULL;

        if (ah_schema_compile_with(&ah_mem_libc, ah_slice_of(call_schema), &options, &s, &err) !=
            AH_OK)
            fail(err.message);
        ah_schema_unref(s);
    }
    return (now_us() - start) / (double)times;
}

static double parse(ah_slice value, long times)
{
    double start = now_us();

    for (long i = 0; i < times; i++) {
        cJSON *tree = cJSON_ParseWithLength(value.p, value.n);

        if (!tree)
            fail("cJSON does not read the value");
        cJSON_Delete(tree);
    }
    return (now_us() - start) / (double)times;
}

static double scan(ah_slice value, long times)
{
    double start = now_us();
    ah_json_fault fault;

    for (long i = 0; i < times; i++)
        if (ah_json_check(&ah_mem_libc, value, AH_JSON_MAX_DEPTH, &fault) != AH_OK)
            fail(fault.what);
    return (now_us() - start) / (double)times;
}

/* Makes a list of calls of about 1 MB. */
static void make_large(ah_buf *b)
{
    ah_buf_init(b, &ah_mem_libc, 2 << 20);
    ah_buf_char(b, '[');
    while (b->len < 1 << 20) {
        if (b->len > 1)
            ah_buf_char(b, ',');
        ah_buf_str(b, call);
    }
    ah_buf_char(b, ']');
    if (!ah_buf_ok(b))
        fail("out of memory");
}

static int measure(long rounds)
{
    ah_schema *one = compile(call_schema), *many;
    char text[sizeof call_schema + 64];
    double small, call_scan, large, parsed, scanned, compiled, shared;
    ah_schema_options options = {0};
    ah_schema_cache cache;
    ah_schema *kept = NULL;
    ah_buf document;

    snprintf(text, sizeof text, "{\"type\":\"array\",\"items\":%s}", call_schema);
    many = compile(text);
    make_large(&document);
    check(one, ah_slice_of(call), 1000); /* warms the caches */
    small = check(one, ah_slice_of(call), rounds * 5000);
    call_scan = scan(ah_slice_of(call), rounds * 5000);
    scanned = scan(ah_buf_slice(&document), rounds);
    large = check(many, ah_buf_slice(&document), rounds);
    parsed = parse(ah_buf_slice(&document), rounds);
    ah_schema_cache_init(&cache, &ah_mem_libc);
    options.cache = &cache;
    ah_schema_compile_with(&ah_mem_libc, ah_slice_of(call_schema), &options, &kept, NULL);
    compiled = compile_again(NULL, rounds * 50);
    shared = compile_again(&cache, rounds * 50);
    printf("{\"call_us\":%.3f,\"call_scan_us\":%.3f,\"call_bytes\":%zu,\"large_us\":%.1f,"
           "\"scan_us\":%.1f,\"cjson_us\":%.1f,\"compile_us\":%.2f,\"shared_us\":%.2f}\n",
           small, call_scan, sizeof call - 1, large, scanned, parsed, compiled, shared);
    ah_schema_unref(kept);
    ah_schema_cache_clear(&cache);
    ah_buf_clear(&document);
    ah_schema_unref(one);
    ah_schema_unref(many);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "case") == 0) {
        printf("{\"schema\":%s,\"value\":%s}\n", call_schema, call);
        return 0;
    }
    return measure(argc > 1 ? strtol(argv[1], NULL, 10) : 20);
}
