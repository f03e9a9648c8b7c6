/* Fuzz target: the response reader of Chat Completions, for servers that need a model's thoughts
 * sent back, and for Mistral; bits 2 and 3 of the first byte select the server. See reader.h for
 * the rest of the input and the checks. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const providers[] = {"litellm_proxy", "openrouter", "deepseek", "mistral"};

    return size ? fuzz_reader(providers[data[0] >> 2 & 3], "m", data, size) : 0;
}
