/* Fuzz target: YAML. Any bytes give a value, or a message with a place, within the limits; a
 * value is sound JSON, and JSON that YAML accepts has the same value. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ah_status to_json(ah_slice text, ah_buf *out, ah_err *err)
{
    ah_buf_init(out, &ah_mem_libc, 8 * text.n + AH_YAML_REPEATED + 64);
    return ah_yaml_to_json(&ah_mem_libc, text, NULL, out, err);
}

static void check_again(ah_slice json)
{
    ah_buf again, a, b;
    ah_err err;

    ah_buf_init(&a, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&b, &ah_mem_libc, SIZE_MAX);
    if (to_json(json, &again, &err) == AH_OK) {
        if (ah_json_canon(&ah_mem_libc, json, &a) != AH_OK ||
            ah_json_canon(&ah_mem_libc, ah_buf_slice(&again), &b) != AH_OK)
            abort();
        if (!ah_slice_eq(ah_buf_slice(&a), ah_buf_slice(&b)))
            abort();
    }
    (void)ah_buf_ok(&again);
    ah_buf_clear(&again);
    ah_buf_clear(&a);
    ah_buf_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice text = {(const char *)data, size};
    ah_buf out;
    ah_err err;
    ah_status st = to_json(text, &out, &err);

    if (st == AH_OK) {
        if (ah_json_check(&ah_mem_libc, ah_buf_slice(&out), AH_JSON_MAX_DEPTH, NULL) != AH_OK)
            abort();
        check_again(ah_buf_slice(&out));
    } else if (st != AH_USAGE && (st != AH_TOOL_VALIDATION || (!strstr(err.message, " at line ") &&
                                                               !strstr(err.message, "%TAG")))) {
        abort();
    }
    (void)ah_buf_ok(&out);
    ah_buf_clear(&out);
    return 0;
}
