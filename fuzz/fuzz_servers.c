/* Fuzz target: the response reader of Chat Completions, as servers speak it that want back
 * what a model thought, and Mistral (bits 2 and 3 of the first byte say which). See reader.h
 * for the rest of the input and what is checked. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const providers[] = {"litellm_proxy", "openrouter", "deepseek", "mistral"};

    return size ? fuzz_reader(providers[data[0] >> 2 & 3], "m", data, size) : 0;
}
